"""``N`` wide tables of a Hive 3.1.3 metastore (default: 20,000): from the server to the committed index, against a drain of
the same server by its cheapest calls over as many connections, and against a client of another project that lists and describes them;
and crawls that follow its log, against one that reads everything."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from federator.demo.servers import hive
from federator.model import NamespaceRecord, TableRecord
from federator.pipeline import session
from federator.service import Federator
from federator.settings import load_settings
from federator.store import run_stages
from federator_connectors._hive import records
from federator_connectors._hive.client import Client
from federator_connectors._hive.metastore import Metastore
from federator_connectors.hive3 import CONNECTOR
from tests.bench.measure import BOTH_JIT_TIERS, Row, compared, ratio, seconds
from tests.interop.namespace_client import ForeignClient

DATABASES, CONNECTIONS, ROUNDS = 100, 3, 3
TABLES = int(os.environ.get("BENCH_TABLES", "20_000")) // DATABASES
#: tables as users have them
_PROPERTIES = {f"team.setting-{number}": f"a value of setting {number}" for number in range(15)}
_SCHEMA = json.dumps([{"name": f"column_{number}", "type": "bigint" if number % 2 else "string"} for number in range(20)])
_CONFIG = """
[index]
url = "sqlite:///round{round}.db"
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
        _fill(server.uri, directory)
        floors, crawls, whole, spread, one, idle = [], [], [], [], [], []
        requests = {"floor": 0, "ours": 0, "peer": 0}
        for number in range(ROUNDS + 1):
            floor = seconds(lambda: requests.update(floor=_drain(server.uri)))
            file = directory / f"round{number}.toml"
            file.write_text(_CONFIG.format(round=number, uri=server.uri, connections=CONNECTIONS), encoding="utf-8")
            federator = Federator.open(load_settings(file))
            our = seconds(lambda: requests.update(ours=_crawl(federator)))  # noqa: B023
            if number:  # the first round warms the server, the JVM and Spark's workers
                floors.append(floor)
                crawls.append(our)
            print(f"  round {number}: bare drain {floor:.1f} s, into the committed index {our:.1f} s", file=sys.stderr)
        peer = seconds(lambda: requests.update(peer=_read_by_peer(server.uri)))
        print(f"  the peer {peer:.1f} s", file=sys.stderr)
        for _ in range(ROUNDS):
            whole.append(seconds(lambda: _crawl(federator, full=True)))
            _change(server.uri, [0])
            one.append(seconds(lambda: _crawl(federator, carried=DATABASES + 3)))
            _change(server.uri, range(DATABASES))
            spread.append(seconds(lambda: _crawl(federator, carried=DATABASES + 3)))
            idle.append(seconds(lambda: _crawl(federator, carried=DATABASES + 3)))
            print(
                f"  read {whole[-1]:.1f} s, {DATABASES} changes {spread[-1]:.1f} s, one {one[-1]:.1f} s, nothing {idle[-1]:.1f} s",
                file=sys.stderr,
            )
    finally:
        server.stop()
        session.stop_session()
    tables = f"{DATABASES * TABLES:,} wide Hive 3.1.3 tables"
    return [
        ratio(f"{tables} into the committed index, against a bare drain", floors, crawls, 1.5),
        compared("  listed and described by lance-namespace-impls, one round", statistics.median(floors), peer),
        *(Row(f"  requests: {name}", "", "", f"{count:,}", "", ok=True) for name, count in requests.items()),
        ratio(
            f"{tables} crawled by the log, {DATABASES} changed in as many databases, against a full crawl", whole, spread, 0.5
        ),
        ratio(f"{tables} crawled by the log, one changed, against a full crawl", whole, one, 0.5),
        ratio(f"{tables} crawled by the log, nothing changed, against a full crawl", whole, idle, 0.2),
    ]


def _fill(uri: str, directory: Path) -> None:
    def database(number: int) -> None:
        store = _store(uri)
        path = ("hive", f"db{number:02d}")
        store.create_database(
            path, records.build_database(NamespaceRecord("lake", path), "hive", f"file:{directory}/wh/{path[1]}")
        )
        for table in range(TABLES):
            record = TableRecord(
                "lake",
                (*path, f"t{table:04d}"),
                f"file:{directory}/wh/{path[1]}/t{table:04d}.lance",
                _PROPERTIES,
                schema=_SCHEMA,
            )
            store.create_table(record.path, records.build_table(record, "hive"))
        store.close()

    with ThreadPoolExecutor(max_workers=4) as pool:
        for done, _ in enumerate(pool.map(database, range(DATABASES)), 1):
            print(f"\r  made {done * TABLES:,} tables", end="", file=sys.stderr)
    print(file=sys.stderr)


def _change(uri: str, databases: Iterable[int]) -> None:
    """Alter one table of each database."""
    store = _store(uri)
    for number in databases:
        path = ("hive", f"db{number:02d}", "t0000")
        table = store.get_table(path)
        table.parameters = {**table.parameters, "changed": str(time.time())}
        store.alter_table(path, table)
    store.close()


def _drain(uri: str) -> int:
    """Read all tables. Return the number of requests."""

    def lane(number: int) -> tuple[int, int]:
        store, found, requests = _store(uri), 0, 0
        for database in range(number, DATABASES, CONNECTIONS):
            path = ("hive", f"db{database:02d}")
            names = list(store.list_marked_tables(path).names)
            found += sum(len(store.get_tables(path, names[start : start + 1000])) for start in range(0, len(names), 1000))
            requests += 1 + len(range(0, len(names), 1000))
        store.close()
        return found, requests

    with ThreadPoolExecutor(max_workers=CONNECTIONS) as pool:
        found, requests = map(sum, zip(*pool.map(lane, range(CONNECTIONS)), strict=True))
    assert found == DATABASES * TABLES
    return requests


def _read_by_peer(uri: str) -> int:
    """List and describe all tables by the client of lance-namespace-impls. Return the number of its operations."""
    described = 0
    with ForeignClient("impls", "hive3", {"uri": uri}) as peer:
        for number in range(DATABASES):
            path = ["hive", f"db{number:02d}"]
            for name in peer.call("list_tables", id=path)["tables"]:
                described += peer.call("describe_table", id=[*path, name])["location"] is not None
    assert described == DATABASES * TABLES
    return DATABASES + described


def _store(uri: str) -> Metastore:
    return Metastore(Client("bench", CONNECTOR.parse_settings({"uri": uri}).uri, size=1, timeout=60), levels=2)


def _crawl(federator: Federator, *, full: bool = False, carried: int = 0) -> int:
    """Crawl. Return the number of requests."""
    result = federator.crawl(full=full)
    assert result.state == "ok", result.errors
    assert (result.sources["lake"].tables, result.sources["lake"].carried) == (DATABASES * TABLES, carried)
    with federator.index.read() as connection:
        return sum(stage.calls or 0 for stage in run_stages.read_run_stages(connection, result.run_id))
