"""``make bench``: each benchmark measures its floor and ours in turn, in one run, and prints medians and their ratio."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import (
    api,
    commands,
    datasets,
    hive,
    hive_log,
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
from tests.bench.record import Result, write_results

_MODULES = (
    revisions, sync, verify, datasets, million, scale, sources, slow_catalogs, report, hive, hive_log, api, search, commands,
    page,
)  # fmt: skip
#: those whose number of tables can be chosen
_SIZED = (scale, hive, hive_log, api, search)
BENCHMARKS = {module.__name__.rpartition(".")[2]: module for module in _MODULES}


def main(names: list[str], record: Path | None) -> int:
    """Run the named benchmarks (default: all), and write their results into the page ``record``. Return 1 if one is over its budget."""
    results: list[Result] = []
    for name in names or list(BENCHMARKS):
        module = BENCHMARKS[name]
        run: Callable[[Path], list[Row]] = module.run
        with tempfile.TemporaryDirectory(prefix="federator-bench-") as directory:
            Console(stderr=True).print(f"[bold]{name}[/bold]")
            before = os.getloadavg()[0]
            rows = run(Path(directory))
        tables = int(os.environ.get("BENCH_TABLES", "0")) if module in _SIZED else 0
        results.append(Result(name, (module.__doc__ or "").strip(), rows, (before, os.getloadavg()[0]), tables or None))
        if record:
            write_results(record, results[-1:], list(BENCHMARKS))
    table = Table("measure", "floor", "ours", "ratio or figure", "budget", "", title="medians, one run")
    rows = [row for result in results for row in result.rows]
    for row in rows:
        table.add_row(row.name, row.floor, row.measured, row.figure, row.budget, row.verdict)
    Console().print(table)
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--record", type=Path, metavar="PAGE", help="write the results into this page of the documentation")
    arguments = parser.parse_args()
    sys.exit(main(arguments.names, arguments.record))
