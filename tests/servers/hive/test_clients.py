"""Hive with Lance's own clients: lancedb and pylance create, open, append, list and read tables in real metastores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lance
import lance_namespace as ln
import lancedb
import pyarrow as pa
import pytest

from federator_connectors._hive import client
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(120)

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


def _implementation(metastore: Metastore) -> tuple[str, dict[str, str]]:
    name = f"hive{metastore.levels + 1}"
    return f"federator_connectors.{name}.{name.capitalize()}Namespace", {f"{name}.uri": metastore.uri}


def test_pylance(metastore: Metastore) -> None:
    facade = ln.connect(*_implementation(metastore))
    database = list(metastore.database())
    table = [*database, "orders"]
    lance.write_dataset(ROWS, namespace_client=facade, table_id=table)
    lance.write_dataset(ROWS, namespace_client=facade, table_id=table, mode="append")
    assert lance.dataset(namespace_client=facade, table_id=table).count_rows() == 6
    lance.write_dataset(ROWS, namespace_client=facade, table_id=table, mode="overwrite")
    described = facade.describe_table(ln.DescribeTableRequest(id=table))
    assert described.location == metastore.location(f"{database[-1]}/orders.lance")
    assert lance.dataset(described.location).to_table().equals(ROWS)
    assert (metastore.directory / database[-1] / "orders.lance" / "_versions").is_dir()
    assert facade.list_tables(ln.ListTablesRequest(id=database)).tables == ["orders"]
    facade.deregister_table(ln.DeregisterTableRequest(id=table))
    assert lance.dataset(described.location).count_rows() == 3
    facade.register_table(ln.RegisterTableRequest(id=table, location=described.location))
    facade.rename_table(ln.RenameTableRequest(id=table, new_table_name="sales"))
    assert lance.dataset(namespace_client=facade, table_id=[*database, "sales"]).count_rows() == 3


def test_the_pool_size_is_the_number_of_connections_of_one_namespace(
    metastore: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[client.Connection] = []

    class Counted(client.Connection):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            opened.append(self)

    database = list(metastore.database())
    monkeypatch.setattr(client, "Connection", Counted)
    implementation, properties = _implementation(metastore)
    facade = ln.connect(implementation, {**properties, "client.pool-size": "3"})
    with ThreadPoolExecutor(12) as threads:
        listed = threads.map(lambda _: facade.list_tables(ln.ListTablesRequest(id=database)).tables, range(48))
        assert list(listed) == [[]] * 48
    assert 1 <= len(opened) <= 3


def test_lancedb(metastore: Metastore) -> None:
    connection = lancedb.connect_namespace(*_implementation(metastore))
    database = list(metastore.database())
    created = connection.create_table("orders", ROWS, namespace_path=database)
    created.add(ROWS)
    opened = connection.open_table("orders", namespace_path=database)
    assert opened.count_rows() == 6
    assert opened.search().where("id = 2").to_arrow().num_rows == 2
    assert connection.table_names(namespace_path=database) == ["orders"]
    assert database[-1] in connection.list_namespaces(namespace_path=list(metastore.above)).namespaces
    with pytest.raises(Exception, match=r"(?i)not found|does not exist"):
        connection.open_table("nothing", namespace_path=database)
