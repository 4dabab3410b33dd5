"""Rules that are also SQL conditions: equal to the pure function on every cell, on both databases."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count, product
from random import Random

import pytest
from sqlalchemy import ColumnElement, delete, insert, select

from federator.apply.outcome import OutcomeState
from federator.model import NamespaceRecord, TableRecord
from federator.planning import journal_lines as lines
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import JournalEffect, JournalLine, Question
from federator.store import Connection, Index, journal, losses, misses, revisions
from federator.store import tables as t
from federator.store.leases import acquire_lease
from tests.fixtures.index_content import fill, table
from tests.prove.rules_in_memory import count_losses, lost_origins

ACTIONS = [action.value for action in Action]
STATES = [lines.INTENT, *(state.value for state in OutcomeState)]
CODES = [None, *JournalEffect, *lines.ABANDONED_CODES, "moved", "15"]
THERE = TableRecord("aws", ("s", "t"), "s3://x/old", native_id="1")


def add_line(connection: Connection, number: int, change: Change, state: str, code: str | None, mirror: str = "m") -> None:
    row = {
        "op_id": str(number), "run_id": "r", "plan": "p", "mirror": mirror, "seq": number, "action": change.action.value,
        "target_source": change.target_source, "target_path": change.target_path, "origin_path": change.origin_path,
        "change": json.dumps(change.to_json()), "state": state, "code": code, "intent_at": float(number),
    }  # fmt: skip
    connection.execute(insert(t.journal), [row])


def change(action: str, path: str = "s$t") -> Change:
    before = replace(THERE, path=("s", path.rpartition("$")[2]))
    moved = replace(before, location="s3://x/new") if action in ("update_table", "recreate_table") else None
    return Change(Action(action), "aws", path, "lake", path, "", None if action == "declare_table" else before, moved)


def test_names_that_a_target_refused(either_index: Index) -> None:
    lines_of_target = [
        ("create_namespace", "s:1", "skipped", "name_not_allowed"), ("declare_table", "s$t:2", "skipped", "name_not_allowed"),
        ("declare_table", "s$t:3", "done", None), ("declare_table", "s$t:4", "failed", "13"),
    ]  # fmt: skip
    with either_index.write() as connection:
        for number, (action, path, state, code) in enumerate(lines_of_target):
            add_line(connection, number, change(action, path), state, code, mirror=f"m{number}")
        assert journal.list_refused_names(connection, "aws", 0.0) == ({"s:1"}, {"t:2"})
        assert journal.list_refused_names(connection, "aws", 1.0) == (set(), {"t:2"})
        assert journal.list_refused_names(connection, "other", 0.0) == (set(), set())


def test_conditions_on_a_journal_line(either_index: Index) -> None:
    """Every action with every state and code."""
    cells = list(product(ACTIONS, STATES, CODES))
    pure = {
        journal.removal_condition: lambda cell: lines.counts_as_removal(*cell),
        journal.abandoned_condition: lambda cell: lines.is_abandoned(*cell[1:]),
        journal.obstructed_condition: lambda cell: lines.is_obstructed(*cell),
        journal.renamed_condition: lambda cell: lines.is_renamed(*cell[1:]),
    }
    with either_index.write() as connection:
        for number, (action, state, code) in enumerate(cells):
            add_line(connection, number, change(action), state, code)
        for condition, function in pure.items():
            found = {cells[int(op_id)] for op_id in _matching(connection, condition())}
            assert found == set(filter(function, cells)), condition.__name__
            assert found


def _matching(connection: Connection, condition: ColumnElement[bool]) -> list[str]:
    return list(connection.execute(select(t.journal.c.op_id).where(condition)).scalars())


@pytest.mark.parametrize("indexed", [None, THERE, replace(THERE, location="s3://x/new"), replace(THERE, native_id="2")])
def test_removals_of_a_journal(either_index: Index, indexed: TableRecord | None) -> None:
    """Every pair of lines at one path, the second one also of another path and of another mirror: what SQL selects leaves out nothing
    that counts."""
    if indexed is not None:
        fill(either_index, "aws", indexed)
    indexed_at: lines.FindTable = lambda _, path: indexed if path == "s$t" else None  # noqa: E731
    first = product(("deregister_table", "update_table", "declare_table"), (None, *OUTCOMES))
    second = [None, *product(("deregister_table", "declare_table"), OUTCOMES, ("m", "n"), ("s$t", "s$u"))]
    with either_index.write() as connection:
        for (action, outcome), later in product(first, second):
            connection.execute(delete(t.journal))
            known = [JournalLine(change(action), *(outcome or (lines.INTENT, None)))]
            add_line(connection, 0, *known[0])
            if later is not None:
                line = JournalLine(change(later[0], later[3]), *later[1])
                add_line(connection, 1, *line, mirror=later[2])
                known += [line] if later[2] == "m" else []
            expected = lines.list_removals(known, indexed_at)
            assert sorted(
                lines.list_removals(journal.iter_lines(connection, "m", Question.REMOVALS, 0.0), indexed_at)
            ) == sorted(expected), (action, outcome, later)


OUTCOMES = [
    ("done", None), ("done", JournalEffect.ALREADY_GONE), *(("failed", code) for code in lines.ABANDONED_CODES), ("failed", "15"),
]  # fmt: skip


def test_lost_origins(either_index: Index) -> None:
    """Tables that a ledger names or not, of this source or another, as table or namespace, and in the revision, closed, or not yet in
    it."""
    states = ("published", "closed", "never")
    names = {cell: f"s$t{number}" for number, cell in enumerate(product(states, ("lake", "other"), (0, 1)))}
    names |= {(state, "", 2): f"s$unnamed_{state}" for state in states}
    either = {key for (state, *_), key in names.items() if state != "never"}
    gone = {key for (state, *_), key in names.items() if state == "closed"}
    fill(either_index, "lake", *(table("lake", *key.split("$")) for key in sorted(either)))
    number = fill(either_index, "lake", gone=[tuple(key.split("$")) for key in sorted(gone)])
    assert number is not None
    numbers = count()
    with either_index.write() as connection:
        for (_, source, is_table), key in names.items():
            if source:
                connection.execute(insert(t.ledger), [_entry(source, key, is_table, next(numbers))])
        copied = [key for (_, source, is_table), key in names.items() if source == "lake" and is_table == 1]
        for revision, there in ((number - 1, either), (number, either - gone)):
            assert misses.list_missing_origins(connection, "lake", revision) == lost_origins(copied, there)


def _entry(source: str, key: str, is_table: int, number: int) -> dict[str, object]:
    return {
        "mirror": "m", "origin_source": source, "origin_path": key, "target_source": "aws", "target_path": key, "is_table": is_table,
        "op_id": str(number), "run_id": "r", "updated_at": 0.0,
    }  # fmt: skip


def test_dropped_namespaces(either_index: Index) -> None:
    there = Change(Action.DROP_NAMESPACE, "aws", "s", "lake", "s", "empty", namespace=NamespaceRecord("aws", ("s",)))
    changes = [there, replace(there, namespace=None), change("deregister_table")]
    outcomes = [
        (lines.INTENT, None), ("done", None), ("done", JournalEffect.ALREADY_GONE), ("failed", "3"), ("failed", "not_made"),
    ]  # fmt: skip
    with either_index.write() as connection:
        connection.execute(delete(t.journal))
        for number, (each, (state, code)) in enumerate(product(changes, outcomes)):
            add_line(connection, number, each, state, code)
        add_line(connection, 99, there, "done", None, mirror="n")
        known = [JournalLine(each, state, code) for each, (state, code) in product(changes, outcomes)]
        assert lines.count_dropped(known) == 3
        assert lines.count_dropped(journal.iter_lines(connection, "m", Question.DROPPED, 0.0)) == 3
        assert lines.count_dropped(journal.iter_lines(connection, "m", Question.DROPPED, 1e6)) == 0


def test_losses_of_a_draft(either_index: Index) -> None:
    """Tables that a crawl added, replaced, renamed, moved or removed, at few locations that another source declares, too."""
    chosen, counts = Random(7), []
    locations = [None, *(f"s3://lake/{number}" for number in range(5))]
    fill(either_index, "other", *(table("other", "s", f"t{number}", location=f"s3://lake/{number}") for number in range(5)))
    for world in range(20):
        source = f"lake{world}"
        before, after = (
            {f"s$t{number}": chosen.choice(locations) for number in chosen.sample(range(8), chosen.randrange(9))}
            for _ in range(2)
        )
        keys = {key for key in before if chosen.random() < 0.3}
        after = {**{key: location for key, location in after.items() if key not in keys}}
        removed = [(1, key) for key in before if key not in after and key not in keys]
        replaced = [(1, key) for key in before if key in after]
        fill(either_index, source, NamespaceRecord(source, ("s",)), *(_located(source, *item) for item in before.items()))
        with acquire_lease(either_index, f"source:{source}") as lease:
            draft = revisions.begin_draft(either_index, lease, source, "run", 1.0)
            revisions.close_records(either_index, lease, draft, [*removed, *replaced, (0, "s")])
            rows = [revisions.incoming_row(_located(source, *item)) for item in after.items()]
            revisions.add_records(either_index, lease, draft, rows)
        with either_index.read() as connection:
            counts.append(losses.count_draft_losses(connection, draft))
        assert counts[-1] == count_losses(removed, replaced, before.items(), after), (before, after, keys)
    assert all(len({count[side] for count in counts}) > 2 for side in (0, 1))


def _located(source: str, key: str, location: str | None) -> TableRecord:
    return TableRecord(source, tuple(key.split("$")), location)
