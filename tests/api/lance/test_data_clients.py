"""Lance's own clients at the service's address: pylance and lancedb create, open, append, search and drop real tables."""

from __future__ import annotations

from pathlib import Path

import lance
import lance_namespace as ln
import lancedb
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models import QueryTableRequestVector

from federator.model import NamespaceRecord
from federator.testing.contract import fresh
from tests.api.lance.conftest import Service, served
from tests.fixtures.hive import Metastore
from tests.integration.index_support import fill

ROWS = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "name": [f"row {i}" for i in range(20)],
        "vector": pa.array([[float(i), 0.0] for i in range(20)], pa.list_(pa.float32(), 2)),
    }
)


@pytest.fixture(scope="module")
def face(service: Service) -> ln.LanceNamespace:
    return ln.connect("rest", {"uri": service.url})


def test_pylance_writes_appends_overwrites_and_opens(face: ln.LanceNamespace, service: Service) -> None:
    name = fresh("orders")
    table = ["lake", name]
    lance.write_dataset(ROWS, namespace_client=face, table_id=table)
    lance.write_dataset(ROWS, namespace_client=face, table_id=table, mode="append")
    assert lance.dataset(namespace_client=face, table_id=table).count_rows() == 40
    assert face.count_table_rows(ln.CountTableRowsRequest(id=table)).count == 40
    lance.write_dataset(ROWS, namespace_client=face, table_id=table, mode="overwrite")
    assert lance.dataset(str(service.root / f"{name}.lance")).to_table().equals(ROWS)
    assert name in face.list_tables(ln.ListTablesRequest(id=["lake"])).tables
    opened = lance.dataset(namespace_client=face, table_id=table)
    assert opened.scanner(nearest={"column": "vector", "q": [7.0, 0.0], "k": 1}).to_table()["id"].to_pylist() == [7]


def test_pylances_rest_client_asks_the_service_for_rows(face: ln.LanceNamespace) -> None:
    table = ["lake", fresh("rows")]
    lance.write_dataset(ROWS, namespace_client=face, table_id=table)
    asked = ln.QueryTableRequest(id=table, k=2, vector=QueryTableRequestVector(single_vector=[3.0, 0.0]))
    assert pa.ipc.open_file(bytes(face.query_table(asked).data)).read_all()["id"].to_pylist()[0] == 3
    told = face.get_table_stats(ln.GetTableStatsRequest(id=table))
    assert told.num_rows == 20


def test_lancedb_creates_opens_adds_searches_and_drops(service: Service) -> None:
    database = lancedb.connect_namespace("rest", {"uri": service.url})
    above, name = ["open"], fresh("orders")
    made = database.create_table(name, ROWS, namespace_path=above)
    made.add(ROWS.slice(0, 5))
    opened = database.open_table(name, namespace_path=above)
    assert opened.count_rows() == 25
    found = opened.search([7.0, 0.0]).limit(1).to_arrow()
    assert found["id"].to_pylist() == [7]
    assert opened.search().where("id > 17").to_arrow().num_rows == 2
    assert name in database.list_tables(namespace_path=above).tables
    database.drop_table(name, namespace_path=above)
    assert name not in database.list_tables(namespace_path=above).tables
    with pytest.raises(Exception, match=r"(?i)not found|no table"):
        database.open_table(name, namespace_path=above)


def test_lancedb_drops_nothing_where_that_is_not_allowed(service: Service) -> None:
    database = lancedb.connect_namespace("rest", {"uri": service.url})
    name = fresh("kept")
    database.create_table(name, ROWS, namespace_path=["lake"])
    with pytest.raises(Exception, match="never deleted"):
        database.drop_table(name, namespace_path=["lake"])
    assert database.open_table(name, namespace_path=["lake"]).count_rows() == 20
    assert lance.dataset(str(service.root / f"{name}.lance")).count_rows() == 20


def test_pylance_and_lancedb_write_into_a_real_hive(hive3_uri: str, tmp_path: Path) -> None:
    """Declared in the metastore through the service, written by the client at its location, and counted by the service."""
    metastore = Metastore(hive3_uri, 2, ("hive",), tmp_path / "hive")
    with served(tmp_path, {"hms": {"impl": "hive3", "uri": hive3_uri, "root": f"file:{metastore.place}"}}) as service:
        database = fresh("db")
        face = ln.connect("rest", {"uri": service.url})
        above = ["hms", "hive", database]
        fill(service.index, "hms", NamespaceRecord("hms", ("hive",)))
        face.create_namespace(
            ln.CreateNamespaceRequest(id=above, properties={"database.location-uri": metastore.location(database)})
        )
        lance.write_dataset(ROWS, namespace_client=face, table_id=[*above, "orders"])
        connection = lancedb.connect_namespace("rest", {"uri": service.url})
        connection.open_table("orders", namespace_path=above).add(ROWS)
        assert face.count_table_rows(ln.CountTableRowsRequest(id=[*above, "orders"])).count == 40
        assert connection.list_tables(namespace_path=above).tables == ["orders"]
        with metastore.open() as catalog:
            location = catalog.describe_table(("hive", database, "orders")).location
        assert location is not None
        assert lance.dataset(location).count_rows() == 40
