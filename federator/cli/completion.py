"""Shell completion of names, read from the configuration file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import typer

from federator.runtime.config_file import CONFIG_VARIABLE, DEFAULT_FILE


def _complete_table(table: str) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        config = (
            ctx.params.get("config") or ctx.find_root().params.get("config") or os.environ.get(CONFIG_VARIABLE) or DEFAULT_FILE
        )
        try:
            names = tomllib.loads(Path(str(config)).read_text(encoding="utf-8")).get(table, {})
        except (OSError, ValueError):
            return []
        return [name for name in names if name.startswith(incomplete)]

    return complete


complete_sources = _complete_table("sources")
complete_mirrors = _complete_table("mirrors")
complete_roots = _complete_table("roots")


def complete_reports(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete report kinds and configured reports."""
    kinds = ("inventory", "drift", "mirrors", "freshness", "growth", "access")
    return [name for name in (*_complete_table("reports")(ctx, incomplete), *kinds) if name.startswith(incomplete)]
