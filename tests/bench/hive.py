"""``N`` wide tables of a Hive 3.1.3 metastore (default: 20,000), crawled and compared.

- A full crawl into the committed index, against a bare drain of the same server: its cheapest calls, over as many connections.
- The same tables, listed and described by a client of another project.
- A crawl by a cold command, against the same command before there were tables.
- Crawls that follow the server's log, against one that reads everything.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from federator.demo.servers import hive
from federator.model import NamespaceRecord, TableRecord
from federator.pipeline import session
from federator.service import Federator
from federator.settings import load_settings
from federator_connectors._hive import records
from federator_connectors._hive.client import Client
from federator_connectors._hive.metastore import Metastore
from federator_connectors.hive3 import CONNECTOR
from tests.bench.measure import BOTH_JIT_TIERS, Row, compared, limit, memory, ratio, seconds
from tests.fixtures.relay import Noting
from tests.interop.namespace_client import ForeignClient

DATABASES, CONNECTIONS, ROUNDS = 100, 3, 3
#: the budget of a crawl against the bare drain, and of 100 changes beyond a crawl that finds none, in seconds
DRAIN_RATIO, CHANGES_SECONDS = 1.2, 3
#: budget of a command's processes together, in GiB
COMMAND_MEMORY = 1.2
#: tables that ``change_tables`` makes beyond those that it drops
GROWTH = 10
TABLES = int(os.environ.get("BENCH_TABLES", "20_000")) // DATABASES
#: tables as users have them
PROPERTIES = {f"team.setting-{number}": f"a value of setting {number}" for number in range(15)}
_SCHEMA = json.dumps([{"name": f"column_{number}", "type": "bigint" if number % 2 else "string"} for number in range(20)])
_CONFIG = """
[index]
url = "sqlite:///federator.db"
[sources.lake]
impl = "hive3"
hive3.uri = "{uri}"
hive3.client.pool-size = {connections}
[verify]
enabled = false
"""


def run(directory: Path) -> list[Row]:
    server = hive.start(hive.HIVE3, directory / "hive3", env=BOTH_JIT_TIERS)
    try:
        fixed = [_run_command(directory / f"empty{number}", server.uri) for number in range(ROUNDS)]
        _fill(server.uri, directory)
        floors, crawls, cold, whole, spread, one, idle = [], [], [], [], [], [], []
        # What is read through the relay also warms the server, the JVM and Spark's workers.
        requests = {
            "floor": _count_requests(server.uri, _drain),
            "ours": _count_requests(server.uri, lambda uri: _crawl(_open(directory / "counted", uri))),
            "peer": DATABASES * _count_requests(server.uri, lambda uri: _read_by_peer(uri, 1)),
        }
        for number in range(ROUNDS):
            floor = seconds(lambda: _drain(server.uri))
            federator = _open(directory / f"warm{number}", server.uri)
            our = seconds(lambda: _crawl(federator))  # noqa: B023
            floors.append(floor)
            crawls.append(our)
            cold.append(_run_command(directory / f"cold{number}", server.uri))
            print(f"  round {number}: bare drain {floor:.1f} s, into the committed index {our:.1f} s", file=sys.stderr)
        peer = seconds(lambda: _read_by_peer(server.uri, DATABASES))
        print(f"  the peer {peer:.1f} s", file=sys.stderr)
        for number in range(ROUNDS):
            grown = number * GROWTH
            whole.append(seconds(lambda: _crawl(federator, grown)))  # noqa: B023
            _alter(server.uri, 4, number)
            one.append(seconds(lambda: _crawl(federator, grown, by_log=True)))  # noqa: B023
            change_tables(server.uri, directory, number)
            spread.append(seconds(lambda: _crawl(federator, grown + GROWTH, by_log=True)))  # noqa: B023
            idle.append(seconds(lambda: _crawl(federator, grown + GROWTH, by_log=True)))  # noqa: B023
            print(
                f"  read {whole[-1]:.1f} s, {DATABASES} changes {spread[-1]:.1f} s, one {one[-1]:.1f} s, nothing {idle[-1]:.1f} s",
                file=sys.stderr,
            )
    finally:
        server.stop()
        session.stop_session()
    tables = f"{DATABASES * TABLES:,} wide Hive 3.1.3 tables"
    floor, start = statistics.median(floors), statistics.median(taken for taken, _ in fixed)
    command = statistics.median(taken for taken, _ in cold)
    changes = statistics.median(spread) - statistics.median(idle)
    return [
        ratio(f"{tables} into the committed index, against a bare drain", floors, crawls, DRAIN_RATIO),
        compared("  listed and described by lance-namespace-impls, one round", floor, peer),
        *(Row(f"  Thrift requests: {name}", "", "", f"{count:,}", "", ok=True) for name, count in requests.items()),
        limit(
            f"{tables} by a cold command, against {start:.1f} s before they were made",
            command,
            round(start + DRAIN_RATIO * floor, 2),
        ),
        limit("  summed PSS of the command, the JVM and Python workers", max(used for _, used in cold), COMMAND_MEMORY, "GiB"),
        ratio(
            f"{tables} crawled by the log, 60 altered, 20 made, 10 renamed and 10 dropped, against a full crawl",
            whole,
            spread,
            0.5,
        ),
        limit("  beyond a crawl that finds no change", changes, CHANGES_SECONDS),
        ratio(f"{tables} crawled by the log, one changed, against a full crawl", whole, one, 0.5),
        ratio(f"{tables} crawled by the log, nothing changed, against a full crawl", whole, idle, 0.2),
    ]


def configure(directory: Path, uri: str) -> Path:
    """Write the configuration of a service with an index of its own."""
    directory.mkdir()
    file = directory / "federator.toml"
    file.write_text(_CONFIG.format(uri=uri, connections=CONNECTIONS), encoding="utf-8")
    return file


def _run_command(directory: Path, uri: str) -> tuple[float, float]:
    """Run the first crawl of a new index as a command. Return its seconds, and the peak of its processes' PSS in GiB."""
    command = [Path(sys.executable).with_name("federator"), "--config", configure(directory, uri), "crawl", "-q"]
    began = time.perf_counter()
    process = subprocess.Popen(command)
    with memory(process.pid) as watched:
        status = process.wait()
    assert status == 0, command
    return time.perf_counter() - began, watched.peak


