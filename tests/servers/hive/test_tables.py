"""Tables of real Hive metastores: declared, changed and refused, and the server's own changes to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from federator.connector import ConcurrentModification, Internal, InvalidInput, TableAlreadyExists, TableNotFound
from federator.model import Kind, Path, TableRecord
from federator_connectors._hive import records, thrift_types
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(120)

COLUMNS = '[{"doc":"key","name":"id","type":"bigint"},{"name":"vector","type":"array<float>"}]'


@pytest.fixture
def catalog(metastore: Metastore) -> Iterator[HiveCatalog]:
    with metastore.open() as opened:
        yield opened


@pytest.fixture
def database(metastore: Metastore) -> Path:
    return metastore.database()


def _raw(metastore: Metastore, path: Path) -> Any:
    calls = metastore.calls()
    try:
        return calls.get_table(path)
    finally:
        calls.close()


def test_a_declaration_is_an_external_lance_table(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    path = (*database, "orders")
    declared = catalog.declare_table(
        TableRecord("lake", path, metastore.location("o.lance"), {"a": "1", "numRows": "7"}, "docs", "bob", COLUMNS)
    )
    assert (declared.path, declared.doc, declared.owner, declared.schema) == (path, "docs", "bob", COLUMNS)
    assert declared.location == metastore.location("o.lance")
    assert (declared.properties["a"], declared.properties["comment"]) == ("1", "docs")
    assert not {"table_type", "EXTERNAL", "numRows"} & set(declared.properties)
    assert declared.native_id is not None
    # A time, or Hive 4's own number.
    assert int(declared.native_id) > (0 if metastore.version == 4 else 1_600_000_000)
    raw = _raw(metastore, path)
    assert raw.tableType == "EXTERNAL_TABLE"
    assert (raw.parameters["table_type"], raw.parameters["EXTERNAL"]) == ("lance", "TRUE")
    with pytest.raises(TableAlreadyExists):
        catalog.declare_table(declared)


def test_names_are_folded(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    path = (*database, "Orders")
    declared = catalog.declare_table(TableRecord("lake", path, metastore.location("o.lance")))
    assert declared.path == (*database, "orders")
    assert catalog.describe_table((*database, "ORDERS")).digest == declared.digest
    assert catalog.list_tables(tuple(name.upper() for name in database)) == ["orders"]


@pytest.mark.parametrize("name", ["a$b", "a.b", "sp ace", "😀", "ünicode", "@k", "sla/sh", "", "x" * 257])
def test_names_that_hive_refuses_or_misplaces_are_refused_early(
    catalog: HiveCatalog, metastore: Metastore, database: Path, name: str
) -> None:
    with pytest.raises(InvalidInput):
        catalog.declare_table(TableRecord("lake", (*database, name), metastore.location("t")))


def test_the_longest_values_are_taken(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    properties = {"k" * 256: "v" * 4000, "long": "x" * 30_000, "": ""} | {"line\nbreak": "a\nb", "Case": "1", "case": "2"}
    del properties[""]
    wanted = TableRecord("lake", (*database, "x" * 256), metastore.location("t"), properties)
    declared = catalog.declare_table(wanted)
    assert properties.items() <= declared.properties.items()
    for bad in ({"k" * 257: ""}, {"": "v"}, {"surrogate": "\ud800"}):
        with pytest.raises(InvalidInput):
            catalog.declare_table(TableRecord("lake", (*database, "bad"), metastore.location("t"), bad))
    with pytest.raises(InvalidInput):
        catalog.declare_table(TableRecord("lake", (*database, "bad"), "file:/" + "x" * 4000))
    with pytest.raises(InvalidInput):
        catalog.declare_table(TableRecord("lake", (*database, "bad"), metastore.location("t"), schema='{"no": "list"}'))
    with pytest.raises(InvalidInput, match="type"):
        catalog.declare_table(
            TableRecord("lake", (*database, "bad"), metastore.location("t"), schema='[{"name":"a","type":"no type"}]')
        )
    with pytest.raises(InvalidInput, match="location"):
        catalog.declare_table(TableRecord("lake", (*database, "bad")))
    # None of these broke the connection.
    assert catalog.list_tables(database) == ["x" * 256]


def test_an_update_keeps_what_the_record_does_not_show(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    path = (*database, "orders")
    declared = catalog.declare_table(TableRecord("lake", path, metastore.location("o.lance"), {"a": "1"}, schema=COLUMNS))
    before = _raw(metastore, path)
    moved = metastore.location("p.lance")
    updated = catalog.update_table(declared, replace(declared, location=moved, properties={"b": "2"}, doc="told"))
    after = _raw(metastore, path)
    assert (updated.location, updated.properties["b"], "a" in updated.properties) == (moved, "2", False)
    assert (after.tableType, after.parameters["table_type"], after.parameters["EXTERNAL"]) == (
        "EXTERNAL_TABLE",
        "lance",
        "TRUE",
    )
    assert (after.createTime, after.sd.cols, after.owner) == (before.createTime, before.sd.cols, before.owner)
    assert (updated.native_id, updated.schema) == (declared.native_id, COLUMNS)


def test_a_change_between_reading_and_writing_is_not_lost(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.3.10 and 4.0.1 compare the parameter that changes; 3.1.3 takes the comparison and ignores it."""
    path = (*database, "orders")
    declared = catalog.declare_table(TableRecord("lake", path, metastore.location("o.lance"), {"v": "1"}))
    with metastore.open() as other:
        reread = catalog._require_unchanged

        def overtaken(*arguments: Any) -> Any:
            table = reread(*arguments)
            other.update_table(declared, replace(declared, properties={"v": "theirs"}))
            return table

        monkeypatch.setattr(catalog, "_require_unchanged", overtaken)
        changed = replace(declared, properties={"v": "ours"})
        if metastore.version != 3:
            with pytest.raises(ConcurrentModification):
                catalog.update_table(declared, changed)
            assert catalog.describe_table(path).properties["v"] == "theirs"
        else:
            assert catalog.update_table(declared, changed).properties["v"] == "ours"


