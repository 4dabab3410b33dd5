"""The index on both of its databases: migrations, leases, revisions, and the sealing of the audit log."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, inspect, select, text, update

from federator import audit
from federator.connector import StateError
from federator.model import ROOT, Coverage, failed_evidence
from federator.store import Index, audit_log, coverage, leases, migrations, open_index, records, revisions
from federator.store import tables as t
from federator.store.leases import LeaseHeld, LeaseLost, acquire_lease
from federator.views import tree
from tests.fixtures.index_content import fill, namespace, table
from tests.fixtures.index_reads import downgrade_schema
from tests.fixtures.lease_processes import another, read_line, url_of

DATABASES = ["sqlite", "postgresql"]


@pytest.fixture(params=DATABASES)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Index]:
    """Opens an index on a database of its own."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_index")  # type: ignore[no-any-return]

    def make(*, migrated: bool = True) -> Index:
        index = open_index("sqlite:///index.db", base=tmp_path)
        if migrated:
            migrations.upgrade_schema(index)
        return index

    return make


def test_a_new_connection_keeps_the_locks_of_the_others(tmp_path: Path) -> None:
    """Without them, another process takes its connection for the last one, and removes the log that this process reads."""
    opened = open_index("sqlite:///index.db", base=tmp_path)
    migrations.upgrade_schema(opened)
    query = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT count(*) FROM source').fetchall(); c.close()"
    )
    with opened.read() as first, opened.read() as second:
        assert first is not second
        for connection in (first, second):
            connection.execute(select(func.count()).select_from(t.source)).scalar()
        subprocess.run([sys.executable, "-c", query, str(tmp_path / "index.db")], check=True, timeout=60)
        assert sorted(path.name for path in tmp_path.glob("index.db*")) == ["index.db", "index.db-shm", "index.db-wal"]
    opened.close()


@pytest.fixture
def index(fresh: Callable[..., Index]) -> Iterator[Index]:
    opened = fresh()
    yield opened
    opened.close()


