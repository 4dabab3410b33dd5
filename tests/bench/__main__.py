"""``make bench``: each benchmark measures its floor and ours in turn, in one run, and prints medians and their ratio."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import (
    api,
    commands,
    datasets,
    hive,
    million,
    page,
    report,
    revisions,
    scale,
    search,
    slow_catalogs,
    sources,
    sync,
    verify,
)
from tests.bench.measure import Row

BENCHMARKS = {
    "revisions": revisions.run, "sync": sync.run, "verify": verify.run, "datasets": datasets.run, "million": million.run,
    "scale": scale.run, "sources": sources.run, "slow_catalogs": slow_catalogs.run, "report": report.run, "hive": hive.run,
    "api": api.run, "search": search.run, "commands": commands.run, "page": page.run,
}  # fmt: skip


def verdict(row: Row) -> str:
    """Whether a row keeps its budget; nothing for one that has none."""
    return "" if not row.budget else "ok" if row.ok else "OVER"


def main(names: list[str]) -> int:
    """Runs the named benchmarks (default: all); returns 1 if one is over its budget."""
    rows: list[Row] = []
    for name in names or list(BENCHMARKS):
        with tempfile.TemporaryDirectory(prefix="federator-bench-") as directory:
            Console(stderr=True).print(f"[bold]{name}[/bold]")
            rows += BENCHMARKS[name](Path(directory))
    table = Table("measure", "floor", "ours", "ratio or figure", "budget", "", title="medians, one run")
    for row in rows:
        table.add_row(row.name, row.floor, row.measured, row.figure, row.budget, verdict(row))
    Console().print(table)
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
