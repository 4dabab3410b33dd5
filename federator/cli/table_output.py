"""Text output of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from federator.cli.printer import Printer, format_age, format_time
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from federator.views.history import PastTable
    from federator.views.plans import TableRefusal
    from federator.views.tree import MirrorLink, Table, TableDeclaration, TableVerification


def print_table(out: Printer, view: Table, refusals: list[TableRefusal]) -> None:
    """Print a table in sections. Empty sections are omitted."""
    _print_declaration(out, view, as_of=format_time(view.freshness.crawled_at))
    _print_verification(out, view.dataset)
    _print_properties_and_schema(out, view, view.dataset.schema if view.dataset is not None else None)
    out.titled_lines("also declared as", view.also_declared)
    out.titled_lines("mirrored to", [_mirror_line(link, link.target) for link in view.mirrored if link.origin == view.id])
    out.titled_lines("mirrored from", [_mirror_line(link, link.origin) for link in view.mirrored if link.target == view.id])
    out.titled_lines(
        "refused by",
        [f"mirror {refusal.mirror}: {refusal.reason}{refusal.detail and f': {refusal.detail}'}" for refusal in refusals],
    )


def print_table_at(out: Printer, view: PastTable) -> None:
    """Print a table of a snapshot, without mirrors: they have no history."""
    _print_declaration(out, view, as_of=f"{format_time(view.at)}, revision {view.revision}")
    if view.dataset is not None:
        verification = [("state", view.dataset.state.replace("_", " ")), ("why", view.dataset.message)]
        verification.append(("since", format_time(view.dataset.since)))
        _print_section(out, "verification", [(name, value) for name, value in verification if value])
    _print_properties_and_schema(out, view, view.dataset.schema if view.dataset is not None else None)
    out.titled_lines("also declared as", view.also_declared)


def _print_declaration(out: Printer, view: TableDeclaration, *, as_of: str) -> None:
    out.line(view.id, style="bold")
    rows = [
        ("as of", as_of), ("since", f"revision {view.since_revision}"), ("kind", view.kind.replace("_", " ")),
        ("location", view.location), ("problem", view.problem), ("doc", view.doc), ("owner", view.owner), ("native id", view.native_id),
        ("digest", view.digest[:12]),
    ]  # fmt: skip
    out.pairs([(name, value) for name, value in rows if value], indent="  ")


def _print_properties_and_schema(out: Printer, view: TableDeclaration, stored_schema: list[dict[str, Any]] | None) -> None:
    """Print the properties, and the columns that the catalog has, or else those of the stored table."""
    _print_section(out, "properties", sorted(view.properties.items()))
    columns = view.schema or stored_schema or []
    _print_section(out, f"schema ({format_count(len(columns), 'column')})", [_column_row(column) for column in columns])


def _mirror_line(link: MirrorLink, other: str) -> str:
    return f"{other}  (mirror {link.mirror}, {format_age(link.updated_at)})"


def _print_verification(out: Printer, dataset: TableVerification | None) -> None:
    if dataset is None:
        _print_section(out, "verification", [("state", "not opened yet")])
        return
    rows = [
        ("state", dataset.state.replace("_", " ")), ("why", dataset.message),
        ("version", dataset.version), ("rows", None if dataset.rows is None else f"{dataset.rows:,}"),
        ("fragments", dataset.fragments), ("opened", format_time(dataset.checked_at)), ("through", dataset.checked_through),
    ]  # fmt: skip
    _print_section(out, "verification", [(name, value) for name, value in rows if value is not None])


def _print_section(out: Printer, title: str, rows: Sequence[tuple[str, object]]) -> None:
    if rows:
        out.line(title, style="bold")
        out.pairs(rows, indent="  ")


def _column_row(column: dict[str, Any]) -> tuple[str, object]:
    notes = [str(column["type"])]
    if column.get("nullable") is False:
        notes.append("not null")
    if column.get("doc"):
        notes.append(f"({column['doc']})")
    return str(column["name"]), "  ".join(notes)
