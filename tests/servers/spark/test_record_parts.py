"""Records that Spark's tasks write into an index on PostgreSQL: the same index as by one writer, also after faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, text

from federator.pipeline import diff, staging_area
from federator.runtime.redaction import register_secret
from federator.store import Index, revisions
from federator.store import tables as t
from tests.fixtures.spark import ODD, World, Worlds

_SECRET = "driversOnlySecret"


@pytest.fixture
def in_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks write also few records, and nothing of the driver."""
    monkeypatch.setattr(staging_area, "MAX_ROWS", -1)
    monkeypatch.setattr(diff, "MAX_ROWS", -1)


@pytest.fixture
def make_world(worlds: Worlds, postgres_index: Callable[..., Index]) -> Callable[[], World]:
    """Makes worlds with one source, an index on PostgreSQL, and a catalog that hands over one table twice."""

    def make() -> World:
        url = postgres_index().engine.url.render_as_string(hide_password=False)
        world = worlds(sources={"lake": {"impl": ODD}}, index_url=url)
        (world.directory / "lake.json.odd").write_text("doubled", encoding="utf-8")
        fill(world)
        return world

    return make


def fill(world: World) -> None:
    lake = world.store("lake")
    for number in range(40):
        path = ("doubled" if number % 2 else "sales", f"Orders_{number}")
        lake.add_table(path, f"s3://lake/{number}", properties={"team": f"t{number}"}, doc="orders of a day")
    lake.add_table(("sales", "leaky"), "s3://lake/leaky", properties={"note": f"key={_SECRET}", "team": "leak"})


def change(world: World) -> None:
    lake = world.store("lake")
    for number in range(0, 20, 2):
        lake.add_table(("sales", f"Orders_{number}"), f"s3://lake/moved/{number}", doc="returns")
    for number in range(1, 10, 2):
        lake.remove(("doubled", f"Orders_{number}"))
    lake.add_table(("fresh", "Invoices"), "s3://lake/invoices", doc="invoices")


def crawl(world: World) -> tuple[int, int, int]:
    result = world.federator.crawl(["lake"])
    assert result.state == "ok", result.errors
    lake = result.sources["lake"]
    return lake.added, lake.changed, lake.removed


def content(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that crawls publish, without ids, times and runs."""
    r, e = t.record.c, t.search_entry.c
    queries = {
        "records": select(*(column for column in r if column.name != "id")),
        "entries": select(e.source, e.path, e.words, r.valid_from).join(t.record, r.id == e.id),
        "vocabulary": select(t.search_vocabulary),
        "coverage": select(*(column for column in t.coverage.c if column.name != "id")),
        "revisions": select(t.revision.c["source", "number", "state", "added", "changed", "removed", "tables", "gone"]),
        "source": select(t.source.c["name", "revision", "state"]),
        "parts": select(t.draft_part),
    }
    with world.read() as connection:
        return {name: sorted(map(tuple, connection.execute(query)), key=repr) for name, query in queries.items()}


def test_tasks_write_the_index_of_one_writer(
    make_world: Callable[[], World], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """New, changed, removed and doubled tables; one has a secret that only the driver knows."""
    register_secret(_SECRET)
    one, counts = make_world(), []
    counts.append([crawl(one), change(one), crawl(one), crawl(one)])
    request.getfixturevalue("in_tasks")
    calls = []
    monkeypatch.setattr(revisions, "add_records", lambda _index, _lease, _draft, rows: calls.extend(rows))
    tasks = make_world()
    counts.append([crawl(tasks), change(tasks), crawl(tasks), crawl(tasks)])
    assert counts[0] == counts[1] == [(43, 0, 0), None, (2, 10, 5), (0, 0, 0)]
    assert not calls, "the driver has written no record"
    found = content(tasks)
    assert found == content(one)
    assert len(found["records"]) == 43 + 12
    assert len(found["entries"]) == 41 - 5 + 1
    assert _SECRET.lower() not in str(found["entries"] + found["vocabulary"])
    assert "'aleaky'" in str(found["entries"])


FAULTS = {
    "an error": "RAISE EXCEPTION 'the disk of the executor is full'",
    "a lost connection": "PERFORM pg_terminate_backend(pg_backend_pid())",
}


@pytest.mark.usefixtures("in_tasks")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_task_that_fails_after_its_copy_is_repeated(make_world: Callable[[], World], fault: str) -> None:
    """The first two transactions fail, each after its records were copied."""
    world = make_world()
    with world.federator.index.write() as connection:
        connection.execute(text("CREATE SEQUENCE attempt"))
        body = f"BEGIN IF nextval('attempt') <= 2 THEN {FAULTS[fault]}; END IF; RETURN NEW; END"
        connection.execute(text(f"CREATE FUNCTION fail_first() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"))
        trigger = "CREATE TRIGGER failing BEFORE UPDATE ON draft_part FOR EACH ROW EXECUTE FUNCTION fail_first()"
        connection.execute(text(trigger))
    assert crawl(world) == (43, 0, 0)
    with world.read() as connection:
        assert connection.execute(text("SELECT last_value FROM attempt")).scalar_one() > 2
        assert connection.execute(text("SELECT count(*), count(DISTINCT (is_table, path)) FROM record")).one() == (43, 43)


@pytest.mark.usefixtures("in_tasks")
def test_a_lease_that_is_lost_while_tasks_write_is_reported_as_lost(make_world: Callable[[], World]) -> None:
    world = make_world()
    with world.federator.index.write() as connection:
        # Another process takes the lease at the moment in which the draft begins.
        body = "BEGIN UPDATE lease SET token = token + 1 WHERE name = 'source:lake'; RETURN NEW; END"
        connection.execute(text(f"CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"))
        connection.execute(text("CREATE TRIGGER taking AFTER INSERT ON revision FOR EACH ROW EXECUTE FUNCTION take()"))
    result = world.federator.crawl(["lake"])
    assert "lease" in result.errors["lake"]
    assert result.lost_leases == ["lake"]
    assert content(world)["source"] == [("lake", 0, "never")]


@pytest.mark.usefixtures("in_tasks")
def test_a_task_that_cannot_resolve_the_url_of_the_index_names_the_remedy(
    make_world: Callable[[], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers were started before the variable was set: as on a cluster whose executors do not have it."""
    world = make_world()
    monkeypatch.setenv("PARTS_INDEX_URL", str(world.index_url))
    world.index_url = "${PARTS_INDEX_URL}"
    error = world.federator.crawl(["lake"]).errors["lake"]
    assert "[index] url: the environment variable PARTS_INDEX_URL is not set" in error
    assert "set spark.executorEnv.NAME in [spark.conf]" in error
    published = content(world)
    assert (published["source"], published["records"]) == ([("lake", 2, "failed")], [])
