"""Reads of a table's data and refused requests, compared with pylance's own server through the official client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import lance
import lance_namespace_urllib3_client as client
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.rest import ApiException

from tests.unit.api.lance.conftest import Service
from tests.unit.api.lance.table_clients import NEW, NO_VECTOR, ROWS, Client, Tables, plain, stream

NEAR = client.QueryTableRequestVector(single_vector=[3.0, 3.0])


@pytest.fixture(scope="module")
def unchanging(tables: Tables) -> str:
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
def test_a_read_is_as_pylances_server_answers_it(
    name: str, service_client: Client, reference_client: Client, unchanging: str
) -> None:
    ask = READS[name]
    assert plain(ask(service_client, service_client.id(unchanging))) == plain(ask(reference_client, unchanging))


@pytest.mark.parametrize("branch", [None, "work"])
@pytest.mark.parametrize("descending", [False, True])
def test_versions_and_their_manifests_are_pylances(
    service_client: Client, reference_client: Client, unchanging: str, tables: Tables, branch: str | None, descending: bool
) -> None:
    """The time is that of the commit, as pylance itself says; its server gives the manifest file's."""
    dataset = tables.open(unchanging) if branch is None else tables.open(unchanging).checkout_version((branch, None))
    times = {version["version"]: round(version["timestamp"].timestamp() * 1000) for version in dataset.versions()}
    expected = [
        (v.version, v.manifest_path, times[v.version])
        for v in reference_client.tables.list_table_versions(unchanging, branch=branch).versions
    ]
    assert len(expected) > 1
    expected.sort(reverse=descending)
    result, token = [], None
    while True:
        page = service_client.tables.list_table_versions(
            service_client.id(unchanging), branch=branch, limit=2, page_token=token, descending=descending
        )
        result += [(v.version, v.manifest_path, v.timestamp_millis) for v in page.versions]
        token = page.page_token
        if token is None:
            break
    assert result == expected
    for request in (None, 2):
        response = service_client.metadata.describe_table_version(
            service_client.id(unchanging), client.DescribeTableVersionRequest(version=request, branch=branch)
        ).version
        assert response.version == (request or dataset.version)
        assert (response.version, response.manifest_path, response.timestamp_millis) in expected


def test_statistics_count_the_rows_that_are_there(
    service_client: Client, reference_client: Client, unchanging: str, tables: Tables
) -> None:
    """Where nothing was deleted as pylance's server does, which counts what was deleted too."""
    name = tables.new()
    for start in (0, 20, 45):
        lance.write_dataset(ROWS.slice(start), tables.path(name), mode="append")
    request = client.GetTableStatsRequest()
    assert service_client.tables.get_table_stats(service_client.id(name), request) == reference_client.tables.get_table_stats(
        name, request
    )
    response = service_client.tables.get_table_stats(service_client.id(unchanging), request)
    lengths = [fragment.count_rows() for fragment in tables.open(unchanging).get_fragments()]
    summary = response.fragment_stats.lengths
    assert (response.num_rows, summary.min, summary.max) == (sum(lengths), min(lengths), max(lengths))
    assert (response.num_rows, response.num_indices) == (tables.open(unchanging).count_rows(), 3)


def test_indices_are_pylances(service_client: Client, reference_client: Client, unchanging: str, tables: Tables) -> None:
    def by_name(answer: Any) -> dict[str, tuple[Any, ...]]:
        return {
            i.index_name: (i.index_uuid, i.columns, i.status, i.num_indexed_rows, i.num_unindexed_rows, i.size_bytes, i.num_segments)
            for i in answer.indexes
        }  # fmt: skip

    mine = by_name(service_client.indices.list_table_indices(service_client.id(unchanging), client.ListTableIndicesRequest()))
    assert mine == by_name(reference_client.indices.list_table_indices(unchanging, client.ListTableIndicesRequest()))
    assert list(mine) == ["id_idx", "name_idx", "vector_idx"]
    page = service_client.indices.list_table_indices(service_client.id(unchanging), client.ListTableIndicesRequest(limit=2))
    rest = service_client.indices.list_table_indices(
        service_client.id(unchanging), client.ListTableIndicesRequest(page_token=page.page_token)
    )
    assert [i.index_name for i in (*page.indexes, *rest.indexes)] == list(mine)
    vector = service_client.indices.describe_table_index_stats(
        service_client.id(unchanging), "vector_idx", client.DescribeTableIndexStatsRequest()
    )
    assert (vector.index_type, vector.distance_type, vector.num_indexed_rows) == (
        "IVF_FLAT",
        "l2",
        tables.open(unchanging).count_rows(),
    )


