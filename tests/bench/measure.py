"""Timing and memory, for benchmarks only."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from federator.demo.servers.hive_jars import JVM_OPTIONS_VARIABLE

#: of a metastore, which is measured as it is in production: with both JIT tiers
BOTH_JIT_TIERS = {JVM_OPTIONS_VARIABLE: "-XX:TieredStopAtLevel=4"}


@dataclass(frozen=True)
class Row:
    """One line of the result."""

    name: str
    floor: str
    measured: str
    figure: str
    budget: str
    ok: bool

    @property
    def verdict(self) -> str:
        """Whether the row keeps its budget; nothing for one that has none."""
        return "" if not self.budget else "ok" if self.ok else "OVER"


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def ratio(name: str, floors: list[float], measured: list[float], budget: float) -> Row:
    """A row that holds the median of ours against the median of the floor."""
    floor, our = statistics.median(floors), statistics.median(measured)
    return Row(name, _shown(floor), _shown(our), f"{our / floor:.2f} x", f"{budget:g} x", our <= budget * floor)


def compared(name: str, floor: float, measured: float) -> Row:
    """A row without a budget."""
    return Row(name, _shown(floor), _shown(measured), f"{measured / floor:.2f} x", "", ok=True)


def limit(name: str, value: float, budget: float, unit: str = "s") -> Row:
    return Row(name, "", "", f"{value:.2f} {unit}", f"{budget:g} {unit}", value <= budget)


def _shown(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.2f} ms"


@dataclass
class Memory:
    """Peak of the proportional set size, summed over a process and everything below it, in GiB."""

    root: int
    peak: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def sample(self) -> None:
        while not self._stop.wait(0.5):
            self.peak = max(self.peak, sum(map(pss, process_tree(self.root))) / 2**20)


@contextmanager
def memory(root: int | None = None) -> Iterator[Memory]:
    """Watch a process (default: this one) and everything below it."""
    watched = Memory(root or os.getpid())
    thread = threading.Thread(target=watched.sample, daemon=True)
    thread.start()
    try:
        yield watched
    finally:
        watched._stop.set()
        thread.join()


def process_tree(root: int) -> list[int]:
    """The process and everything below it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += parents.get(pid, [])
    return found


def pss(pid: int) -> int:
    """The proportional set size of a process in KiB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
