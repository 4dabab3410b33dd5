"""The page of the documentation with the newest result of each benchmark: what was run, where and when."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import Row

#: environment variables that change what a benchmark measures
_PARAMETERS = re.compile(r"BENCH_\w+")


@dataclass(frozen=True)
class Result:
    """What one benchmark measured. ``about``: what it measures; ``loads``: the machine's load before and after."""

    name: str
    about: str
    rows: Sequence[Row]
    loads: tuple[float, float]


def write_results(page: Path, results: Sequence[Result], order: Sequence[str]) -> None:
    """Replace the sections of these benchmarks in a page, in the order of all benchmarks. The rest of the page stays."""
    head, *sections = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_title = {section.partition("\n")[0].removeprefix("## "): section for section in sections}
    by_title |= {result.name: format_section(result, _machine(), _commit(), os.environ) for result in results}
    measured = [name for name in order if name in by_title]
    others = [title for title in by_title if title not in order]
    page.write_text(head + "".join(by_title[title] for title in [*measured, *others]), encoding="utf-8")


def format_section(result: Result, machine: str, commit: str, environment: Mapping[str, str]) -> str:
    """Return the Markdown of one benchmark."""
    variables = [f"{name}={shlex.quote(environment[name])} " for name in sorted(environment) if _PARAMETERS.fullmatch(name)]
    before, after = result.loads
    lines = [
        f"## {result.name}\n",
        f"{result.about}\n",
        f"`{''.join(variables)}make bench BENCHMARKS={result.name}` on {time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit}.",
        f"{machine}; load {before:.1f} before, {after:.1f} after.\n",
        "| measure | floor | ours | ratio or figure | budget | |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row.name} | {row.floor} | {row.measured} | {row.figure} | {row.budget} | {row.verdict} |".replace("\n", "<br>")
            for row in result.rows
        ),
    ]
    return "\n".join(lines) + "\n\n"


def _machine() -> str:
    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} processors ({cpu[1] if cpu else 'unknown'}), {memory:.0f} GiB"


def _commit() -> str:
    return subprocess.check_output(["git", "describe", "--always", "--dirty", "--exclude=*"], text=True).strip()
