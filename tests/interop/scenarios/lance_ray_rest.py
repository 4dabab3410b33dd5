"""lance-ray: tables of a namespace as Ray data sets."""

import lance_namespace as ln
import lance_ray  # type: ignore[import-not-found]
import pyarrow as pa
import ray  # type: ignore[import-not-found]

from tests.interop.scenarios.runner import Server, Steps, equal, refused, run

ROWS = pa.table({"id": [1, 2, 3]})


def steps(server: Server) -> Steps:
    client = ln.connect("rest", {"uri": server.uri})
    above = server.new_namespace()

    def where(name: str) -> dict[str, object]:
        return {"namespace_impl": "rest", "namespace_properties": {"uri": server.uri}, "table_id": [*above, name]}

    def write(name: str, mode: str) -> None:
        lance_ray.write_lance(ray.data.from_arrow(ROWS), mode=mode, concurrency=1, **where(name))

    def rows(name: str) -> int:
        return lance_ray.read_lance(concurrency=1, **where(name)).count()

    def spaced() -> None:
        write("two words", "create")
        write("two words", "append")
        equal(rows("two words"), 6)

    yield "create a namespace", lambda: client.create_namespace(ln.CreateNamespaceRequest(id=above))
    yield "write a table", lambda: write("orders", "create")
    yield "append", lambda: write("orders", "append")
    yield "read and count", lambda: equal(rows("orders"), 6)
    yield (
        "read with a filter",
        lambda: equal(lance_ray.read_lance(concurrency=1, filter="id > 2", **where("orders")).take_all(), [{"id": 3}] * 2),
    )
    yield "refuse an existing name", lambda: refused(lambda: write("orders", "create"), "already exists")
    yield "refuse a missing table", lambda: refused(lambda: rows("none"), "not found", "not exist")
    yield "write and read a name with a space", spaced


def start() -> None:
    """Start Ray's node. Ray gives it 30 seconds, which may be too few beside other work."""
    for is_last in (*[False] * 4, True):
        try:
            # The address is given, because Ray would look for one by opening a socket to a public address.
            ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", configure_logging=False)
        except Exception as error:
            if is_last or "timed out during startup" not in str(error):
                raise
            ray.shutdown()
        else:
            return


start()
run(steps)
