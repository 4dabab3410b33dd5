"""The API over 1,000,000 tables in 20,000 namespaces, asked by 16 clients at once that never pause, on PostgreSQL and on SQLite.

The floor is the bare statement behind each answer, by as many connections from one process. Both are measured in one run; the clients,
the service and the database share the machine's cores.
"""

from __future__ import annotations

import http.client
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
from urllib.parse import quote, urlencode

from sqlalchemy import select

from federator.index import Index, migrate, open_index, records, revisions, search
from federator.index import tables as t
from federator.index.leases import hold
from federator.model import NamespaceRecord, TableRecord
from federator.model.rows import RECORD_COLUMNS, record_row
from tests.bench.measure import Row, limit
from tests.fixtures.postgres import _binaries, _free_port, _server

TABLES, NAMESPACES, CLIENTS, ASKED = 1_000_000, 20_000, 16, 100
_WORDS = (
    "orders", "events", "users", "clicks", "invoices", "items", "sessions", "payments", "returns", "stock", "prices", "visits", "leads",
    "tickets", "routes", "sensors", "images", "vectors", "chunks", "labels",
)  # fmt: skip
_TEAMS = [f"team-{number}" for number in range(50)]
_CONFIG = """
[index]
url = "{url}"
[sources.lake]
impl = "federator.testing:CONNECTOR"
[serve]
requests_per_second = 100000
burst = 100000
"""
Ask = Callable[[random.Random], str]


def run(directory: Path) -> list[Row]:
    rows: list[Row] = []
    binaries = _binaries()
    if binaries is not None:
        # Its own user must be able to enter the directory.
        place = Path(tempfile.mkdtemp(prefix="federator-bench-"))
        try:
            with _server(binaries, place) as url:
                rows += _measured("PostgreSQL", url, directory, 1.0)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return [*rows, *_measured("SQLite", f"sqlite:///{directory / 'index.db'}", directory, 2.0)]


