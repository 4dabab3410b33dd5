"""The routes about a table's data, asked with the official client, held to what pylance's own server answers for the same table."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import lance_namespace_urllib3_client as client
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.rest import ApiException

from federator.testing.contract import fresh
from tests.api.lance.conftest import Service, served
from tests.fixtures.rest import reference_server

ROWS = pa.table(
    {
        "id": pa.array(range(50), pa.int64()),
        "name": [f"row {i} word{i % 5}" for i in range(50)],
        "vector": pa.array([[float(i), float(i % 7)] for i in range(50)], pa.list_(pa.float32(), 2)),
    }
)
NO_VECTOR = client.QueryTableRequestVector(single_vector=[])
NEAR = client.QueryTableRequestVector(single_vector=[3.0, 3.0])


@dataclass
class Client:
    """The official client of one server, for the tables below one id."""

    url: str
    above: tuple[str, ...]

    def __post_init__(self) -> None:
        api = client.ApiClient(client.Configuration(host=self.url))
        self.data, self.tables, self.indices = client.DataApi(api), client.TableApi(api), client.IndexApi(api)
        self.tags, self.branches, self.metadata = client.TagApi(api), client.BranchApi(api), client.MetadataApi(api)

    def id(self, name: str) -> str:
        return "$".join((*self.above, name))


@dataclass
class Tables:
    """Tables in the directory that both servers serve."""

    service: Service

    def path(self, name: str) -> str:
        return str(self.service.root / f"{name}.lance")

    def open(self, name: str, **options: Any) -> Any:
        return lance.dataset(self.path(name), **options)

    def new(self, rows: pa.Table = ROWS) -> str:
        name = fresh("t")
        lance.write_dataset(rows, self.path(name))
        self.service.crawl("lake")
        return name


@pytest.fixture(scope="module")
def tables(service: Service) -> Tables:
    return Tables(service)


@pytest.fixture(scope="module")
def ours(service: Service) -> Client:
    return Client(service.url, ("lake",))


@pytest.fixture(scope="module")
def theirs(service: Service) -> Iterator[Client]:
    with reference_server(service.root) as server:
        yield Client(server.url, ())


@pytest.fixture(scope="module")
def kept(tables: Tables) -> str:
    """A table with a history, tags and indices, which no test changes."""
    name = tables.new()
    lance.write_dataset(ROWS.slice(0, 5), tables.path(name), mode="append")
    dataset = tables.open(name)
    dataset.delete("id = 3")
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("name", "INVERTED")
    dataset.create_index("vector", "IVF_FLAT", num_partitions=1)
    dataset.tags.create("first", 1)
    dataset.tags.create("second", 2)
    dataset.create_branch("work", 2)
    lance.write_dataset(ROWS.slice(10, 7), dataset.checkout_version(("work", None)), mode="append")
    return name


def plain(answer: Any) -> Any:
    if hasattr(answer, "to_dict"):
        return answer.to_dict()
    if isinstance(answer, bytes | bytearray):
        return pa.ipc.open_file(bytes(answer)).read_all().to_pydict()
    return answer


def query(k: int = 10, **more: Any) -> client.QueryTableRequest:
    return client.QueryTableRequest(**{"k": k, "vector": NO_VECTOR, **more})


def columns(*names: str, **aliases: str) -> client.QueryTableRequestColumns:
    return client.QueryTableRequestColumns(column_names=list(names) or None, column_aliases=aliases or None)


def words(text: str) -> client.QueryTableRequestFullTextQuery:
    return client.QueryTableRequestFullTextQuery(string_query=client.StringFtsQuery(query=text))


MATCH = client.QueryTableRequestFullTextQuery(
    structured_query=client.StructuredFtsQuery(query=client.FtsQuery(match=client.MatchQuery(terms="word2", column="name")))
)
READS: dict[str, Callable[[Client, str], Any]] = {
    "count": lambda c, t: c.data.count_table_rows(t, client.CountTableRowsRequest()),
    "count where": lambda c, t: c.data.count_table_rows(t, client.CountTableRowsRequest(predicate="id < 5")),
    "count of a version": lambda c, t: c.data.count_table_rows(t, client.CountTableRowsRequest(version=1)),
    "count of a branch": lambda c, t: c.data.count_table_rows(t, client.CountTableRowsRequest(branch="work")),
    "all rows": lambda c, t: c.data.query_table(t, query(0)),
    "rows": lambda c, t: c.data.query_table(t, query(7, offset=3, filter="id > 4", columns=columns("id", "name"))),
    "rows of a version": lambda c, t: c.data.query_table(t, query(100, version=1, columns=columns("id"))),
    "row ids": lambda c, t: c.data.query_table(t, query(3, with_row_id=True, columns=columns("id"))),
    "neighbours": lambda c, t: c.data.query_table(t, query(5, vector=NEAR)),
    "neighbours where": lambda c, t: c.data.query_table(t, query(5, vector=NEAR, filter="id > 20", prefilter=True)),
    "neighbours without index": lambda c, t: c.data.query_table(
        t, query(5, vector=NEAR, vector_column="vector", bypass_vector_index=True, distance_type="cosine")
    ),
    "words": lambda c, t: c.data.query_table(t, query(4, full_text_query=words("word1"), columns=columns("id", "_score"))),
    "match": lambda c, t: c.data.query_table(t, query(4, full_text_query=MATCH, columns=columns("id", "_score"))),
    "plan": lambda c, t: c.data.explain_table_query_plan(
        t, client.ExplainTableQueryPlanRequest(query=query(3, filter="id > 2"))
    ),
    "tags": lambda c, t: c.tags.list_table_tags(t),
    "tag": lambda c, t: c.tags.get_table_tag_version(t, client.GetTableTagVersionRequest(tag="first")),
    "branches": lambda c, t: c.branches.list_table_branches(t),
    "index": lambda c, t: c.indices.describe_table_index_stats(t, "id_idx", client.DescribeTableIndexStatsRequest()),
    "detail": lambda c, t: c.tables.describe_table(t, client.DescribeTableRequest(load_detailed_metadata=True)).var_schema,
    "detail of a version": lambda c, t: (
        c.tables.describe_table(t, client.DescribeTableRequest(load_detailed_metadata=True, version=2)).metadata
    ),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_as_pylances_server_answers_it(name: str, ours: Client, theirs: Client, kept: str) -> None:
    ask = READS[name]
    assert plain(ask(ours, ours.id(kept))) == plain(ask(theirs, kept))


@pytest.mark.parametrize("branch", [None, "work"])
@pytest.mark.parametrize("descending", [False, True])
def test_versions_and_their_manifests_are_pylances(
    ours: Client, theirs: Client, kept: str, tables: Tables, branch: str | None, descending: bool
) -> None:
    """The time is that of the commit, as pylance itself says; its server gives the manifest file's."""
    dataset = tables.open(kept) if branch is None else tables.open(kept).checkout_version((branch, None))
    times = {version["version"]: round(version["timestamp"].timestamp() * 1000) for version in dataset.versions()}
    expected = [
        (v.version, v.manifest_path, times[v.version]) for v in theirs.tables.list_table_versions(kept, branch=branch).versions
    ]
    assert len(expected) > 1
    expected.sort(reverse=descending)
    found, token = [], None
    while True:
        page = ours.tables.list_table_versions(ours.id(kept), branch=branch, limit=2, page_token=token, descending=descending)
        found += [(v.version, v.manifest_path, v.timestamp_millis) for v in page.versions]
        token = page.page_token
        if token is None:
            break
    assert found == expected
    for asked in (None, 2):
        told = ours.metadata.describe_table_version(
            ours.id(kept), client.DescribeTableVersionRequest(version=asked, branch=branch)
        ).version
        assert told.version == (asked or dataset.version)
        assert (told.version, told.manifest_path, told.timestamp_millis) in expected


