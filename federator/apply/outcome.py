"""Outcome: what became of one Change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Change


class State(StrEnum):
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    #: the call's fate is unknown and the object cannot tell: a person decides
    NEEDS_ADOPTION = "needs_adoption"
    #: the call's fate is unknown and the catalog does not answer: the intent stays open
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one Change. ``record`` is the target as it was read afterwards (None: absent), at ``observed_at``."""

    change: Change
    state: State
    code: str | None = None
    message: str | None = None
    record: TableRecord | NamespaceRecord | None = None
    observed_at: float = 0.0
    op_id: str | None = None
