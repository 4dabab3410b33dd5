"""Counts of tables are kept, and only what has changed is counted again; on both databases."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import event

from federator.model.scopes import EVERYTHING, Scopes
from federator.store import Index, revisions, run_stages, runs, stores, verifications
from federator.store.leases import acquire_lease
from federator.store.stores import SourceStore
from federator.views.table_counts import Counts, TableCounts
from tests.fixtures.index_content import fill, table


@contextmanager
def _counting(index: Index) -> Iterator[list[str]]:
    """Collect the statements that count all tables. Those of blocks name the blocks."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "GROUP BY" in statement and not re.search("json_each|unnest", statement):
            found.append(statement)

    event.listen(index.engine, "before_cursor_execute", note)
    yield found
    event.remove(index.engine, "before_cursor_execute", note)


def _read(index: Index, counts: TableCounts, scopes: Scopes) -> Counts:
    return counts.read(index, scopes)


def _inspect(index: Index, at: float, **states: str) -> None:
    rows = [
        {
            "canonical": f"s3://lake/{name}", "location": f"s3://lake/{name}", "state": state, "message": None, "version": 1, "rows": 1,
            "fragments": 1, "schema": None, "checked_at": at, "checked_through": "lake", "access": "",
        }
        for name, state in states.items()
    ]  # fmt: skip
    with index.write() as connection:
        verifications.save_verifications(connection, rows)


def _store(index: Index) -> None:
    with index.write() as connection:
        stores.save_stores(connection, {"copy": SourceStore("elsewhere", "its key")})


@pytest.mark.parametrize("scopes", [EVERYTHING, Scopes.parse(["lake$a", "copy"])], ids=["all", "a part"])
def test_only_what_has_changed_is_counted_again(either_index: Index, scopes: Scopes) -> None:
    index, kept, now = either_index, TableCounts(), time.time()

    def declare(source: str, *paths: str, gone: tuple[str, ...] = ()) -> None:
        tables = (table(source, *path.split("$"), location=f"s3://lake/{path.split('$')[-1]}") for path in paths)
        fill(index, source, *tables, gone=[tuple(path.split("$")) for path in gone])

    def draft() -> None:
        """A crawl that closes a table, and was not published yet."""
        with acquire_lease(index, "source:lake", wait=10) as lease:
            revisions.close_records(index, lease, revisions.begin_draft(index, lease, "lake", "run", now), [(1, "a$one")])

    changes: list[tuple[Callable[[], object], int]] = [
        (lambda: declare("lake", "a$one", "a$two", "b$three"), 2),
        (lambda: declare("copy", "a$one"), 0),
        (lambda: _inspect(index, now, one="valid", two="missing"), 0),
        # What was inspected shortly before the last one may have been stored later.
        (lambda: _inspect(index, now + 3600, one="valid"), 0),
        (lambda: runs.insert_run(index, "crawl", trigger="request", actor="ann"), 0),
        (lambda: declare("copy"), 0),
        (lambda: _inspect(index, now + 7200, one="valid", two="missing"), 0),
        (lambda: _inspect(index, now + 10_800, two="valid", three="corrupt"), 0),
        (lambda: _inspect(index, now + 10_790, one="corrupt"), 0),
        (lambda: declare("lake", gone=("a$two",)), 0),
        (lambda: declare("copy", gone=("a$one",)), 0),
        (lambda: declare("copy", "a$one", "a$two"), 0),
        (draft, 0),
        (lambda: _inspect(index, now + 14_400, one="valid"), 0),
        (lambda: _store(index), 2),
    ]
    for number, (change, expected) in enumerate(changes):
        change()
        with _counting(index) as statements:
            counts = _read(index, kept, scopes)
        assert counts == _read(index, TableCounts(), scopes), number
        assert len(statements) == expected, number
        with _counting(index) as statements:
            assert _read(index, kept, scopes) is counts
        assert statements == []


def test_what_a_long_verification_found_is_counted_when_it_ends(either_index: Index) -> None:
    """A run stores its inspections together. By then, a direct one may be much newer than its first ones."""
    index, kept, now = either_index, TableCounts(), time.time()
    fill(index, "lake", *(table("lake", "a", name, location=f"s3://lake/{name}") for name in ("one", "two", "three")))
    _inspect(index, now - 86_400, one="valid", two="valid", three="valid")
    run = runs.insert_run(index, "crawl", trigger="request", actor="ann")
    run_stages.start_stage(index, run.id, "verify", "lake")
    _inspect(index, now + 1800, one="valid")
    assert _read(index, kept, EVERYTHING).states["lake"].keys() == {"valid"}
    _inspect(index, now + 10, two="missing")
    _inspect(index, now + 1801, three="valid")
    run_stages.finish_stage(index, run.id, "verify", "lake", state="ok", detail="", calls=None, errors=None)
    counts = _read(index, kept, EVERYTHING)
    assert {state: group.count for state, group in counts.states["lake"].items()} == {"missing": 1, "valid": 2}
    assert _read(index, kept, EVERYTHING) is counts
