"""The page of the documentation with the newest result of each benchmark: what was run, where and when."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from tests.bench.measure import Row

#: environment variables that change what a benchmark measures, except for the number of tables
_PARAMETERS = re.compile(r"BENCH_(?!TABLES)\w+")


@dataclass(frozen=True)
class Result:
    """What one benchmark measured.

    ``about``: what it measures; ``loads``: the machine's load before and after; ``tables``: how many, if the caller chose it.
    """

    name: str
    about: str
    rows: Sequence[Row]
    loads: tuple[float, float]
    tables: int | None = None


def write_results(page: Path, results: Sequence[Result], order: Sequence[str]) -> None:
    """Replace the sections of these benchmarks in a page, in the order of all benchmarks, smaller numbers of tables first.

    A result for another number of tables has a section of its own. The rest of the page stays.
    """
    head, *sections = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_title = {section.partition("\n")[0].removeprefix("## "): section for section in sections}
    for result in results:
        section = format_section(result, _machine(), _commit(), os.environ)
        by_title[section.partition("\n")[0].removeprefix("## ")] = section

    def position(title: str) -> tuple[int, int]:
        name, _, size = title.partition(": ")
        return (order.index(name) if name in order else len(order), int(re.sub(r"\D", "", size) or 0))

    page.write_text(head + "".join(by_title[title] for title in sorted(by_title, key=position)), encoding="utf-8")


def format_section(result: Result, machine: str, commit: str, environment: Mapping[str, str]) -> str:
    """Return the Markdown of one benchmark, without columns that no row fills."""
    title = f"{result.name}: {result.tables:,} tables" if result.tables else result.name
    variables = [f"{name}={shlex.quote(environment[name])} " for name in sorted(environment) if _PARAMETERS.fullmatch(name)]
    command = f"{''.join(variables)}make bench BENCHMARKS={result.name}" + (f" N={result.tables}" if result.tables else "")
    before, after = result.loads
    columns = [
        (header, [format_cell(row) for row in result.rows])
        for header, format_cell in _COLUMNS.items()
        if any(map(format_cell, result.rows))
    ]
    lines = [
        f"## {title}\n",
        f"{result.about.replace('``', '`')}\n",
        f"`{command}` on {time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit}.",
        f"{machine}; load {before:.1f} before, {after:.1f} after.\n",
        f"| {' | '.join(header for header, _ in columns)} |",
        "|---" * len(columns) + "|",
        *(f"| {' | '.join(cells)} |" for cells in zip(*(cells for _, cells in columns), strict=True)),
    ]
    return "\n".join(lines) + "\n\n"


def _format_name(row: Row) -> str:
    # A row that details the one above it is indented, which Markdown would not show.
    name = row.name.replace("\n", "<br>")
    return f"– {name.lstrip()}" if name.startswith(" ") else name


_COLUMNS: Mapping[str, Callable[[Row], str]] = {
    "measure": _format_name,
    "floor": attrgetter("floor"),
    "ours": attrgetter("measured"),
    "ratio or figure": attrgetter("figure"),
    "budget": attrgetter("budget"),
    "": attrgetter("verdict"),
}


def _machine() -> str:
    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} processors ({cpu[1] if cpu else 'unknown'}), {memory:.0f} GiB"


def _commit() -> str:
    return subprocess.check_output(["git", "describe", "--always", "--dirty", "--exclude=*"], text=True).strip()
