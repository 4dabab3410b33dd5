"""Completion of names in the shell, from the configuration file alone; where the configuration is, when nothing says so."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import typer

DEFAULT_FILE = "federator.toml"
VARIABLE = "FEDERATOR_CONFIG"


def _names(table: str) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        given = ctx.params.get("config") or ctx.find_root().params.get("config") or os.environ.get(VARIABLE) or DEFAULT_FILE
        try:
            names = tomllib.loads(Path(str(given)).read_text(encoding="utf-8")).get(table, {})
        except (OSError, ValueError):
            return []
        return [name for name in names if name.startswith(incomplete)]

    return complete


sources = _names("sources")
mirrors = _names("mirrors")
roots = _names("roots")


def reports(ctx: typer.Context, incomplete: str) -> list[str]:
    """The kinds, and the reports that are configured."""
    kinds = ("inventory", "drift", "mirrors", "freshness", "growth", "access")
    return [name for name in (*_names("reports")(ctx, incomplete), *kinds) if name.startswith(incomplete)]
