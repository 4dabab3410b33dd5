"""Concurrent creates of one table in real Hive metastores: exactly one client wins, and its rows are there.

Four ways: the connector alone, CreateTable at ``/v1``, and pylance's own client path through ``/v1`` and through our namespace class.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path as FilePath
from urllib.parse import quote

import lance
import lance_namespace as ln
import pyarrow as pa
import requests

from federator.connector import CatalogError
from federator.demo.servers import hive
from federator.model import Path, TableRecord, path_key
from federator_connectors._hive.catalog import HiveCatalog
from tests.adversary.table import Cell
from tests.fixtures.hive import Metastore
from tests.unit.api.lance.conftest import served

CLIENTS = 16
#: rounds of each way against each version: 500 a version in all
ROUNDS = int(os.environ.get("ADVERSARY_ROUNDS", "125"))
ROWS = 3

_NO_OPTIONS: Mapping[str, str] = {}
#: one client's create of the table at ``path``; False if it was refused
Create = Callable[[Path, int], bool]


@dataclass
class Tally:
    """Result of some rounds. ``lost``: rounds in which a client's success has no rows of that client behind it."""

    rounds: int = 0
    lost: int = 0
    without_winner: int = 0
    several_winners: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    @property
    def clean(self) -> bool:
        return self.rounds > 0 and not (self.lost or self.without_winner or self.several_winners)

    def __str__(self) -> str:
        wrong = {"lost": self.lost, "no winner": self.without_winner, "several winners": self.several_winners}
        return ", ".join([f"{self.rounds} rounds", *(f"{count} {name}" for name, count in wrong.items() if count)])


@dataclass
class Race:
    """Rounds against one metastore, one way. ``create`` is called by all clients at once; ``storage`` opens the tables."""

    metastore: Metastore
    create: Create
    tally: Tally = field(default_factory=Tally)
    storage: Mapping[str, str] = field(default_factory=dict)

    def run(self, rounds: int, clients: int = CLIENTS) -> Tally:
        database = self.metastore.database()
        with ThreadPoolExecutor(clients) as threads, self.metastore.open() as reader:
            for number in range(rounds):
                self._round((*database, f"t{number}"), threads, clients, reader)
        return self.tally

    def _round(self, path: Path, threads: ThreadPoolExecutor, clients: int, reader: HiveCatalog) -> None:
        barrier = threading.Barrier(clients)

        def attempt(client: int) -> bool:
            barrier.wait(60)
            return self.create(path, client)

        winners = [client for client, won in enumerate(threads.map(attempt, range(clients))) if won]
        self.tally.rounds += 1
        self.tally.without_winner += not winners
        self.tally.several_winners += len(winners) > 1
        if winners and rows_of(reader.describe_table(path).location or "", self.storage) != [winners[0]] * ROWS:
            self.tally.lost += 1


def rows_of(location: str, storage: Mapping[str, str] = _NO_OPTIONS) -> list[int] | None:
    """The numbers of the clients that wrote the rows at a location; None if there is no table."""
    try:
        opened = lance.dataset(location.removeprefix("file:"), storage_options=dict(storage) or None)
        return opened.to_table().column("client").to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OSError):
        return None


def rows(client: int) -> pa.Table:
    return pa.table({"client": [client] * ROWS})


@contextmanager
def by_connector(metastore: Metastore, directory: FilePath, refusals: Counter[str]) -> Iterator[Create]:
    """Each client declares the table; the one that succeeds writes its rows."""
    with metastore.open(**{"client.pool-size": str(CLIENTS)}) as catalog:

        def create(path: Path, client: int) -> bool:
            try:
                declared = catalog.declare_table(TableRecord("lake", path, catalog.default_location(path)))
            except CatalogError as error:
                refusals[type(error).__name__] += 1
                return False
            # Rows that cannot be written, because the directory is removed meanwhile, are counted as lost.
            with suppress(OSError):
                lance.write_dataset(rows(client), (declared.location or "").removeprefix("file:"), mode="create")
            return True

        yield create


