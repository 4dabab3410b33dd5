"""The page of benchmarks: a new result replaces the section of its benchmark, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.bench.measure import Row
from tests.bench.record import Result, write_results

_PAGE = """# Benchmarks

What each means.

## hive: 20,000 tables

Other figures.

## hive: 1,000 tables

Old figures.

## An older record

It stays.
"""


def test_a_result_replaces_its_section_in_the_order_of_the_benchmarks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_PAGE, encoding="utf-8")
    rows = [
        Row("a crawl", "1.00 s", "1.20 s", "1.20 x", "1.5 x", ok=True),
        Row("  the long part", "", "", "9 s", "5 s", ok=False),
    ]
    results = [Result("hive", "Wide tables.", rows, (0.1, 2.04), 1000), Result("sync", "A sync.", [], (0.0, 0.0))]
    write_results(page, results, ["sync", "hive"])
    head, sync, hive, larger, older = page.read_text(encoding="utf-8").split("\n## ")
    assert head == "# Benchmarks\n\nWhat each means.\n"
    assert sync.startswith("sync\n\nA sync.\n")
    assert "Old figures" not in hive
    commit = subprocess.check_output(["git", "describe", "--always", "--dirty", "--exclude=*"], text=True).strip()
    assert "`make bench BENCHMARKS=hive N=1000` on 20" in hive
    assert f", commit {commit}.\n" in hive
    assert "; load 0.1 before, 2.0 after.\n" in hive
    assert "| a crawl | 1.00 s | 1.20 s | 1.20 x | 1.5 x | ok |\n| – the long part |  |  | 9 s | 5 s | OVER |\n" in hive
    assert "Other figures" in larger
    assert older == "An older record\n\nIt stays.\n"
