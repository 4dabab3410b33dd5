"""Generator of the command reference: ``python -m federator.cli.reference > docs/reference/cli.md``."""

from __future__ import annotations

import sys
from typing import Any

from typer.main import get_command

from federator.cli.app import app
from federator.cli.errors import CODES

_HEAD = """\
# The command line

Data goes to stdout, progress and errors to stderr. `--output json` prints one JSON document with stable keys. `--output jsonl` and
`--output csv` print one line for each entry of a list, else one line for the document. In CSV, lists and objects
in a cell are JSON, control characters are escaped, and a text that a spreadsheet would evaluate starts with an apostrophe. JSON has the
exact texts. Times are ISO 8601 in UTC. An error is `{"error": {...}}` on stderr in each of the three formats. Pipes and `NO_COLOR` turn
colour off; colour never carries information of its own. The common options (`--config`, `--output`, `--quiet`) are accepted before and
after a command's name.

Paths begin with the source's name: `'lake$sales$orders'`. In a shell, `$` needs quotes; `lake/sales/orders` is accepted as well.
A `$` or `%` inside a name is written `%24` or `%25`.

This page is generated from the code: `python -m federator.cli.reference > docs/reference/cli.md`.
"""


def render_reference() -> str:
    """Return the complete page."""
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in CODES.items())
    parts = [_HEAD, f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{codes}\n"]
    parts += [_section(path, node) for path, node in list_commands(get_command(app), "federator")]
    return "\n".join(parts)


def list_commands(node: Any, path: str) -> list[tuple[str, Any]]:
    """Return all commands and groups with their full names, in the order of the help."""
    commands = [(path, node)]
    for name, child in getattr(node, "commands", {}).items():
        commands += list_commands(child, f"{path} {name}")
    return commands


def list_options(node: Any) -> list[tuple[str, str]]:
    """Return a command's arguments and options with their help texts, without ``--help``."""
    options = []
    for parameter in node.params:
        if "--help" in parameter.opts:
            continue
        if parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name.upper()
            repeated = "..." if parameter.nargs != 1 else ""
            options.append((name if parameter.required else f"[{name}]{repeated}", parameter.help or ""))
        else:
            names = ", ".join([*parameter.opts, *parameter.secondary_opts])
            options.append((f"{names}{_value(parameter)}", parameter.help or ""))
    return options


def _value(parameter: Any) -> str:
    if parameter.is_flag:
        return ""
    return f" {parameter.metavar}" if parameter.metavar else " VALUE"


def _section(path: str, node: Any) -> str:
    level = "##" if path.count(" ") < 2 else "###"
    rows = "\n".join(f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in list_options(node))
    table = f"\n| | |\n| --- | --- |\n{rows}\n" if rows else ""
    return f"{level} {path}\n\n{node.help}\n{table}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render_reference())