def _measured(name: str, url: str, directory: Path, factor: float) -> list[Row]:
    index = open_index(url)
    migrate.upgrade(index)
    began = time.perf_counter()
    _fill(index)
    print(f"  {name}: filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    rows = []
    with _served(url, directory) as (port, process):
        for what, ask, bare, budget in (
            ("a list page of 50", _page, _bare_page, 25), ("describe", _describe, _bare_describe, 15),
            ("search", _search, _bare_search, 60), ("search with facets", _faceted, _bare_search, 60),
        ):  # fmt: skip
            _asked(port, ask, 5)
            floor, ours = _directly(index, bare), _asked(port, ask, ASKED)
            found = limit(f"{name}: {what}, p99 of {CLIENTS} clients", _p99(ours), budget * factor, "ms")
            rows.append(
                Row(
                    found.name,
                    f"{_p99(floor):.1f} ms",
                    f"p50 {statistics.median(ours):.1f} ms",
                    found.figure,
                    found.budget,
                    found.ok,
                )
            )
            print(f"  {rows[-1]}", file=sys.stderr)
        peak = next(line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        rows.append(limit(f"{name}: resident set of the API, at most", int(peak.split()[1]) / 1024, 400, "MiB"))
    index.close()
    return rows


def _fill(index: Index) -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        for namespace in range(NAMESPACES):
            yield _row(NamespaceRecord("lake", (_namespace(namespace),)))
        for number in range(TABLES):
            yield _row(_table(number))

    revisions.register(index, "lake", "memory", "bench")
    with hold(index, "source:lake") as lease:
        draft = revisions.begin(index, lease, "lake", "bench", time.time())
        revisions.add_records(index, lease, draft, rows())
        revisions.publish(
            index, lease, draft, added=TABLES, changed=0, removed=0, values={"state": "ok", "crawled_at": time.time()}
        )
    if not index.sqlite:
        with index.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")


def _namespace(number: int) -> str:
    return f"{_WORDS[number % len(_WORDS)]}_{number:05d}"


def _table(number: int) -> TableRecord:
    namespace = _namespace(number % NAMESPACES)
    name = f"{_WORDS[number * 7 % len(_WORDS)]}_{_WORDS[number * 13 % 17]}_{number:07d}"
    properties = {"team": _TEAMS[number % len(_TEAMS)]}
    columns = f'[{{"name":"{_WORDS[number % 19]}_id","type":"bigint"}},{{"name":"price","type":"double"}}]'
    return TableRecord(
        "lake", (namespace, name), f"s3://lake/{namespace}/{name}.lance", properties, owner=f"o{number % 200}", schema=columns
    )


def _row(record: NamespaceRecord | TableRecord) -> tuple[object, ...]:
    row = record_row(record)
    return (*(row[name] for name in RECORD_COLUMNS), None)


@contextmanager
def _served(url: str, directory: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    file, port = directory / "federator.toml", _free_port()
    file.write_text(_CONFIG.format(url=url), encoding="utf-8")
    command = [
        str(Path(sys.executable).with_name("federator")),
        "--config",
        str(file),
        "serve",
        "--role",
        "api",
        "--port",
        str(port),
    ]
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


def _asked(port: int, ask: Ask, each: int) -> list[float]:
    def client(number: int) -> list[float]:
        chosen, found = random.Random(number), []
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        start.wait()
        for _ in range(each):
            path = ask(chosen)
            began = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            found.append((time.perf_counter() - began) * 1000)
            assert answer.status == 200, body
        connection.close()
        return found

    start = threading.Barrier(CLIENTS)
    with ThreadPoolExecutor(CLIENTS) as pool:
        return [took for found in pool.map(client, range(CLIENTS)) for took in found]


def _directly(index: Index, bare: Callable[[Index, random.Random], None]) -> list[float]:
    def client(number: int) -> list[float]:
        chosen, found = random.Random(number), []
        start.wait()
        for _ in range(ASKED):
            began = time.perf_counter()
            bare(index, chosen)
            found.append((time.perf_counter() - began) * 1000)
        return found

    # The pool's own connections, so that none waits for one.
    start = threading.Barrier(15)
    with ThreadPoolExecutor(15) as pool:
        return [took for found in pool.map(client, range(15)) for took in found]


def _p99(found: list[float]) -> float:
    return statistics.quantiles(found, n=100)[98]


def _page(chosen: random.Random) -> str:
    return f"/api/v1/tree?path=lake%24{_namespace(chosen.randrange(NAMESPACES))}&limit=50"


def _describe(chosen: random.Random) -> str:
    return "/api/v1/tables/" + quote(f"lake${_table(chosen.randrange(TABLES)).key}", safe="")


def _text(chosen: random.Random) -> str:
    name = _table(chosen.randrange(TABLES)).path[-1]
    return chosen.choice([
        name, f"{name[:-2]}*", f"{chosen.choice(_WORDS)} {name[-7:]}", f"{chosen.choice(_WORDS)} {chosen.choice(_WORDS)}",
        f"property:team={chosen.choice(_TEAMS)} {chosen.choice(_WORDS)}", f"column:price owner:o{chosen.randrange(200)}",
        chosen.choice(_WORDS), f"{_namespace(chosen.randrange(NAMESPACES))}$*",
    ])  # fmt: skip


def _search(chosen: random.Random) -> str:
    return "/api/v1/search?" + urlencode({"q": _text(chosen)})


def _faceted(chosen: random.Random) -> str:
    return "/api/v1/search?" + urlencode({"q": _text(chosen), "facets": "true"})


def _bare_page(index: Index, chosen: random.Random) -> None:
    r = t.record.c
    mine = (r.source == "lake") & (r.parent == _namespace(chosen.randrange(NAMESPACES))) & r.valid_to.is_(None)
    with index.read() as connection:
        assert connection.execute(select(t.record).where(mine).order_by(r.path).limit(50)).all()


def _bare_describe(index: Index, chosen: random.Random) -> None:
    with index.read() as connection:
        assert records.get(connection, "lake", _table(chosen.randrange(TABLES)).path, is_table=True, revision=1)


def _bare_search(index: Index, chosen: random.Random) -> None:
    search.find(index, _text(chosen))