class TestMigrations:
    def test_up_down_up(self, fresh: Callable[..., Index]) -> None:
        index = fresh(migrated=False)
        with pytest.raises(StateError, match="no tables yet"):
            migrations.require_current_schema(index)
        migrations.upgrade_schema(index)
        migrations.require_current_schema(index)
        downgrade_schema(index)
        assert inspect(index.engine).get_table_names() == ["alembic_version"]
        migrations.upgrade_schema(index)
        migrations.require_current_schema(index)

    def test_have_the_names_that_alembic_knows(self) -> None:
        scripts = ScriptDirectory.from_config(migrations.alembic_config())
        assert set(migrations.list_migrations()) == {script.revision for script in scripts.walk_revisions()}
        assert migrations.list_migrations()[-1] == scripts.get_current_head(), "the newest migration needs the greatest number"

    def test_refuse_an_index_of_a_newer_version(self, index: Index) -> None:
        with index.write() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        for start in (migrations.require_current_schema, migrations.upgrade_schema):
            with pytest.raises(StateError, match=r"newer version \(migration 9999\)") as caught:
                start(index)
            assert caught.value.hint == "upgrade the federator"

    def test_make_what_the_metadata_says(self, index: Index) -> None:
        with index.read() as connection:
            # The inverted index is no table on SQLite and no btree on PostgreSQL: the search's own tests hold it.
            options = {"include_name": lambda name, *_: not (name or "").startswith("search_words")}
            differences = compare_metadata(MigrationContext.configure(connection, opts=options), t.metadata)
            assert differences == [], "a migration in migrations/versions and the tables in store/tables do not agree"
            for wanted in t.metadata.tables.values():
                by_name = {i["name"]: i for i in inspect(connection).get_indexes(wanted.name) if i["name"] != "search_words"}
                key = f"{connection.dialect.name}_where"
                partial = {str(i.name): i.dialect_kwargs.get(key) is not None for i in wanted.indexes}
                assert {str(name): bool(i["dialect_options"].get(key) is not None) for name, i in by_name.items()} == partial

    def test_two_processes_at_once_are_kept_apart(self, fresh: Callable[..., Index]) -> None:
        index = fresh(migrated=False)
        failures: list[BaseException] = []

        def upgrade() -> None:
            mine = open_index(url_of(index))
            try:
                migrations.upgrade_schema(mine)
            except BaseException as error:  # noqa: BLE001 - handed to the test
                failures.append(error)
            finally:
                mine.close()

        threads = [threading.Thread(target=upgrade) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        with index.read() as connection:
            assert connection.execute(select(func.count()).select_from(t.deployment)).scalar_one() == 1


class TestLeases:
    def test_are_held_by_one_and_counted(self, index: Index) -> None:
        with acquire_lease(index, "source:x") as first:
            with pytest.raises(LeaseHeld, match="source:x is being worked on by"), acquire_lease(index, "source:x"):
                pass
            with acquire_lease(index, "source:y"):
                pass
        with acquire_lease(index, "source:x") as second:
            assert second.token == first.token + 1

    def test_other_users_of_the_machine_cannot_hold_them(self, tmp_path: Path) -> None:
        """Whoever may read a file may lock it."""
        index = open_index("sqlite:///federator.db", base=tmp_path)
        migrations.upgrade_schema(index)
        of_earlier_version = tmp_path / "federator.db.source_x.lock"
        of_earlier_version.touch(0o644)
        with acquire_lease(index, "source:x"), acquire_lease(index, "source:y"), acquire_lease(index, "table:1"):
            pass
        paths = [*tmp_path.glob("*.lock"), *tmp_path.glob("federator.db.tables/*")]
        assert {path.name: path.stat().st_mode & 0o777 for path in paths} == {
            "federator.db.source_x.lock": 0o600, "federator.db.source_y.lock": 0o600, "table_1.lock": 0o600,
        }  # fmt: skip
        index.close()

    def test_of_another_process_are_seen(self, index: Index) -> None:
        with another(index, "print('held', flush=True); time.sleep(60)") as process:
            assert read_line(process) == "held"
            with pytest.raises(LeaseHeld), acquire_lease(index, "source:x"):
                pass

    def test_of_a_dead_process_are_taken_over(self, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(leases, "LEASE_TTL_SECONDS", 0.6)
        monkeypatch.setattr(leases, "CALL_DEADLINE_SECONDS", 0.6)
        with another(index, "print(lease.token, flush=True); time.sleep(60)") as process:
            token = int(read_line(process))
            process.kill()
            process.wait()
            with index.read() as connection:
                until = connection.execute(select(t.lease.c.expires_at).where(t.lease.c.name == "source:x")).scalar_one()
            with acquire_lease(index, "source:x", wait=60) as lease:
                assert lease.token == token + 1
                if not index.is_sqlite:
                    with index.read() as connection:
                        now = connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
                    assert float(now) >= until + leases.CALL_DEADLINE_SECONDS

    def test_of_a_dead_process_end_although_the_clock_of_the_database_went_back(
        self, index: Index, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leases, "LEASE_TTL_SECONDS", 0.6)
        monkeypatch.setattr(leases, "CALL_DEADLINE_SECONDS", 0.6)
        with another(index, "print(lease.token, flush=True); time.sleep(60)") as process:
            token = int(read_line(process))
            process.kill()
            process.wait()
        with index.write() as connection:
            connection.execute(update(t.lease).values(expires_at=t.lease.c.expires_at + 86_400))
        with acquire_lease(index, "source:x", wait=60) as lease:
            assert lease.token == token + 1

    def test_that_were_lost_refuse_writes(self, index: Index) -> None:
        revisions.register_source(index, "lake", "memory", "d")
        with acquire_lease(index, "source:lake") as lease:
            draft = revisions.begin_draft(index, lease, "lake", "run-1", time.time())
            with index.write() as connection:
                connection.execute(update(t.lease).where(t.lease.c.name == lease.name).values(token=lease.token + 1))
            for write in (
                lambda: revisions.add_records(index, lease, draft, [revisions.incoming_row(table("lake", "a", "b"))]),
                lambda: revisions.publish_draft(index, lease, draft, added=1, changed=0, removed=0, values={}),
                lambda: revisions.begin_draft(index, lease, "lake", "run-2", time.time()),
            ):
                with pytest.raises(LeaseLost):
                    write()
        with index.read() as connection:
            assert records.published_revision(connection, "lake") == 0
            assert connection.execute(select(func.count()).select_from(t.record)).scalar_one() == 0

    def test_outlast_a_database_that_is_away_for_a_moment(self, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        if index.is_sqlite:
            pytest.skip("a file lock needs no renewal")
        # Renewed after a sixth of it.
        monkeypatch.setattr(leases, "LEASE_TTL_SECONDS", 6.0)
        with acquire_lease(index, "source:x") as lease:
            with index.engine.connect() as connection:
                mine = "pid <> pg_backend_pid() AND datname = current_database()"
                connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}"))
            before, end = lease.expires_at, time.monotonic() + 60
            while lease.expires_at == before and not lease.lost.is_set() and time.monotonic() < end:
                time.sleep(0.05)
            assert lease.expires_at > before
            assert not lease.lost.is_set()


class TestRevisions:
    def test_are_seen_when_they_are_published_and_not_before(self, index: Index) -> None:
        fill(index, "lake", namespace("lake", "s"), table("lake", "s", "a"), table("lake", "s", "b"))
        with acquire_lease(index, "source:lake") as lease:
            draft = revisions.begin_draft(index, lease, "lake", "run-2", time.time())
            revisions.close_records(index, lease, draft, [(1, "s$a"), (1, "s$b")])
            revisions.add_records(
                index,
                lease,
                draft,
                [revisions.incoming_row(table("lake", "s", "b", doc="new")), revisions.incoming_row(table("lake", "s", "c"))],
            )
            assert names(index) == ["a", "b"]
            assert tree.get_table(index, ("lake", "s", "b")).doc is None
            revisions.publish_draft(index, lease, draft, added=1, changed=1, removed=1, values={})
        assert names(index) == ["b", "c"]
        assert tree.get_table(index, ("lake", "s", "b")).doc == "new"
        assert names(index, revision=1) == ["a", "b"]

    def test_of_a_crashed_run_are_swept(self, index: Index) -> None:
        fill(index, "lake", namespace("lake", "s"), table("lake", "s", "a"))
        script = """
import pathlib
from federator.store import revisions
from tests.fixtures.index_content import table
draft = revisions.begin_draft(index, lease, "lake", "run-2", time.time())
revisions.close_records(index, lease, draft, [(1, "s$a")])
revisions.add_records(index, lease, draft, [revisions.incoming_row(table("lake", "s", "z"))])
print("written", flush=True)
os.kill(os.getpid(), 9)
"""
        with another(index, script, lease="source:other") as process:
            assert read_line(process) == "written"
            process.wait()
        assert names(index) == ["a"]
        with acquire_lease(index, "source:lake") as lease:
            assert revisions.sweep_unpublished(index, lease, "lake") == 1
            assert revisions.sweep_unpublished(index, lease, "lake") == 0
        assert fill(index, "lake", table("lake", "s", "b")) == 3
        assert names(index) == ["a", "b"]
        with index.read() as connection:
            assert connection.execute(select(func.count()).select_from(t.record)).scalar_one() == 3

    def test_are_not_made_for_what_the_index_says_already(self, index: Index) -> None:
        assert fill(index, "lake", table("lake", "s", "a")) == 1
        assert fill(index, "lake", table("lake", "s", "a")) is None

    def test_write_coverage_on_change_only(self, index: Index) -> None:
        revisions.register_source(index, "lake", "memory", "d")
        broken = Coverage("lake", ("s",), failed_evidence(17, "away"), failed_evidence(17, "away"))
        states = (
            [Coverage("lake", ROOT), Coverage("lake", ("s",))],
            [Coverage("lake", ROOT), broken],
            [Coverage("lake", ROOT)],
        )
        written = []
        with acquire_lease(index, "source:lake") as lease:
            for state in (states[0], states[0], states[1], states[1], states[2]):
                with index.read() as connection:
                    before = coverage.read_coverage(connection, "lake", records.published_revision(connection, "lake"))
                draft = revisions.begin_draft(index, lease, "lake", "run", time.time())
                with index.write() as connection:
                    written.append(coverage.write_coverage(connection, draft, state, before))
                revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values={})
                with index.read() as connection:
                    assert set(coverage.read_coverage(connection, "lake", draft.number)) == {c.key for c in state}
        assert written == [2, 0, 2, 0, 1]
        with index.read() as connection:
            assert coverage.read_coverage(connection, "lake", 4)["s"].presence.code == 17
            assert coverage.read_coverage(connection, "lake", 2)["s"].complete

    def test_names_of_every_kind_survive(self, index: Index) -> None:
        odd = ["a b", "ä", "😀", "per%cent", "dol$lar", "sla/sh", 'quo"te', "tab\tnew\nline", "back\\slash", "%24", "N'"]
        fill(index, "lake", namespace("lake", "s"), *(table("lake", "s", name, doc=name) for name in odd))
        assert sorted(names(index)) == sorted(odd)
        assert [tree.get_table(index, ("lake", "s", name)).doc for name in odd] == odd

    def test_pages_lose_nothing(self, index: Index) -> None:
        """Also a namespace and a table of the same name, where a page ends between the two."""
        content = [table("lake", f"n{i:02}") for i in range(9)] + [namespace("lake", f"n{i:02}") for i in range(9)]
        fill(index, "lake", *content)
        for limit in (1, 2, 3, 7, 100):
            found, after = [], ""
            while True:
                page = tree.list_children(index, ("lake",), after=after, limit=limit)
                found += [(node.name, node.kind) for node in page.nodes]
                if page.next is None:
                    break
                after = page.next
            assert len(found) == len(set(found)) == 18


class TestAudit:
    def test_seals_from_many_at_once(self, index: Index) -> None:
        def work(name: str) -> None:
            for number in range(5):
                with index.write() as connection:
                    audit_log.append_event(connection, "write", actor=name, run_id=None, subject=str(number), detail={})
                audit.seal_pending(index)

        threads = [threading.Thread(target=work, args=(str(n),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        audit.seal_pending(index)
        assert audit.verify_log(index).finding is None
        with index.read() as connection:
            assert audit_log.get_chain_tip(connection)[0] == 20

    def test_a_sealer_that_died_holds_nobody_up(self, index: Index) -> None:
        with another(index, "print('held', flush=True); time.sleep(60)", lease="audit") as process:
            assert read_line(process) == "held"
            process.kill()
            process.wait()
            with index.write() as connection:
                audit_log.append_event(connection, "write", actor="a", run_id=None, subject="s", detail={})
            assert audit.seal_pending(index) == 1
            # A lease outlives its process on PostgreSQL: nothing waited for it.
            assert index.is_sqlite or leases.is_lease_held(index, "audit")


def names(index: Index, *, revision: int | None = None) -> list[str]:
    return [node.name for node in tree.list_children(index, ("lake", "s"), revision=revision).nodes]
