"""The journal of a mirror's plan: its port, and the write order for any storage.

Each write checks the leases first. An outcome is stored together with its ledger entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from federator.apply.outcome import Outcome, OutcomeState
from federator.apply.write_path import WriteJournal
from federator.planning.changes import Action, Change
from federator.planning.intent_resolution import JournalLease, journal_code, ledger_entry, require_leases
from federator.planning.ledger import OwnedObject
from federator.planning.reasons import ApplyCode
from federator.planning.rule import MirrorRule

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Intent:
    """The durable record of a change before its call: the change, its ``change_number`` in ``plan`` (a digest), and the operation
    id.

    ``native_before`` is the native object that a recreate is about to replace, as ``Catalog.read_native`` returned it.
    """

    op_id: str
    plan: str
    change_number: int
    change: Change
    native_before: Mapping[str, Any] | None = None


class Journal(WriteJournal[Intent, Outcome], Protocol):
    """One mirror's journal, and what the index has of its two sources.

    An outcome is recorded together with its ledger entry. ``record_intent`` and ``record_outcome`` raise LeaseLost.
    """

    def list_open_intents(self) -> Sequence[Intent]:
        """Return the intents to resolve, in the order in which they were recorded: those without an outcome, and those whose calls
        were carried out after their outcomes."""

    def can_call_within(self, seconds: float) -> bool:
        """Tell whether a call of this many seconds that starts now certainly ends while every lease is held."""

    def paths_at(self, canonical_location: str) -> Collection[str]:
        """Return the target's paths that the index has at a canonical location."""

    def paths_declared_at(self, canonical_location: str) -> Collection[str]:
        """Return the target's paths that the ledger has at a canonical location, also those of a dead run."""

    def paths_pending_at(self, canonical_location: str) -> Collection[str]:
        """Return the target's paths that a call with unknown outcome may have put at a canonical location, or may still put there."""

    def origin_digest(self, path: str) -> str | None:
        """Return the digest of the origin's table in the index. None if it is not there."""


class LeasedJournal(ABC, Generic[T]):
    """The writing half of ``Journal`` over transactions of type ``T``. ``leases`` are those of the mirror and of the target."""

    rule: MirrorRule
    leases: Sequence[JournalLease[T]]

    def can_call_within(self, seconds: float) -> bool:
        return all(lease.outlasts(seconds) for lease in self.leases)

    def record_intent(self, intent: Intent) -> None:
        with self._checked_transaction() as transaction:
            self._store_intent(transaction, intent)

    def record_outcome(self, intent: Intent, outcome: Outcome) -> None:
        change, done = outcome.change, outcome.state is OutcomeState.DONE
        entry: OwnedObject | None = None
        native_id: str | None = None
        with self._checked_transaction() as transaction:
            had_entry = False
            if done:
                entry = ledger_entry(self.rule, change, intent.op_id, outcome.record, outcome.ledger_digest)
                # An adopted object may have been another mirror's.
                mirror = None if change.action is Action.ADOPT else self.rule.name
                had_entry = self._replace_entry(transaction, change, entry, mirror)
            # A recreate that failed has declared the old table again, as another object.
            elif outcome.code is ApplyCode.RESTORED and outcome.record is not None:
                native_id = outcome.record.native_id
                self._store_native_id(transaction, change, native_id)
            code = journal_code(change, outcome.state, outcome.code, had_entry=had_entry)
            self._store_outcome(transaction, intent, outcome, code, entry, native_id)

    @contextmanager
    def _checked_transaction(self) -> Iterator[T]:
        """Open a write transaction that starts with a check of every lease."""
        with self._transaction() as transaction:
            require_leases(self.leases, transaction)
            yield transaction

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[T]: ...

    @abstractmethod
    def _store_intent(self, transaction: T, intent: Intent) -> None: ...

    @abstractmethod
    def _replace_entry(self, transaction: T, change: Change, entry: OwnedObject | None, mirror: str | None) -> bool:
        """Replace the ledger entry of the target, of one mirror or, with None, of any. Return whether there was one."""

    @abstractmethod
    def _store_native_id(self, transaction: T, change: Change, native_id: str | None) -> None:
        """Store another native id in the ledger entry of the target."""

    @abstractmethod
    def _store_outcome(
        self, transaction: T, intent: Intent, outcome: Outcome, code: str | None, entry: OwnedObject | None,
        native_id: str | None,
    ) -> None: ...  # fmt: skip
