"""PyIceberg on Iceberg's own server: what an engine sees of companions and does to them, and what the connector sees of its tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath

import lance
import pyarrow as pa

from federator.connector import Catalog, CatalogError, TableAlreadyExists, Unsupported
from federator.model import NamespaceRecord, Path, TableRecord, canonical_location
from federator.registry import get_connector
from tests.fixtures import iceberg
from tests.interop.catalog_clients import run_step
from tests.interop.namespace_client import ForeignClient

TITLE = "PyIceberg 0.12.0"
_ROWS = pa.table({"id": [1, 2, 3]})
_NAMESPACE: Path = (iceberg.WAREHOUSE, "sales", "emea")


def run_pyiceberg() -> Iterator[tuple[str, str]]:
    """Run all steps on a server of their own. Yield each operation with ``passed`` or its error."""
    connector = get_connector("iceberg")
    with (
        tempfile.TemporaryDirectory(prefix="interop-") as directory,
        iceberg.start(FilePath(directory, "server")) as server,
        connector.open("interop", connector.parse_settings(server.properties)) as catalog,
        ForeignClient("pyiceberg", "rest", {"uri": server.url}, "pyiceberg_process.py") as client,
    ):
        for depth in (2, 3):
            catalog.create_namespace(NamespaceRecord("interop", _NAMESPACE[:depth]))
        steps = _Steps(catalog, client, FilePath(directory, "lake"))
        for operation, step in {
            "list a companion, and read it as a table without rows": steps.reads,
            "drop a companion: its data stays": steps.drops,
            "purge a companion: its data stays": steps.purges,
            "create a companion that the connector lists, describes and deregisters": steps.creates,
            "write rows to a companion, which is then not deregistered": steps.appends,
            "create an Iceberg table whose name is then taken": steps.takes_a_name,
        }.items():
            yield operation, run_step(step)


@dataclass(frozen=True)
class _Steps:
    """What the engine does. Each method fails unless both sides agree."""

    catalog: Catalog
    client: ForeignClient
    lake: FilePath

    def reads(self) -> None:
        self._declare("own")
        assert self._engine("list") == ["own"]
        assert self._engine("load", "own") == {"location": self._location("own"), "columns": ["dummy"], "rows": 0}

    def drops(self) -> None:
        self._remove("drop", "own")

    def purges(self) -> None:
        self._declare("purged")
        self._remove("purge", "purged")

    def creates(self) -> None:
        lance.write_dataset(_ROWS, self._location("theirs"))
        self._engine("create", "theirs", location=self._location("theirs"), properties={"table_type": "lance"})
        assert self.catalog.list_tables(_NAMESPACE) == ["theirs"]
        record = self.catalog.describe_table((*_NAMESPACE, "theirs"))
        assert record.location is not None
        assert canonical_location(record.location) == canonical_location(self._location("theirs"))
        self.catalog.deregister_table(record)
        assert self._engine("list") == []
        self._require_data("theirs")

    def appends(self) -> None:
        record = self._declare("appended")
        self._engine("append", "appended")
        assert isinstance(_error_of(lambda: self.catalog.deregister_table(record)), Unsupported)
        assert self._engine("load", "appended") == {"location": self._location("appended"), "columns": ["dummy"], "rows": 1}
        self._require_data("appended")

    def takes_a_name(self) -> None:
        self._engine("create", "taken", location=f"file://{self.lake}/taken", properties={})
        assert self.catalog.observe((*_NAMESPACE, "taken")).foreign
        assert isinstance(_error_of(lambda: self._declare("taken")), TableAlreadyExists)

    def _location(self, name: str) -> str:
        return f"file://{self.lake}/{name}.lance"

    def _engine(self, call: str, *names: str, **request: object) -> object:
        return self.client.call(call, id=[*_NAMESPACE[1:], *names], **request)

    def _declare(self, name: str) -> TableRecord:
        lance.write_dataset(_ROWS, self._location(name))
        return self.catalog.declare_table(TableRecord("interop", (*_NAMESPACE, name), self._location(name)))

    def _remove(self, call: str, name: str) -> None:
        self._engine(call, name)
        assert self.catalog.observe((*_NAMESPACE, name)).is_absent
        self._require_data(name)

    def _require_data(self, name: str) -> None:
        assert lance.dataset(self._location(name)).count_rows() == _ROWS.num_rows


def _error_of(call: Callable[[], object]) -> CatalogError | None:
    try:
        call()
    except CatalogError as error:
        return error
    return None
