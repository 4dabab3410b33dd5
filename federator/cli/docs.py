"""Writes the reference of the command line from the commands themselves: ``python -m federator.cli.docs > docs/cli.md``."""

from __future__ import annotations

import sys
from typing import Any

from typer.main import get_command

from federator.cli.app import app
from federator.cli.errors import CODES

_HEAD = """\
# The command line

Data goes to stdout, progress and errors to stderr. `--output json` prints one JSON document with stable keys; an error is then
`{"error": {...}}` on stderr. `NO_COLOR` and pipes turn colour off, and colour never says what the words do not. The common options
(`--config`, `--output`, `--quiet`) may stand before a command's name or after it.

Paths begin with the source's name: `'lake$sales$orders'`. In a shell, `$` wants quotes; `lake/sales/orders` is understood as well.
A `$` or `%` inside a name is written `%24` or `%25`.

This page is made from the code: `python -m federator.cli.docs > docs/cli.md`.
"""


def text() -> str:
    """The whole page."""
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in CODES.items())
    parts = [_HEAD, f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{codes}\n"]
    parts += [_section(path, node) for path, node in commands(get_command(app), "federator")]
    return "\n".join(parts)


def commands(node: Any, path: str) -> list[tuple[str, Any]]:
    """Every command and group with the words that call it, in the order of the help."""
    found = [(path, node)]
    for name, child in getattr(node, "commands", {}).items():
        found += commands(child, f"{path} {name}")
    return found


def options(node: Any) -> list[tuple[str, str]]:
    """A command's arguments and options as its help spells them, each with its meaning; ``--help`` is everywhere."""
    found = []
    for parameter in node.params:
        if "--help" in parameter.opts:
            continue
        if parameter.param_type_name == "argument":
            found.append((f"{parameter.metavar or parameter.name.upper()}", parameter.help or ""))
        else:
            spelled = ", ".join([*parameter.opts, *parameter.secondary_opts])
            found.append((f"{spelled}{_value(parameter)}", parameter.help or ""))
    return found


def _value(parameter: Any) -> str:
    if parameter.is_flag:
        return ""
    return f" {parameter.metavar}" if parameter.metavar else " VALUE"


def _section(path: str, node: Any) -> str:
    level = "##" if path.count(" ") < 2 else "###"
    rows = "\n".join(f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in options(node))
    table = f"\n| | |\n| --- | --- |\n{rows}\n" if rows else ""
    return f"{level} {path}\n\n{node.help}\n{table}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(text())
