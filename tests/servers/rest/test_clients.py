"""REST servers and directories with Lance's own clients: real tables are created, opened, appended and listed."""

from __future__ import annotations

import lance
import lance_namespace as ln
import lancedb
import pyarrow as pa
import pytest

from federator.connector import InvalidInput
from federator.model import NamespaceRecord, TableRecord
from federator_connectors.rest import CONNECTOR
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


def test_a_longer_delimiter_never_addresses_another_object(own_rest_server: RestServer) -> None:
    """``a|`` and ``b``, joined with ``||``, are ``a|||b``, which a server reads as ``a`` and ``|b``."""
    theirs = ln.connect("rest", {"uri": own_rest_server.url})
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["a"]))
    theirs.declare_table(ln.DeclareTableRequest(id=["a", "|b"]))
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["a", "|c"]))
    with CONNECTOR.open("r", CONNECTOR.parse_settings({**own_rest_server.properties, "delimiter": "||"})) as catalog:
        for attempt in (
            lambda: catalog.describe_table(("a|", "b")),
            lambda: catalog.list_tables(("a|", "c")),
            lambda: catalog.list_namespaces(("a|", "c")),
            lambda: catalog.declare_table(TableRecord("r", ("a|", "new"), f"{own_rest_server.root}/new.lance")),
            lambda: catalog.deregister_table(TableRecord("r", ("a|", "b"))),
            lambda: catalog.create_namespace(NamespaceRecord("r", ("a|", "new"))),
            lambda: catalog.drop_namespace(("a|", "c")),
        ):
            with pytest.raises(InvalidInput, match=r"would read its id 'a\|\|\|.*' as other names") as caught:
                attempt()
            assert caught.value.hint == "set rest.delimiter to a text that no name contains; it is '||'"
        assert (catalog.list_tables(("a",)), catalog.list_namespaces(("a",))) == (["|b"], ["|c"])
        assert catalog.describe_table(("a", "|b")).path == ("a", "|b"), "this id has one reading"
