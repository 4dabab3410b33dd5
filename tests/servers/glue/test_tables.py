"""Glue's tables through the connector, against a server over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from federator.connector import (
    ConcurrentModification,
    InvalidInput,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)
from federator.lance.facade_mapping import storage_options_for
from federator.model import Kind, NamespaceRecord, TableRecord
from federator_connectors._glue.catalog import GlueCatalog
from federator_connectors.glue import CONNECTOR
from tests.fixtures.glue import GlueAccount

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def catalog(glue_account: GlueAccount) -> Iterator[GlueCatalog]:
    """A catalog of a new account, which has the database ``sales``."""
    settings = CONNECTOR.parse_settings({**glue_account.properties, "root": "s3://lake/root/"})
    glue_account.client().create_database(DatabaseInput={"Name": "sales"})
    with CONNECTOR.open("aws", settings) as opened:
        yield opened


def orders(*path: str, **more: Any) -> TableRecord:
    return TableRecord("aws", path or ("sales", "orders"), "s3://lake/orders.lance", {"team": "a"}, **more)


def native(account: GlueAccount, name: str, **table: Any) -> None:
    account.client().create_table(DatabaseName="sales", TableInput={"Name": name, **table})


LANCE = {"TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "lance"}}


def test_declare_describe_deregister(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    path = (glue_account.account_id, "sales", "orders")
    schema = json.dumps(
        [{"name": "id", "type": "bigint"}, {"doc": "when", "name": "ts", "type": "timestamp"}], separators=(",", ":")
    )
    declared = catalog.declare_table(orders("Sales", "Orders", doc="all of them", owner="ann", schema=schema))
    assert declared.path == path
    assert (declared.location, declared.properties, declared.doc, declared.owner) == (
        "s3://lake/orders.lance",
        {"team": "a"},
        "all of them",
        "ann",
    )
    assert declared.schema == schema
    assert declared.native_id
    assert declared.version
    assert declared.kind is Kind.TABLE
    table = glue_account.client().get_table(DatabaseName="sales", Name="orders")["Table"]
    assert (table["TableType"], table["Parameters"]["table_type"]) == ("EXTERNAL_TABLE", "lance")
    assert catalog.describe_table(("sales", "ORDERS")) == declared == catalog.describe_table(path)
    assert catalog.observe(("sales", "orders")).record == declared
    assert catalog.list_tables(("sales",)) == ["orders"] == catalog.list_tables(path[:-1])
    catalog.deregister_table(replace(declared, path=("sales", "orders")))
    assert catalog.observe(path).is_absent
    assert catalog.list_tables(("sales",)) == []


def test_placeholders_of_other_clients_are_no_content(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    """As lance-namespace-impls declares a table without a schema."""
    column = {"Name": "__placeholder_id", "Type": "bigint", "Comment": "Placeholder column for empty table"}
    storage = {"Location": "s3://lake/t.lance", "Columns": [column]}
    written = {"table_type": "lance", "managed_by": "storage", "empty_table": "true", "team": "a"}
    native(glue_account, "t", TableType="EXTERNAL_TABLE", Parameters=written, StorageDescriptor=storage)
    record = catalog.describe_table(("sales", "t"))
    assert record.schema is None
    assert storage_options_for({}, record) == {"team": "a"}
    changed = catalog.update_table(record, replace(record, doc="new"))
    assert changed.properties == {"managed_by": "storage", "empty_table": "true", "team": "a"}
    assert replace(changed, properties={"team": "a"}).digest == changed.digest


def test_a_table_that_upstreams_java_client_declared_has_no_type(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    written = {"table_type": "lance", "managed_by": "storage"}
    native(glue_account, "t", Parameters=written, StorageDescriptor={"Location": "s3://lake/t.lance", "Parameters": written})
    assert catalog.list_tables(("sales",)) == ["t"]
    record = catalog.describe_table(("sales", "t"))
    assert (record.kind, record.location) == (Kind.TABLE, "s3://lake/t.lance")
    crawled = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
    assert record in crawled
    changed = catalog.update_table(record, replace(record, doc="new"))
    catalog.deregister_table(changed)
    assert catalog.observe(("sales", "t")).is_absent


def test_a_table_deep_in_catalogs(catalog: GlueCatalog) -> None:
    for path in (("lake",), ("lake", "db")):
        catalog.create_namespace(NamespaceRecord("aws", path))
    declared = catalog.declare_table(orders("lake", "db", "t"))
    assert declared.path == ("lake", "db", "t")
    assert catalog.list_tables(("lake", "db")) == ["t"]
    changed = catalog.update_table(declared, replace(declared, doc="new"))
    catalog.deregister_table(changed)
    assert catalog.list_tables(("lake", "db")) == []
    # (lake, t) is not a table of the database "lake" in the root, since a catalog has that name.
    with pytest.raises(TableNotFound, match="is a catalog"):
        catalog.describe_table(("lake", "t"))


def test_default_locations(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    account = glue_account.account_id
    catalog.create_namespace(NamespaceRecord("aws", (account, "placed"), {}, "s3://else/where/"))
    catalog.create_namespace(NamespaceRecord("aws", ("lake",)))
    catalog.create_namespace(NamespaceRecord("aws", ("lake", "db")))
    assert catalog.default_location(("sales", "T")) == "s3://lake/root/sales/t.lance"
    assert catalog.default_location((account, "sales", "t")) == "s3://lake/root/sales/t.lance"
    assert catalog.default_location(("placed", "t")) == "s3://else/where/t.lance"
    assert catalog.default_location(("lake", "db", "t")) == "s3://lake/root/lake/db/t.lance"
    with pytest.raises(NamespaceNotFound):
        catalog.default_location(("no", "t"))


def test_a_name_is_taken_once_whatever_has_it(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    native(glue_account, "view", TableType="VIRTUAL_VIEW")
    catalog.declare_table(orders())
    for name in ("orders", "ORDERS", "view"):
        with pytest.raises(TableAlreadyExists):
            catalog.declare_table(orders("sales", name))


def test_the_database_must_exist(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    for path in (("no", "t"), (glue_account.account_id, "no", "t"), ("no", "db", "t")):
        with pytest.raises(NamespaceNotFound):
            catalog.declare_table(orders(*path))
        with pytest.raises(TableNotFound):
            catalog.describe_table(path)
        assert catalog.observe(path).is_absent


def test_more_tables_than_a_page(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    for number in range(205):
        native(glue_account, f"t{number:03}", **(LANCE if number % 2 else {"TableType": "EXTERNAL_TABLE"}))
    assert catalog.list_tables(("sales",)) == [f"t{number:03}" for number in range(1, 205, 2)]


@pytest.mark.parametrize("marker", ["lance", "LANCE", "Lance"])
def test_the_marker_counts_in_any_case(catalog: GlueCatalog, glue_account: GlueAccount, marker: str) -> None:
    native(glue_account, "t", TableType="EXTERNAL_TABLE", Parameters={"table_type": marker, "EXTERNAL": "TRUE", "k": "v"})
    record = catalog.describe_table(("sales", "t"))
    assert record.properties == {"k": "v"}
    assert catalog.list_tables(("sales",)) == ["t"]
    changed = catalog.update_table(record, replace(record, properties={"k": "w"}))
    assert changed.properties == {"k": "w"}
    kept = glue_account.client().get_table(DatabaseName="sales", Name="t")["Table"]["Parameters"]
    assert kept == {"table_type": marker, "EXTERNAL": "TRUE", "k": "w"}


@pytest.mark.parametrize(
    "table",
    [
        {"TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "iceberg"}},
        {"TableType": "EXTERNAL_TABLE"},
        {"TableType": "MANAGED_TABLE", "Parameters": {"table_type": "lance"}},
        {"Parameters": {"table_type": "lance"}},
        {},
    ],
)
def test_what_is_no_external_lance_table_is_invalid_and_untouched(
    catalog: GlueCatalog, glue_account: GlueAccount, table: dict[str, Any]
) -> None:
    native(glue_account, "t", **table)
    expected = orders("sales", "t")
    with pytest.raises(InvalidInput):
        catalog.describe_table(("sales", "t"))
    with pytest.raises(InvalidInput):
        catalog.deregister_table(expected)
    with pytest.raises(InvalidInput):
        catalog.update_table(expected, expected)
    assert catalog.list_tables(("sales",)) == []
    assert catalog.observe(("sales", "t")).foreign
    assert glue_account.client().get_table(DatabaseName="sales", Name="t")


@pytest.mark.parametrize("storage", [{}, {"StorageDescriptor": {}}, {"StorageDescriptor": {"Location": ""}}])
def test_a_table_without_a_location_is_a_table(
    catalog: GlueCatalog, glue_account: GlueAccount, storage: dict[str, Any]
) -> None:
    native(glue_account, "t", **LANCE, **storage)
    record = catalog.describe_table(("sales", "t"))
    assert record.location is None
    assert record.schema is None
    assert catalog.update_table(record, replace(record, location="s3://lake/t")).location == "s3://lake/t"


def test_an_update_keeps_what_is_native(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    native(
        glue_account,
        "t",
        TableType="EXTERNAL_TABLE",
        Parameters={"table_type": "lance", "old": "1", "recordCount": "7"},
        Description="before",
        Owner="ann",
        Retention=3,
        PartitionKeys=[{"Name": "day", "Type": "date"}],
        StorageDescriptor={
            "Location": "s3://lake/old",
            "Columns": [{"Name": "id", "Type": "bigint"}],
            "SerdeInfo": {"SerializationLibrary": "org.example.Serde", "Parameters": {"p": "q"}},
            "Parameters": {"sd": "1"},
        },
    )
    before = catalog.describe_table(("sales", "t"))
    after = catalog.update_table(before, replace(before, location="s3://lake/new", properties={"new": "2"}, doc=None))
    assert (after.location, after.doc, after.owner) == ("s3://lake/new", None, "ann")
    assert after.version != before.version
    assert after.native_id == before.native_id
    table = glue_account.client().get_table(DatabaseName="sales", Name="t")["Table"]
    assert table["Parameters"] == {"table_type": "lance", "new": "2", "recordCount": "7"}
    assert (table["Retention"], table["PartitionKeys"]) == (3, [{"Name": "day", "Type": "date"}])
    assert table["StorageDescriptor"]["SerdeInfo"]["Parameters"] == {"p": "q"}
    assert table["StorageDescriptor"]["Parameters"] == {"sd": "1"}
    assert table["StorageDescriptor"]["Columns"] == [{"Name": "id", "Type": "bigint"}]


def test_what_moved_is_neither_changed_nor_removed(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    declared = catalog.declare_table(orders())
    stale = replace(declared, properties={"team": "b"})
    for operation in (lambda: catalog.update_table(stale, declared), lambda: catalog.deregister_table(stale)):
        with pytest.raises(ConcurrentModification):
            operation()
    assert catalog.describe_table(declared.path) == declared
    glue_account.client().delete_table(DatabaseName="sales", Name="orders")
    for operation in (lambda: catalog.update_table(declared, declared), lambda: catalog.deregister_table(declared)):
        with pytest.raises(TableNotFound):
            operation()


def test_statistics_do_not_count_as_a_change(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    declared = catalog.declare_table(orders())
    client = glue_account.client()
    client.update_table(DatabaseName="sales", TableInput={
        "Name": "orders", **LANCE, "Parameters": {"table_type": "lance", "team": "a", "recordCount": "1"},
        "StorageDescriptor": {"Location": declared.location},
    })  # fmt: skip
    assert catalog.describe_table(declared.path).version != declared.version
    assert catalog.update_table(declared, replace(declared, doc="x")).doc == "x"


def test_glue_itself_compares_the_version(
    catalog: GlueCatalog, glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone writes between our look and our write."""
    declared = catalog.declare_table(orders())
    writes = catalog._clients.writes
    send = writes.update_table

    def meddled(**request: Any) -> Any:
        glue_account.client().update_table(DatabaseName="sales", TableInput={"Name": "orders", **LANCE})
        return send(**request)

    monkeypatch.setattr(writes, "update_table", meddled)
    with pytest.raises(ConcurrentModification, match="changed meanwhile"):
        catalog.update_table(declared, replace(declared, doc="x"))
    assert catalog.describe_table(declared.path).location is None