def test_statistics_count_the_rows_that_are_there(ours: Client, theirs: Client, kept: str, tables: Tables) -> None:
    """Where nothing was deleted as pylance's server does, which counts what was deleted too."""
    name = tables.new()
    for start in (0, 20, 45):
        lance.write_dataset(ROWS.slice(start), tables.path(name), mode="append")
    request = client.GetTableStatsRequest()
    assert ours.tables.get_table_stats(ours.id(name), request) == theirs.tables.get_table_stats(name, request)
    told = ours.tables.get_table_stats(ours.id(kept), request)
    lengths = [fragment.count_rows() for fragment in tables.open(kept).get_fragments()]
    summary = told.fragment_stats.lengths
    assert (told.num_rows, summary.min, summary.max) == (sum(lengths), min(lengths), max(lengths))
    assert (told.num_rows, told.num_indices) == (tables.open(kept).count_rows(), 3)


def test_indices_are_pylances(ours: Client, theirs: Client, kept: str, tables: Tables) -> None:
    def told(answer: Any) -> dict[str, tuple[Any, ...]]:
        return {
            i.index_name: (i.index_uuid, i.columns, i.status, i.num_indexed_rows, i.num_unindexed_rows, i.size_bytes, i.num_segments)
            for i in answer.indexes
        }  # fmt: skip

    mine = told(ours.indices.list_table_indices(ours.id(kept), client.ListTableIndicesRequest()))
    assert mine == told(theirs.indices.list_table_indices(kept, client.ListTableIndicesRequest()))
    assert list(mine) == ["id_idx", "name_idx", "vector_idx"]
    page = ours.indices.list_table_indices(ours.id(kept), client.ListTableIndicesRequest(limit=2))
    rest = ours.indices.list_table_indices(ours.id(kept), client.ListTableIndicesRequest(page_token=page.page_token))
    assert [i.index_name for i in (*page.indexes, *rest.indexes)] == list(mine)
    vector = ours.indices.describe_table_index_stats(ours.id(kept), "vector_idx", client.DescribeTableIndexStatsRequest())
    assert (vector.index_type, vector.distance_type, vector.num_indexed_rows) == (
        "IVF_FLAT",
        "l2",
        tables.open(kept).count_rows(),
    )


