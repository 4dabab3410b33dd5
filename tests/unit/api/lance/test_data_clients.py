"""Lance's own clients at the service's address: pylance and lancedb create, open, append, search and drop real tables."""

from __future__ import annotations

from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import lance
import lance_namespace as ln
import lancedb
import lancedb.query
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models import QueryTableRequestVector

from federator.model import NamespaceRecord
from federator.model.scopes import Scopes
from federator.store import tokens
from federator.testing.contract import unique_name
from tests.fixtures.hive import Metastore
from tests.fixtures.index_content import fill
from tests.unit.api.lance.conftest import Service, served
from tests.unit.api.lance.table_clients import stream

ROWS = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "name": [f"row {i}" for i in range(20)],
        "vector": pa.array([[float(i), 0.0] for i in range(20)], pa.list_(pa.float32(), 2)),
    }
)


@pytest.fixture(scope="module")
def namespace_client(service: Service) -> ln.LanceNamespace:
    return ln.connect("rest", {"uri": service.url})


def test_pylance_writes_appends_overwrites_and_opens(namespace_client: ln.LanceNamespace, service: Service) -> None:
    name = unique_name("orders")
    table = ["lake", name]
    lance.write_dataset(ROWS, namespace_client=namespace_client, table_id=table)
    lance.write_dataset(ROWS, namespace_client=namespace_client, table_id=table, mode="append")
    assert lance.dataset(namespace_client=namespace_client, table_id=table).count_rows() == 40
    assert namespace_client.count_table_rows(ln.CountTableRowsRequest(id=table)).count == 40
    lance.write_dataset(ROWS, namespace_client=namespace_client, table_id=table, mode="overwrite")
    assert lance.dataset(str(service.root / f"{name}.lance")).to_table().equals(ROWS)
    assert name in namespace_client.list_tables(ln.ListTablesRequest(id=["lake"])).tables
    opened = lance.dataset(namespace_client=namespace_client, table_id=table)
    assert opened.scanner(nearest={"column": "vector", "q": [7.0, 0.0], "k": 1}).to_table()["id"].to_pylist() == [7]


def test_pylances_rest_client_asks_the_service_for_rows(namespace_client: ln.LanceNamespace) -> None:
    table = ["lake", unique_name("rows")]
    lance.write_dataset(ROWS, namespace_client=namespace_client, table_id=table)
    request = ln.QueryTableRequest(id=table, k=2, vector=QueryTableRequestVector(single_vector=[3.0, 0.0]))
    assert pa.ipc.open_file(bytes(namespace_client.query_table(request).data)).read_all()["id"].to_pylist()[0] == 3
    response = namespace_client.get_table_stats(ln.GetTableStatsRequest(id=table))
    assert response.num_rows == 20


def test_lancedb_creates_opens_adds_searches_and_drops(service: Service) -> None:
    database = lancedb.connect_namespace("rest", {"uri": service.url})
    above, name = ["open"], unique_name("orders")
    created = database.create_table(name, ROWS, namespace_path=above)
    created.add(ROWS.slice(0, 5))
    opened = database.open_table(name, namespace_path=above)
    assert opened.count_rows() == 25
    result = opened.search([7.0, 0.0]).limit(1).to_arrow()
    assert result["id"].to_pylist() == [7]
    assert opened.search().where("id > 17").to_arrow().num_rows == 2
    assert name in database.list_tables(namespace_path=above).tables
    database.drop_table(name, namespace_path=above)
    assert name not in database.list_tables(namespace_path=above).tables
    with pytest.raises(Exception, match=r"(?i)not found|no table"):
        database.open_table(name, namespace_path=above)


def test_lancedb_drops_nothing_where_that_is_not_allowed(service: Service) -> None:
    database = lancedb.connect_namespace("rest", {"uri": service.url})
    name = unique_name("kept")
    database.create_table(name, ROWS, namespace_path=["lake"])
    with pytest.raises(Exception, match="never deleted"):
        database.drop_table(name, namespace_path=["lake"])
    assert database.open_table(name, namespace_path=["lake"]).count_rows() == 20
    assert lance.dataset(str(service.root / f"{name}.lance")).count_rows() == 20


