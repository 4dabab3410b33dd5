"""Upgrades of indexes that earlier versions filled, on both databases: every row is kept, and this version reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, func, select
from typer.testing import CliRunner

from federator import audit
from federator.cli.app import app
from federator.connector import StateError
from federator.store import Index, journal, ledger, migrations, open_index, plans, runs
from federator.store import tables as t
from federator.views import tree
from federator.views.search import engine
from tests.fixtures import old_indexes
from tests.fixtures.index_content import fill, table
from tests.fixtures.lease_processes import url_of
from tests.fixtures.old_indexes import Rows

TABLES = ["added", "items", "orders"]


@dataclass
class Upgraded:
    """An index at this version's migration, and the rows that it had before."""

    index: Index
    before: Rows
    migration: str


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], tuple[Index, Rows]]:
    """Opens an index as an earlier version left it, and returns it with its rows."""

    def make(migration: str) -> tuple[Index, Rows]:
        file = tmp_path / "index.db"
        old_indexes.unpack_recording(migration, file)
        rows = old_indexes.read_rows(file)
        if request.param == "sqlite":
            return open_index("sqlite:///index.db", base=tmp_path), rows
        index = request.getfixturevalue("postgres_index")(migrated=False)
        old_indexes.copy_to_postgresql(rows, index, migration)
        return index, rows

    return make


@pytest.fixture(params=old_indexes.list_recordings())
def upgraded(request: pytest.FixtureRequest, old: Callable[[str], tuple[Index, Rows]], tmp_path: Path) -> Iterator[Upgraded]:
    index, rows = old(request.param)
    with pytest.raises(StateError, match=f"the index is at migration {request.param}, this version needs") as caught:
        migrations.require_current_schema(index)
    assert caught.value.hint == "federator db upgrade"
    (tmp_path / "federator.toml").write_text(f"[index]\nurl = {json.dumps(url_of(index))}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["-c", str(tmp_path / "federator.toml"), "db", "upgrade"])
    assert result.exit_code == 0, result.output
    assert migrations.list_migrations()[-1] in result.output
    migrations.require_current_schema(index)
    yield Upgraded(index, rows, request.param)
    index.close()


def test_the_first_migration_is_recorded() -> None:
    assert old_indexes.list_recordings()[0] == "0001"


def test_every_row_is_kept(upgraded: Upgraded) -> None:
    assert {"record", "ledger", "journal", "plan", "audit_event", "coverage", "dataset", "run"} <= {
        name for name, rows in upgraded.before.items() if rows
    }
    assert_kept(upgraded.index, upgraded.before)


def assert_kept(index: Index, before: Rows) -> None:
    metadata = MetaData()
    with index.read() as connection:
        metadata.reflect(connection)
        for name, rows in before.items():
            columns = [metadata.tables[name].c[column] for column in rows[0]] if rows else []
            after = [dict(row) for row in connection.execute(select(*columns)).mappings()] if rows else []
            assert sorted(map(repr, after)) == sorted(map(repr, rows)), name


def test_this_version_reads_what_the_earlier_one_wrote(upgraded: Upgraded) -> None:
    index = upgraded.index
    assert [node.name for node in tree.list_children(index, ("lake",)).nodes] == TABLES
    declared = [node.name for node in tree.list_children(index, ("copy", "main")).nodes]
    assert set(TABLES) <= set(declared) <= {*TABLES, "returns"}
    orders = tree.get_table(index, ("lake", "orders"))
    assert orders.location == "file:///srv/federator/lake/orders.lance"
    assert orders.dataset is not None
    assert (orders.dataset.state, orders.dataset.rows) == ("valid", 2)
    assert {hit.id for hit in engine.search_tables(index, "orders").nodes} == {"lake$orders", "copy$main$orders"}
    with index.read() as connection:
        assert {f"main${name}" for name in declared} == {
            entry.target_path for entry in ledger.list_entries(connection, "lake-to-copy") if entry.is_table
        }
        assert journal.list_open_intents(connection, "lake-to-copy") == []
        listed = plans.list_recent_plans(connection)
        assert {(plan.mirror, plan.state) for plan in listed} == {("lake-to-copy", "applied")}
        for plan in listed:
            assert plans.get_plan(connection, plan.digest).content["changes"]
        seq = connection.execute(select(func.max(t.audit_event.c.seq))).scalar()
    assert {run.state for run in runs.list_recent_runs(index)} == {"ok"}
    proof = audit.verify_log(index)
    assert (proof.finding, proof.last) == (None, seq)


def test_this_version_goes_on_from_there(upgraded: Upgraded) -> None:
    """The revisions, the audit chain and the search continue: nothing starts again at 1."""
    with upgraded.index.read() as connection:
        revision = connection.execute(select(t.source.c.revision).where(t.source.c.name == "lake")).scalar_one()
    assert fill(upgraded.index, "lake", table("lake", "invoices"), gone=[("items",)]) == revision + 1
    assert [node.name for node in tree.list_children(upgraded.index, ("lake",)).nodes] == ["added", "invoices", "orders"]
    assert [hit.id for hit in engine.search_tables(upgraded.index, "invoices").nodes] == ["lake$invoices"]
    with runs.run_lifetime(upgraded.index, "crawl") as run:
        runs.finish_run(upgraded.index, run, "ok", summary={})
    audit.seal_pending(upgraded.index)
    assert audit.verify_log(upgraded.index).finding is None


def test_an_index_that_followed_every_migration_is_the_same(old: Callable[[str], tuple[Index, Rows]]) -> None:
    index, rows = old("0001")
    scripts = ScriptDirectory.from_config(migrations.alembic_config())
    for script in reversed([*scripts.walk_revisions()]):
        migrations.upgrade_schema(index, script.revision)
        assert migrations.current_migration(index) == script.revision
    migrations.upgrade_schema(index)
    assert_kept(index, rows)
    assert [node.name for node in tree.list_children(index, ("lake",)).nodes] == TABLES
    assert {hit.id for hit in engine.search_tables(index, "orders").nodes} == {"lake$orders", "copy$main$orders"}
    assert audit.verify_log(index).finding is None
    index.close()