@contextmanager
def by_create_table(metastore: Metastore, directory: FilePath, refusals: Counter[str]) -> Iterator[Create]:
    """CreateTable at ``/v1`` with an Arrow stream as its body."""
    with _service(metastore, directory) as url:

        def create(path: Path, client: int) -> bool:
            sink, table = BytesIO(), rows(client)
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
            response = requests.post(
                f"{url}/v1/table/{quote(path_key(('lake', *path)), safe='')}/create",
                data=sink.getvalue(), headers={"Content-Type": "application/vnd.apache.arrow.stream"}, timeout=120,
            )  # fmt: skip
            if response.status_code != 200:
                refusals[f"{response.status_code} {response.json()['code']}"] += 1
            return response.status_code == 200

        yield create


@contextmanager
def by_pylance_rest(metastore: Metastore, directory: FilePath, refusals: Counter[str]) -> Iterator[Create]:
    """pylance's own client path through ``/v1``."""
    with _service(metastore, directory) as url:
        yield _written_by_pylance(ln.connect("rest", {"uri": url}), ("lake",), refusals)


@contextmanager
def by_pylance_direct(metastore: Metastore, directory: FilePath, refusals: Counter[str]) -> Iterator[Create]:
    """pylance's own client path through our namespace class, without the service."""
    name = f"hive{metastore.levels + 1}"
    properties = metastore.properties | {"client.pool-size": str(CLIENTS)}
    facade = ln.connect(f"federator_connectors.{name}.{name.capitalize()}Namespace", properties)
    yield _written_by_pylance(facade, (), refusals)


def _written_by_pylance(facade: ln.LanceNamespace, above: Path, refusals: Counter[str]) -> Create:
    def create(path: Path, client: int) -> bool:
        try:
            lance.write_dataset(rows(client), namespace_client=facade, table_id=[*above, *path], mode="create")
        except (ln.LanceNamespaceError, ValueError, OSError, RuntimeError) as error:
            refusals[type(error).__name__] += 1
            return False
        return True

    return create


@contextmanager
def _service(metastore: Metastore, directory: FilePath) -> Iterator[str]:
    settings = {"impl": metastore.connector.impl, **metastore.properties, "client.pool-size": str(CLIENTS)}
    (own := directory / f"service-{secrets.token_hex(4)}").mkdir(parents=True)
    with served(own, {"lake": settings}, bare=True) as running:
        yield running.url


WAYS = {
    "connector": by_connector, "/v1 CreateTable": by_create_table, "pylance through /v1": by_pylance_rest,
    "pylance directly": by_pylance_direct,
}  # fmt: skip


def race(metastore: Metastore, way: str, directory: FilePath, rounds: int) -> Tally:
    """Run the rounds of one way against one metastore."""
    tally = Tally()
    with WAYS[way](metastore, directory, tally.refusals) as create:
        return Race(metastore, create, tally).run(rounds)


def run(directory: FilePath) -> list[Cell]:
    """All ways against Hive 2.3, 3.1.3 and 4.0.1, each a server of its own."""
    cells = []
    for version in (hive.HIVE2, hive.HIVE3, hive.HIVE4):
        server = hive.start(version, directory / version)
        try:
            levels = 1 if version == hive.HIVE2 else 2
            (data := directory / f"data-{version}").mkdir()
            metastore = Metastore(server.uri, levels, ("hive",) if levels == 2 else (), data, int(version[0]))
            for way in WAYS:
                tally = race(metastore, way, directory, ROUNDS)
                sys.stderr.write(f"creates: hive {version}, {way}: {tally}; {dict(tally.refusals)}\n")
                cells.append(
                    Cell("creates", f"hive {version}, {way}", str(tally), "one winner, its rows are there", tally.clean)
                )
        finally:
            server.stop()
    return cells