def _fill(uri: str, directory: Path) -> None:
    def database(number: int) -> None:
        store = _store(uri)
        path = database_path(number)
        location = f"file:{directory}/wh/{path[1]}"
        store.create_database(path, records.build_database(NamespaceRecord("lake", path), "hive", location))
        for table in range(TABLES):
            _create(store, directory, (*path, f"t{table:04d}"))
        store.close()

    with ThreadPoolExecutor(max_workers=4) as pool:
        for done, _ in enumerate(pool.map(database, range(DATABASES)), 1):
            print(f"\r  made {done * TABLES:,} tables", end="", file=sys.stderr)
    print(file=sys.stderr)


def _create(store: Metastore, directory: Path, path: tuple[str, ...]) -> None:
    location = f"file:{directory}/wh/{path[1]}/{path[2]}.lance"
    store.create_table(path, records.build_table(TableRecord("lake", path, location, PROPERTIES, schema=_SCHEMA), "hive"))


def database_path(number: int) -> tuple[str, str]:
    return ("hive", f"db{number:02d}")


def _alter(uri: str, database: int, number: int) -> None:
    store, path = _store(uri), (*database_path(database), f"t{number:04d}")
    table = store.get_table(path)
    table.parameters = {**table.parameters, "changed": str(time.time())}
    store.alter_table(path, table)
    store.close()


def change_tables(uri: str, directory: Path, number: int) -> None:
    """Make, rename, drop or alter one table of each database. ``number`` is that of the round."""
    store = _store(uri)
    for database in range(DATABASES):
        path = (*database_path(database), f"t{number:04d}")
        match database % 10:
            case 0 | 1:
                _create(store, directory, (*path[:-1], f"new{number}"))
            case 2:
                store.alter_table(path, records.rename_table(store.get_table(path), (*path[:-1], f"renamed{number}")))
            case 3:
                store.drop_table(path)
            case _:
                _alter(uri, database, number)
    store.close()


def _count_requests(uri: str, read: Callable[[str], object]) -> int:
    """Return the number of Thrift requests with which ``read`` reads a metastore, those of other processes included."""
    relay = Noting(uri)
    read(relay.uri)
    relay.close()
    return len(relay.take()[0])


def _open(directory: Path, uri: str) -> Federator:
    return Federator.open(load_settings(configure(directory, uri)))


def _drain(uri: str) -> None:
    """Read all tables."""

    def lane(number: int) -> int:
        store, found = _store(uri), 0
        for database in range(number, DATABASES, CONNECTIONS):
            path = database_path(database)
            names = list(store.list_marked_tables(path).names)
            found += sum(len(store.get_tables(path, names[start : start + 1000])) for start in range(0, len(names), 1000))
        store.close()
        return found

    with ThreadPoolExecutor(max_workers=CONNECTIONS) as pool:
        assert sum(pool.map(lane, range(CONNECTIONS))) == DATABASES * TABLES


def _read_by_peer(uri: str, databases: int) -> None:
    """List and describe the tables of some databases by the client of lance-namespace-impls."""
    described = 0
    with ForeignClient("impls", "hive3", {"uri": uri}) as peer:
        for number in range(databases):
            path = [*database_path(number)]
            for name in peer.call("list_tables", id=path)["tables"]:
                described += peer.call("describe_table", id=[*path, name])["location"] is not None
    assert described == databases * TABLES


def _store(uri: str) -> Metastore:
    return Metastore(Client("bench", CONNECTOR.parse_settings({"uri": uri}).uri, size=1, timeout=60), levels=2)


def _crawl(federator: Federator, grown: int = 0, *, by_log: bool = False) -> None:
    """Crawl, and require the complete result: ``grown`` tables more than there were first."""
    result = federator.crawl(full=not by_log)
    source = result.sources["lake"]
    assert result.state == "ok", result.errors
    assert (source.tables, source.carried > 0) == (DATABASES * TABLES + grown, by_log)
