"""Client and sample tables for the tests of the routes about a table's data."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
import lance_namespace_urllib3_client as client
import pyarrow as pa

from federator.testing.contract import unique_name

if TYPE_CHECKING:
    from tests.unit.api.lance.conftest import Service

ROWS = pa.table(
    {
        "id": pa.array(range(50), pa.int64()),
        "name": [f"row {i} word{i % 5}" for i in range(50)],
        "vector": pa.array([[float(i), float(i % 7)] for i in range(50)], pa.list_(pa.float32(), 2)),
    }
)
NO_VECTOR = client.QueryTableRequestVector(single_vector=[])


@dataclass
class Client:
    """The official client of one server, for the tables below one id."""

    url: str
    above: tuple[str, ...]

    def __post_init__(self) -> None:
        api = client.ApiClient(client.Configuration(host=self.url))
        self.data, self.tables, self.indices = client.DataApi(api), client.TableApi(api), client.IndexApi(api)
        self.tags, self.branches, self.metadata = client.TagApi(api), client.BranchApi(api), client.MetadataApi(api)

    def id(self, name: str) -> str:
        return "$".join((*self.above, name))


@dataclass
class Tables:
    """Tables in the directory that both servers serve."""

    service: Service

    def path(self, name: str) -> str:
        return str(self.service.root / f"{name}.lance")

    def open(self, name: str, **options: Any) -> Any:
        return lance.dataset(self.path(name), **options)

    def new(self, rows: pa.Table = ROWS) -> str:
        name = unique_name("t")
        lance.write_dataset(rows, self.path(name))
        self.service.crawl("lake")
        return name


def plain(answer: Any) -> Any:
    if hasattr(answer, "to_dict"):
        return answer.to_dict()
    if isinstance(answer, bytes | bytearray):
        return pa.ipc.open_file(bytes(answer)).read_all().to_pydict()
    return answer


def stream(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


NEW = stream(pa.table({"id": [7, 100], "name": ["changed", "new"], "vector": ROWS["vector"].slice(0, 2)}, schema=ROWS.schema))
