"""One million synthetic records: crawled, compared, committed to SQLite; then once more, unchanged."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import func, select

from federator.pipeline import session
from federator.service import Federator
from federator.settings import load_settings
from federator.store import tables as t
from tests.bench.measure import Row, limit, memory, seconds

TABLES = 1_000_000
_CONFIG = """
[sources.big]
impl = "federator.testing:CONNECTOR"
tables = {tables}
databases = 1000
concurrency = 2
[verify]
enabled = false
"""


def run(directory: Path) -> list[Row]:
    file = directory / "federator.toml"
    file.write_text(_CONFIG.format(tables=TABLES), encoding="utf-8")
    federator = Federator.open(load_settings(file))
    with memory() as watched:
        first = seconds(lambda: _crawl(federator))
        rows = _rows(federator)
        second = seconds(lambda: _crawl(federator))
    written = _rows(federator) - rows
    session.stop_session()
    return [
        limit(f"{TABLES:,} records, crawled, compared and committed, cold", first, 120),
        limit("the same once more, unchanged", second, 120),
        limit("rows written by the unchanged round", written, 0, "rows"),
        limit("summed PSS of driver, JVM and workers", watched.peak, 4, "GiB"),
    ]


def _crawl(federator: Federator) -> None:
    result = federator.crawl()
    assert result.state == "ok", result.errors
    assert result.sources["big"].tables == TABLES


def _rows(federator: Federator) -> int:
    with federator.index.read() as connection:
        return int(connection.execute(select(func.count()).select_from(t.record)).scalar_one())
