"""``make adversary``: run the named parts (default: all) and print one table. Exit 1 if a cell is unexpected."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.adversary import clocks, creates, disk, kills, lie_matrix, rings, workers
from tests.adversary.table import Cell

#: each part gets an empty directory and returns its cells
PARTS: dict[str, Callable[[Path], Sequence[Cell]]] = {
    "creates": creates.run, "lies": lie_matrix.run, "kills": kills.run, "disk": disk.run, "rings": rings.run,
    "workers": workers.run, "clocks": clocks.run,
}  # fmt: skip


def main(names: list[str]) -> int:
    """Run the named parts. Return 0 if every cell is as expected, 1 if not, 64 for an unknown part."""
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        Console(stderr=True).print(f"unknown part: {', '.join(unknown)}; valid parts: {', '.join(PARTS)}")
        return 64
    table, cells = Table("part", "cell", "observed", "expected", "", title="adversary"), list[Cell]()
    for name in names or list(PARTS):
        started_at = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="federator-adversary-") as directory:
            cells += PARTS[name](Path(directory))
        Console(stderr=True).print(f"{name}: {time.monotonic() - started_at:.0f} s")
    for cell in cells:
        table.add_row(cell.part, cell.name, cell.observed, cell.expected, "ok" if cell.ok else "UNEXPECTED")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return 0 if cells and all(cell.ok for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
