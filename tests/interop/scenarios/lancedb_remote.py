"""lancedb's remote client, which sends rows to the server."""

from typing import Any

import lancedb
import pyarrow as pa

from tests.interop.scenarios.runner import Server, Steps, equal, refused, run

ROWS = pa.table({"id": [1, 2, 3], "vector": pa.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], pa.list_(pa.float32(), 2))})


def steps(server: Server) -> Steps:
    database = lancedb.connect("db://interop", api_key=server.api_key, host_override=server.uri)
    above = server.new_namespace()

    def names() -> list[str]:
        return sorted(database.list_tables(namespace_path=above).tables)

    def create(name: str) -> None:
        database.create_table(name, ROWS, namespace_path=above)

    def opened(name: str) -> Any:
        return database.open_table(name, namespace_path=above)

    def add(name: str) -> None:
        opened(name).add(ROWS)
        equal(opened(name).count_rows(), 6)

    def delete() -> None:
        opened("orders").delete("id > 2")
        equal(opened("orders").count_rows(), 4)

    def update() -> None:
        equal(opened("orders").update(where="id = 1", values={"id": 7}).rows_updated, 2)
        equal(opened("orders").delete("id = 7").num_deleted_rows, 2)

    def tag() -> None:
        tags = opened("orders").tags
        tags.create("first", 1)
        equal({name: tag["version"] for name, tag in tags.list().items()}, {"first": 1})
        equal(tags.get_version("first"), 1)

    def add_columns() -> None:
        opened("orders").add_columns({"twice": "id * 2"})
        opened("orders").add_columns(pa.schema([pa.field("note", pa.utf8())]))
        equal(opened("orders").schema.names, ["id", "vector", "twice", "note"])

    def create_spaced() -> None:
        create("two words")
        add("two words")

    def drop(name: str) -> None:
        database.drop_table(name, namespace_path=above)
        equal(name in names(), False)

    yield "create a namespace", lambda: database.create_namespace(above)
    yield "create a table", lambda: create("orders")
    yield "add rows and count", lambda: add("orders")
    yield "search", lambda: equal(opened("orders").search([3.0, 0.0]).limit(1).to_arrow()["id"].to_pylist(), [3])
    yield "delete rows", delete
    yield "count updated and deleted rows", update
    yield "tag a version, list tags", tag
    yield "add columns", add_columns
    yield "list tables", lambda: equal(names(), ["orders"])
    yield "refuse an existing name", lambda: refused(lambda: create("orders"), "already exists", "409")
    yield "refuse a missing table", lambda: refused(lambda: opened("none"), "not found", "not exist")
    yield "create a name with a space, add rows", create_spaced
    yield "drop a table", lambda: drop("orders")
    yield "drop a name with a space", lambda: drop("two words")
    yield "drop the namespace", lambda: database.drop_namespace(above)


run(steps)
