"""daft over a namespace of the REST protocol, and by a location with its storage options."""

from typing import Any

import daft  # type: ignore[import-not-found]
import daft_lance  # type: ignore[import-not-found]
import lance_namespace
from lance_namespace import CreateNamespaceRequest, DeregisterTableRequest, DescribeTableRequest, DropNamespaceRequest

from tests.interop.scenarios.runner import Server, Steps, equal, refused, run

ROWS = daft.from_pydict({"id": [1, 2, 3], "note": ["one", "two", "three"]})


class Tables:
    """The tables of one namespace."""

    def __init__(self, properties: dict[str, str], above: list[str]) -> None:
        self._properties, self._above = properties, above

    def address(self, name: str) -> dict[str, Any]:
        return {"namespace_impl": "rest", "namespace_properties": self._properties, "table_id": [*self._above, name]}

    def read(self, name: str, **options: Any) -> daft.DataFrame:
        return daft_lance.read_lance(**self.address(name), **options)

    def ids(self, name: str, **options: Any) -> list[int]:
        return sorted(self.read(name, **options).to_pydict()["id"])

    def write(self, name: str, mode: str = "create") -> None:
        daft_lance.write_lance(ROWS, mode=mode, **self.address(name))

    def write_and_read(self, name: str) -> None:
        self.write(name)
        equal(self.ids(name), [1, 2, 3])


def steps(server: Server) -> Steps:
    properties = {"uri": server.uri, "header.x-api-key": server.api_key}
    client, above = lance_namespace.connect("rest", properties), server.new_namespace()
    tables = Tables(properties, above)

    def append() -> None:
        tables.write("orders", "append")
        equal(tables.ids("orders"), [1, 1, 2, 2, 3, 3])
        equal(tables.ids("orders", version=1), [1, 2, 3])

    def overwrite() -> None:
        tables.write("orders", "overwrite")
        tables.write("made", "overwrite")
        equal([tables.ids("orders"), tables.ids("made")], [[1, 2, 3], [1, 2, 3]])

    def filtered() -> None:
        found = tables.read("orders").where("id > 1").select("note").to_pydict()
        equal(sorted(found["note"]), ["three", "two"])

    def index() -> None:
        daft_lance.create_scalar_index(column="id", index_type="BTREE", **tables.address("orders"))
        equal(tables.read("orders").where("id = 2").to_pydict()["note"], ["two"])

    def compact() -> None:
        tables.write("orders", "append")
        daft_lance.compact_files(**tables.address("orders"))
        equal(tables.ids("orders"), [1, 1, 2, 2, 3, 3])

    def by_location() -> None:
        location = client.describe_table(DescribeTableRequest(id=[*above, "orders"])).location
        equal(sorted(daft.read_lance(location).to_pydict()["id"]), [1, 1, 2, 2, 3, 3])

    def remove() -> None:
        for name in ("orders", "made"):
            client.deregister_table(DeregisterTableRequest(id=[*above, name]))
        refused(lambda: tables.ids("orders"), "not found")

    def spaced() -> None:
        tables.write_and_read("two words")
        client.deregister_table(DeregisterTableRequest(id=[*above, "two words"]))

    yield "create a namespace", lambda: client.create_namespace(CreateNamespaceRequest(id=above))
    yield "write and read", lambda: tables.write_and_read("orders")
    yield "append, read a version", append
    yield "overwrite", overwrite
    yield "filter and project", filtered
    yield "index a column", index
    yield "compact", compact
    yield "read by location", by_location
    yield "refuse an existing name", lambda: refused(lambda: tables.write("orders"), "already exists")
    yield "refuse a missing table", lambda: refused(lambda: tables.ids("none"), "not found")
    yield "write and read a name with a space", spaced
    yield "deregister", remove
    yield "drop the namespace", lambda: client.drop_namespace(DropNamespaceRequest(id=above))


run(steps)
