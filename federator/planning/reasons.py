"""The stable reason codes of refusals. Users filter and alert on them: a code is never renamed."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something that differs is left as it is."""

    # What is not known, or not proven.

    #: the listing that would prove it did not succeed, or was not made
    NOT_COVERED = "not_covered"
    #: proven absent, but not often or not long enough; the detail has the count
    MISSES = "misses"
    #: a direct look found the origin after all, as a Lance table or as something else
    STILL_THERE = "still_there"
    #: the origin could be listed but not described
    UNDESCRIBED = "undescribed"
    #: the place of a new table is not known to be a valid Lance dataset, and `only_valid` is set
    NOT_VALID = "not_valid"

    # What is not ours.

    #: the object carries somebody else's mark, lost ours, or was recreated by somebody
    NOT_OURS = "not_ours"
    #: an object of that name was there before us
    NAME_TAKEN = "name_taken"
    #: the name belongs to a mirror whose source comes first in `source_priority`
    OUTRANKED = "outranked"
    #: our mark that the ledger does not know, or knows with another operation: `federator ledger rebuild` takes it in
    UNLEDGERED = "unledgered"
    #: nothing at the target could tell whose it is: no mark, no identity
    NEEDS_ADOPTION = "needs_adoption"
    #: the origin is itself a mirror's copy, or would return to a source where it has been
    LOOP = "loop"
    #: no longer selected by the mirror, or mapped to another name: only pruning removes it
    UNSELECTED = "unselected"

    # What cannot be at the target.

    #: the catalog manages the origin itself
    MANAGED_TABLE = "managed_table"
    #: two origins map to one target
    NAME_CLASH = "name_clash"
    #: they differ only by case, which the target folds
    CASE_FOLD_CLASH = "case_fold_clash"
    NAME_NOT_ALLOWED = "name_not_allowed"
    DEPTH = "depth"
    #: the origin has no location, or one that is no URI
    NO_LOCATION = "no_location"
    #: a property is longer than the target takes
    PROPERTY_REFUSED = "property_refused"
    #: declaring would make the directory of a place that does not exist
    LOCATION_MISSING = "location_missing"
    #: the target declares this location under another name
    LOCATION_DECLARED = "location_declared"
    #: the origin has a new name, and the old one is not proven gone yet
    RENAME_PENDING = "rename_pending"
    #: the namespace does not exist at the target and cannot be created there
    NAMESPACE_MISSING = "namespace_missing"

    # What the mirror's policies keep.

    #: we declared it and somebody removed it; `on_missing` decides
    MISSING_AT_TARGET = "missing_at_target"
    #: the target differs, and its catalog cannot alter or `on_drift` says to report it
    DRIFTED = "drifted"
    #: it looks empty, and its catalog would drop what the listing hides with it: `mirror prune` asks a person
    DROP_CASCADES = "drop_cascades"
    #: the mirror never deletes
    DELETE_NEVER = "delete_never"
    #: a change that the mirror makes in its `windows` only
    OUTSIDE_WINDOW = "outside_window"
    #: the plan waits: a guard objects to it
    HELD_BY_GUARD = "held_by_guard"
    #: the plan waits: the mirror wants a person's word for each one
    APPROVAL_REQUIRED = "approval_required"

    #: found by apply: the object is not as the plan read it
    MOVED = "moved"
    #: found by apply: observing the origin took longer than `max_origin_age` before the call
    OBSERVATION_TOO_OLD = "observation_too_old"
