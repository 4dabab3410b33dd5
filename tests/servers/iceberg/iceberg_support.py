"""Shared parts of the tests of Iceberg REST catalogs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import lance
import pyarrow as pa

from federator.model import Path, TableRecord
from federator_connectors._iceberg.catalog import IcebergCatalog
from federator_connectors.iceberg import CONNECTOR
from tests.adversary.http_proxy import HttpProxy, Request, Response
from tests.fixtures.iceberg import WAREHOUSE


@contextmanager
def opened(url: str, **properties: str) -> Iterator[IcebergCatalog]:
    # A source of its own for each server, whose breaker no other test has touched.
    settings = CONNECTOR.parse_settings({"endpoint": url, "warehouses": WAREHOUSE, "max_retries": "0", **properties})
    with CONNECTOR.open(f"at {url}", settings) as catalog:
        yield catalog


class PurgingProxy(HttpProxy):
    """A server that deletes the location of each dropped table whose path matches ``purges``. Notes the requests.

    ``keeps_directories``: it deletes the files only, as Iceberg's own server does with ``purgeRequested=true``.
    """

    purges = ""
    keeps_directories = False

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.requests: list[Request] = []

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        self.requests.append(request)
        if request.method == "DELETE" and re.search(self.purges or "$^", request.path):
            table = super().forward(replace(request, method="GET"), target)
            location = FilePath(json.loads(table.body)["metadata"]["location"].removeprefix("file://"))
            if self.keeps_directories:
                for file in location.rglob("*"):
                    if file.is_file():
                        file.unlink()
            else:
                shutil.rmtree(location)
        return super().forward(request, target)

    @property
    def dropped(self) -> list[str]:
        """What was dropped, without the purged table of the test of where the server puts metadata."""
        dropped = [request.path.rpartition("/")[2] for request in self.requests if request.method == "DELETE"]
        return [request for request in dropped if request != "federator_drop_test?purgeRequested=true"]


class SelfWilledProxy(HttpProxy):
    """A server that stores some of what a request for a new table asks for otherwise. ``change`` edits the body of the request."""

    def __init__(self, target: str, change: Callable[[dict[str, Any]], object]) -> None:
        super().__init__(target)
        self._change = change

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        if request.method == "POST" and request.path.endswith("/tables"):
            body = json.loads(request.body)
            self._change(body)
            request = replace(request, body=json.dumps(body).encode())
        return super().forward(request, target)


def written(directory: FilePath, name: str = "orders") -> FilePath:
    """A Lance table of three rows."""
    path = directory / f"{name}.lance"
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(path))
    return path


def record(path: Path, location: FilePath | str, **fields: Any) -> TableRecord:
    return TableRecord("x", path, f"file://{location}", **fields)
