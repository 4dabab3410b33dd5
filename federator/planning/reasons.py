"""The stable codes of refusals and outcomes. Users filter and alert on them: a code is never renamed."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a difference is left alone."""

    # Unknown or unproven.

    #: the listing that would prove the change failed, or was not made
    NOT_COVERED = "not_covered"
    #: proven absent, but not often or not long enough; the detail has the count
    MISSES = "misses"
    #: a direct observation found the origin, as a Lance table or as a foreign object
    STILL_THERE = "still_there"
    #: the origin could be listed but not described
    UNDESCRIBED = "undescribed"
    #: the location of a new table is not known to be a valid Lance dataset, and `only_valid` is set
    NOT_VALID = "not_valid"

    # Not owned.

    #: the object has another owner's marker, lost this mirror's marker, or was recreated by another process
    NOT_OURS = "not_ours"
    #: an object of that name existed before
    NAME_TAKEN = "name_taken"
    #: the name belongs to a mirror whose source comes first in `source_priority`
    OUTRANKED = "outranked"
    #: the ledger does not know the object's ownership marker, or has another operation: `federator ledger rebuild` adds the object
    UNLEDGERED = "unledgered"
    #: the target cannot show who owns the object: no marker, no identity
    NEEDS_ADOPTION = "needs_adoption"
    #: the origin was declared by a mirror, or would return to a source where it has been
    LOOP = "loop"
    #: no longer selected by the mirror, or mapped to another name: only pruning removes it
    UNSELECTED = "unselected"

    # Impossible at the target.

    #: the catalog manages the origin itself
    MANAGED_TABLE = "managed_table"
    #: two origins map to one target
    NAME_CLASH = "name_clash"
    #: two origins differ only by case, which the target folds
    CASE_FOLD_CLASH = "case_fold_clash"
    NAME_NOT_ALLOWED = "name_not_allowed"
    DEPTH = "depth"
    #: the origin has no location, or one that is not a URI or that the target does not accept
    NO_LOCATION = "no_location"
    #: a property is longer than the target allows
    PROPERTY_REFUSED = "property_refused"
    #: the declaration would create the directory of a location that does not exist
    LOCATION_MISSING = "location_missing"
    #: the target, or the server that it shares with the origin, declares this location under another name
    LOCATION_DECLARED = "location_declared"
    #: the origin has a new name, and the old name is not proven absent yet
    RENAME_PENDING = "rename_pending"
    #: the namespace does not exist at the target and cannot be created there
    NAMESPACE_MISSING = "namespace_missing"

    # Left alone by a policy of the mirror.

    #: the mirror declared the table and another process removed it; `on_missing` decides
    MISSING_AT_TARGET = "missing_at_target"
    #: the target differs, and its catalog cannot alter tables, or `on_drift` is `report`, or a recreate would be refused again
    DRIFTED = "drifted"
    #: the namespace looks empty, and its catalog would also drop objects that its listing hides: `mirror prune` asks for
    #: confirmation
    DROP_CASCADES = "drop_cascades"
    #: the mirror never deletes
    DELETE_NEVER = "delete_never"
    #: the mirror makes this change only in its `windows`
    OUTSIDE_WINDOW = "outside_window"
    #: the plan waits: a guard holds it
    HELD_BY_GUARD = "held_by_guard"
    #: the plan waits: each plan of the mirror needs an approval
    APPROVAL_REQUIRED = "approval_required"

    #: found by apply: the object has changed since the plan read it
    MOVED = "moved"
    #: found by apply: observing the origin took longer than `max_origin_age` before the call
    OBSERVATION_TOO_OLD = "observation_too_old"


class ApplyCode(StrEnum):
    """A code of an outcome that no plan gives: apply found it, or caused it."""

    # About the object.

    #: the namespace exists, and no ownership marker shows that the mirror created it
    ALREADY_THERE = "already_there"
    #: the object shows that the call was not carried out; it may still take effect later
    NOT_MADE = "not_made"
    #: the namespace to drop has content
    NOT_EMPTY = "not_empty"
    #: the old declaration could not be restored completely if a recreate failed
    NOT_RESTORABLE = "not_restorable"
    #: a recreate was undone: the old declaration was restored, under a new native id
    RESTORED = "restored"

    # About the application: the change was not started.

    #: the change before it in its unit was not made
    FIRST_HALF = "first_half"
    #: the lease ends before the call's deadline, or another process writes to the table
    LEASE = "lease"
    #: the outcome of the last call to this path or location is unknown
    OPEN_INTENT = "open_intent"
    #: the target did not serve the last calls: it did not respond, or it responded that it is not available
    UNAVAILABLE = "unavailable"
    #: as many changes failed as the run allows
    MAX_FAILURES = "max_failures"
    #: a stop of the run was requested
    STOPPED = "stopped"

    # About the origin of a completed change, which was observed afterwards.

    #: the origin exists again
    ORIGIN_RETURNED = "origin_returned"
    #: the origin has changed since the plan
    ORIGIN_CHANGED = "origin_changed"


#: the code of an outcome; an int is the code of a catalog's error (``CatalogError.code``)
OutcomeCode = Reason | ApplyCode | int


def code_text(code: OutcomeCode | None) -> str | None:
    """The code as it is stored, served and printed."""
    return None if code is None else str(code)
