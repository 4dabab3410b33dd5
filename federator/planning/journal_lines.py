"""Meaning of journal lines: counted removals, changes that may still take effect, and unfinished renames.

A line is an intent with its outcome. ``store.journal`` selects lines in SQL; their meaning is decided here. The selection may omit
only lines that do not matter for a question (``Question``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from federator.model import TableRecord
from federator.planning.changes import Action, Change, is_destructive
from federator.planning.guards import may_have_taken_effect
from federator.planning.ownership import find_bound_marker
from federator.planning.reasons import ApplyCode, Reason

#: the state of a line without outcome; the other states are those of ``intent_resolution.OutcomeState``
INTENT = "intent"
#: actions that count against the deletion guards
DESTRUCTIVE = (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE)
#: actions whose change may be destructive
POSSIBLY_DESTRUCTIVE = (*DESTRUCTIVE, Action.UPDATE_TABLE, Action.ADOPT)
#: codes of failed calls that may take effect later, or that may have been carried out in part
ABANDONED_CODES = (ApplyCode.NOT_MADE, Reason.NAMESPACE_MISSING)

FindTable = Callable[[str, str], TableRecord | None]


class JournalEffect(StrEnum):
    """The code of a line with an effect that the guards count differently. It replaces the code of the outcome."""

    #: the write gave a table another location
    LOCATION_CHANGED = "location_changed"
    #: both changes of a completed rename: no table was lost
    RENAMED = "renamed"
    #: the removal had already been carried out: neither the target nor the ledger changed
    ALREADY_GONE = "already_gone"


class Question(StrEnum):
    """What a caller wants to know of a mirror's journal lines: the function that gets the lines."""

    #: ``list_removals``
    REMOVALS = "removals"
    #: ``count_dropped``
    DROPPED = "dropped"
    #: ``list_obstructed_paths``
    OBSTRUCTED = "obstructed"
    #: ``list_unfinished_renames``
    RENAMES = "renames"
    #: ``list_refused_recreates``
    RECREATES = "recreates"


class JournalLine(NamedTuple):
    """The outcome of one change. Lines have the order of their intents. ``code`` is the stored text of a ``JournalEffect`` or an
    ``OutcomeCode``."""

    change: Change
    state: str
    code: str | None


def counts_as_removal(action: str, state: str, code: str | None) -> bool:
    """Tell whether the guards count a line as a removal: a deregistration or a location change that was carried out, or may have
    been.

    ``store.journal.removal_condition`` is the same rule in SQL.
    """
    if state not in ("done", "needs_adoption"):
        return False
    spared = code in (JournalEffect.RENAMED, JournalEffect.ALREADY_GONE)
    return code == JournalEffect.LOCATION_CHANGED or (action in DESTRUCTIVE and not spared)


def count_dropped(lines: Iterable[JournalLine]) -> int:
    """Return how many namespaces one mirror's lines dropped, or may have dropped. The guards count them."""
    dropped = (line for line in lines if line.change.action is Action.DROP_NAMESPACE and line.change.namespace is not None)
    return sum(
        (line.state == "done" and line.code != JournalEffect.ALREADY_GONE) or is_abandoned(line.state, line.code)
        for line in dropped
    )


def is_abandoned(state: str, code: str | None) -> bool:
    """Tell whether it is unknown if the call of a line was carried out: it has no outcome, or its resolution was given up.

    ``store.journal.abandoned_condition`` is the same rule in SQL.
    """
    return state == INTENT or (state == "failed" and code in ABANDONED_CODES)


def needs_resolution(op_id: str, state: str, code: str | None, find_indexed: Callable[[], TableRecord | None]) -> bool:
    """Tell whether the outcome of an operation is to be determined: it has none, or its call was carried out after the outcome had
    been determined as not made.

    ``find_indexed`` returns the indexed table at the operation's target. The marker of the operation at that table shows the latter.
    """
    if state == INTENT:
        return True
    if not is_abandoned(state, code):
        return False
    indexed = find_indexed()
    marker = find_bound_marker(indexed) if indexed is not None else None
    return marker is not None and marker.op_id == op_id


def list_removals(lines: Iterable[JournalLine], find_table: FindTable) -> list[str]:
    """Return the target paths that one mirror's lines removed or moved, or may have removed or moved. The guards count them."""
    removed: list[str] = []

    def iter_lines() -> Iterator[JournalLine]:
        for line in lines:
            if counts_as_removal(line.change.action, line.state, line.code):
                removed.append(line.change.target_path)
            yield line

    late = list_late_removals(iter_lines(), find_table)
    return [*removed, *late]


def list_late_removals(lines: Iterable[JournalLine], find_table: FindTable) -> list[str]:
    """Return the target paths of destructive changes that may have been carried out although no outcome says so.

    ``find_table`` returns the indexed table of a target source and path. An abandoned line counts if the target shows its effect.
    An intent without outcome always counts, because the index may be older than its call. A later completed change of the same path
    decides: if it found the path empty, the removal was carried out, otherwise it was not.
    """
    late: list[str] = []
    unresolved: dict[tuple[str, str], list[tuple[Change, str]]] = {}
    for change, state, code in lines:
        target = (change.target_source, change.target_path)
        if state == "done":
            if unresolved.pop(target, None) and (change.action is Action.DECLARE_TABLE or code == JournalEffect.ALREADY_GONE):
                late.append(change.target_path)
        elif is_abandoned(state, code) and is_destructive(change):
            unresolved.setdefault(target, []).append((change, state))
    for target, changes in unresolved.items():
        if any(state == INTENT or may_have_taken_effect(change, find_table(*target)) for change, state in changes):
            late.append(target[1])
    return sorted(late)


def is_obstructed(action: str, state: str, code: str | None) -> bool:
    """Tell whether a line is a declaration that found another object at its path.

    ``store.journal.obstructed_condition`` is the same rule in SQL.
    """
    return action == Action.DECLARE_TABLE and state == "skipped" and code == Reason.MOVED


def list_obstructed_paths(lines: Iterable[JournalLine]) -> set[str]:
    """Return the target paths where a declaration of one mirror found another object."""
    return {change.target_path for change, state, code in lines if is_obstructed(change.action, state, code)}


def list_refused_recreates(lines: Iterable[JournalLine]) -> dict[str, JournalLine]:
    """Return by target path the last recreate, if it was undone, or not started because the table could not be restored completely."""
    last = {line.change.target_path: line for line in lines if line.change.action is Action.RECREATE_TABLE}
    return {path: line for path, line in last.items() if line.code in (ApplyCode.RESTORED, ApplyCode.NOT_RESTORABLE)}


def is_renamed(state: str, code: str | None) -> bool:
    """Tell whether a line is one change of a completed rename. ``store.journal.renamed_condition`` is the same rule in SQL."""
    return state == "done" and code == JournalEffect.RENAMED


def list_unfinished_renames(lines: Iterable[JournalLine]) -> list[Change]:
    """Return one mirror's deregistrations that belong to a rename whose declaration did not follow."""
    unfinished: dict[str | None, Change] = {}
    for change, state, code in lines:
        if not is_renamed(state, code):
            continue
        if change.action is Action.DEREGISTER_TABLE:
            unfinished[change.pair] = change
        else:
            unfinished.pop(change.pair, None)
    return list(unfinished.values())


def pending_paths(open_changes: Iterable[Change], target: str, canonical_location: str) -> set[str]:
    """Return the paths of a target that changes without outcome would put at a canonical location."""
    return {
        change.target_path
        for change in open_changes
        if change.target_source == target and change.after is not None and change.after.canonical == canonical_location
    }
