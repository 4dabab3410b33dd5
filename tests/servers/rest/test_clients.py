"""REST servers and directories with Lance's own clients: real tables are created, opened, appended and listed."""

from __future__ import annotations

import lance
import lance_namespace as ln
import lancedb
import pyarrow as pa
import pytest

from tests.fixtures.rest import RestServer

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(params=["rest", "rest-delimiter", "dir", "dir-manifest"])
def facade(request: pytest.FixtureRequest, own_rest_server: RestServer) -> tuple[str, dict[str, str]]:
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
    facade: tuple[str, dict[str, str]], own_rest_server: RestServer, above: list[str]
) -> None:
    own, theirs = ln.connect(*facade), ln.connect("rest", {"uri": own_rest_server.url})
    path = [*above, "orders"]
    lance.write_dataset(ROWS, namespace_client=own, table_id=path)
    lance.write_dataset(ROWS, namespace_client=own, table_id=path, mode="append")
    assert lance.dataset(namespace_client=own, table_id=path).count_rows() == 6
    assert lance.dataset(namespace_client=theirs, table_id=path).count_rows() == 6
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=[*above, "theirs"])
    for client in (own, theirs):
        assert sorted(client.list_tables(ln.ListTablesRequest(id=above)).tables) == ["orders", "theirs"]
    assert lance.dataset(namespace_client=own, table_id=[*above, "theirs"]).count_rows() == 3
    if facade[0].endswith("RestNamespace") and not above:
        # The reference server forgets the declaration, and shows the directory as a table all the same.
        with pytest.raises(ln.UnsupportedOperationError, match="still has the table"):
            own.deregister_table(ln.DeregisterTableRequest(id=path))
        return
    own.deregister_table(ln.DeregisterTableRequest(id=path))
    assert own.list_tables(ln.ListTablesRequest(id=above)).tables == ["theirs"]
    with pytest.raises(ln.TableNotFoundError):
        own.describe_table(ln.DescribeTableRequest(id=path))


@pytest.mark.parametrize("above", [[], ["ns"]], ids=["root", "namespace"])
def test_lancedb_creates_opens_appends_and_lists(facade: tuple[str, dict[str, str]], above: list[str]) -> None:
    database = lancedb.connect_namespace(*facade)
    database.create_table("orders", ROWS, namespace_path=above).add(ROWS)
    assert database.open_table("orders", namespace_path=above).count_rows() == 6
    assert database.list_tables(namespace_path=above).tables == ["orders"]
    with pytest.raises(RuntimeError, match="never deleted"):
        database.drop_table("orders", namespace_path=above)
    assert database.open_table("orders", namespace_path=above).count_rows() == 6
