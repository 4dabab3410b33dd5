"""What journal lines say of earlier changes: what counts as removed, what may still take effect, and which renames are unfinished.

A line is an intent with its outcome. ``index.journal`` selects lines in SQL; what they mean is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from federator.model import TableRecord
from federator.planning.changes import Action, Change, destructive
from federator.planning.guards import shows_effect
from federator.planning.reasons import Reason

#: the state of a line without outcome; the others are those of ``apply.outcome.State``
INTENT = "intent"
#: the code of a write that pointed a table elsewhere
LOCATION_CHANGED = "location_changed"
#: the code of both halves of a rename that was carried out: nothing was lost
RENAMED = "renamed"
#: the code of a removal that had been carried out before, so that nothing was left to do or to forget
ALREADY_GONE = "already_gone"
#: actions that count against the deletion guards
DESTRUCTIVE = (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE)
#: actions whose change may be destructive
MAY_BE_DESTRUCTIVE = (*DESTRUCTIVE, Action.UPDATE_TABLE, Action.ADOPT)
#: codes of failed calls that may have been made later, or half of which was made
GIVEN_UP = ("not_made", Reason.NAMESPACE_MISSING.value)

FindTable = Callable[[str, str], TableRecord | None]


class JournalLine(NamedTuple):
    """The outcome of one change, in the journal's order: that of the intents."""

    change: Change
    state: str
    code: str | None


def counts_as_removal(action: str, state: str, code: str | None) -> bool:
    """Whether a line is a deregistration or a location change that was made, or may have been made, and that the guards count.
    ``index.journal.removal_condition`` is the same in SQL."""
    if state not in ("done", "needs_adoption"):
        return False
    return code == LOCATION_CHANGED or (action in DESTRUCTIVE and code not in (RENAMED, ALREADY_GONE))


def count_dropped(lines: Iterable[JournalLine]) -> int:
    """Return how many namespaces one mirror's lines dropped, or may have dropped. The guards count them."""
    dropped = (line for line in lines if line.change.action is Action.DROP_NAMESPACE and line.change.namespace is not None)
    return sum((line.state == "done" and line.code != ALREADY_GONE) or is_given_up(line.state, line.code) for line in dropped)


def is_given_up(state: str, code: str | None) -> bool:
    """Whether nobody knows if the call of a line was made: it has no outcome, or its outcome was given up.
    ``index.journal.given_up_condition`` is the same in SQL."""
    return state == INTENT or (state == "failed" and code in GIVEN_UP)


def removals(lines: Iterable[JournalLine], find_table: FindTable) -> list[str]:
    """Return the target paths that one mirror's lines removed or moved, or may have removed or moved. The guards count them."""
    known = list(lines)
    made = [line.change.target_path for line in known if counts_as_removal(line.change.action, line.state, line.code)]
    return [*made, *late_removals(known, find_table)]


def late_removals(lines: Iterable[JournalLine], find_table: FindTable) -> list[str]:
    """Return the target paths of destructive changes that may have been made after all.

    ``find_table`` returns the indexed table of a target source and path. A line that was given up counts where the target shows its
    effect. An intent without outcome always counts, since the index may be older than its call. A later change of the path that is
    done decides: one that found nothing there shows that the removal was made, any other that it was not.
    """
    late: list[str] = []
    open_: dict[tuple[str, str], list[tuple[Change, str]]] = {}
    for change, state, code in lines:
        at = (change.target_source, change.target_path)
        if state == "done":
            if open_.pop(at, None) and (change.action is Action.DECLARE_TABLE or code == ALREADY_GONE):
                late.append(change.target_path)
        elif is_given_up(state, code) and destructive(change):
            open_.setdefault(at, []).append((change, state))
    for at, changes in open_.items():
        if any(state == INTENT or shows_effect(change, find_table(*at)) for change, state in changes):
            late.append(at[1])
    return sorted(late)


def is_obstructed(action: str, state: str, code: str | None) -> bool:
    """Whether a line is a declaration that met something else at its path.
    ``index.journal.obstructed_condition`` is the same in SQL."""
    return action == Action.DECLARE_TABLE and state == "skipped" and code == "moved"


def is_renamed(state: str, code: str | None) -> bool:
    """Whether a line is one half of a rename that was carried out. ``index.journal.renamed_condition`` is the same in SQL."""
    return state == "done" and code == RENAMED


def unfinished_renames(renamed: Iterable[Change]) -> list[Change]:
    """Return the deregistrations whose declaration does not follow, of one mirror's rename halves in the journal's order."""
    left: dict[str | None, Change] = {}
    for change in renamed:
        if change.action is Action.DEREGISTER_TABLE:
            left[change.pair] = change
        else:
            left.pop(change.pair, None)
    return list(left.values())


def pending_paths(open_changes: Iterable[Change], target: str, canonical: str) -> set[str]:
    """Return the paths of a target that changes without outcome would put at a canonical location."""
    return {
        change.target_path
        for change in open_changes
        if change.target_source == target and change.after is not None and change.after.canonical == canonical
    }
