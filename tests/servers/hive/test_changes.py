"""The change feed of a real Hive 3.1.3 and a real Hive 2.3 with their notification logs, and servers without one."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path as FilePath

import pytest

from federator.connector import CatalogChanges, Connector, Unsupported
from federator.demo.servers import hive
from federator.model import NamespaceRecord, Path, TableRecord
from federator_connectors import hive2, hive3
from federator_connectors._hive import change_feed as feed
from federator_connectors._hive.catalog import HiveCatalog
from federator_connectors._hive.settings import HiveSettings
from tests.fixtures.hive import Metastore, started
from tests.fixtures.maven import jars

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def hive2_log_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Hive 2.3 metastore that keeps a log."""
    with _serving(tmp_path_factory.mktemp("hive2"), version=hive.HIVE2) as uri:
        yield uri


@pytest.fixture
def hive3_catalog(hive3_uri: str, tmp_path: FilePath) -> Iterator[HiveCatalog]:
    with Metastore(hive3_uri, 2, ("hive",), tmp_path).open(**{"client.pool-size": "4"}) as opened:
        yield opened


@pytest.fixture
def hive2_catalog(hive2_log_uri: str, tmp_path: FilePath) -> Iterator[HiveCatalog]:
    with Metastore(hive2_log_uri, 1, (), tmp_path, version=2).open(**{"client.pool-size": "4"}) as opened:
        yield opened


@pytest.fixture(params=["hive2", "hive3"])
def catalog(request: pytest.FixtureRequest) -> HiveCatalog:
    opened = request.getfixturevalue(f"{request.param}_catalog")
    assert isinstance(opened, HiveCatalog)
    return opened


def _database(catalog: HiveCatalog, directory: FilePath, above: str = "hive") -> Path:
    path = (*((above,) if catalog._store.levels == 2 else ()), f"db_{secrets.token_hex(4)}")
    catalog.create_namespace(NamespaceRecord("lake", path, location=f"file:{directory}/{path[-1]}"))
    return path


def _table(catalog: HiveCatalog, path: Path, directory: FilePath) -> TableRecord:
    return catalog.declare_table(TableRecord("lake", path, f"file:{directory}/{path[-1]}"))


def test_every_kind_of_change_is_named(catalog: HiveCatalog, tmp_path: FilePath) -> None:
    cursor = catalog.current_feed_cursor()
    assert catalog.changes_since(cursor) == CatalogChanges(cursor)
    one, other = _database(catalog, tmp_path), _database(catalog, tmp_path)
    table = _table(catalog, (*one, "t"), tmp_path)
    _table(catalog, (*other, "t"), tmp_path)
    changes = catalog.changes_since(cursor)
    assert changes.full_crawl is None
    assert changes.namespaces == {one, other}
    assert changes.tables == {(*one, "t"), (*other, "t")}
    again = catalog.changes_since(changes.cursor)
    assert (again.namespaces, again.tables) == (set(), set())
    altered = catalog.update_table(table, replace(table, properties={"team": "ops"}))
    assert catalog.changes_since(again.cursor).tables == {(*one, "t")}
    renamed = catalog.rename_table(altered, (*one, "renamed"))
    catalog.deregister_table(renamed)
    catalog.drop_namespace(one)
    last = catalog.changes_since(again.cursor)
    assert last.tables == {(*one, "t"), (*one, "renamed")}
    assert last.namespaces == {one}


