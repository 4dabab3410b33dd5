"""Outcome: the result of one change."""

from __future__ import annotations

from dataclasses import dataclass

from federator.connector import Unsupported
from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Change
from federator.planning.intent_resolution import OutcomeState as OutcomeState
from federator.planning.ownership import strip_comment_marker, strip_marker_properties
from federator.planning.reasons import ApplyCode, OutcomeCode, Reason, code_text

#: codes of skipped changes that the run could not attempt, or that the target does not support although its capabilities allow them:
#: the run is partial, and the next one repeats them
NOT_ATTEMPTED = frozenset({ApplyCode.LEASE, ApplyCode.OPEN_INTENT, Reason.OBSERVATION_TOO_OLD, Unsupported.code})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one change. ``record`` is the target as it was read afterwards (None: absent), at ``observed_at``.

    ``origin_age`` is the time in seconds between the last observation of the origin and the call. None if no observation was
    needed.
    """

    change: Change
    state: OutcomeState
    code: OutcomeCode | None = None
    message: str | None = None
    record: TableRecord | NamespaceRecord | None = None
    observed_at: float = 0.0
    op_id: str | None = None
    origin_age: float | None = None

    @property
    def code_text(self) -> str | None:
        """The code as it is stored, served and printed."""
        return code_text(self.code)

    @property
    def ledger_digest(self) -> str | None:
        """The digest that the ledger stores of the target. None if the target differs from the change's desired record.

        Another client may have changed the target before a lost call was resolved, so the next plan must compare it again.
        """
        observed, desired = self.record, self.change.after
        if not isinstance(observed, TableRecord) or desired is None:
            return None
        missing_properties = {
            key: value
            for key, value in strip_marker_properties(desired.properties).items()
            if observed.properties.get(key) != value
        }
        same = (
            observed.canonical == desired.canonical
            and not missing_properties
            and strip_comment_marker(observed.doc) == strip_comment_marker(desired.doc)
        )
        return observed.digest if same else None
