"""Text output of one table, and the refusals of mirrors about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from federator.cli.printer import Printer, format_time
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.store import Index
    from federator.views.history import PastTable
    from federator.views.tree import MirrorLink, Table, TableVerification


@dataclass(frozen=True, slots=True)
class TableRefusal:
    """A refusal about one table in the newest plan of a mirror. ``plan`` is the digest of the plan."""

    mirror: str
    reason: str
    detail: str
    plan: str


def print_table(out: Printer, view: Table, refusals: list[TableRefusal]) -> None:
    """Print a Table in sections. Empty sections are omitted."""
    out.line(view.id, style="bold")
    rows = [
        ("kind", view.kind.replace("_", " ")), ("location", view.location), ("problem", view.problem), ("doc", view.doc),
        ("owner", view.owner), ("native id", view.native_id),
        ("as of", f"{format_time(view.freshness.crawled_at)}"), ("since", f"revision {view.since_revision}"),
        ("digest", view.digest[:12]),
    ]  # fmt: skip
    out.pairs([(name, value) for name, value in rows if value], indent="  ")
    _show_dataset(out, view.dataset)
    _section(out, "properties", [(name, value) for name, value in sorted(view.properties.items())])
    columns = view.schema or (view.dataset and view.dataset.schema) or []
    _section(out, f"schema ({format_count(len(columns), 'column')})", [_column(column) for column in columns])
    out.titled_lines("also declared as", view.also_declared)
    out.titled_lines("mirrored to", [_mirror_line(link, link.target) for link in view.mirrored if link.origin == view.id])
    out.titled_lines("mirrored from", [_mirror_line(link, link.origin) for link in view.mirrored if link.target == view.id])
    out.titled_lines(
        "refused by",
        [f"mirror {refusal.mirror}: {refusal.reason}{refusal.detail and f': {refusal.detail}'}" for refusal in refusals],
    )


def print_table_at(out: Printer, view: PastTable) -> None:
    """Print a table of a snapshot, without mirrors: they have no history."""
    out.line(view.id, style="bold")
    rows = [
        ("as of", f"{format_time(view.at)}, revision {view.revision}"), ("since", f"revision {view.since_revision}"),
        ("kind", view.kind.replace("_", " ")), ("location", view.location), ("problem", view.problem), ("doc", view.doc),
        ("owner", view.owner), ("native id", view.native_id), ("digest", view.digest[:12]),
    ]  # fmt: skip
    out.pairs([(name, value) for name, value in rows if value], indent="  ")
    if view.dataset is not None:
        verification = [("state", view.dataset.state.replace("_", " ")), ("why", view.dataset.message)]
        verification.append(("since", format_time(view.dataset.since)))
        _section(out, "verification", [(name, value) for name, value in verification if value])
    _section(out, "properties", [(name, value) for name, value in sorted(view.properties.items())])
    columns = view.schema or (view.dataset and view.dataset.schema) or []
    _section(out, f"schema ({format_count(len(columns), 'column')})", [_column(column) for column in columns])
    out.titled_lines("also declared as", view.also_declared)


def list_refusals(index: Index, mirrors: Mapping[str, str], source: str, path: str) -> list[TableRefusal]:
    """Return the refusals about a table in the newest plan of each mirror. ``mirrors`` maps mirror names to origins."""
    from federator.store import plans

    refusals: list[TableRefusal] = []
    with index.read() as connection:
        for name, origin in mirrors.items():
            for plan in plans.list_recent_plans(connection, mirror=name, limit=1):
                for refusal in plan.content["refusals"]:
                    at_target = refusal["target_source"] == source and refusal["target_path"] == path
                    at_origin = origin == source and refusal["origin_path"] == path
                    if at_target or at_origin:
                        refusals.append(TableRefusal(name, refusal["reason"], refusal["detail"], plan.digest))
    return refusals


def _mirror_line(link: MirrorLink, other: str) -> str:
    return f"{other}  (mirror {link.mirror}, {format_time(link.updated_at)})"


def _show_dataset(out: Printer, dataset: TableVerification | None) -> None:
    if dataset is None:
        _section(out, "verification", [("state", "not opened yet")])
        return
    rows = [
        ("state", dataset.state.replace("_", " ")), ("why", dataset.message),
        ("version", dataset.version), ("rows", None if dataset.rows is None else f"{dataset.rows:,}"),
        ("fragments", dataset.fragments), ("opened", format_time(dataset.checked_at)), ("through", dataset.checked_through),
    ]  # fmt: skip
    _section(out, "verification", [(name, value) for name, value in rows if value is not None])


def _section(out: Printer, title: str, rows: list[tuple[str, object]]) -> None:
    if rows:
        out.line(title, style="bold")
        out.pairs(rows, indent="  ")


def _column(column: dict[str, Any]) -> tuple[str, object]:
    notes = [str(column["type"])]
    if column.get("nullable") is False:
        notes.append("not null")
    if column.get("doc"):
        notes.append(f"({column['doc']})")
    return str(column["name"]), "  ".join(notes)