def test_names_with_a_space_and_with_a_plus_are_two_tables(namespace_client: ln.LanceNamespace, service: Service) -> None:
    above = ["open"]
    spaced, plus = [*above, "p q"], [*above, "p+q"]
    for table, rows in ((spaced, 5), (plus, 7)):
        lance.write_dataset(ROWS.slice(0, rows), namespace_client=namespace_client, table_id=table)
        lance.write_dataset(ROWS.slice(0, 1), namespace_client=namespace_client, table_id=table, mode="append")
    assert [namespace_client.count_table_rows(ln.CountTableRowsRequest(id=table)).count for table in (spaced, plus)] == [6, 8]
    namespace_client.insert_into_table(ln.InsertIntoTableRequest(id=plus), stream(ROWS.slice(0, 1)))
    for call in (
        lambda: namespace_client.insert_into_table(ln.InsertIntoTableRequest(id=spaced), stream(ROWS.slice(0, 1))),
        lambda: namespace_client.drop_table(ln.DropTableRequest(id=spaced)),
    ):
        with pytest.raises(ln.InvalidInputError, match="may be a plus or a space"):
            call()
    database = lancedb.connect_namespace("rest", {"uri": service.url})
    assert [database.open_table(name, namespace_path=above).count_rows() for name in ("p q", "p+q")] == [6, 9]
    namespace_client.drop_table(ln.DropTableRequest(id=plus))
    assert lance.dataset(namespace_client=namespace_client, table_id=spaced).count_rows() == 6
    assert len(namespace_client.list_table_versions(ln.ListTableVersionsRequest(id=spaced)).versions) == 2
    namespace_client.deregister_table(ln.DeregisterTableRequest(id=spaced))
    assert not {"p q", "p+q"} & set(namespace_client.list_tables(ln.ListTablesRequest(id=above)).tables)


def test_pylances_rest_client_writes_and_drops_a_name_with_a_space(
    namespace_client: ln.LanceNamespace, service: Service
) -> None:
    """Its routes have a + for the space, and no User-Agent. With a User-Agent, a + is ambiguous for every write."""
    name = f"{unique_name('sent')} words"
    table = ["open", name]
    namespace_client.create_table(ln.CreateTableRequest(id=table), stream(ROWS))
    namespace_client.insert_into_table(ln.InsertIntoTableRequest(id=table), stream(ROWS))
    assert lance.dataset(namespace_client=namespace_client, table_id=table).count_rows() == 40
    route = f"/v1/table/open%24{name.replace(' ', '+')}"
    for operation, more in (("drop", {}), ("insert", {"data": stream(ROWS)}), ("create", {"data": stream(ROWS)})):
        refused = service.ask("POST", f"{route}/{operation}", **more)
        assert (refused.status_code, refused.json()["code"]) == (400, 13), operation
        assert "may be a plus or a space" in refused.json()["error"], operation
    assert name in namespace_client.list_tables(ln.ListTablesRequest(id=["open"])).tables
    namespace_client.drop_table(ln.DropTableRequest(id=table))
    assert name not in namespace_client.list_tables(ln.ListTablesRequest(id=["open"])).tables


@pytest.mark.parametrize("operation", ["drop", "deregister"])
def test_a_name_with_a_space_is_removed_by_its_form_encoded_route(service: Service, operation: str) -> None:
    """An empty User-Agent is a User-Agent: the plus is ambiguous then."""
    name = f"{unique_name('sent')} words"
    assert service.ask("POST", f"/v1/table/open%24{quote(name)}/create", data=stream(ROWS)).status_code == 200
    route, address = f"/v1/table/open%24{name.replace(' ', '+')}/{operation}", urlsplit(service.url).netloc
    answers = []
    for headers in ({"User-Agent": ""}, {"User-Agent": "x"}, {}):
        connection = HTTPConnection(address, timeout=60)
        connection.request("POST", route, b"{}", {"Content-Type": "application/json", **headers})
        answers.append(connection.getresponse().status)
        connection.close()
    assert answers == [400, 400, 200]
    assert service.post(f"/v1/table/open%24{quote(name)}/exists").status_code == 404


