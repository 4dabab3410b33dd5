"""Lance's own clients through the connectors of REST servers and directories: real tables are made, opened, appended and listed."""

from __future__ import annotations

import lance
import lance_namespace as ln
import lancedb
import pyarrow as pa
import pytest

from tests.fixtures.rest import RestServer

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(params=["rest", "rest-delimiter", "dir", "dir-manifest"])
def face(request: pytest.FixtureRequest, own_rest_server: RestServer) -> tuple[str, dict[str, str]]:
    """A connector's class and its properties; behind each is a directory with the namespace ``ns`` in its manifest."""
    pylance = ln.connect("rest", {"uri": own_rest_server.url})
    pylance.create_namespace(ln.CreateNamespaceRequest(id=["ns"]))
    rest = ("federator_connectors.rest.RestNamespace", {"uri": own_rest_server.url})
    return {
        "rest": rest,
        "rest-delimiter": (rest[0], {**rest[1], "delimiter": "|"}),
        "dir": ("federator_connectors.dir.DirNamespace", {"root": own_rest_server.root}),
        "dir-manifest": ("federator_connectors.dir.DirNamespace", {"root": own_rest_server.root, "manifest_enabled": "true"}),
    }[request.param]


@pytest.mark.parametrize("above", [[], ["ns"]], ids=["root", "namespace"])
def test_pylance_writes_appends_and_opens(
    face: tuple[str, dict[str, str]], own_rest_server: RestServer, above: list[str]
) -> None:
    ours, theirs = ln.connect(*face), ln.connect("rest", {"uri": own_rest_server.url})
    path = [*above, "orders"]
    lance.write_dataset(ROWS, namespace_client=ours, table_id=path)
    lance.write_dataset(ROWS, namespace_client=ours, table_id=path, mode="append")
    assert lance.dataset(namespace_client=ours, table_id=path).count_rows() == 6
    assert lance.dataset(namespace_client=theirs, table_id=path).count_rows() == 6
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=[*above, "theirs"])
    for client in (ours, theirs):
        assert sorted(client.list_tables(ln.ListTablesRequest(id=above)).tables) == ["orders", "theirs"]
    assert lance.dataset(namespace_client=ours, table_id=[*above, "theirs"]).count_rows() == 3
    if face[0].endswith("RestNamespace") and not above:
        # The reference server forgets the declaration, and shows the directory as a table all the same.
        with pytest.raises(ln.UnsupportedOperationError, match="still has the table"):
            ours.deregister_table(ln.DeregisterTableRequest(id=path))
        return
    ours.deregister_table(ln.DeregisterTableRequest(id=path))
    assert ours.list_tables(ln.ListTablesRequest(id=above)).tables == ["theirs"]
    with pytest.raises(ln.TableNotFoundError):
        ours.describe_table(ln.DescribeTableRequest(id=path))


@pytest.mark.parametrize("above", [[], ["ns"]], ids=["root", "namespace"])
def test_lancedb_creates_opens_appends_and_lists(face: tuple[str, dict[str, str]], above: list[str]) -> None:
    database = lancedb.connect_namespace(*face)
    database.create_table("orders", ROWS, namespace_path=above).add(ROWS)
    assert database.open_table("orders", namespace_path=above).count_rows() == 6
    assert database.list_tables(namespace_path=above).tables == ["orders"]
    with pytest.raises(RuntimeError, match="never deleted"):
        database.drop_table("orders", namespace_path=above)
    assert database.open_table("orders", namespace_path=above).count_rows() == 6
