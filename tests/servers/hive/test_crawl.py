"""The crawl of real Hive metastores: records and coverage; a failed listing is never an empty namespace."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from federator.connector import CatalogError, Internal, NamespaceNotFound, PermissionDenied, Shard
from federator.model import COMPLETE, ROOT, Coverage, Kind, NamespaceRecord, Path, Record, TableRecord, fold_digest
from federator_connectors._hive import crawl as crawling
from federator_connectors._hive.catalog import HiveCatalog
from federator_connectors._hive.client import Connection
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(120)

LANCE = {"EXTERNAL": "TRUE", "table_type": "lance"}


@pytest.fixture
def catalog(metastore: Metastore) -> Iterator[HiveCatalog]:
    with metastore.open() as opened:
        yield opened


@pytest.fixture
def database(metastore: Metastore) -> Path:
    return metastore.database()


def _read(catalog: HiveCatalog, *namespaces: Path) -> tuple[dict[Path, Record], dict[Path, Coverage]]:
    items = list(catalog.read_shard(Shard(namespaces)))
    coverage = {item.namespace: item for item in items if isinstance(item, Coverage)}
    records = {item.path: item for item in items if not isinstance(item, Coverage)}
    for namespace, row in coverage.items():
        inside = [record.digest for path, record in records.items() if path[:-1] == namespace]
        assert (row.records, row.digest) == (len(inside), fold_digest(inside))
    assert set(coverage) == set(namespaces)
    return records, coverage


def _fails(error: CatalogError, *, when: Callable[..., bool] = lambda *_: True, otherwise: Any = None) -> Any:
    def call(*arguments: Any) -> Any:
        if when(*arguments):
            raise error
        return otherwise(*arguments)

    return call


def test_every_kind_of_table(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    catalog.declare_table(TableRecord("lake", (*database, "ours"), metastore.location("ours"), {"a": "1"}, "docs", "bob"))
    metastore.table((*database, "loud"), {"EXTERNAL": "TRUE", "table_type": "LANCE"})
    metastore.managed_table((*database, "managed"))
    metastore.table((*database, "view"), {"table_type": "lance"}, "VIRTUAL_VIEW")
    metastore.table((*database, "parquet"), {"EXTERNAL": "TRUE"})
    metastore.table((*database, "bare"), None)
    records, coverage = _read(catalog, database)
    kinds = {path[-1]: record.kind for path, record in records.items()}
    assert kinds == {"ours": Kind.TABLE, "loud": Kind.TABLE, "managed": Kind.MANAGED_TABLE, "view": Kind.MANAGED_TABLE}
    assert records[(*database, "ours")].digest == catalog.describe_table((*database, "ours")).digest
    view = records[(*database, "view")]
    assert isinstance(view, TableRecord)
    assert view.location is None
    assert (coverage[database].presence, coverage[database].detail) == (COMPLETE, COMPLETE)


def test_namespaces_above_the_tables(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    above = [database[:depth] for depth in range(len(database))]
    records, coverage = _read(catalog, *above)
    assert records[database].digest == catalog.describe_namespace(database).digest
    for namespace in above:
        assert coverage[namespace].complete
        assert {path[-1] for path in records if path[:-1] == namespace} == set(catalog.list_namespaces(namespace))


def test_shards_cover_every_namespace_once(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    namespaces = [namespace for shard in catalog.plan_shards() for namespace in shard.namespaces]
    assert len(namespaces) == len(set(namespaces))
    assert {ROOT, database, metastore.above} <= set(namespaces)


def test_a_crawl_asks_for_little_more_than_it_must(
    catalog: HiveCatalog, metastore: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least possible, since no call describes two namespaces, lists two databases, or proves that one exists and lists it:

    to cut shards, one listing of the root and one of each catalog; to read, these listings again, one description of each
    namespace, a look at each catalog and database before and after its listing (empty proves nothing), the names of each
    database's marked tables, and one request for every ``BATCH`` of whole tables.
    """
    sizes = (0, 1, 4, 7)
    for size in sizes:
        filled = metastore.database()
        for number in range(size):
            metastore.table((*filled, f"t{number}"), LANCE)
        metastore.table((*filled, "parquet"), {"EXTERNAL": "TRUE"})
    monkeypatch.setattr(crawling, "BATCH", 3)
    asked: list[str] = []
    honest = Connection.call

    def counted(self: Connection, method: Any, arguments: Sequence[Any]) -> Any:
        asked.append(method.name)
        return honest(self, method, arguments)

    monkeypatch.setattr(Connection, "call", counted)
    rows = [row for shard in catalog.plan_shards() for row in catalog.read_shard(shard)]
    coverage = [row for row in rows if isinstance(row, Coverage)]
    catalogs = [row for row in coverage if metastore.levels == 2 and len(row.namespace) == 1]
    databases = [row for row in coverage if len(row.namespace) == metastore.levels]
    assert len(databases) >= len(sizes)
    listings = 1 + len(catalogs)
    looks = 3 * (len(catalogs) + len(databases))
    whole = sum(-(-row.records // 3) for row in databases)
    least = 2 * listings + looks + len(databases) + whole
    assert least <= len(asked) <= 1.05 * least + 2, "two connections, each proven by one call"


def test_many_batches(catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        metastore.table((*database, f"t{number}"), LANCE)
    monkeypatch.setattr(crawling, "BATCH", 3)
    records, coverage = _read(catalog, database)
    assert len(records) == 7
    assert coverage[database].complete


def test_a_database_that_is_not_there_is_not_empty(catalog: HiveCatalog, metastore: Metastore) -> None:
    missing = (*metastore.above, "nowhere")
    records, coverage = _read(catalog, missing)
    assert not records
    assert (coverage[missing].found, coverage[missing].presence.code) == (False, 1)
    if metastore.levels == 2:
        records, coverage = _read(catalog, ("nowhere",))
        assert not records
        assert (coverage[("nowhere",)].found, coverage[("nowhere",)].presence.code) == (False, 1)


@pytest.mark.parametrize("moment", ["list_marked_tables", "get_tables"])
def test_a_database_dropped_while_it_is_read_is_not_empty(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Hive lists a database that does not exist as empty."""
    metastore.table((*database, "t"), LANCE)
    honest = getattr(catalog._store, moment)

    def too_late(*arguments: Any) -> Any:
        calls = metastore.calls()
        calls.drop_table((*database, "t"))
        calls.drop_database(database)
        return honest(*arguments)

    monkeypatch.setattr(catalog._store, moment, too_late)
    records, coverage = _read(catalog, database)
    assert not records
    assert not coverage[database].complete
    assert (coverage[database].found, coverage[database].presence.code) == (False, 1)


def test_a_table_dropped_while_it_is_read_is_absent(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metastore.table((*database, "goes"), LANCE)
    metastore.table((*database, "stays"), LANCE)
    honest = catalog._store.get_tables

    def too_late(*arguments: Any) -> Any:
        metastore.calls().drop_table((*database, "goes"))
        return honest(*arguments)

    monkeypatch.setattr(catalog._store, "get_tables", too_late)
    records, coverage = _read(catalog, database)
    assert set(records) == {(*database, "stays")}
    assert (coverage[database].presence, coverage[database].detail) == (COMPLETE, COMPLETE)


def test_a_broken_table_is_present_and_spoils_only_itself(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server lets one make such a table, but old metastores have them: the whole batch is refused because of it."""
    for name in ("broken", "good", "other"):
        metastore.table((*database, name), LANCE)
    store = catalog._store
    monkeypatch.setattr(store, "get_tables", _fails(Internal("NullPointerException")))
    is_broken: Callable[..., bool] = lambda path: path[-1] == "broken"  # noqa: E731
    monkeypatch.setattr(store, "get_table", _fails(Internal("NullPointerException"), when=is_broken, otherwise=store.get_table))
    records, coverage = _read(catalog, database)
    assert {path[-1]: record.kind for path, record in records.items()} == {
        "broken": Kind.UNDESCRIBED, "good": Kind.TABLE, "other": Kind.TABLE,
    }  # fmt: skip
    broken = records[(*database, "broken")]
    assert isinstance(broken, TableRecord)
    assert broken.problem == "NullPointerException"
    assert coverage[database].presence == COMPLETE
    assert coverage[database].detail.code == 18
    assert "broken" in coverage[database].detail.reason


def test_structs_with_nothing_in_them_are_records(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No storage descriptor, no location, no parameters, no names of columns: none of it stops the crawl."""
    names = ["no_columns", "no_location", "no_parameters", "no_storage", "no_type"]
    for name in names:
        metastore.table((*database, name), LANCE)
    honest = catalog._store.get_tables

    def hollow(namespace: Path, names: Sequence[str]) -> list[Any]:
        tables = {table.tableName: table for table in honest(namespace, names)}
        tables["no_columns"].sd.cols = None
        tables["no_location"].sd.location = None
        tables["no_parameters"].parameters = None
        tables["no_storage"].sd = None
        tables["no_storage"].partitionKeys = None
        tables["no_type"].tableType = None
        return list(tables.values())

    monkeypatch.setattr(catalog._store, "get_tables", hollow)
    records, coverage = _read(catalog, database)
    assert {path[-1] for path in records} == set(names) - {"no_parameters"}
    for name in ("no_location", "no_storage"):
        record = records[(*database, name)]
        assert isinstance(record, TableRecord)
        assert record.location is None
    assert records[(*database, "no_type")].kind is Kind.MANAGED_TABLE
    assert coverage[database].complete


def test_a_database_that_fails_does_not_stop_the_others(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = metastore.database()
    metastore.table((*other, "t"), LANCE)
    store = catalog._store
    denied: Callable[..., bool] = lambda path: path == database  # noqa: E731
    monkeypatch.setattr(store, "get_database", _fails(PermissionDenied("no"), when=denied, otherwise=store.get_database))
    records, coverage = _read(catalog, database, other, metastore.above)
    assert (coverage[database].presence.code, coverage[database].found) == (15, True)
    assert coverage[other].complete
    # It is listed, so it is there, though nobody may look into it.
    assert records[database] == NamespaceRecord("lake", database)
    assert coverage[metastore.above].presence == COMPLETE
    assert coverage[metastore.above].detail.code == 15


def test_a_database_dropped_after_the_listing_is_not_emitted(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = catalog._store
    gone: Callable[..., bool] = lambda path: path == database  # noqa: E731
    monkeypatch.setattr(store, "get_database", _fails(NamespaceNotFound("gone"), when=gone, otherwise=store.get_database))
    records, coverage = _read(catalog, metastore.above)
    assert database not in records
    assert coverage[metastore.above].complete


@pytest.mark.parametrize("metastore", ["hive3"], indirect=True)
def test_one_name_in_two_catalogs(catalog: HiveCatalog, metastore: Metastore) -> None:
    """Fields of catalogs that a struct or an argument lacks would read or write the default catalog's."""
    name = f"same_{secrets.token_hex(4)}"
    second = (f"cat_{secrets.token_hex(4)}",)
    catalog.create_namespace(NamespaceRecord("lake", second))
    tables = {}
    for above in (("hive",), second):
        catalog.create_namespace(NamespaceRecord("lake", (*above, name)))
        where = metastore.location(f"{above[0]}.lance")
        tables[above] = catalog.declare_table(TableRecord("lake", (*above, name, "t"), where))
    for above, made in tables.items():
        records, _ = _read(catalog, (*above, name))
        assert list(records.values()) == [made]
    updated = catalog.update_table(
        tables[second], TableRecord("lake", tables[second].path, tables[second].location, {"x": "1"})
    )
    assert "x" not in catalog.describe_table(tables[("hive",)].path).properties
    catalog.deregister_table(updated)
    assert catalog.list_tables(("hive", name)) == ["t"]
    assert catalog.list_tables((*second, name)) == []