def test_names_of_namespaces_with_a_space_and_with_a_plus(namespace_client: ln.LanceNamespace, service: Service) -> None:
    _, above = service.namespace()
    spaced, plus = ["mem", f"{above} q"], ["mem", f"{above}+q"]
    for path in (spaced, plus):
        namespace_client.create_namespace(ln.CreateNamespaceRequest(id=path))
        namespace_client.declare_table(ln.DeclareTableRequest(id=[*path, "a b"]))
        namespace_client.namespace_exists(ln.NamespaceExistsRequest(id=path))
    assert namespace_client.list_tables(ln.ListTablesRequest(id=plus)).tables == ["a b"]
    with pytest.raises(ln.InvalidInputError, match="may be a plus or a space"):
        namespace_client.list_tables(ln.ListTablesRequest(id=spaced))
    namespace_client.deregister_table(ln.DeregisterTableRequest(id=[*plus, "a b"]))
    namespace_client.drop_namespace(ln.DropNamespaceRequest(id=plus))
    assert namespace_client.list_tables(ln.ListTablesRequest(id=spaced)).tables == ["a b"]


def test_lancedbs_remote_client_ends_its_routes_with_slashes(service: Service) -> None:
    key, _ = tokens.create_token(service.index, unique_name("remote"), role="writer", scopes=Scopes.parse(["*"]), lifetime=None, actor="tests")  # fmt: skip  # noqa: E501
    database = lancedb.connect("db://lake", api_key=key, host_override=service.url)
    name = unique_name("remote")
    database.create_table(name, ROWS, namespace_path=["lake"])
    opened = database.open_table(name, namespace_path=["lake"])
    opened.delete("id > 17")
    assert opened.count_rows() == 18
    opened.add(ROWS.slice(0, 2))
    assert database.open_table(name, namespace_path=["lake"]).count_rows() == 20
    assert (opened.version, opened.schema) == (3, ROWS.schema)
    assert name in database.list_tables(namespace_path=["lake"]).tables


def test_lancedbs_remote_client_queries(service: Service) -> None:
    key, _ = tokens.create_token(service.index, unique_name("remote"), role="writer", scopes=Scopes.parse(["*"]), lifetime=None, actor="tests")  # fmt: skip  # noqa: E501
    database = lancedb.connect("db://lake", api_key=key, host_override=service.url)
    table = database.create_table(unique_name("queries"), ROWS, namespace_path=["lake"])
    nearest = table.search([7.0, 0.0], vector_column_name="vector").limit(1)
    assert nearest.to_arrow()["id"].to_pylist() == [7]
    assert nearest.select(["name"]).to_arrow().drop_columns("_distance").to_pylist() == [{"name": "row 7"}]
    assert nearest.select({"next": "id + 1"}).to_arrow()["next"].to_pylist() == [8]
    for query in (nearest, table.search().where("id > 17")):
        assert all("Lance" in plan for plan in (query.explain_plan(), query.explain_plan(verbose=True), query.analyze_plan()))
    assert table.search().where("id > 17").to_arrow()["id"].to_pylist() == [18, 19]
    table.create_fts_index("name")
    assert sorted(table.search("row", query_type="fts").limit(30).to_arrow()["id"].to_pylist()) == list(range(20))
    assert [index.name for index in table.list_indices()] == ["name_idx"]
    several = table.search([[7.0, 0.0], [2.0, 0.0]], vector_column_name="vector").limit(2).to_arrow()
    found = [{row["id"] for row in several.to_pylist() if row["query_index"] == number} for number in (0, 1)]
    assert [7 in found[0], 2 in found[1], len(several)] == [True, True, 4]
    fts: Any = lancedb.query
    match, occur = fts.MatchQuery, fts.Occur
    queries: list[tuple[Any, set[int]]] = [
        (match("rox", "name", fuzziness=1), set(range(20))),
        (match("7", "name"), {7}),
        (fts.BooleanQuery([(occur.MUST, match("row", "name")), (occur.MUST_NOT, match("7", "name"))]), {*range(20)} - {7}),
        (fts.MultiMatchQuery("7", ["name"]), {7}),
        (fts.BoostQuery(match("7", "name"), match("8", "name")), {7}),
    ]
    for words, expected in queries:
        assert set(table.search(words, query_type="fts").limit(30).to_arrow()["id"].to_pylist()) == expected
    table.update(where="id = 3", values={"name": "changed"})
    table.merge_insert("id").when_not_matched_insert_all().execute(ROWS.slice(19).append_column("more", [["x"]]).drop("more"))
    assert table.search().where("name = 'changed'").to_arrow()["id"].to_pylist() == [3]
    assert table.count_rows() == 20
    assert len(table.list_versions()) == table.version


