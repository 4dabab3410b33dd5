"""pylance with its Rust client of the REST protocol."""

import io

import lance
import lance_namespace as ln
import pyarrow as pa

from tests.interop.scenarios.runner import Server, Steps, equal, refused, run

ROWS = pa.table({"id": [1, 2, 3]})


def stream(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def steps(server: Server) -> Steps:
    client = ln.connect("rest", {"uri": server.uri})
    above = server.new_namespace()
    table, spaced = [*above, "orders"], [*above, "two words"]

    def names() -> list[str]:
        return sorted(client.list_tables(ln.ListTablesRequest(id=above)).tables)

    def rows(path: list[str]) -> int:
        return lance.dataset(namespace_client=client, table_id=path).count_rows()

    def write(path: list[str], mode: str) -> None:
        lance.write_dataset(ROWS, namespace_client=client, table_id=path, mode=mode)

    def write_spaced() -> None:
        write(spaced, "create")
        write(spaced, "append")
        equal(rows(spaced), 6)

    def create_at_server() -> None:
        client.create_table(ln.CreateTableRequest(id=[*above, "sent"]), stream(ROWS))
        equal(rows([*above, "sent"]), 3)

    def create_spaced_at_server() -> None:
        path = [*above, "sent words"]
        client.create_table(ln.CreateTableRequest(id=path), stream(ROWS))
        equal(rows(path), 3)

    def insert_spaced() -> None:
        client.insert_into_table(ln.InsertIntoTableRequest(id=spaced), stream(ROWS))
        equal(rows(spaced), 9)

    def register() -> None:
        location = client.describe_table(ln.DescribeTableRequest(id=table)).location
        client.deregister_table(ln.DeregisterTableRequest(id=table))
        refused(lambda: rows(table), "not found", "not exist")
        equal(lance.dataset(location).count_rows(), 6)
        client.register_table(ln.RegisterTableRequest(id=table, location=location))
        equal(rows(table), 6)

    def empty() -> None:
        for name in names():
            client.deregister_table(ln.DeregisterTableRequest(id=[*above, name]))
        equal(names(), [])
        client.drop_namespace(ln.DropNamespaceRequest(id=above, context={"header.x-federator-confirm": "cascades"}))
        refused(lambda: client.namespace_exists(ln.NamespaceExistsRequest(id=above)), "not found")

    yield "create a namespace", lambda: client.create_namespace(ln.CreateNamespaceRequest(id=above))
    yield (
        "list the namespace",
        lambda: equal(above[-1] in client.list_namespaces(ln.ListNamespacesRequest(id=server.parent)).namespaces, True),
    )
    yield "write a table", lambda: write(table, "create")
    yield "append", lambda: write(table, "append")
    yield "open and count", lambda: equal(rows(table), 6)
    yield "count at the server", lambda: equal(client.count_table_rows(ln.CountTableRowsRequest(id=table)).count, 6)
    yield "list tables", lambda: equal(names(), ["orders"])
    yield "refuse an existing name", lambda: refused(lambda: write(table, "create"), "already exists")
    yield "refuse a missing table", lambda: refused(lambda: rows([*above, "none"]), "not found", "not exist")
    yield "create a table at the server", create_at_server
    yield "write a name with a space", write_spaced
    yield "insert into a name with a space at the server", insert_spaced
    yield "create a name with a space at the server", create_spaced_at_server
    yield "deregister and register", register
    yield "deregister all, drop the namespace", empty


run(steps)
