"""100 changes that the log of a Hive 3.1.3 metastore names, among 20,000 wide tables and among ``N`` (default: 200,000).

The metastore's database is PostgreSQL, whose rows are copied into it: to make the tables by calls would take hours.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from federator.demo.servers import hive as server
from federator.demo.servers import hive_jars
from federator.pipeline import session
from federator.service import Federator
from federator.settings import load_settings
from federator.store import run_stages
from tests.bench import hive
from tests.bench.measure import BOTH_JIT_TIERS, Row, limit, ratio, seconds
from tests.fixtures.postgres import postgres_server

SIZES = (20_000, int(os.environ.get("BENCH_TABLES", "200_000")))
ROUNDS, CHANGES_SECONDS = 5, 3
#: of the time for the changes among more tables
FLAT_RATIO = 1.3
_PARAMETERS = {**hive.PROPERTIES, "table_type": "lance", "EXTERNAL": "TRUE", "transient_lastDdlTime": "1700000000"}
_SEQUENCES = ("MTable", "MStorageDescriptor", "MColumnDescriptor", "MSerDeInfo", "MDatabase")


def run(directory: Path) -> list[Row]:
    hive_jars.fetch(server.HIVE3, directory)
    (driver,) = hive_jars.prepare(server.HIVE4).glob("lib/postgresql-*.jar")
    (directory / "drivers").mkdir()
    shutil.copy(driver, directory / "drivers")
    measured = [_measure(directory / f"of{tables}", tables) for tables in SIZES]
    session.stop_session()
    rows = [row for size, _ in measured for row in size]
    few, many = (spread for _, spread in measured)
    return [*rows, ratio("the changes among the most tables, against those among 20,000", few, many, FLAT_RATIO)]


def _measure(directory: Path, tables: int) -> tuple[list[Row], list[float]]:
    """Crawl a metastore in full, then the changes of some rounds. Return the rows, and the seconds of each round with changes."""
    directory.mkdir(mode=0o755)
    with postgres_server(directory / "postgres") as url:
        _fill(url, tables, directory)
        database = make_url(url)
        conf = {
            "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{database.host}:{database.port}/hive",
            "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
            "javax.jdo.option.ConnectionUserName": str(database.username),
        }
        environment = {**BOTH_JIT_TIERS, "HIVE_AUX_JARS_PATH": str(directory.parent / "drivers")}
        metastore = server.start(server.HIVE3, directory / "hive3", conf, env=environment)
        try:
            return _crawl(directory, metastore.uri, tables)
        finally:
            metastore.stop()


def _crawl(directory: Path, uri: str, tables: int) -> tuple[list[Row], list[float]]:
    federator = Federator.open(load_settings(hive.configure(directory / "service", uri)))
    idle, spread, calls, unchanged = list[float](), list[float](), 0, 0

    def crawl(expected: int, *, by_log: bool = True) -> int:
        result = federator.crawl(full=not by_log)
        source = result.sources["lake"]
        assert (result.state, source.tables, source.carried > 0) == ("ok", expected, by_log), result.errors
        with federator.index.read() as connection:
            return sum(stage.calls or 0 for stage in run_stages.read_run_stages(connection, result.run_id))

    full = seconds(lambda: crawl(tables, by_log=False))
    print(f"  {tables:,} tables: full crawl {full:.1f} s", file=sys.stderr)
    for number in range(ROUNDS + 1):
        hive.change_tables(uri, directory, number)
        grown = tables + (number + 1) * hive.GROWTH
        counts: list[int] = []
        changed = seconds(lambda: counts.append(crawl(grown)))  # noqa: B023
        nothing = seconds(lambda: counts.append(crawl(grown)))  # noqa: B023
        print(
            f"  {hive.DATABASES} changes {changed:.2f} s, {counts[0]} calls; none {nothing:.2f} s, {counts[1]}",
            file=sys.stderr,
        )
        if number:  # the first round warms the server and the workers
            spread.append(changed)
            idle.append(nothing)
            calls, unchanged = counts
    beyond = statistics.median(spread) - statistics.median(idle)
    rows = [
        Row(f"{tables:,} wide tables of Hive 3.1.3 over PostgreSQL, full crawl", "", "", f"{full:.1f} s", "", ok=True),
        limit("  100 changes by the log, beyond a crawl that finds none", beyond, CHANGES_SECONDS),
        Row("  calls of the connector for the changes, and for none", "", "", f"{calls}, {unchanged}", "", ok=True),
    ]
    return rows, spread


def _fill(url: str, tables: int, directory: Path) -> None:
    """Make the metastore's database with ``tables`` tables in as many databases as ``hive`` has, and with their sequences."""
    database = make_url(url).set(drivername="postgresql")
    with psycopg.connect(database.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute("CREATE DATABASE hive")
    (script,) = directory.parent.glob("scripts/**/postgres/hive-schema-3.1.0.postgres.sql")
    with psycopg.connect(database.set(database="hive").render_as_string(hide_password=False)) as connection:
        connection.execute("\n".join(line for line in script.read_text().splitlines() if not line.startswith("\\")))
        connection.execute("SET search_path = public")
        warehouse, each = f"file:{directory}/wh", tables // hive.DATABASES
        columns = [(f"column_{number}", "bigint" if number % 2 else "string", number) for number in range(20)]
        names = [hive.database_path(number)[1] for number in range(hive.DATABASES)]

        def copy(table: str, row: Callable[[int], Sequence[Any]], count: int = tables) -> None:
            _copy(connection, table, (row(number) for number in range(1, count + 1)))

        def location(number: int) -> str:
            return f"{warehouse}/{names[(number - 1) // each]}/{name(number)}.lance"

        def name(number: int) -> str:
            return f"t{(number - 1) % each:04d}"

        copy("DBS", lambda n: (n, None, f"{warehouse}/{names[n - 1]}", names[n - 1], "o", "USER", "hive"), hive.DATABASES)
        copy("CDS", lambda n: (n,))
        copy("SERDES", lambda n: (n, name(n), None, None, None, None, 0))
        copy("SDS", lambda n: (n, None, False, location(n), -1, None, n, n, False))
        copy("TBLS", lambda n: (n, 0, (n - 1) // each + 1, 0, "o", "USER", 0, n, name(n), "EXTERNAL_TABLE", None, None, False))
        numbers = range(1, tables + 1)
        _copy(connection, "COLUMNS_V2", ((n, None, *column) for n in numbers for column in columns))
        _copy(connection, "TABLE_PARAMS", ((n, *pair) for n in numbers for pair in _PARAMETERS.items()))
        model = "org.apache.hadoop.hive.metastore.model"
        _copy(connection, "SEQUENCE_TABLE", ((f"{model}.{sequence}", tables + 1) for sequence in _SEQUENCES))
        connection.execute("ANALYZE")


def _copy(connection: psycopg.Connection[Any], table: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" FROM STDIN'.encode()) as copy:
        for row in rows:
            copy.write_row(row)