def test_lancedbs_remote_client_counts_rows_lists_tags_and_adds_columns(service: Service) -> None:
    key, _ = tokens.create_token(service.index, unique_name("remote"), role="writer", scopes=Scopes.parse(["*"]), lifetime=None, actor="tests")  # fmt: skip  # noqa: E501
    database = lancedb.connect("db://lake", api_key=key, host_override=service.url)
    table: Any = database.create_table(name := unique_name("dialect"), ROWS, namespace_path=["lake"])
    assert table.update(where="id > 16", values={"name": "changed"}).rows_updated == 3
    assert table.delete("id > 17").num_deleted_rows == 2
    assert table.tags.list() == {}
    table.tags.create("first", 1)
    table.tags.create("tags", 2)
    assert {tag: content["version"] for tag, content in table.tags.list().items()} == {"first": 1, "tags": 2}
    table.add_columns(pa.field("plain", pa.int64()))
    table.add_columns(pa.schema([pa.field("text", pa.utf8()), pa.field("numbers", pa.list_(pa.float32()))]))
    assert table.schema.names[-3:] == ["plain", "text", "numbers"]
    assert table.search().limit(1).to_arrow()["numbers"].to_pylist() == [None]
    with pytest.raises(Exception, match="already has a column 'text'"):
        table.add_columns(pa.field("text", pa.utf8()))
    with pytest.raises(Exception, match="must be nullable"):
        table.add_columns(pa.field("filled", pa.utf8(), nullable=False))
    # Clients of the protocol get its own fields.
    route = f"/v1/table/lake%24{name}"
    assert service.post(f"{route}/delete", {"predicate": "id = 0"}).json().keys() == {"version"}
    assert service.post(f"{route}/update", {"updates": [["id", "1"]], "predicate": "id = 1"}).json().keys() == {
        "updated_rows",
        "version",
    }
    assert service.post(f"{route}/tags/list").json().keys() == {"tags"}
    refused = service.ask("POST", f"{route}/add_columns", data=b"null")
    assert (refused.status_code, refused.json()["code"]) == (400, 13)


def test_pylance_and_lancedb_write_into_a_real_hive(hive3_uri: str, tmp_path: Path) -> None:
    """Declared in the metastore through the service, written by the client at its location, and counted by the service."""
    metastore = Metastore(hive3_uri, 2, ("hive",), tmp_path / "hive")
    with served(tmp_path, {"hms": {"impl": "hive3", "uri": hive3_uri, "root": f"file:{metastore.directory}"}}) as service:
        database = unique_name("db")
        namespace_client = ln.connect("rest", {"uri": service.url})
        above = ["hms", "hive", database]
        fill(service.index, "hms", NamespaceRecord("hms", ("hive",)))
        namespace_client.create_namespace(
            ln.CreateNamespaceRequest(id=above, properties={"database.location-uri": metastore.location(database)})
        )
        lance.write_dataset(ROWS, namespace_client=namespace_client, table_id=[*above, "orders"])
        connection = lancedb.connect_namespace("rest", {"uri": service.url})
        connection.open_table("orders", namespace_path=above).add(ROWS)
        assert namespace_client.count_table_rows(ln.CountTableRowsRequest(id=[*above, "orders"])).count == 40
        assert connection.list_tables(namespace_path=above).tables == ["orders"]
        with metastore.open() as catalog:
            location = catalog.describe_table(("hive", database, "orders")).location
        assert location is not None
        assert lance.dataset(location).count_rows() == 40
