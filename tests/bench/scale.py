"""``N`` wide records (default: 1,000,000) from a synthetic catalog into PostgreSQL.

They are crawled three times, each in a process of its own: the first time, unchanged, and with 0.1 % changed. Then the API is asked,
by one client.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from federator.store import Index, migrations, open_index
from tests.bench.api import own_postgres, say, serve
from tests.bench.measure import Row, limit

TABLES = int(os.environ.get("BENCH_TABLES", "1_000_000"))
#: the width of a record: lower both where the disk is too small for the index
COLUMNS = int(os.environ.get("BENCH_COLUMNS", "20"))
PARAMETERS = int(os.environ.get("BENCH_PARAMETERS", "15"))
TABLES_OF_DATABASE = 1_000
_REQUESTS = 300
_CONFIG = """
[index]
url = "{url}"
[sources.big]
impl = "federator.testing:CONNECTOR"
tables = {tables}
databases = {databases}
changed = {changed}
parameters = {parameters}
columns = {columns}
concurrency = 2
[verify]
enabled = false
"""


def run(directory: Path) -> list[Row]:
    with own_postgres() as url:
        if url is None:
            raise FileNotFoundError("no PostgreSQL: apt-get install postgresql")
        index = open_index(url)
        migrations.upgrade_schema(index)
        rows = [row for round_rows in _rounds(index, url, directory) for row in round_rows]
        with index.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")
        rows += [*_sizes(index), *_latencies(url, directory)]
        index.close()
    return rows


def _rounds(index: Index, url: str, directory: Path) -> Iterator[list[Row]]:
    databases = max(TABLES // TABLES_OF_DATABASE, 1)
    few = TABLES // 1000
    for name, changed, expected in (("first", 0, TABLES + databases), ("unchanged", 0, 0), ("0.1 % changed", few, few)):
        file = directory / "round.toml"
        text = _CONFIG.format(
            url=url, tables=TABLES, databases=databases, changed=changed, parameters=PARAMETERS, columns=COLUMNS
        )
        file.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "tests.bench.crawl_round", str(file)]
        began = time.perf_counter()
        measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        wall = time.perf_counter() - began
        counts = measured["sources"]["big"]
        assert counts["state"] == "ok", counts
        assert counts["added"] + counts["changed"] == expected, counts
        say(f"{name}: {wall:.0f} s; {json.dumps(measured)}")
        yield _round_rows(f"{TABLES:,} records of {COLUMNS} columns, {name}", wall, measured)


def _round_rows(name: str, wall: float, measured: dict[str, Any]) -> list[Row]:
    peaks = measured["peaks"]["run"]
    rows = [_figure(f"{name}: the whole process", f"{wall:.1f} s")]
    for stage, seconds in measured["seconds"].items():
        rows.append(_figure(f"  {stage} (processor of the driver)", f"{seconds:.1f} s ({measured['cpu'][stage]:.1f} s)"))
    rows += [_figure(f"  peak PSS of the {kind}", f"{peaks[kind]:.0f} MiB") for kind in ("driver", "JVM", "workers")]
    return [*rows, _figure("  peak PSS of all of them", f"{peaks['all']:.0f} MiB")]


def _sizes(index: Index) -> list[Row]:
    with index.read() as connection:
        sizes = "SELECT relname, pg_total_relation_size(relid) FROM pg_statio_user_tables ORDER BY 2 DESC LIMIT 3"
        tables = [(str(name), int(size)) for name, size in connection.exec_driver_sql(sizes)]
        total = int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
    rows = [_figure("size of the database", f"{total / 2**20:,.0f} MiB")]
    return [*rows, *(_figure(f"  {name} with its indexes", f"{size / 2**20:,.0f} MiB") for name, size in tables)]


def _latencies(url: str, directory: Path) -> list[Row]:
    rows = []
    with serve(url, directory, source="big") as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for what, path in _REQUEST_PATHS.items():
            chosen, took = random.Random(0), []
            for _ in range(_REQUESTS):
                number = chosen.randrange(TABLES)
                began = time.perf_counter()
                connection.request("GET", path.format(database=number % max(TABLES // TABLES_OF_DATABASE, 1), table=number))
                response = connection.getresponse()
                body = response.read()
                took.append((time.perf_counter() - began) * 1000)
                assert response.status == 200, body
            p99 = statistics.quantiles(took, n=100)[98]
            rows.append(limit(f"{what}, p99 of one client", p99, _BUDGET_MS, "ms"))
            rows.append(_figure("  p50", f"{statistics.median(took):.2f} ms"))
        connection.close()
    return rows


_BUDGET_MS = 100
_REQUEST_PATHS = {
    "a list page of 50": "/api/v1/tree?path=big%24db_{database:04d}&limit=50",
    "describe": "/api/v1/tables/big%24db_{database:04d}%24table_{table:07d}",
    "search by name": "/api/v1/search?q=table_{table:07d}",
}


def _figure(name: str, figure: str) -> Row:
    return Row(name, "", "", figure, "", ok=True)
