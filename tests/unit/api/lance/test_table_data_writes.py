"""Writes of a table's data, compared with pylance's own server through the official client."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance_namespace_urllib3_client as client
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.rest import ApiException

from federator.testing.contract import unique_name
from tests.unit.api.lance.conftest import Service, served
from tests.unit.api.lance.table_clients import NEW, ROWS, Client, Tables, plain, stream

WRITES: dict[str, Callable[[Client, str], Any]] = {
    "insert": lambda c, t: c.data.insert_into_table(t, NEW),
    "insert instead": lambda c, t: c.data.insert_into_table(t, NEW, mode="Overwrite"),
    "merge": lambda c, t: c.data.merge_insert_into_table(
        t, ["id"], NEW, when_matched_update_all=True, when_not_matched_insert_all=True, timeout="30s"
    ),
    "merge and delete": lambda c, t: c.data.merge_insert_into_table(
        t, ["id"], NEW, when_matched_update_all=True, when_not_matched_by_source_delete=True,
        when_not_matched_by_source_delete_filt="id > 40",
    ),
    "update": lambda c, t: c.data.update_table(t, client.UpdateTableRequest(predicate="id < 3", updates=[["name", "'x'"]])),
    "delete": lambda c, t: c.data.delete_from_table(t, client.DeleteFromTableRequest(predicate="id > 10")),
    "schema metadata": lambda c, t: c.tables.update_table_schema_metadata(t, {"a": "b"}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_a_write_does_what_pylances_server_does(
    name: str, service_client: Client, reference_client: Client, tables: Tables
) -> None:
    first, other = tables.new(), tables.new()
    assert plain(WRITES[name](service_client, service_client.id(first))) == plain(WRITES[name](reference_client, other))
    mine, expected = tables.open(first), tables.open(other)
    assert mine.to_table().sort_by("id").equals(expected.to_table().sort_by("id"))
    assert (mine.version, mine.schema.metadata) == (expected.version, expected.schema.metadata)


def test_an_old_version_becomes_the_newest(service_client: Client, tables: Tables) -> None:
    name = tables.new()
    tables.open(name).delete("id > 1")
    response = service_client.tables.restore_table(service_client.id(name), client.RestoreTableRequest(version=1))
    restored = tables.open(name)
    assert (restored.version, restored.count_rows()) == (3, 50)
    assert response.transaction_id == restored.read_transaction(3).uuid


def test_tags_and_branches_are_made_moved_and_removed(service_client: Client, tables: Tables) -> None:
    name = tables.new()
    table, dataset = service_client.id(name), tables.open(name)
    dataset.delete("id = 1")
    service_client.tags.create_table_tag(table, client.CreateTableTagRequest(tag="x", version=1))
    assert dataset.tags.get_version("x") == 1
    service_client.tags.update_table_tag(table, client.UpdateTableTagRequest(tag="x", version=2))
    assert dataset.tags.get_version("x") == 2
    service_client.branches.create_table_branch(table, client.CreateTableBranchRequest(name="b", from_version=1))
    assert dataset.checkout_version(("b", None)).count_rows() == 50
    service_client.data.insert_into_table(table, NEW, branch="b")
    assert (dataset.checkout_version(("b", None)).count_rows(), tables.open(name).count_rows()) == (52, 49)
    service_client.branches.create_table_branch(table, client.CreateTableBranchRequest(name="c", from_branch="b"))
    service_client.tags.create_table_tag(table, client.CreateTableTagRequest(tag="y", version=2, branch="b"))
    result = service_client.tags.get_table_tag_version(table, client.GetTableTagVersionRequest(tag="y"))
    assert (result.version, result.branch) == (2, "b")
    page = service_client.branches.list_table_branches(table, limit=1)
    rest = service_client.branches.list_table_branches(table, page_token=page.page_token)
    assert [*page.branches, *rest.branches] == ["b", "c"] == sorted(dataset.branches.list())
    assert rest.branches["c"].parent_branch == "b"
    for tag in ("x", "y"):
        service_client.tags.delete_table_tag(table, client.DeleteTableTagRequest(tag=tag))
    for branch in ("c", "b"):
        service_client.branches.delete_table_branch(table, client.DeleteTableBranchRequest(name=branch))
    assert dataset.tags.list() == dataset.branches.list() == {}


def test_indices_are_built_and_dropped(service_client: Client, tables: Tables) -> None:
    name = tables.new()
    table = service_client.id(name)
    for request in (
        client.CreateTableIndexRequest(column="id", index_type="BTREE", name="by id"),
        client.CreateTableIndexRequest(column="name", index_type="fts", with_position=True),
        client.CreateTableIndexRequest(
            column="vector", index_type="IVF_HNSW_FLAT", num_partitions=1, distance_type="cosine", m=8
        ),
    ):
        response = service_client.indices.create_table_index(table, request)
        assert response.transaction_id == tables.open(name).read_transaction(tables.open(name).version).uuid
    service_client.indices.create_table_scalar_index(
        table, client.CreateTableIndexRequest(column="id", index_type="BITMAP", name="bits")
    )
    result = {index.name: index.index_type for index in tables.open(name).describe_indices()}
    assert result == {"by id": "BTree", "name_idx": "Inverted", "vector_idx": "IVF_HNSW_FLAT", "bits": "Bitmap"}
    for column, kind, index in (("id", "BTREE", "by id"), ("name", "BTREE", "by id"), ("name", "FTS", None)):
        with pytest.raises(ApiException) as refused:
            service_client.indices.create_table_index(
                table, client.CreateTableIndexRequest(column=column, index_type=kind, name=index)
            )
        assert (refused.value.status, json.loads(refused.value.body)["code"]) == (409, 7)
    assert result == {index.name: index.index_type for index in tables.open(name).describe_indices()}
    service_client.indices.drop_table_index(table, "by id")
    assert "by id" not in {index.name for index in tables.open(name).describe_indices()}


def test_columns_are_added_altered_and_dropped(service_client: Client, tables: Tables) -> None:
    name = tables.new()
    table = service_client.id(name)
    added = service_client.data.alter_table_add_columns(
        table, client.AlterTableAddColumnsRequest(new_columns=[client.AddColumnsEntry(name="twice", expression="id * 2")])
    )
    assert added.version == 2
    assert tables.open(name).to_table(columns=["twice"])["twice"].to_pylist() == [2 * i for i in range(50)]
    change = client.AlterColumnsEntry(path="twice", rename="double", data_type={"type": "int32"})
    service_client.tables.alter_table_alter_columns(table, client.AlterTableAlterColumnsRequest(alterations=[change]))
    assert tables.open(name).schema.field("double").type == pa.int32()
    entry = client.UpdateFieldMetadataEntry(path="id", metadata={"unit": "one"})
    response = service_client.metadata.update_field_metadata(table, client.UpdateFieldMetadataRequest(updates=[entry]))
    assert response.fields == {"id": {"unit": "one"}}
    assert tables.open(name).schema.field("id").metadata == {b"unit": b"one"}
    service_client.tables.alter_table_drop_columns(table, client.AlterTableDropColumnsRequest(columns=["double"]))
    assert tables.open(name).schema.names == ROWS.schema.names


def test_a_table_is_created_with_its_rows(service_client: Client, service: Service, tables: Tables) -> None:
    name = unique_name("made")
    response = service_client.data.create_table(service_client.id(name), stream(ROWS), properties='{"team": "eng"}')
    assert response.version == 1
    assert response.location == f"file://{tables.path(name)}"
    assert tables.open(name).to_table().equals(ROWS)
    with pytest.raises(ApiException) as refused:
        service_client.data.create_table(service_client.id(name), stream(ROWS))
    assert refused.value.status == 409
    assert service_client.data.create_table(service_client.id(name), NEW, mode="ExistOk").version == 1
    assert service_client.data.create_table(service_client.id(name), NEW, mode="Overwrite").version == 2
    assert tables.open(name).count_rows() == 2
    assert tables.open(name, version=1).count_rows() == 50
    with pytest.raises(ApiException) as refused:
        service_client.data.create_table(service_client.id(unique_name("never")), b"no Arrow")
    assert refused.value.status == 400
    listed = service.get("/v1/namespace/lake/table/list").json()["tables"]
    assert name in listed
    assert not [other for other in listed if other.startswith("never")]


def test_a_new_table_never_gets_the_location_of_old_rows(tmp_path: Path) -> None:
    root = tmp_path / "elsewhere"
    old = root / "ns" / "t.lance"
    lance.write_dataset(ROWS, str(old))
    source = {"impl": "federator.testing:CONNECTOR", "store": unique_name("elsewhere"), "root": str(root)}
    with served(tmp_path, {"hive": source}) as own:
        assert own.post("/v1/namespace/hive%24ns/create").status_code == 200
        api = Client(own.url, ("hive", "ns"))
        created = api.data.create_table(api.id("t"), NEW)
        assert created.version == 1
        assert created.location != f"file://{old}"
        assert lance.dataset(created.location).count_rows() == 2
        with pytest.raises(ApiException) as refused:
            api.data.create_table(api.id("t"), NEW)
        assert (refused.value.status, refused.value.data.code) == (409, 5)
    assert lance.dataset(str(old)).to_table().equals(ROWS)


def test_a_declared_table_is_written_by_its_first_insert(service_client: Client, tables: Tables) -> None:
    name = unique_name("declared")
    service_client.tables.declare_table(service_client.id(name), client.DeclareTableRequest())
    with pytest.raises(ApiException) as refused:
        service_client.data.count_table_rows(service_client.id(name), client.CountTableRowsRequest())
    assert (refused.value.status, refused.value.data.code) == (404, 4)
    assert service_client.data.insert_into_table(service_client.id(name), stream(ROWS)).num_inserted_rows == 50
    assert tables.open(name).count_rows() == 50
