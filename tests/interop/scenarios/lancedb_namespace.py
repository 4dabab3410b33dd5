"""lancedb over a namespace of the REST protocol."""

from typing import Any

import lancedb
import pyarrow as pa

from tests.interop.scenarios.runner import Server, Steps, equal, refused, run

ROWS = pa.table({"id": [1, 2, 3], "vector": pa.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], pa.list_(pa.float32(), 2))})


def steps(server: Server) -> Steps:
    database = lancedb.connect_namespace("rest", {"uri": server.uri})
    above = server.new_namespace()

    def names() -> list[str]:
        return sorted(database.list_tables(namespace_path=above).tables)

    def create(name: str) -> None:
        database.create_table(name, ROWS, namespace_path=above).add(ROWS)

    def opened(name: str) -> Any:
        return database.open_table(name, namespace_path=above)

    def create_spaced() -> None:
        create("two words")
        equal(opened("two words").count_rows(), 6)

    def drop(name: str) -> None:
        database.drop_table(name, namespace_path=above)
        equal(name in names(), False)

    yield "create a namespace", lambda: database.create_namespace(above)
    yield "create a table and add rows", lambda: create("orders")
    yield "open and count", lambda: equal(opened("orders").count_rows(), 6)
    yield "search", lambda: equal(opened("orders").search([3.0, 0.0]).limit(1).to_arrow()["id"].to_pylist(), [3])
    yield "list tables", lambda: equal(names(), ["orders"])
    yield "refuse an existing name", lambda: refused(lambda: create("orders"), "already exists")
    yield "refuse a missing table", lambda: refused(lambda: opened("none"), "not found", "not exist")
    yield "create a name with a space", create_spaced
    yield "drop a table", lambda: drop("orders")
    yield "drop a name with a space", lambda: drop("two words")
    yield "drop the namespace", lambda: database.drop_namespace(above)


run(steps)