def test_detail_has_version_statistics_and_schema(service_client: Client, unchanging: str, tables: Tables) -> None:
    response = service_client.tables.describe_table(
        service_client.id(unchanging), client.DescribeTableRequest(load_detailed_metadata=True)
    )
    counted = tables.open(unchanging).stats.dataset_stats()
    assert response.version == tables.open(unchanging).version
    assert (response.stats.num_deleted_rows, response.stats.num_fragments) == (
        counted["num_deleted_rows"],
        counted["num_fragments"],
    )
    by_tag = service_client.tables.describe_table(
        service_client.id(unchanging), client.DescribeTableRequest(load_detailed_metadata=True, tag="second")
    )
    assert by_tag.version == 2


def test_a_plan_that_ran_says_what_it_took(service_client: Client, unchanging: str) -> None:
    request = client.AnalyzeTableQueryPlanRequest(k=2, vector=NO_VECTOR)
    assert re.search(r"output_rows=2\b", service_client.data.analyze_table_query_plan(service_client.id(unchanging), request))


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
    "no column in a deletion": (
        400, 13, lambda c, t: c.data.delete_from_table(t, client.DeleteFromTableRequest(predicate="no = 1")),
    ),
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
    "an index again": (
        409, 7, lambda c, t: c.indices.create_table_index(
            t, client.CreateTableIndexRequest(column="vector", index_type="IVF_FLAT", num_partitions=1)
        ),
    ),
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
def test_impossible_requests_have_the_codes_of_the_spec(
    name: str, service_client: Client, unchanging: str, tables: Tables
) -> None:
    status, code, ask = REFUSED[name]
    before = tables.open(unchanging).version
    with pytest.raises(ApiException) as refused:
        ask(service_client, service_client.id(unchanging))
    response = json.loads(refused.value.body) if refused.value.data is None else refused.value.data.to_dict()
    assert (refused.value.status, response["code"]) == (status, code), response
    assert ".rs:" not in response["error"]
    assert tables.open(unchanging).version == before


def test_lists_that_the_java_client_did_not_set_are_absent(service: Service, tables: Tables) -> None:
    route = f"/v1/table/lake%24{tables.new()}"
    vector = {"single_vector": [], "multi_vector": []}
    for columns_set, names in (({"n": "id"}, ["n"]), ({}, ROWS.schema.names)):
        body = {"id": [], "k": 2, "vector": vector, "columns": {"column_names": [], "column_aliases": columns_set}}
        response = service.post(f"{route}/query", body)
        assert response.status_code == 200, response.text
        assert pa.ipc.open_file(response.content).read_all().schema.names == names
    assert service.post(f"{route}/count_rows", {"id": []}).json() == 50
    both = {"column_names": ["id"], "column_aliases": {"n": "id"}}
    assert service.post(f"{route}/query", {"k": 2, "vector": vector, "columns": both}).json()["code"] == 13


@pytest.mark.parametrize("form", [lambda vectors: vectors, lambda vectors: {"multi_vector": vectors}])
def test_each_of_several_vectors_has_its_rows(
    service: Service, tables: Tables, form: Callable[[list[list[float]]], Any]
) -> None:
    name, vectors = tables.new(), [[1.0, 1.0], [9.0, 9.0]]
    route = f"/v1/table/lake%24{name}/query"
    response = service.post(route, {"k": 2, "vector": form(vectors), "columns": {"column_names": ["id"]}})
    assert response.status_code == 200, response.text
    nearest = {"column": "vector", "q": vectors, "k": 2}
    expected = tables.open(name).scanner(nearest=nearest, columns=["id"]).to_table()
    found = pa.ipc.open_file(response.content).read_all()
    assert found["query_index"].to_pylist() == [0, 0, 1, 1]
    assert (
        found.sort_by([("query_index", "ascending"), ("id", "ascending")]).to_pylist()
        == expected.sort_by([("query_index", "ascending"), ("id", "ascending")]).to_pylist()
    )
    assert service.post(route, {"k": 2, "vector": form(vectors), "offset": 1}).json()["code"] == 13


@pytest.mark.parametrize(
    ("operation", "body"),
    [("drop_columns", {"columns": []}), ("create_scalar_index", {"column": "id", "index_type": "BTREE", "name": ""})],
)
def test_a_request_that_names_nothing_changes_nothing(
    service: Service, tables: Tables, operation: str, body: dict[str, Any]
) -> None:
    name = tables.new()
    version = tables.open(name).version
    response = service.post(f"/v1/table/lake%24{name}/{operation}", body)
    assert (response.status_code, response.json()["code"]) == (400, 13)
    assert "is empty" in response.json()["error"]
    assert tables.open(name).version == version
