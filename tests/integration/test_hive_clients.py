"""Lance's own clients through Hive: lancedb and pylance create, open, append, list and read real tables in real metastores."""

from __future__ import annotations

import lance
import lance_namespace as ln
import lancedb
import pyarrow as pa
import pytest

from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(120)

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


def _implementation(metastore: Metastore) -> tuple[str, dict[str, str]]:
    name = f"hive{metastore.levels + 1}"
    return f"federator_connectors.{name}.{name.capitalize()}Namespace", {f"{name}.uri": metastore.uri}


def test_pylance(metastore: Metastore) -> None:
    face = ln.connect(*_implementation(metastore))
    database = list(metastore.database())
    table = [*database, "orders"]
    lance.write_dataset(ROWS, namespace_client=face, table_id=table)
    lance.write_dataset(ROWS, namespace_client=face, table_id=table, mode="append")
    assert lance.dataset(namespace_client=face, table_id=table).count_rows() == 6
    lance.write_dataset(ROWS, namespace_client=face, table_id=table, mode="overwrite")
    described = face.describe_table(ln.DescribeTableRequest(id=table))
    assert described.location == metastore.location(f"{database[-1]}/orders.lance")
    assert lance.dataset(described.location).to_table().equals(ROWS)
    assert (metastore.place / database[-1] / "orders.lance" / "_versions").is_dir()
    assert face.list_tables(ln.ListTablesRequest(id=database)).tables == ["orders"]
    face.deregister_table(ln.DeregisterTableRequest(id=table))
    assert lance.dataset(described.location).count_rows() == 3
    face.register_table(ln.RegisterTableRequest(id=table, location=described.location))
    face.rename_table(ln.RenameTableRequest(id=table, new_table_name="sales"))
    assert lance.dataset(namespace_client=face, table_id=[*database, "sales"]).count_rows() == 3


def test_lancedb(metastore: Metastore) -> None:
    connection = lancedb.connect_namespace(*_implementation(metastore))
    database = list(metastore.database())
    made = connection.create_table("orders", ROWS, namespace_path=database)
    made.add(ROWS)
    opened = connection.open_table("orders", namespace_path=database)
    assert opened.count_rows() == 6
    assert opened.search().where("id = 2").to_arrow().num_rows == 2
    assert connection.table_names(namespace_path=database) == ["orders"]
    assert database[-1] in connection.list_namespaces(namespace_path=list(metastore.above)).namespaces
    with pytest.raises(Exception, match=r"(?i)not found|does not exist"):
        connection.open_table("nothing", namespace_path=database)
