"""``python -m tests.prove``: tells many stories, or one of them aloud.

Exit code 0: no rule was broken; 1: one was; 2: none was, and some fault never struck or some reason was never given.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import multiprocessing
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.prove.rules_off import RULES, without
from tests.prove.run import shorten, story_of, tell
from tests.prove.tally import Tally

_ROOT = Path(__file__).parents[2]
_STORY = ("federator/apply", "federator/connector", "federator/model", "federator/planning", "tests/prove")
_CHUNK = 500
_KEPT = 20


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    if options.run is not None:
        with without(options.without_rule):
            return _run_single(options.seed, options.run, short=options.short)
    began = time.monotonic()
    tally = _many(options)
    text = _recorded(tally, arguments, options, time.monotonic() - began)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")
    if tally.violations:
        _keep(tally, options)
        return 1
    return 2 if tally.missing and not options.partial else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, metavar="N", help="how many stories")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--with-step", metavar="STEP", help="only the stories with such a step, for example replace_catalog")
    parser.add_argument("--run", type=int, metavar="I", help="tell story I of the seed, step by step")
    parser.add_argument("-v", "--verbose", action="store_true", help="(a single story is always told aloud)")
    parser.add_argument(
        "--short", action="store_true", help="with --run: leave out every step that a broken rule does not need"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, metavar="FILE", help="record command, machine, counts and the table")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where stories that broke a rule are kept")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="where progress is kept; what is there already is not run again"
    )
    parser.add_argument("--without-rule", choices=sorted(RULES), help="switch a rule of the product off: the proof must fail")
    parser.add_argument(
        "--partial", action="store_true", help="exit 0 although some fault or reason did not occur in so few runs"
    )
    return parser.parse_args(arguments)


def _run_single(seed: int, number: int, *, short: bool) -> int:
    result = tell(seed, number, verbose=True)
    if result.violation is not None and short:
        result = tell(seed, number, story=shorten(seed, number, result.violation), verbose=True)
    print("\n".join(result.story))
    print(
        f"{result.steps} steps, {sum(result.faults.values())} faults, {result.writes} writes, at rest after {result.rounds} rounds"
    )
    return 1 if result.violation is not None else 0


def _many(options: argparse.Namespace) -> Tally:
    tally = Tally()
    done = dict(_checkpointed(options))
    for kept in done.values():
        tally += kept
    starts = [start for start in range(0, options.runs, _CHUNK) if start not in done]
    chunks = [(start, min(_CHUNK, options.runs - start)) for start in starts]
    work = [(options.seed, start, count, options.without_rule, options.with_step) for start, count in chunks]
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for start, part in pool.imap_unordered(_chunk, work):
            tally += part
            if options.checkpoint is not None:
                with options.checkpoint.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"for": _what(options), "start": start, "tally": part.to_json()}) + "\n")
            _progress(tally, options.runs)
            if len(tally.violations) >= _KEPT:
                break
    return tally


def _chunk(work: tuple[int, int, int, str | None, str | None]) -> tuple[int, Tally]:
    seed, start, count, rule, step = work
    tally, began = Tally(), time.process_time()
    # Collecting what goes round in circles costs a tenth of the time, and a chunk leaves little of it.
    gc.disable()
    with without(rule):
        for number in range(start, start + count):
            if step is not None and all(operation != step for operation, *_ in story_of(seed, number)[1]):
                continue
            tally.add(tell(seed, number))
            if len(tally.violations) >= _KEPT:
                break
    tally.seconds = time.process_time() - began
    gc.enable()
    gc.collect()
    return start, tally


def _checkpointed(options: argparse.Namespace) -> Iterator[tuple[int, Tally]]:
    if options.checkpoint is not None and options.checkpoint.exists():
        for line in options.checkpoint.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["for"] == _what(options) and row["start"] < options.runs:
                yield row["start"], Tally.from_json(row["tally"])


def _what(options: argparse.Namespace) -> list[object]:
    # Progress of another seed, rule or code is not this one's.
    return [options.seed, options.without_rule, options.with_step, _code()]


def _code() -> str:
    """A digest of what a story runs: a commit that changes nothing of it keeps a record's progress and its worth."""
    files = sorted(file for package in _STORY for file in (_ROOT / package).rglob("*.py"))
    content = hashlib.sha256()
    for file in files:
        content.update(f"{file.relative_to(_ROOT)}\0".encode() + file.read_bytes() + b"\0")
    return content.hexdigest()[:16]


def _progress(tally: Tally, runs: int) -> None:
    if tally.runs % (_CHUNK * 20) == 0 or tally.violations:
        print(f"{tally.runs:,} of {runs:,} runs, {len(tally.violations)} violations", file=sys.stderr, flush=True)


def _keep(tally: Tally, options: argparse.Namespace) -> None:
    directory = options.keep
    with without(options.without_rule):
        for number, _ in tally.violations[: _KEPT if directory is not None else 1]:
            result = tell(options.seed, number)
            if result.violation is None:
                continue
            result = tell(options.seed, number, story=shorten(options.seed, number, result.violation), verbose=True)
            text = "\n".join([f"python -m tests.prove --seed {options.seed} --run {number} --short", *result.story])
            if directory is None:
                print(text)
            else:
                directory.mkdir(parents=True, exist_ok=True)
                (directory / f"{options.seed}-{number}.txt").write_text(text + "\n", encoding="utf-8")


def _recorded(tally: Tally, arguments: Sequence[str], options: argparse.Namespace, seconds: float) -> str:
    rest = ", ".join(f"{number}: {count:,}" for number, count in sorted(tally.rounds.items()))
    lines = [
        f"command     python -m tests.prove {shlex.join(arguments)}",
        f"date        {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"commit      {_commit()}",
        f"code        {_code()} ({', '.join(_STORY)})",
        f"machine     {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        f"rule off    {options.without_rule}: {RULES[options.without_rule][0]}" if options.without_rule else "",
        f"runs        {tally.runs:,} of seed {options.seed}; {tally.steps:,} steps (at least {tally.fewest_steps} a run)",
        f"time        {tally.seconds:,.0f} core seconds, {tally.seconds / max(tally.runs, 1) * 1000:.2f} ms a run",
        f"            this command took {seconds:,.0f} s",
        f"faults      {sum(tally.faults.values()):,} (at least {tally.fewest_faults} a run)",
        f"writes      {tally.writes:,} to catalogs, each judged with the truth",
        f"at rest     after rounds: {rest}",
        f"violations  {len(tally.violations)}",
        *(f"            run {number}: {text}" for number, text in tally.violations[:_KEPT]),
        f"did not occur: {', '.join(tally.missing)}" if tally.missing else "every fault struck and every reason was given",
        _met(tally.apart),
        *([f"other codes that catalogs answered with: {tally.besides}"] if tally.besides else []),
        "",
        tally.table(),
    ]
    return "\n".join(lines)


def _met(apart: Sequence[str]) -> str:
    if not apart:
        return "every fault met every reason"
    return (
        f"did not occur together: {'; '.join(apart[:_KEPT])}{f'; and {len(apart) - _KEPT} pairs more' * (len(apart) > _KEPT)}"
    )


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "federator", "tests/prove"], capture_output=True, text=True, check=False
    )
    return (found.stdout.strip() or "unknown") + (" with changes" if changed.stdout.strip() else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
