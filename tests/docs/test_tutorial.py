"""docs/tutorial/index.md: its commands run in order in one shell, and each shown output is the real one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "index.md").read_text(encoding="utf-8")
HOME = "/home/you/tutorial"
# Not the number of moto's account.
_DIGEST = re.compile(r"\b(?!123456789012)[0-9a-f]{12}\b")
# A line of progress ends with a time, or with a time and dots while it goes on. A stage that took less than 0.1 s has no time.
_PROGRESS = re.compile(r"\w+ +.*  \(?[\d.]+ (?:ms|s|min)(?:  ?\.\.\.|\))$|(?:crawl|verify|plan|apply) +\S+  (?:ok|failed)  ")
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{11}-[0-9a-f]{8}\b"), "RUN"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
)


@dataclass(frozen=True)
class Example:
    """A command of the page, and the lines that the page shows below it."""

    command: str
    shown: tuple[str, ...]


def read_examples(page: str) -> Iterator[Example]:
    """Yield the examples of the ``console`` blocks. A command with ``<<'END'`` goes on until the line ``END``."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, _, rest = part.partition("\n")
            if "<<'END'" in first:
                document, _, rest = rest.partition("\nEND\n")
                first = f"{first}\n{document}\nEND"
            yield Example(first, tuple(rest.splitlines()))


EXAMPLES = list(read_examples(PAGE))


def run(examples: list[Example], directory: Path) -> Iterator[tuple[Example, list[str], int]]:
    """Run the commands in one shell. Digests of the page are replaced by those that the commands above printed."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
    }
    shell = subprocess.Popen(
        ["bash"],
        cwd=directory,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    digests: dict[str, str] = {}
    with shell:
        for example in examples:
            command = example.command
            for shown, printed in digests.items():
                command = command.replace(shown, printed)
            shell.stdin.write(f'{command}\necho "<end> $?"\n')
            shell.stdin.flush()
            output = []
            while not (line := shell.stdout.readline()).startswith("<end> "):
                assert line, f"the shell ended: {output}"
                output.append(line.rstrip("\n").replace(str(directory), HOME))
            digests |= dict(zip(_DIGEST.findall("\n".join(example.shown)), _DIGEST.findall("\n".join(output)), strict=False))
            yield example, output, int(line.split()[1])
        shell.stdin.close()


def agrees(shown: tuple[str, ...], output: list[str]) -> bool:
    """Whether ``output`` without its progress is what is shown. The line ``...`` stands for any lines."""
    lines = [_plain(line) for line in output if not _PROGRESS.match(line)]
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(_plain(line)) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def _plain(line: str) -> str:
    line = _DIGEST.sub("DIGEST", line.rstrip())
    for pattern, name in _VARYING:
        line = pattern.sub(name, line)
    return line


@pytest.mark.timeout(900)
def test_each_command_prints_what_the_page_shows(spark: None, tmp_path: Path) -> None:
    codes: dict[str, list[int]] = {}
    try:
        for example, output, code in run(EXAMPLES, tmp_path):
            assert agrees(example.shown, output), "\n".join(["$ " + example.command, *output])
            codes.setdefault(example.command, []).append(code)
    finally:
        subprocess.run([Path(sys.executable).parent / "federator", "demo", "--stop", "lab"], cwd=tmp_path, check=False)
    # The first sync, one miss, the held plan, the approved one, the outage, the end of the outage.
    assert codes.pop("federator sync") == [0, 0, 4, 0, 3, 0]
    assert {command: failed for command, failed in codes.items() if any(failed)} == {}


def test_a_wrong_output_is_noticed() -> None:
    shown = ("plan 352099e35f88", "...", "8 done")
    assert agrees(shown, ["plan 0123456789ab", "spark    starting spark  2.2 s  ...", "x", "y", "8 done"])
    assert agrees(shown[:1], ["plan 0123456789ab", "plan     to-glue  ok  0 changes, 0 refusals"])
    assert not agrees(shown, ["plan 0123456789ab", "7 done"])
    assert not agrees(shown[:1], ["plan 0123456789ab", "8 done"])
