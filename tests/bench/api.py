"""The API over 1,000,000 tables in 20,000 namespaces, asked by 16 clients at once, on PostgreSQL and on SQLite.

The budgets are held against clients that each ask at a steady pace, counted from when an answer was due to be asked for. What clients
that never pause get is shown without a verdict, next to the bare statement behind each answer by as many connections: clients, service
and database share the machine's cores, and such clients always take all of them.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import select

from federator.store import Index, migrations, open_index, records, revisions
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.views.search import engine
from tests.bench import lake
from tests.bench.clients import CLIENTS
from tests.bench.measure import Row, limit
from tests.fixtures.postgres import _binaries, _server, free_port

# As for a small server: the defaults are those of a machine of 2005.
POSTGRES = ("shared_buffers=1GB", "random_page_cost=1.1", "effective_cache_size=4GB")
_LOOPED, _BARE = 5, 3
# Other questions before the ones that count: of a service that has run for a while, and whose database has what is often asked for.
_WARM = 20
# A machine that shares its host's processors does not always have them: then a figure is the neighbours'.
_TRIES, _QUIET = 5, 0.03
_CONFIG = """
[index]
url = "{url}"
[sources.{source}]
impl = "federator.testing:CONNECTOR"
[serve]
requests_per_second = 100000
burst = 100000
"""


@contextmanager
def own_postgres() -> Iterator[str | None]:
    """The URL of a PostgreSQL server for this benchmark. None if it is not installed."""
    binaries = _binaries()
    if binaries is None:
        yield None
        return
    # Its own user must be able to enter the directory.
    data = Path(tempfile.mkdtemp(prefix="federator-bench-"))
    try:
        with _server(binaries, data, *POSTGRES) as url:
            yield url
    finally:
        shutil.rmtree(data, ignore_errors=True)


def run(directory: Path) -> list[Row]:
    rows: list[Row] = []
    with own_postgres() as url:
        if url is not None:
            say(f"PostgreSQL with {', '.join(POSTGRES)}")
            rows += _measured("PostgreSQL", url, directory, 1.0)
    return [*rows, *_measured("SQLite", f"sqlite:///{directory / 'index.db'}", directory, 2.0)]


def _measured(name: str, url: str, directory: Path, factor: float) -> list[Row]:
    index = open_index(url)
    migrations.upgrade_schema(index)
    began = time.perf_counter()
    fill(index)
    say(f"{name}: filled in {time.perf_counter() - began:.0f} s")
    rows = served(name, index, url, directory, factor)
    index.close()
    return rows


def served(name: str, index: Index, url: str, directory: Path, factor: float) -> list[Row]:
    """Measures the API over a filled index."""
    rows = []
    with serve(url, directory) as (port, process):
        for what, bare, budget, pace, seconds in (
            ("a list page of 50", _bare_page, 25, 5, 15), ("describe", _bare_describe, 15, 5, 15),
            ("search", _bare_search, 60, 1, 30), ("search with facets", _bare_faceted, 60, 1, 30),
        ):  # fmt: skip
            _time_requests(port, what, _WARM, pace)
            took, used = _quietly(port, process.pid, what, seconds, pace)
            found = limit(f"{name}: {what}, p99 of {CLIENTS} clients, {pace}/s each", _p99(took), budget * factor, "ms")
            median = f"p50 {statistics.median(took):.1f} ms"
            rows.append(Row(found.name, "", median, found.figure, found.budget, found.ok))
            say(f"{rows[-1]}; {len(took)} answers, {used * 1000:.1f} ms of the API's processor time each")
            took, lasted = _time_requests(port, what, _LOOPED, 0)
            floor = f"{_directly(index, bare):.0f}/s bare"
            name_of = f"{name}: {what}, p99 of {CLIENTS} clients that never pause"
            rows.append(Row(name_of, floor, f"{len(took) / lasted:.0f}/s", f"{_p99(took):.1f} ms", "", ok=True))
            say(str(rows[-1]))
        peak = next(line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        rows.append(limit(f"{name}: resident set of the API, at most", int(peak.split()[1]) / 1024, 400, "MiB"))
    return rows


def _quietly(port: int, pid: int, what: str, seconds: float, pace: float) -> tuple[list[float], float]:
    """The times of answers while the machine had its processors to itself, or of the try that came closest to that; and the seconds of
    processor time that the API used for each."""
    tries = []
    for _ in range(_TRIES):
        used, stolen = cpu_seconds(pid), _stolen()
        took, lasted = _time_requests(port, what, seconds, pace)
        tries.append(((_stolen() - stolen) / lasted, took, (cpu_seconds(pid) - used) / len(took)))
        if tries[-1][0] < _QUIET:
            break
        say(f"{what}: p99 {_p99(took):.1f} ms while the host kept {tries[-1][0]:.2f} of the processors")
    _, took, used = min(tries)
    return took, used


def say(what: str) -> None:
    print(f"  {what} (load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)


def fill(index: Index) -> None:
    revisions.register_source(index, "lake", "memory", "bench")
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "bench", time.time())
        revisions.add_records(index, lease, draft, lake.rows())
        values = {"state": "ok", "crawled_at": time.time()}
        revisions.publish_draft(index, lease, draft, added=lake.TABLES, changed=0, removed=0, values=values)
    # What databases do on their own some time later.
    with index.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in ("PRAGMA wal_checkpoint(TRUNCATE)",) if index.is_sqlite else ("VACUUM ANALYZE", "CHECKPOINT"):
            connection.exec_driver_sql(statement)


@contextmanager
def serve(url: str, directory: Path, source: str = "lake") -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    file, port = directory / "federator.toml", free_port()
    file.write_text(_CONFIG.format(url=url, source=source), encoding="utf-8")
    federator = str(Path(sys.executable).with_name("federator"))
    command = [federator, "--config", str(file), "serve", "--role", "api", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _ready(port):
            assert process.poll() is None, "the service did not start"
            time.sleep(0.1)
        yield port, process
    finally:
        process.terminate()
        process.wait(30)


def _ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _time_requests(port: int, what: str, seconds: float, pace: float) -> tuple[list[float], float]:
    """The times of answers in milliseconds, and how many seconds all of them took."""
    command = [sys.executable, "-m", "tests.bench.clients", str(port), what, str(seconds), str(pace)]
    times = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return times["took"], times["seconds"]


def _directly(index: Index, bare: Callable[[Index, random.Random], None]) -> float:
    """How often a second a bare statement is answered."""

    def client(number: int) -> int:
        chosen, asked = random.Random(number), 0
        start.wait()
        until = time.perf_counter() + _BARE
        while time.perf_counter() < until:
            bare(index, chosen)
            asked += 1
        return asked

    # The pool's own connections, so that none waits for one.
    start = threading.Barrier(15)
    with ThreadPoolExecutor(15) as pool:
        return sum(pool.map(client, range(15))) / _BARE


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _stolen() -> float:
    """Seconds in which a processor was wanted and the machine's host had given it to somebody else."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


def _p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _bare_page(index: Index, chosen: random.Random) -> None:
    r = t.record.c
    mine = (r.source == "lake") & (r.parent == lake.namespace(chosen.randrange(lake.NAMESPACES))) & r.valid_to.is_(None)
    with index.read() as connection:
        assert connection.execute(select(t.record).where(mine).order_by(r.path).limit(50)).all()


def _bare_describe(index: Index, chosen: random.Random) -> None:
    path = lake.table(chosen.randrange(lake.TABLES)).path
    with index.read() as connection:
        assert records.find_record(connection, "lake", path, is_table=True, revision=1)


def _bare_search(index: Index, chosen: random.Random) -> None:
    engine.search_tables(index, lake.text(chosen))


def _bare_faceted(index: Index, chosen: random.Random) -> None:
    engine.search_tables(index, lake.text(chosen), facets=True)
