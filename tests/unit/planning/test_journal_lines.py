"""Journal lines: removals that count, calls that may have been made after all, and unfinished renames."""

from __future__ import annotations

from dataclasses import replace

from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import (
    JournalEffect,
    JournalLine,
    counts_as_removal,
    list_late_removals,
    list_obstructed_paths,
    list_refused_recreates,
    list_removals,
    list_unfinished_renames,
    needs_resolution,
    pending_paths,
)
from federator.planning.ownership import OwnershipMarker

THERE = TableRecord("aws", ("s", "t"), "s3://x/old", native_id="1")
DROP = Change(Action.DEREGISTER_TABLE, "aws", "s$t", "lake", "s$t", "", THERE)
DECLARE = Change(Action.DECLARE_TABLE, "aws", "s$t", "lake", "s$t", "", None, THERE)


def absent(source: str, path: str) -> TableRecord | None:
    return None


def present(source: str, path: str) -> TableRecord | None:
    return THERE


def test_a_rename_and_a_removal_that_found_nothing_do_not_count() -> None:
    assert counts_as_removal("deregister_table", "done", None)
    assert counts_as_removal("update_table", "needs_adoption", JournalEffect.LOCATION_CHANGED)
    assert not counts_as_removal("deregister_table", "done", JournalEffect.RENAMED)
    assert not counts_as_removal("deregister_table", "done", JournalEffect.ALREADY_GONE)
    assert not counts_as_removal("deregister_table", "failed", "15")
    assert not counts_as_removal("update_table", "done", None)


def test_a_removal_that_was_given_up_counts_where_the_target_shows_its_effect() -> None:
    lines = [JournalLine(DROP, "failed", "not_made")]
    assert list_removals(lines, absent) == ["s$t"]
    assert list_removals(lines, present) == []
    assert list_removals([JournalLine(DROP, "failed", "15")], absent) == []


def test_a_line_needs_a_resolution_without_outcome_or_where_the_target_has_the_marker_of_a_call_that_was_given_up() -> None:
    marker = OwnershipMarker("prod", "copy", "lake$s$t", "op1")
    marked = replace(THERE, properties=marker.to_properties(("s", "t")))
    assert needs_resolution("op1", "failed", "not_made", lambda: marked)
    assert not needs_resolution("op2", "failed", "not_made", lambda: marked)
    assert not needs_resolution("op1", "failed", "not_made", lambda: THERE)
    assert not needs_resolution("op1", "failed", "not_made", lambda: None)
    assert not needs_resolution("op1", "failed", "not_made", lambda: replace(marked, path=("s", "copy of t")))
    assert not needs_resolution("op1", "done", None, lambda: marked)
    assert needs_resolution("op1", "intent", None, lambda: None)


def test_an_intent_without_outcome_counts_whatever_the_index_has() -> None:
    assert list_late_removals([JournalLine(DROP, "intent", None)], present) == ["s$t"]


def test_a_later_change_that_is_done_settles_the_path() -> None:
    given_up = JournalLine(DROP, "failed", "not_made")
    moved = replace(DECLARE, action=Action.UPDATE_TABLE, before=THERE)
    # One that found the table there shows that it was not removed; one that found nothing, that it was (story 90671 of seed 35).
    assert list_removals([given_up, JournalLine(moved, "done", None)], absent) == []
    assert list_removals([given_up, JournalLine(DECLARE, "done", None)], present) == ["s$t"]
    assert list_removals([given_up, JournalLine(DROP, "done", JournalEffect.ALREADY_GONE)], present) == ["s$t"]
    assert list_removals([JournalLine(DECLARE, "done", None), given_up], absent) == ["s$t"]
    assert list_removals([given_up, JournalLine(DROP, "done", None)], absent) == ["s$t"]


def test_a_rename_waits_for_its_second_half() -> None:
    first, second = replace(DROP, pair="s$t -> s$u"), replace(DECLARE, target_path="s$u", pair="s$t -> s$u")
    one, other = (JournalLine(change, "done", JournalEffect.RENAMED) for change in (first, second))
    assert list_unfinished_renames([one]) == [first]
    assert list_unfinished_renames([one, other]) == []
    assert list_unfinished_renames([one, other, one]) == [first]
    assert list_unfinished_renames([one, JournalLine(second, "failed", "not_made")]) == [first]


def test_a_declaration_that_met_something_else_leaves_its_path() -> None:
    met = JournalLine(DECLARE, "skipped", "moved")
    assert list_obstructed_paths([met, JournalLine(DECLARE, "done", None), JournalLine(DROP, "skipped", "moved")]) == {"s$t"}
    assert list_obstructed_paths([JournalLine(DECLARE, "skipped", "lease")]) == set()


def test_the_last_recreate_of_a_path_tells_whether_it_was_refused() -> None:
    change = replace(DECLARE, action=Action.RECREATE_TABLE, before=THERE)
    undone, made = JournalLine(change, "failed", "restored"), JournalLine(change, "done", None)
    journal_line = JournalLine(replace(change, target_path="s$u"), "skipped", "not_restorable")
    assert list_refused_recreates([made, undone, journal_line, JournalLine(DROP, "done", None)]) == {
        "s$t": undone,
        "s$u": journal_line,
    }
    assert list_refused_recreates([undone, made, JournalLine(change, "skipped", "lease")]) == {}


def test_an_open_call_makes_its_new_location_pending_at_its_target_only() -> None:
    moved = replace(DECLARE, after=replace(THERE, location="s3://x/new"))
    assert pending_paths([moved, DROP], "aws", "s3://x/new") == {"s$t"}
    assert pending_paths([moved], "lake", "s3://x/new") == set()
    assert pending_paths([DECLARE], "aws", "s3://x/new") == set()
