"""The fixed cost of commands: CPU time by process, which other work on the machine hardly changes, and wall time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.bench.measure import Row, limit, process_tree

TABLES, ROUNDS = 100, 5
_CONFIG = """
[sources.lake]
impl = "dir"
dir.root = "{base}/lake"
[sources.empty]
impl = "dir"
dir.root = "{base}/empty"
"""
#: budgets in seconds of CPU time, for two cores of 2024
_BUDGETS = {("--version",): 0.25, ("--help",): 0.25, ("ls",): 0.5, ("sync", "-q"): 12.0}


def run(directory: Path) -> list[Row]:
    import lance
    import pyarrow as pa

    (directory / "empty").mkdir()
    for number in range(TABLES):
        lance.write_dataset(pa.table({"id": [number]}), str(directory / "lake" / f"t{number}.lance"))
    (directory / "federator.toml").write_text(_CONFIG.format(base=directory), encoding="utf-8")
    measure(("sync", "-q"), directory)
    rows = []
    for words, budget in _BUDGETS.items():
        rounds = [measure(words, directory) for _ in range(ROUNDS)]
        walls = [wall for wall, _ in rounds]
        total = statistics.median(sum(cpu.values()) for _, cpu in rounds)
        name = f"federator {words[0]}"
        rows.append(limit(f"{name}, CPU time", total, budget))
        kinds = sorted({kind for _, cpu in rounds for kind in cpu})
        medians = {f"  {kind}": statistics.median(cpu[kind] for _, cpu in rounds) for kind in kinds}
        rows += [Row(label, "", "", f"{seconds:.2f} s", "", ok=True) for label, seconds in medians.items()]
        rows.append(Row(f"{name}, wall time", "", "", f"{statistics.median(walls):.2f} s", "", ok=True))
    return rows


def measure(words: tuple[str, ...], directory: Path) -> tuple[float, Counter[str]]:
    """Run a command. Return its wall time, and the seconds of CPU time by kind of process."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [Path(sys.executable).with_name("federator"), *words],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seen: dict[int, tuple[str, float]] = {}
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        for pid in process_tree(process.pid)[1:]:
            try:
                command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            # A process that is ending has no command line any more.
            kind = _kind(command) if command else seen.get(pid, ("other",))[0]
            seen[pid] = kind, (int(fields[11]) + int(fields[12])) / 100
        time.sleep(0.02)
    wall = time.perf_counter() - began
    _, status, usage = ended
    assert status == 0, words
    cpu = Counter({"command": usage.ru_utime + usage.ru_stime})
    for kind, seconds in seen.values():
        cpu[kind] += seconds
    return wall, cpu


def _kind(command: str) -> str:
    # The JVM's command line has the name of the workers' module, too.
    if "SparkSubmit" in command:
        return "other" if "launcher" in command else "JVM"
    return "Python workers" if "worker_daemon" in command else "other"
