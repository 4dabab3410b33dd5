"""Each error code of the spec as the official exception, from the real server's response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance_namespace as ln
import pytest

from federator.model import Path
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(120)

Ask = Callable[[ln.LanceNamespace, "World"], Any]


class World:
    """A database with a Lance table, a table that is none, and an empty database, seen through the official interface."""

    def __init__(self, metastore: Metastore) -> None:
        self.full, self.empty = metastore.database(), metastore.database()
        self.missing: Path = (*metastore.above, "nowhere")
        metastore.table((*self.full, "ours"), {"table_type": "LANCE", "EXTERNAL": "TRUE"})
        metastore.table((*self.full, "foreign"), {"EXTERNAL": "TRUE"})
        metastore.managed_table((*self.full, "managed"))
        self.location = metastore.location("declared.lance")


def _create(**more: Any) -> Ask:
    return lambda facade, world: facade.create_namespace(ln.CreateNamespaceRequest(id=list(world.full), **more))


def _drop(which: str, **more: Any) -> Ask:
    return lambda facade, world: facade.drop_namespace(ln.DropNamespaceRequest(id=list(getattr(world, which)), **more))


def _declare(which: str, name: str) -> Ask:
    return lambda facade, world: facade.declare_table(
        ln.DeclareTableRequest(id=[*getattr(world, which), name], location=world.location)
    )  # fmt: skip


def _table(operation: str, request: type, which: str, name: str) -> Ask:
    return lambda facade, world: getattr(facade, operation)(request(id=[*getattr(world, which), name]))


def _namespace(operation: str, request: type, which: str) -> Ask:
    return lambda facade, world: getattr(facade, operation)(request(id=list(getattr(world, which))))


def _rename(name: str, *, to: str, above: str | None = None) -> Ask:
    def ask(facade: ln.LanceNamespace, world: World) -> None:
        into = list(getattr(world, above)) if above else None
        facade.rename_table(ln.RenameTableRequest(id=[*world.full, name], new_table_name=to, new_namespace_id=into))

    return ask


def _of(operation: str, request: type) -> list[tuple[str, Ask, int]]:
    """What the spec says of DescribeTable and DeregisterTable alike."""
    return [
        (f"{operation} of no table", _table(operation, request, "full", "nothing"), 4),
        (f"{operation} in no database", _table(operation, request, "missing", "t"), 4),
        (f"{operation} of a table that is not Lance", _table(operation, request, "full", "foreign"), 13),
        (f"{operation} of a managed table", _table(operation, request, "full", "managed"), 13),
    ]


#: what is asked, and its code
CASES: list[tuple[str, Ask, int]] = [
    ("create a database that exists", _create(), 2),
    ("create a database with an unknown mode", _create(mode="sometimes"), 13),
    ("overwrite a database that is not empty", _create(mode="OVERWRITE"), 3),
    ("list namespaces of no database", _namespace("list_namespaces", ln.ListNamespacesRequest, "missing"), 1),
    ("describe no database", _namespace("describe_namespace", ln.DescribeNamespaceRequest, "missing"), 1),
    ("ask for no database", _namespace("namespace_exists", ln.NamespaceExistsRequest, "missing"), 1),
    ("drop no database", _drop("missing"), 1),
    ("drop a database that is not empty", _drop("full", behavior="RESTRICT"), 3),
    ("drop a database with what is not ours", _drop("full", behavior="CASCADE"), 3),
    ("declare in no database", _declare("missing", "t"), 1),
    ("declare a table that exists", _declare("full", "ours"), 5),
    ("declare over a table that is not Lance", _declare("full", "foreign"), 5),
    ("declare a table with no name for Hive", _declare("full", "a-b"), 13),
    ("list tables of no database", _namespace("list_tables", ln.ListTablesRequest, "missing"), 1),
    *_of("describe_table", ln.DescribeTableRequest),
    *_of("table_exists", ln.TableExistsRequest),
    *_of("deregister_table", ln.DeregisterTableRequest),
    ("rename no table", _rename("nothing", to="x"), 4),
    ("rename to a name that is taken", _rename("ours", to="foreign"), 5),
    ("rename into no database", _rename("ours", to="x", above="missing"), 1),
    ("drop a table", _table("drop_table", ln.DropTableRequest, "full", "ours"), 0),
]


def _facade(metastore: Metastore, **properties: str) -> ln.LanceNamespace:
    name = f"hive{metastore.levels + 1}"
    keys = {f"{name}.{key.replace('_', '-')}": value for key, value in properties.items()}
    return ln.connect(f"federator_connectors.{name}.{name.capitalize()}Namespace", {f"{name}.uri": metastore.uri, **keys})


def test_every_code(metastore: Metastore) -> None:
    """One table for the three versions; what it refuses leaves everything as it was."""
    facade, world = _facade(metastore), World(metastore)
    wrong = {}
    for name, ask, code in CASES:
        try:
            ask(facade, world)
        except ln.LanceNamespaceError as error:
            if error.code != code or type(error).__module__ != "lance_namespace.errors":
                wrong[name] = repr(error)
        else:
            wrong[name] = "no error"
    assert not wrong
    assert {code for _, _, code in CASES} == {0, 1, 2, 3, 4, 5, 13}
    assert facade.list_tables(ln.ListTablesRequest(id=list(world.full))).tables == ["ours"]
    assert facade.list_tables(ln.ListTablesRequest(id=list(world.empty))).tables == []


@pytest.mark.parametrize("metastore", ["hive3", "hive4"], indirect=True)
def test_the_codes_of_catalogs(metastore: Metastore) -> None:
    facade = _facade(metastore, root=f"file:{metastore.directory}")
    for ask, code in (
        (lambda: facade.create_namespace(ln.CreateNamespaceRequest(id=["hive"])), 2),
        (lambda: facade.create_namespace(ln.CreateNamespaceRequest(id=["nowhere", "d"])), 1),
        (lambda: facade.list_namespaces(ln.ListNamespacesRequest(id=["nowhere"])), 1),
        (lambda: facade.describe_namespace(ln.DescribeNamespaceRequest(id=["nowhere"])), 1),
        (lambda: facade.drop_namespace(ln.DropNamespaceRequest(id=["nowhere"])), 1),
        (lambda: facade.list_tables(ln.ListTablesRequest(id=["nowhere"])), 1),
    ):
        with pytest.raises(ln.LanceNamespaceError) as caught:
            ask()  # type: ignore[no-untyped-call]
        assert caught.value.code == code
    assert facade.drop_namespace(ln.DropNamespaceRequest(id=["nowhere"], mode="SKIP")).properties is None


def test_every_operation_says_17_when_the_connection_fails(metastore: Metastore) -> None:
    name = f"hive{metastore.levels + 1}"
    facade = ln.connect(f"federator_connectors.{name}.{name.capitalize()}Namespace", {"uri": "thrift://127.0.0.1:9"})
    namespace, table = ["a", "b"][: metastore.levels], ["a", "b", "t"][-metastore.levels - 1 :]
    for operation, request in (
        ("create_namespace", ln.CreateNamespaceRequest(id=namespace)),
        ("list_namespaces", ln.ListNamespacesRequest(id=[])),
        ("describe_namespace", ln.DescribeNamespaceRequest(id=namespace)),
        ("drop_namespace", ln.DropNamespaceRequest(id=namespace)),
        ("declare_table", ln.DeclareTableRequest(id=table)),
        ("list_tables", ln.ListTablesRequest(id=namespace)),
        ("describe_table", ln.DescribeTableRequest(id=table)),
        ("deregister_table", ln.DeregisterTableRequest(id=table)),
    ):
        with pytest.raises(ln.ServiceUnavailableError) as caught:
            getattr(facade, operation)(request)
        assert caught.value.code == 17


def test_hive3_on_a_hive2_server_is_unsupported(hive2_uri: str) -> None:
    facade = ln.connect("federator_connectors.hive3.Hive3Namespace", {"uri": hive2_uri})
    with pytest.raises(ln.UnsupportedOperationError, match="hive2"):
        facade.list_namespaces(ln.ListNamespacesRequest(id=[]))
