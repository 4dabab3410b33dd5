"""The names of all commands, and the modules that register them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import typer
from typer.main import get_group

#: the module of each command, in the order of the help
COMMANDS = {
    "init": "init", "validate": "doctor", "doctor": "doctor", "conformance": "conformance", "crawl": "run_commands",
    "plan": "run_commands", "apply": "run_commands", "sync": "run_commands", "tree": "tree", "ls": "tree", "show": "tree",
    "search": "search", "datasets": "datasets", "drift": "datasets", "declare": "declare", "export": "export", "explain": "explain",
    "runs": "runs", "diff": "diff", "report": "reports", "reports": "reports", "serve": "serve", "mcp": "mcp", "demo": "demo",
    "plans": "plans", "mirror": "mirrors", "ledger": "ledger", "audit": "audit", "instance": "instance", "sources": "sources",
    "jobs": "jobs", "token": "tokens", "session": "sessions", "notifications": "notifications", "db": "database", "spark": "spark",
}  # fmt: skip


@cache
def build_commands(module: str) -> Mapping[str, Any]:
    """Import a module of this package and return the commands and groups that it registers, by name."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
    importlib.import_module(f"federator.cli.{module}").register(group)
    return get_group(group).commands


class LazyCommands(Mapping[str, Any]):
    """All commands. Each is built when it is needed: importing all of them takes longer than a short command."""

    def __getitem__(self, name: str) -> Any:
        return build_commands(COMMANDS[name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)
