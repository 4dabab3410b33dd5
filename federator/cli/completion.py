"""Shell completion: names from the configuration file; paths and plans from the index, as far as it exists."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from federator.cli.context import Cli
from federator.cli.documents import Output
from federator.runtime.config_file import CONFIG_VARIABLE, DEFAULT_FILE

if TYPE_CHECKING:
    from federator.store import Index

T = TypeVar("T")
# Shells insert completions without quotes, and names of catalogs may contain anything.
_PLAIN = re.compile(r"[\w.@+=,-]+")
# Maximum number of completions from the index.
_LIMIT = 200
# Plans are read with their content.
_PLANS = 20


def _find_config(ctx: typer.Context) -> Path:
    config = ctx.params.get("config") or ctx.find_root().params.get("config") or os.environ.get(CONFIG_VARIABLE) or DEFAULT_FILE
    return Path(str(config))


def _complete_table(table: str) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            names = tomllib.loads(_find_config(ctx).read_text(encoding="utf-8")).get(table, {})
        except (OSError, ValueError):
            return []
        return [name for name in names if name.startswith(incomplete)]

    return complete


def _read_index(ctx: typer.Context, read: Callable[[Index], Sequence[T]]) -> Sequence[T]:
    """Return what ``read`` returns. Nothing without a readable index, because a completion reports no errors."""
    from federator.connector.errors import FederatorError

    try:
        with Cli(_find_config(ctx), Output.TABLE, quiet=True).index() as index:
            return read(index)
    except FederatorError:
        return []


def complete_paths(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the next level of a path, ``lake/sales/`` or ``lake$sales$``. Without an index, complete sources."""
    from federator.model import parse_path_key
    from federator.views.tree import list_children

    separator = "$" if "$" in incomplete else "/"
    parent, joined, start = incomplete.rpartition(separator)
    if not joined:
        return [f"{name}{separator}" for name in complete_sources(ctx, start)]
    path = parse_path_key(parent) if separator == "$" else tuple(parent.split("/"))
    nodes = _read_index(ctx, lambda index: list_children(index, path, limit=_LIMIT).nodes)
    names = [
        (node.name, separator if node.kind in ("source", "namespace") else "") for node in nodes if _PLAIN.fullmatch(node.name)
    ]
    return [f"{parent}{joined}{name}{end}" for name, end in names if name.startswith(start)]


def complete_plans(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the short digests of the newest plans, with mirror and state: for a decision, of those that wait for one."""
    from federator.store import plans

    state = "held" if ctx.command.name in ("approve", "reject") else None

    def read(index: Index) -> list[plans.StoredPlan]:
        with index.read() as connection:
            return plans.list_recent_plans(connection, state=state, limit=_PLANS)

    rows = _read_index(ctx, read)
    return [(row.digest[:12], f"{row.mirror}, {row.state}") for row in rows if row.digest.startswith(incomplete)]


def complete_runs(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the ids of the newest runs, with kind and state."""
    from federator.store import runs

    rows = _read_index(ctx, lambda index: runs.list_recent_runs(index, limit=_LIMIT))
    return [(row.id, f"{row.kind}, {row.state}") for row in rows if row.id.startswith(incomplete)]


complete_sources = _complete_table("sources")
complete_mirrors = _complete_table("mirrors")
complete_roots = _complete_table("roots")


def complete_reports(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete report kinds and configured reports."""
    kinds = ("inventory", "drift", "mirrors", "freshness", "growth", "access")
    return [name for name in (*_complete_table("reports")(ctx, incomplete), *kinds) if name.startswith(incomplete)]
