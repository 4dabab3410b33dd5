"""Each error code of the Lance Iceberg spec by the official classes, from the real server; and what a failing server answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import lance_namespace as ln
import pytest

from federator.model import Path
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Lie, Send
from tests.fixtures.iceberg import WAREHOUSE, IcebergServer

pytestmark = pytest.mark.timeout(60)

Ask = Callable[[Any, list[str]], Any]
# ``n`` is a namespace with the Lance table ``t`` and the Iceberg table ``plain``.
SPEC: dict[str, tuple[int, Ask]] = {
    "CreateNamespace: exists": (2, lambda f, n: f.create_namespace(ln.CreateNamespaceRequest(id=n))),
    "CreateNamespace: no parent": (1, lambda f, n: f.create_namespace(ln.CreateNamespaceRequest(id=[WAREHOUSE, "none", "x"]))),
    "CreateNamespace: a warehouse": (13, lambda f, n: f.create_namespace(ln.CreateNamespaceRequest(id=["new"]))),
    "ListNamespaces: no parent": (1, lambda f, n: f.list_namespaces(ln.ListNamespacesRequest(id=[*n, "none"]))),
    "DescribeNamespace: missing": (1, lambda f, n: f.describe_namespace(ln.DescribeNamespaceRequest(id=[*n, "none"]))),
    "DropNamespace: not empty": (3, lambda f, n: f.drop_namespace(ln.DropNamespaceRequest(id=n))),
    # The spec succeeds here; every other spec, and Skip, has this code.
    "DropNamespace: missing": (1, lambda f, n: f.drop_namespace(ln.DropNamespaceRequest(id=[*n, "none"]))),
    "DropNamespace: cascade": (0, lambda f, n: f.drop_namespace(ln.DropNamespaceRequest(id=n, behavior="Cascade"))),
    "DeclareTable: no namespace": (1, lambda f, n: f.declare_table(ln.DeclareTableRequest(id=[*n, "none", "x"]))),
    "DeclareTable: exists": (5, lambda f, n: f.declare_table(ln.DeclareTableRequest(id=[*n, "t"]))),
    "DeclareTable: an Iceberg table": (5, lambda f, n: f.declare_table(ln.DeclareTableRequest(id=[*n, "plain"]))),
    "DeclareTable: two levels": (13, lambda f, n: f.declare_table(ln.DeclareTableRequest(id=[WAREHOUSE, "x"]))),
    "ListTables: no namespace": (1, lambda f, n: f.list_tables(ln.ListTablesRequest(id=[*n, "none"]))),
    "ListTables: a warehouse": (13, lambda f, n: f.list_tables(ln.ListTablesRequest(id=[WAREHOUSE]))),
    "DescribeTable: missing": (4, lambda f, n: f.describe_table(ln.DescribeTableRequest(id=[*n, "none"]))),
    "DescribeTable: an Iceberg table": (13, lambda f, n: f.describe_table(ln.DescribeTableRequest(id=[*n, "plain"]))),
    "DescribeTable: detailed": (
        0, lambda f, n: f.describe_table(ln.DescribeTableRequest(id=[*n, "t"], load_detailed_metadata=True))),
    "DeregisterTable: missing": (4, lambda f, n: f.deregister_table(ln.DeregisterTableRequest(id=[*n, "none"]))),
    "DeregisterTable: an Iceberg table": (13, lambda f, n: f.deregister_table(ln.DeregisterTableRequest(id=[*n, "plain"]))),
}  # fmt: skip


def _facade(url: str, root: FilePath) -> Any:
    properties = {"endpoint": url, "warehouses": WAREHOUSE, "root": str(root), "max_retries": "0"}
    return ln.connect("federator_connectors.iceberg.IcebergNamespace", properties)


@pytest.mark.parametrize("case", SPEC)
def test_every_code_of_the_spec(iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, case: str) -> None:
    iceberg_server.table((*iceberg_namespace, "t"), f"file://{tmp_path}/t.lance", table_type="LANCE")
    iceberg_server.table((*iceberg_namespace, "plain"), f"file://{tmp_path}/plain")
    facade = _facade(iceberg_server.url, tmp_path)
    code, ask = SPEC[case]
    with pytest.raises(ln.LanceNamespaceError) as caught:
        ask(facade, list(iceberg_namespace))
    assert caught.value.code == code
    assert facade.list_tables(ln.ListTablesRequest(id=list(iceberg_namespace))).tables == ["t"]
    facade.close()


@pytest.mark.parametrize(
    ("status", "code"), [(500, 18), (400, 13), (401, 16), (403, 15), (429, 21), (502, 17), (503, 17), (504, 17)]
)
def test_a_failing_server_has_one_code_in_every_operation(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, status: int, code: int
) -> None:
    path = list(iceberg_namespace)
    operations = (
        lambda f: f.create_namespace(ln.CreateNamespaceRequest(id=[*path, "new"])),
        lambda f: f.list_namespaces(ln.ListNamespacesRequest(id=path)),
        lambda f: f.describe_namespace(ln.DescribeNamespaceRequest(id=path)),
        lambda f: f.drop_namespace(ln.DropNamespaceRequest(id=path)),
        lambda f: f.declare_table(ln.DeclareTableRequest(id=[*path, "t"])),
        lambda f: f.list_tables(ln.ListTablesRequest(id=path)),
        lambda f: f.describe_table(ln.DescribeTableRequest(id=[*path, "t"])),
        lambda f: f.deregister_table(ln.DeregisterTableRequest(id=[*path, "t"])),
    )  # fmt: skip
    answer = f'{{"error":{{"message":"why","type":"SomeException","code":{status}}}}}'.encode()
    for ask in operations:
        # A server of its own for each operation: after five failures, its breaker would answer.
        with HttpProxy(iceberg_server.url) as proxy:
            proxy.script.set([Lie(".*/namespaces.*", Send(answer, status))])
            facade = _facade(proxy.url, tmp_path)
            with pytest.raises(ln.LanceNamespaceError, match="why") as caught:
                ask(facade)
            assert (caught.value.code, proxy.met) == (code, 1)
            facade.close()
