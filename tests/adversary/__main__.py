"""``make adversary``: run the named parts (default: all) and print one table. Exit 1 if a cell is unexpected.

Two parts run at once, each in a process of its own with servers of its own: most of their time they wait.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.table import Table

from tests.adversary.parts import PARTS, run_part

#: how many parts run at once
JOBS = int(os.environ.get("ADVERSARY_JOBS", "2"))


def main(names: list[str]) -> int:
    """Run the named parts. Return 0 if every cell is as expected, 1 if not, 64 for an unknown part."""
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        Console(stderr=True).print(f"unknown part: {', '.join(unknown)}; valid parts: {', '.join(PARTS)}")
        return 64
    chosen = [name for name in PARTS if name in (names or PARTS)]
    with ProcessPoolExecutor(JOBS, multiprocessing.get_context("spawn")) as processes:
        cells = [cell for part in processes.map(run_part, chosen) for cell in part]
    table = Table("part", "cell", "observed", "expected", "", title="adversary")
    for cell in cells:
        table.add_row(cell.part, cell.name, cell.observed, cell.expected, "ok" if cell.ok else "UNEXPECTED")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return 0 if cells and all(cell.ok for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
