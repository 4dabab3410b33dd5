"""Outcome: what became of one Change."""

from __future__ import annotations

from dataclasses import dataclass

from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Change
from federator.planning.marks import plain_doc, unmarked
from federator.planning.settlement import State as State

#: the code of a recreation that was undone: the object is there as it was, under a new native id
RESTORED = "restored"
#: codes of skipped changes that the run could not attempt: they leave the run partial, and the next one repeats them
NOT_ATTEMPTED = frozenset({"lease", "open_intent", "observation_too_old"})
#: the codes of a change that was made, and whose origin was observed afterwards: it is there again, or not as the plan read it
ORIGIN_RETURNED = "origin_returned"
ORIGIN_CHANGED = "origin_changed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one Change. ``record`` is the target as it was read afterwards (None: absent), at ``observed_at``.

    ``origin_age`` is the time in seconds between the last observation of the origin and the call; None where none was needed.
    """

    change: Change
    state: State
    code: str | None = None
    message: str | None = None
    record: TableRecord | NamespaceRecord | None = None
    observed_at: float = 0.0
    op_id: str | None = None
    origin_age: float | None = None

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
