"""The search as a person types: every prefix of real names, letter by letter, over 1,000,000 tables on SQLite and on PostgreSQL.

One person types, so the requests follow each other on one connection, and the time is what that person waits for: from the request to
the end of the response. Names are typed after a word of the query, and words with a typo once they are complete. ``N`` sets
another number of tables. The processor time of each request, of the API and of PostgreSQL together, is shown without a verdict: other
processes on the same machine do not change it much.
"""

from __future__ import annotations

import http.client
import json
import random
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlencode

from federator.store import migrations, open_index
from tests.bench import api, lake
from tests.bench.measure import Row, limit

_NAMES, _WARM_NAMES = 12, 3
#: the longest prefix that is typed: a word, another one, and the first digits of the number
_LONGEST = 20
#: the 95th percentile in milliseconds
_BUDGET = 100


def run(directory: Path) -> list[Row]:
    rows: list[Row] = []
    with api.own_postgres() as url:
        if url is not None:
            rows += _measure("PostgreSQL", url, directory)
    return [*rows, *_measure("SQLite", f"sqlite:///{directory / 'index.db'}", directory)]


def _measure(name: str, url: str, directory: Path) -> list[Row]:
    index = open_index(url)
    migrations.upgrade_schema(index)
    began = time.perf_counter()
    api.fill(index)
    api.say(f"{name}: filled with {lake.TABLES:,} tables in {time.perf_counter() - began:.0f} s")
    index.close()
    return measure_filled(name, url, directory)


def measure_filled(name: str, url: str, directory: Path) -> list[Row]:
    """Measure the search over a filled index."""
    rows = []
    with api.serve(url, directory) as (port, process):
        for what, path, texts in (
            ("suggestions while one types", "suggest", _prefixes),
            ("search with facets while one types", "search", _prefixes),
            ("search with facets for a word with a typo", "search", _typos),
        ):
            _time(port, path, list(texts(random.Random(0), _WARM_NAMES)))
            took = _time(port, path, list(texts(random.Random(1), _NAMES)), [process.pid, *_backends(url)])
            times, spent = [milliseconds for _, milliseconds, _ in took], [used for _, _, used in took]
            worst_text, worst, _ = max(took, key=lambda request: request[1])
            row = limit(f"{name}, {lake.TABLES:,} tables: {what}, p95", _p95(times), _BUDGET, "ms")
            rows.append(Row(row.name, "", f"p50 {statistics.median(times):.1f} ms", row.figure, row.budget, row.ok))
            on_processors = f"{statistics.median(spent):.1f} ms, p95 {_p95(spent):.1f} ms on processors"
            api.say(f"{rows[-1]}; {len(times)} requests, {on_processors}, worst {worst:.0f} ms for {worst_text!r}")
    return rows


def _prefixes(chosen: random.Random, names: int) -> Iterator[str]:
    for number in range(names):
        name = lake.table(chosen.randrange(lake.TABLES)).path[-1]
        before = "" if number % 3 else f"{name.partition('_')[0]} "
        for length in range(1, min(len(name), _LONGEST) + 1):
            yield before + name[:length]


def _typos(chosen: random.Random, names: int) -> Iterator[str]:
    for _ in range(names * 4):
        name, _, rest = lake.table(chosen.randrange(lake.TABLES)).path[-1].partition("_")
        at = chosen.randrange(1, len(name))
        typo = name[:at] + name[at + 1 :] if chosen.random() < 0.5 else f"{name[:at]}x{name[at:]}"
        yield typo if chosen.random() < 0.5 else f"{typo} {rest.partition('_')[0]}"


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[18]


def _backends(url: str) -> list[int]:
    """The processes of PostgreSQL that serve connections, without the one that is asked."""
    if url.startswith("sqlite"):
        return []
    index = open_index(url)
    with index.read() as connection:
        pids = connection.exec_driver_sql(
            "SELECT pid FROM pg_stat_activity WHERE state IS NOT NULL AND pid <> pg_backend_pid()"
        )
        backends = list(pids.scalars())
    index.close()
    return backends


def _processor_time(pids: Iterable[int]) -> float:
    """Milliseconds that processes have run, in all their threads. They do not grow while other processes use the processors."""
    files = (file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(file.read_text().split()[0]) for file in files) / 1e6


def _time(port: int, path: str, texts: list[str], pids: Iterable[int] = ()) -> list[tuple[str, float, float]]:
    """The time of each request, and what the processes used of the processors for it, in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    took = []
    for text in texts:
        query = urlencode({"q": text} if path == "suggest" else {"q": text, "facets": "true"})
        used, began = _processor_time(pids), time.perf_counter()
        connection.request("GET", f"/api/v1/{path}?{query}")
        response = connection.getresponse()
        body = response.read()
        milliseconds = (time.perf_counter() - began) * 1000
        took.append((text, milliseconds, _processor_time(pids) - used))
        assert response.status == 200, body
        answer = json.loads(body)
        assert answer["nodes"] or answer.get("did_you_mean"), text
    connection.close()
    return took