def test_detail_has_version_statistics_and_schema(ours: Client, kept: str, tables: Tables) -> None:
    told = ours.tables.describe_table(ours.id(kept), client.DescribeTableRequest(load_detailed_metadata=True))
    counted = tables.open(kept).stats.dataset_stats()
    assert told.version == tables.open(kept).version
    assert (told.stats.num_deleted_rows, told.stats.num_fragments) == (counted["num_deleted_rows"], counted["num_fragments"])
    by_tag = ours.tables.describe_table(ours.id(kept), client.DescribeTableRequest(load_detailed_metadata=True, tag="second"))
    assert by_tag.version == 2


def test_a_plan_that_ran_says_what_it_took(ours: Client, kept: str) -> None:
    request = client.AnalyzeTableQueryPlanRequest(k=2, vector=NO_VECTOR)
    assert re.search(r"output_rows=2\b", ours.data.analyze_table_query_plan(ours.id(kept), request))


def stream(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


NEW = stream(pa.table({"id": [7, 100], "name": ["changed", "new"], "vector": ROWS["vector"].slice(0, 2)}, schema=ROWS.schema))
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
def test_a_write_does_what_pylances_server_does(name: str, ours: Client, theirs: Client, tables: Tables) -> None:
    one, other = tables.new(), tables.new()
    assert plain(WRITES[name](ours, ours.id(one))) == plain(WRITES[name](theirs, other))
    mine, expected = tables.open(one), tables.open(other)
    assert mine.to_table().sort_by("id").equals(expected.to_table().sort_by("id"))
    assert (mine.version, mine.schema.metadata) == (expected.version, expected.schema.metadata)


def test_an_old_version_becomes_the_newest(ours: Client, tables: Tables) -> None:
    name = tables.new()
    tables.open(name).delete("id > 1")
    told = ours.tables.restore_table(ours.id(name), client.RestoreTableRequest(version=1))
    restored = tables.open(name)
    assert (restored.version, restored.count_rows()) == (3, 50)
    assert told.transaction_id == restored.read_transaction(3).uuid


def test_tags_and_branches_are_made_moved_and_removed(ours: Client, tables: Tables) -> None:
    name = tables.new()
    table, dataset = ours.id(name), tables.open(name)
    dataset.delete("id = 1")
    ours.tags.create_table_tag(table, client.CreateTableTagRequest(tag="x", version=1))
    assert dataset.tags.get_version("x") == 1
    ours.tags.update_table_tag(table, client.UpdateTableTagRequest(tag="x", version=2))
    assert dataset.tags.get_version("x") == 2
    ours.branches.create_table_branch(table, client.CreateTableBranchRequest(name="b", from_version=1))
    assert dataset.checkout_version(("b", None)).count_rows() == 50
    ours.data.insert_into_table(table, NEW, branch="b")
    assert (dataset.checkout_version(("b", None)).count_rows(), tables.open(name).count_rows()) == (52, 49)
    ours.branches.create_table_branch(table, client.CreateTableBranchRequest(name="c", from_branch="b"))
    ours.tags.create_table_tag(table, client.CreateTableTagRequest(tag="y", version=2, branch="b"))
    found = ours.tags.get_table_tag_version(table, client.GetTableTagVersionRequest(tag="y"))
    assert (found.version, found.branch) == (2, "b")
    page = ours.branches.list_table_branches(table, limit=1)
    rest = ours.branches.list_table_branches(table, page_token=page.page_token)
    assert [*page.branches, *rest.branches] == ["b", "c"] == sorted(dataset.branches.list())
    assert rest.branches["c"].parent_branch == "b"
    for tag in ("x", "y"):
        ours.tags.delete_table_tag(table, client.DeleteTableTagRequest(tag=tag))
    for branch in ("c", "b"):
        ours.branches.delete_table_branch(table, client.DeleteTableBranchRequest(name=branch))
    assert dataset.tags.list() == dataset.branches.list() == {}


def test_indices_are_built_and_dropped(ours: Client, tables: Tables) -> None:
    name = tables.new()
    table = ours.id(name)
    for request in (
        client.CreateTableIndexRequest(column="id", index_type="BTREE", name="by id"),
        client.CreateTableIndexRequest(column="name", index_type="fts", with_position=True),
        client.CreateTableIndexRequest(
            column="vector", index_type="IVF_HNSW_FLAT", num_partitions=1, distance_type="cosine", m=8
        ),
    ):
        told = ours.indices.create_table_index(table, request)
        assert told.transaction_id == tables.open(name).read_transaction(tables.open(name).version).uuid
    ours.indices.create_table_scalar_index(table, client.CreateTableIndexRequest(column="id", index_type="BITMAP", name="bits"))
    found = {index.name: index.index_type for index in tables.open(name).describe_indices()}
    assert found == {"by id": "BTree", "name_idx": "Inverted", "vector_idx": "IVF_HNSW_FLAT", "bits": "Bitmap"}
    ours.indices.drop_table_index(table, "by id")
    assert "by id" not in {index.name for index in tables.open(name).describe_indices()}


def test_columns_are_added_altered_and_dropped(ours: Client, tables: Tables) -> None:
    name = tables.new()
    table = ours.id(name)
    added = ours.data.alter_table_add_columns(
        table, client.AlterTableAddColumnsRequest(new_columns=[client.AddColumnsEntry(name="twice", expression="id * 2")])
    )
    assert added.version == 2
    assert tables.open(name).to_table(columns=["twice"])["twice"].to_pylist() == [2 * i for i in range(50)]
    change = client.AlterColumnsEntry(path="twice", rename="double", data_type={"type": "int32"})
    ours.tables.alter_table_alter_columns(table, client.AlterTableAlterColumnsRequest(alterations=[change]))
    assert tables.open(name).schema.field("double").type == pa.int32()
    entry = client.UpdateFieldMetadataEntry(path="id", metadata={"unit": "one"})
    told = ours.metadata.update_field_metadata(table, client.UpdateFieldMetadataRequest(updates=[entry]))
    assert told.fields == {"id": {"unit": "one"}}
    assert tables.open(name).schema.field("id").metadata == {b"unit": b"one"}
    ours.tables.alter_table_drop_columns(table, client.AlterTableDropColumnsRequest(columns=["double"]))
    assert tables.open(name).schema.names == ROWS.schema.names


def test_a_table_is_created_with_its_rows(ours: Client, service: Service, tables: Tables) -> None:
    name = fresh("made")
    told = ours.data.create_table(ours.id(name), stream(ROWS), properties='{"team": "eng"}')
    assert told.version == 1
    assert told.location == f"file://{tables.path(name)}"
    assert tables.open(name).to_table().equals(ROWS)
    with pytest.raises(ApiException) as refused:
        ours.data.create_table(ours.id(name), stream(ROWS))
    assert refused.value.status == 409
    assert ours.data.create_table(ours.id(name), NEW, mode="ExistOk").version == 1
    assert ours.data.create_table(ours.id(name), NEW, mode="Overwrite").version == 2
    assert tables.open(name).count_rows() == 2
    assert tables.open(name, version=1).count_rows() == 50
    with pytest.raises(ApiException) as refused:
        ours.data.create_table(ours.id(fresh("never")), b"no Arrow")
    assert refused.value.status == 400
    listed = service.get("/v1/namespace/lake/table/list").json()["tables"]
    assert name in listed
    assert not [other for other in listed if other.startswith("never")]


def test_a_new_table_never_gets_the_location_of_old_rows(tmp_path: Path) -> None:
    root = tmp_path / "elsewhere"
    old = root / "ns" / "t.lance"
    lance.write_dataset(ROWS, str(old))
    source = {"impl": "federator.testing:CONNECTOR", "store": fresh("elsewhere"), "root": str(root)}
    with served(tmp_path, {"hive": source}) as own:
        assert own.post("/v1/namespace/hive%24ns/create").status_code == 200
        api = Client(own.url, ("hive", "ns"))
        made = api.data.create_table(api.id("t"), NEW)
        assert made.version == 1
        assert made.location != f"file://{old}"
        assert lance.dataset(made.location).count_rows() == 2
        with pytest.raises(ApiException) as refused:
            api.data.create_table(api.id("t"), NEW)
        assert (refused.value.status, refused.value.data.code) == (409, 5)
    assert lance.dataset(str(old)).to_table().equals(ROWS)


def test_a_declared_table_is_written_by_its_first_insert(ours: Client, tables: Tables) -> None:
    name = fresh("declared")
    ours.tables.declare_table(ours.id(name), client.DeclareTableRequest())
    with pytest.raises(ApiException) as refused:
        ours.data.count_table_rows(ours.id(name), client.CountTableRowsRequest())
    assert (refused.value.status, refused.value.data.code) == (404, 4)
    assert ours.data.insert_into_table(ours.id(name), stream(ROWS)).num_inserted_rows == 50
    assert tables.open(name).count_rows() == 50


def bad(**fields: Any) -> client.AlterTableAddColumnsRequest:
    return client.AlterTableAddColumnsRequest(new_columns=[client.AddColumnsEntry(**fields)])


REFUSED: dict[str, tuple[int, int, Callable[[Client, str], Any]]] = {
    "no table": (404, 4, lambda c, t: c.data.count_table_rows("lake$nothing", client.CountTableRowsRequest())),
    "no version": (404, 11, lambda c, t: c.data.count_table_rows(t, client.CountTableRowsRequest(version=99))),
    "no branch": (404, 22, lambda c, t: c.tables.get_table_stats(t, client.GetTableStatsRequest(branch="no"))),
    "no version of a branch": (
        404, 11, lambda c, t: c.data.count_table_rows(t, client.CountTableRowsRequest(branch="work", version=9)),
    ),
    "no version to describe": (
        404, 11, lambda c, t: c.metadata.describe_table_version(t, client.DescribeTableVersionRequest(version=99)),
    ),
    "no version to restore": (404, 11, lambda c, t: c.tables.restore_table(t, client.RestoreTableRequest(version=99))),
    "no column": (404, 12, lambda c, t: c.data.count_table_rows(t, client.CountTableRowsRequest(predicate="no = 1"))),
    "no such column in a query": (404, 12, lambda c, t: c.data.query_table(t, query(columns=columns("no")))),
    "no vector column": (404, 12, lambda c, t: c.data.query_table(t, query(vector=NEAR, vector_column="no"))),
    "half a filter": (400, 13, lambda c, t: c.data.query_table(t, query(filter="id <"))),
    "another dimension": (
        400, 13, lambda c, t: c.data.query_table(t, query(vector=client.QueryTableRequestVector(single_vector=[1.0]))),
    ),
    "another id in the body": (400, 13, lambda c, t: c.data.query_table(t, query(id=["lake", "other"]))),
    "no tag": (404, 8, lambda c, t: c.tags.get_table_tag_version(t, client.GetTableTagVersionRequest(tag="no"))),
    "no tag to move": (404, 8, lambda c, t: c.tags.update_table_tag(t, client.UpdateTableTagRequest(tag="no", version=1))),
    "no tag to delete": (404, 8, lambda c, t: c.tags.delete_table_tag(t, client.DeleteTableTagRequest(tag="no"))),
    "a tag again": (409, 9, lambda c, t: c.tags.create_table_tag(t, client.CreateTableTagRequest(tag="first", version=1))),
    "a tag of no version": (404, 11, lambda c, t: c.tags.create_table_tag(t, client.CreateTableTagRequest(tag="z", version=99))),
    "a branch again": (409, 23, lambda c, t: c.branches.create_table_branch(t, client.CreateTableBranchRequest(name="work"))),
    "no branch to delete": (404, 22, lambda c, t: c.branches.delete_table_branch(t, client.DeleteTableBranchRequest(name="no"))),
    "no index": (404, 6, lambda c, t: c.indices.describe_table_index_stats(t, "no", client.DescribeTableIndexStatsRequest())),
    "no index to drop": (404, 6, lambda c, t: c.indices.drop_table_index(t, "no")),
    "an index of no column": (
        404, 12, lambda c, t: c.indices.create_table_index(t, client.CreateTableIndexRequest(column="no", index_type="BTREE")),
    ),
    "an index of no kind": (
        400, 13, lambda c, t: c.indices.create_table_index(t, client.CreateTableIndexRequest(column="id", index_type="HASH")),
    ),
    "a column again": (400, 13, lambda c, t: c.data.alter_table_add_columns(t, bad(name="id", expression="1"))),
    "a computed column": (406, 0, lambda c, t: c.data.alter_table_add_columns(t, bad(name="z", computed="id"))),
    "no column to drop": (
        404, 12, lambda c, t: c.tables.alter_table_drop_columns(t, client.AlterTableDropColumnsRequest(columns=["no"])),
    ),
    "another schema": (400, 20, lambda c, t: c.data.insert_into_table(t, stream(pa.table({"other": [1]})))),
    "no rows at all": (400, 13, lambda c, t: c.data.insert_into_table(t, b"")),
    "a merge that does nothing": (
        400, 13, lambda c, t: c.data.merge_insert_into_table(t, ["id"], NEW, when_not_matched_insert_all=False),
    ),
    "a timeout that is none": (400, 13, lambda c, t: c.data.merge_insert_into_table(t, ["id"], NEW, timeout="soon")),
    "a merge on no column": (404, 12, lambda c, t: c.data.merge_insert_into_table(t, ["no"], NEW, when_matched_update_all=True)),
    "an update of no column": (404, 12, lambda c, t: c.data.update_table(t, client.UpdateTableRequest(updates=[["no", "1"]]))),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_has_the_specs_code(name: str, ours: Client, kept: str, tables: Tables) -> None:
    status, code, ask = REFUSED[name]
    before = tables.open(kept).version
    with pytest.raises(ApiException) as refused:
        ask(ours, ours.id(kept))
    told = json.loads(refused.value.body) if refused.value.data is None else refused.value.data.to_dict()
    assert (refused.value.status, told["code"]) == (status, code), told
    assert ".rs:" not in told["error"]
    assert tables.open(kept).version == before