def test_any_case_of_the_marker_counts(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    markers = {"lower": "lance", "upper": "LANCE", "mixed": "Lance", "longer": "lancer", "inner": "a lance", "none": ""}
    for name, marker in markers.items():
        metastore.table((*database, name), {"EXTERNAL": "TRUE", "table_type": marker})
    assert catalog.list_tables(database) == ["lower", "mixed", "upper"]


def test_a_managed_table_marked_as_lance_is_refused(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    path = (*database, "managed")
    metastore.managed_table(path)
    # Without EXTERNAL=TRUE the server makes a managed table of an external one.
    metastore.table((*database, "turned"), {"table_type": "lance"}, "EXTERNAL_TABLE")
    assert catalog.list_tables(database) == []
    for name in ("managed", "turned"):
        with pytest.raises(InvalidInput, match="MANAGED_TABLE"):
            catalog.describe_table((*database, name))
        observation = catalog.observe((*database, name))
        assert observation.foreign
        with pytest.raises(InvalidInput):
            catalog.deregister_table(TableRecord("lake", (*database, name), metastore.location(name)))
    assert _raw(metastore, path).tableType == "MANAGED_TABLE"


def test_a_table_that_another_lance_client_declared_is_read_only(
    catalog: HiveCatalog, metastore: Metastore, database: Path
) -> None:
    path = (*database, "theirs")
    # As lance-namespace-impls 0.13 does.
    metastore.table(path, {"table_type": "lance", "managed_by": "storage", "empty_table": "true"}, "EXTERNAL_TABLE")
    # As its Java client did until 0.2.0.
    metastore.table((*database, "java"), {"table_type": "lance"}, input_format="com.lancedb.lance.mapred.LanceInputFormat")
    metastore.table((*database, "own"), {"table_type": "lance", "managed_by": "impl"}, "EXTERNAL_TABLE")
    before = _raw(metastore, path)
    assert before.tableType == "MANAGED_TABLE"
    assert catalog.list_tables(database) == ["java", "theirs"]
    assert catalog.list_foreign_objects(database) == ["java", "own", "theirs"], "CASCADE is refused"
    assert catalog.describe_table((*database, "java")).is_read_only
    record = catalog.describe_table(path)
    assert (record.kind, record.is_read_only, record.location) == (Kind.MANAGED_TABLE, True, metastore.location("theirs"))
    assert "storage_managed = origins" in str(record.problem)
    column = thrift_types.FieldSchema("__placeholder_id", "bigint", "Placeholder column")
    before.sd.cols = [column]
    assert records.table_record("lake", path, before).schema is None, "a placeholder is no schema"
    before.sd.cols = []
    assert catalog.observe(path).foreign
    with metastore.open(storage_managed="origins") as reading:
        origin = reading.describe_table(path)
        assert (origin.kind, origin.problem, reading.observe(path).record) == (Kind.TABLE, None, origin)
        crawled = [item for shard in reading.plan_shards() for item in reading.read_shard(shard)]
        assert origin in crawled
        for opened, expected in ((catalog, record), (reading, origin)):
            for change in (
                lambda opened=opened, expected=expected: opened.deregister_table(expected),
                lambda opened=opened, expected=expected: opened.update_table(
                    expected, replace(expected, properties={"a": "1"})
                ),
                lambda opened=opened, expected=expected: opened.rename_table(expected, (*database, "renamed")),
            ):
                with pytest.raises(InvalidInput, match="is a MANAGED_TABLE"):
                    change()
    assert record in [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
    assert _raw(metastore, path) == before


def test_a_default_location_below_the_root_as_the_newer_text_has_it(metastore: Metastore, database: Path) -> None:
    with metastore.open(default_location="root", root=str(metastore.directory)) as catalog:
        assert catalog.default_location((*database, "Orders")) == f"file://{metastore.directory}/{database[-1]}.db/orders"
        if metastore.levels == 2:
            path = ("other", "db", "orders")
            assert catalog.default_location(path) == f"file://{metastore.directory}/other/db.db/orders"


def test_what_is_not_lance_is_refused(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    metastore.table((*database, "bare"), None)
    metastore.table((*database, "parquet"), {"EXTERNAL": "TRUE"})
    metastore.table((*database, "view"), {"table_type": "lance"}, "VIRTUAL_VIEW")
    assert catalog.list_tables(database) == []
    for name in ("bare", "parquet", "view"):
        with pytest.raises(InvalidInput):
            catalog.describe_table((*database, name))
        with pytest.raises(TableAlreadyExists):
            catalog.declare_table(TableRecord("lake", (*database, name), metastore.location(name)))


def test_deregistering_leaves_the_data(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    kept = metastore.directory / "o.lance" / "data"
    kept.parent.mkdir()
    kept.write_text("rows")
    path = (*database, "orders")
    declared = catalog.declare_table(TableRecord("lake", path, metastore.location("o.lance")))
    catalog.deregister_table(declared)
    assert kept.read_text() == "rows"
    with pytest.raises(TableNotFound):
        catalog.describe_table(path)


def test_a_server_that_makes_something_else_is_found_out(
    catalog: HiveCatalog, metastore: Metastore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = records.modify_table

    def managed(context: Any, record: TableRecord) -> Any:
        table = honest(context, record)
        del table.parameters["EXTERNAL"]
        return table

    monkeypatch.setattr(records, "modify_table", managed)
    with pytest.raises(Internal, match="MANAGED_TABLE"):
        catalog.declare_table(TableRecord("lake", (*database, "orders"), metastore.location("o.lance")))


def test_listing_without_the_servers_filter(catalog: HiveCatalog, metastore: Metastore, database: Path) -> None:
    from federator_connectors._hive import metastore as calls

    metastore.table((*database, "ours"), {"EXTERNAL": "TRUE", "table_type": "Lance"})
    metastore.managed_table((*database, "managed"))
    metastore.table((*database, "parquet"), {"EXTERNAL": "TRUE"})
    metastore.table((*database, "theirs"), {"table_type": "lance", "managed_by": "storage"})
    with pytest.MonkeyPatch.context() as patched:
        # A filter that the server cannot parse, as one that its database cannot run, is answered with an error.
        patched.setattr(calls, "_LANCE_FILTER", "no filter")
        assert catalog.list_tables(database) == ["ours", "theirs"]
        assert not catalog._store.list_marked_tables(database).is_exact
