"""The stable reason codes of refusals. Users filter and alert on them: a code is never renamed."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something that differs is left as it is."""

    #: the listing that would prove it did not succeed, or was not made
    NOT_COVERED = "not_covered"
    #: proven absent, but not often or not long enough
    MISSES = "misses"
    #: the object carries somebody else's mark, lost ours, or was recreated by somebody
    NOT_OURS = "not_ours"
    #: an object of that name was there before us
    NAME_TAKEN = "name_taken"
    #: our mark without a ledger entry: `federator ledger rebuild` takes it in
    UNLEDGERED = "unledgered"
    #: the origin is itself a mirror's copy
    LOOP = "loop"
    #: no longer selected by the mirror, or mapped to another name: only pruning removes it
    UNSELECTED = "unselected"
    #: the catalog manages the origin itself
    MANAGED_TABLE = "managed_table"
    #: the origin could be listed but not described
    UNDESCRIBED = "undescribed"
    #: two origins map to one target
    NAME_CLASH = "name_clash"
    #: they differ only by case, which the target folds
    CASE_FOLD_CLASH = "case_fold_clash"
    NAME_NOT_ALLOWED = "name_not_allowed"
    DEPTH = "depth"
    #: the origin has no location, or one that is no URI
    NO_LOCATION = "no_location"
    #: declaring would make the directory of a place that does not exist
    LOCATION_MISSING = "location_missing"
    #: the target declares this location under another name
    LOCATION_DECLARED = "location_declared"
    #: we declared it and somebody removed it; `on_missing` decides
    MISSING_AT_TARGET = "missing_at_target"
    #: the target differs and its catalog cannot alter
    DRIFTED = "drifted"
    #: the mirror never deletes
    DELETE_NEVER = "delete_never"
    #: the namespace does not exist at the target and cannot be created there
    NAMESPACE_MISSING = "namespace_missing"
    #: found by apply: the object is not as the plan read it
    MOVED = "moved"
    #: a direct look found the origin after all, as a Lance table or as something else
    STILL_THERE = "still_there"
