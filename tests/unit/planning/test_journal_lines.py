"""Journal lines: removals that count, calls that may have been made after all, and unfinished renames."""

from __future__ import annotations

from dataclasses import replace

from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import (
    ALREADY_GONE,
    LOCATION_CHANGED,
    RENAMED,
    JournalLine,
    counts_as_removal,
    late_removals,
    pending_paths,
    removals,
    unfinished_renames,
)

THERE = TableRecord("aws", ("s", "t"), "s3://x/old", native_id="1")
DROP = Change(Action.DEREGISTER_TABLE, "aws", "s$t", "lake", "s$t", "", THERE)
DECLARE = Change(Action.DECLARE_TABLE, "aws", "s$t", "lake", "s$t", "", None, THERE)


def absent(source: str, path: str) -> TableRecord | None:
    return None


def present(source: str, path: str) -> TableRecord | None:
    return THERE


def test_a_rename_and_a_removal_that_found_nothing_do_not_count() -> None:
    assert counts_as_removal("deregister_table", "done", None)
    assert counts_as_removal("update_table", "needs_adoption", LOCATION_CHANGED)
    assert not counts_as_removal("deregister_table", "done", RENAMED)
    assert not counts_as_removal("deregister_table", "done", ALREADY_GONE)
    assert not counts_as_removal("deregister_table", "failed", "15")
    assert not counts_as_removal("update_table", "done", None)


def test_a_removal_that_was_given_up_counts_where_the_target_shows_its_effect() -> None:
    lines = [JournalLine(DROP, "failed", "not_made")]
    assert removals(lines, absent) == ["s$t"]
    assert removals(lines, present) == []
    assert removals([JournalLine(DROP, "failed", "15")], absent) == []


def test_an_intent_without_outcome_counts_whatever_the_index_has() -> None:
    assert late_removals([JournalLine(DROP, "intent", None)], present) == ["s$t"]


def test_a_later_change_that_is_done_settles_the_path() -> None:
    given_up = JournalLine(DROP, "failed", "not_made")
    moved = replace(DECLARE, action=Action.UPDATE_TABLE, before=THERE)
    # One that found the table there shows that it was not removed; one that found nothing, that it was (story 90671 of seed 35).
    assert removals([given_up, JournalLine(moved, "done", None)], absent) == []
    assert removals([given_up, JournalLine(DECLARE, "done", None)], present) == ["s$t"]
    assert removals([given_up, JournalLine(DROP, "done", ALREADY_GONE)], present) == ["s$t"]
    assert removals([JournalLine(DECLARE, "done", None), given_up], absent) == ["s$t"]
    assert removals([given_up, JournalLine(DROP, "done", None)], absent) == ["s$t"]


def test_a_rename_waits_for_its_second_half() -> None:
    first, second = replace(DROP, pair="s$t -> s$u"), replace(DECLARE, target_path="s$u", pair="s$t -> s$u")
    assert unfinished_renames([first]) == [first]
    assert unfinished_renames([first, second]) == []
    assert unfinished_renames([first, second, first]) == [first]


def test_an_open_call_makes_its_new_location_pending_at_its_target_only() -> None:
    moved = replace(DECLARE, after=replace(THERE, location="s3://x/new"))
    assert pending_paths([moved, DROP], "aws", "s3://x/new") == {"s$t"}
    assert pending_paths([moved], "lake", "s3://x/new") == set()
    assert pending_paths([DECLARE], "aws", "s3://x/new") == set()
