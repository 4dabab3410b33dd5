"""The parts of ``make adversary``, and running one of them. Apart from ``__main__``, so that a new process can import it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from tests.adversary import clocks, creates, disk, kills, lie_matrix, rings, timing, toxics, workers
from tests.adversary.table import Cell

#: each part gets an empty directory and returns its cells; those that take longest come first
PARTS: dict[str, Callable[[Path], Sequence[Cell]]] = {
    "kills": kills.run, "creates": creates.run, "clocks": clocks.run, "workers": workers.run, "lies": lie_matrix.run,
    "toxics": toxics.run, "disk": disk.run, "rings": rings.run, "timing": timing.run,
}  # fmt: skip


def run_part(name: str) -> Sequence[Cell]:
    """Run one part, and say how long it took."""
    started_at = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="federator-adversary-") as directory:
        cells = PARTS[name](Path(directory))
    Console(stderr=True).print(f"{name}: {time.monotonic() - started_at:.0f} s")
    return cells
