"""The port between the executor and whatever remembers: what is durable before a call, and what became of it after."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from federator.apply.outcome import Outcome
from federator.planning.changes import Change


@dataclass(frozen=True, slots=True)
class Intent:
    """What is durable before a call: the Change, ``number`` of its ``plan`` (a digest), and the operation's id.

    ``saved`` is the whole native object that a recreation is about to replace, as ``Catalog.native`` gave it.
    """

    op_id: str
    plan: str
    number: int
    change: Change
    saved: Mapping[str, Any] | None = None


class Journal(Protocol):
    """One mirror's journal and what it knows of both sources. Safe for threads; ``intend`` and ``settle`` raise LeaseLost."""

    def open_intents(self) -> list[Intent]:
        """Intents without an outcome, in the order in which they were made."""
        ...

    def may_call(self, seconds: float) -> bool:
        """Whether a call of this many seconds that starts now ends while every lease is certainly ours."""
        ...

    def intend(self, intent: Intent) -> None:
        """Records an intent, durably when it returns."""
        ...

    def settle(self, intent: Intent, outcome: Outcome) -> None:
        """Records the outcome, the ledger's entry and the audit event in one transaction."""
        ...

    def names_at(self, canonical: str) -> Collection[str]:
        """The target's paths that are known to be at a canonical location."""
        ...

    def names_given(self, canonical: str) -> Collection[str]:
        """The target's paths that were put at a canonical location, be it by a run that died before anybody knew of it."""
        ...

    def names_pending(self, canonical: str) -> Collection[str]:
        """The target's paths that a call whose fate is not known may have put at a canonical location, or may yet put there."""
        ...

    def origin_digest(self, path: str) -> str | None:
        """The digest of the origin's table as it is known now; None where it is not known."""
        ...
