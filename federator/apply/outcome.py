"""Outcome: what became of one Change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Change
from federator.planning.marks import plain_doc, unmarked

#: the code of a recreation that was undone: the object is there as it was, under a new native id
RESTORED = "restored"


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

    @property
    def target_digest(self) -> str | None:
        """The digest under which the ledger knows the target; None where the target is not as the Change asked for.

        Somebody may have changed it before a lost call's fate was found out: the next plan must look at it again.
        """
        made, asked = self.record, self.change.after
        if not isinstance(made, TableRecord) or asked is None:
            return None
        ours = {key: value for key, value in unmarked(asked.properties).items() if made.properties.get(key) != value}
        same = made.canonical == asked.canonical and not ours and plain_doc(made.doc) == plain_doc(asked.doc)
        return made.digest if same else None