def test_batches_smaller_than_the_events_of_one_id_end_at_the_end_of_the_log(
    catalog: HiveCatalog, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_BATCH", 1)
    cursor = catalog.current_feed_cursor()
    database = _database(catalog, tmp_path)
    for number in range(3):
        _table(catalog, (*database, f"t{number}"), tmp_path)
    assert catalog.changes_since(cursor).tables == {(*database, f"t{number}") for number in range(3)}


def test_a_catalog_is_named_with_what_is_in_it(hive3_catalog: HiveCatalog, tmp_path: FilePath) -> None:
    cursor = hive3_catalog.current_feed_cursor()
    second = (f"cat_{secrets.token_hex(4)}",)
    hive3_catalog.create_namespace(NamespaceRecord("lake", second))
    table = (*_database(hive3_catalog, tmp_path, second[0]), "t")
    _table(hive3_catalog, table, tmp_path)
    changes = hive3_catalog.changes_since(cursor)
    assert (changes.namespaces, changes.tables) == ({second, (*second, "default"), table[:-1]}, {table})


def test_a_rename_into_another_database_names_both_paths(catalog: HiveCatalog, tmp_path: FilePath) -> None:
    one, other = _database(catalog, tmp_path), _database(catalog, tmp_path)
    table = _table(catalog, (*one, "t"), tmp_path)
    cursor = catalog.current_feed_cursor()
    catalog.rename_table(table, (*other, "t"))
    assert catalog.changes_since(cursor).tables == {(*one, "t"), (*other, "t")}


def test_hive2_reads_the_default_catalog_alone(hive3_catalog: HiveCatalog, hive3_uri: str, tmp_path: FilePath) -> None:
    with hive2.CONNECTOR.open("lake", hive2.CONNECTOR.parse_settings({"uri": hive3_uri})) as two_levels:
        cursor = two_levels.current_feed_cursor()
        hive3_catalog.create_namespace(NamespaceRecord("lake", (second := f"cat_{secrets.token_hex(4)}",)))
        _table(hive3_catalog, (*_database(hive3_catalog, tmp_path, second), "hidden"), tmp_path)
        shown = _database(hive3_catalog, tmp_path)
        _table(hive3_catalog, (*shown, "t"), tmp_path)
        changes = two_levels.changes_since(cursor)
    assert (changes.namespaces, changes.tables) == ({shown[1:]}, {(*shown[1:], "t")})


def test_nothing_is_lost_to_concurrent_writers(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derby hands out ids twice, out of order, and again after its counter went back: what a strict cursor would lose lies in the
    overlap, or the feed asks for a full crawl. On a server of its own, whose counter is no other test's."""
    monkeypatch.setattr(feed, "_BATCH", 7)
    with _serving(tmp_path / "server") as uri, _opened(uri) as catalog:
        database = _database(catalog, tmp_path)
        cursor, found = catalog.current_feed_cursor(), set()
        wanted = {(*database, f"t{writer}_{number}") for writer in range(6) for number in range(25)}

        def write(writer: int) -> None:
            with _opened(uri) as opened:
                for number in range(25):
                    _table(opened, (*database, f"t{writer}_{number}"), tmp_path)

        def poll(since: str) -> tuple[str, set[Path]]:
            changes = catalog.changes_since(since)
            if changes.full_crawl is None:
                return changes.cursor, set(changes.tables)
            return changes.cursor, {(*database, name) for name in catalog.list_tables(database)}

        writers = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            cursor, seen = poll(cursor)
            found |= seen
        assert found | poll(cursor)[1] == wanted


def _doctored(cursor: str, **values: object) -> str:
    return json.dumps({**json.loads(cursor), **values})


def test_a_log_that_does_not_continue_what_was_read_needs_a_full_crawl(catalog: HiveCatalog, tmp_path: FilePath) -> None:
    database = _database(catalog, tmp_path)
    cursor = catalog.current_feed_cursor()
    now = json.loads(cursor)["event"]
    for broken, reason in (
        (_doctored(cursor, event=now + 5), f"at event {now}, before the cursor's {now + 5}"),
        (_doctored(cursor, seen=["0" * 16]), f"event {now} is not the one that was read"),
        (_doctored(cursor, server="another"), "another metastore"),
        (_doctored(cursor, event=now - feed.MAX_EVENTS - 1), "more than a full crawl costs"),
        ("no cursor", "not created by this connector"),
        ("{}", "not created by this connector"),
    ):
        changes = catalog.changes_since(broken)
        assert reason in (changes.full_crawl or "")
        assert (changes.namespaces, changes.tables) == (set(), set())
        # Where to go on after that crawl.
        _table(catalog, (*database, name := f"t_{secrets.token_hex(4)}"), tmp_path)
        assert catalog.changes_since(changes.cursor).tables == {(*database, name)}


def test_an_alteration_that_cannot_be_read_needs_a_full_crawl(
    catalog: HiveCatalog, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been a rename from anywhere."""
    table = _table(catalog, (*_database(catalog, tmp_path), "t"), tmp_path)
    cursor = catalog.current_feed_cursor()
    catalog.update_table(table, replace(table, properties={"team": "ops"}))
    honest, read = catalog._store.list_events, json.loads(cursor)["event"]

    def garbled(after: int, most: int) -> list[object]:
        events = honest(after, most)
        for event in events:
            new = event.eventType == "ALTER_TABLE" and event.eventId > read
            event.message = "protobuf?" if new else event.message
        return events

    monkeypatch.setattr(catalog._store, "list_events", garbled)
    assert "cannot be read" in (catalog.changes_since(cursor).full_crawl or "")


def test_an_expired_log_and_a_fresh_server_need_a_full_crawl(
    tmp_path: FilePath, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("expiring")
    with _serving(tmp_path / "first") as uri, _opened(uri) as catalog:
        database = _database(catalog, directory)
        _table(catalog, (*database, "before"), directory)
        cursor = catalog.current_feed_cursor()
        _table(catalog, (*database, "after"), directory)
        behind = catalog.current_feed_cursor()
    time.sleep(1.5)
    # The same metastore, whose cleaner runs at its start.
    brief = {"metastore.event.db.listener.timetolive": "1s"}
    with _serving(tmp_path / "first", brief) as uri, _opened(uri) as catalog:
        end = time.monotonic() + 60
        while catalog._store.list_events(0, 10) and time.monotonic() < end:
            time.sleep(0.1)
        # One event of the database, and two of each declaration: a view is created and altered.
        assert catalog._store.get_current_event_id() == 5
        expired = catalog.changes_since(cursor)
        assert expired.full_crawl == "the log has expired: event 3 is absent"
        assert catalog.changes_since(behind) == CatalogChanges(_doctored_seen(behind)), "nothing had happened since"
        # The cursor of a log that is empty goes on without a gap.
        _table(catalog, (*database, "last"), directory)
        assert catalog.changes_since(expired.cursor).tables == {(*database, "last")}
    with _serving(tmp_path / "second") as uri, _opened(uri) as catalog:
        assert catalog.changes_since(behind).full_crawl == "another metastore answers"


def test_an_expired_log_of_hive2_needs_a_full_crawl(tmp_path: FilePath, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hive 2 has no identity: an event that is gone may also be another server's."""
    directory = tmp_path_factory.mktemp("expiring")
    with _serving(tmp_path, version=hive.HIVE2) as uri, _opened(uri, hive2.CONNECTOR) as catalog:
        database = _database(catalog, directory)
        cursor = catalog.current_feed_cursor()
        _table(catalog, (*database, "after"), directory)
        behind = catalog.current_feed_cursor()
    time.sleep(1.5)
    brief = {"hive.metastore.event.db.listener.timetolive": "1s"}
    with _serving(tmp_path, brief, version=hive.HIVE2) as uri, _opened(uri, hive2.CONNECTOR) as catalog:
        end = time.monotonic() + 60
        while catalog._store.list_events(0, 10) and time.monotonic() < end:
            time.sleep(0.1)
        assert catalog.changes_since(cursor).full_crawl == "the log has expired: event 1 is absent"
        assert "the metastore has no id that could be compared" in (catalog.changes_since(behind).full_crawl or "")


@contextmanager
def _serving(run_dir: FilePath, conf: dict[str, str] | None = None, *, version: str = hive.HIVE3) -> Iterator[str]:
    env = None
    if version == hive.HIVE2:
        listener = "org.apache.hive.hcatalog.listener.DbNotificationListener"
        conf = {"hive.metastore.transactional.event.listeners": listener, **(conf or {})}
        env = {"HIVE_AUX_JARS_PATH": str(jars("hive-listener-2.3.10"))}
    server = started(lambda run_directory: hive.start(version, run_directory, conf, env), run_dir)
    try:
        yield server.uri
    finally:
        server.stop()


def _doctored_seen(cursor: str) -> str:
    return json.dumps({**json.loads(cursor), "seen": []}, separators=(",", ":"))


def _opened(uri: str, connector: Connector[HiveSettings] = hive3.CONNECTOR) -> HiveCatalog:
    opened = connector.open("lake", connector.parse_settings({"uri": uri}))
    assert isinstance(opened, HiveCatalog)
    return opened


@pytest.mark.parametrize("metastore", ["hive2", "hive4"], indirect=True)
def test_a_metastore_without_a_log_says_so(metastore: Metastore) -> None:
    with metastore.open() as catalog:
        for ask in (catalog.current_feed_cursor, lambda: catalog.changes_since("{}")):
            with pytest.raises(Unsupported, match="has no notification log") as caught:
                ask()
            assert "DbNotificationListener" in (caught.value.hint or "")
