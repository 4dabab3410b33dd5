"""One table as a person reads it, and why mirrors leave it as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from federator.cli.output import Printer, at, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.index import Index
    from federator.index.history import PastTable
    from federator.index.tree import TableView


def show_table(out: Printer, view: TableView, why: list[dict[str, Any]]) -> None:
    """Prints everything of a TableView in sections; those that hold nothing are left out."""
    out.line(view.id, style="bold")
    rows = [
        ("kind", view.kind.replace("_", " ")), ("location", view.location), ("problem", view.problem), ("doc", view.doc),
        ("owner", view.owner), ("native id", view.native_id),
        ("as of", f"{at(view.crawled_at)}"), ("since", f"revision {view.since_revision}"),
        ("digest", view.digest[:12]),
    ]  # fmt: skip
    out.pairs([(name, value) for name, value in rows if value], indent="  ")
    _show_dataset(out, view.dataset)
    _section(out, "properties", [(name, value) for name, value in sorted(view.properties.items())])
    columns = view.schema or (view.dataset or {}).get("schema") or []
    _section(out, f"schema ({counted(len(columns), 'column')})", [_column(column) for column in columns])
    _lines(out, "also declared as", view.also_declared)
    _lines(
        out,
        "mirrored to",
        [f"{m['target']}  (mirror {m['mirror']}, {at(m['updated_at'])})" for m in view.mirrored if m["origin"] == view.id],
    )
    _lines(
        out,
        "mirrored from",
        [f"{m['origin']}  (mirror {m['mirror']}, {at(m['updated_at'])})" for m in view.mirrored if m["target"] == view.id],
    )
    _lines(
        out, "left as it is", [f"mirror {r['mirror']}: {r['reason']}{': ' + r['detail'] if r['detail'] else ''}" for r in why]
    )


def show_past_table(out: Printer, view: PastTable) -> None:
    """Prints a table as it was at a moment; mirrors are known for now only."""
    out.line(view.id, style="bold")
    rows = [
        ("as of", f"{at(view.at)}, revision {view.revision}"), ("since", f"revision {view.since_revision}"),
        ("kind", view.kind.replace("_", " ")), ("location", view.location), ("problem", view.problem), ("doc", view.doc),
        ("owner", view.owner), ("native id", view.native_id), ("digest", view.digest[:12]),
    ]  # fmt: skip
    out.pairs([(name, value) for name, value in rows if value], indent="  ")
    if view.dataset is not None:
        found = [("state", view.dataset["state"].replace("_", " ")), ("why", view.dataset["message"])]
        found.append(("since", at(view.dataset["since"])))
        _section(out, "verification", [(name, value) for name, value in found if value])
    _section(out, "properties", [(name, value) for name, value in sorted(view.properties.items())])
    columns = view.schema or (view.dataset or {}).get("schema") or []
    _section(out, f"schema ({counted(len(columns), 'column')})", [_column(column) for column in columns])
    _lines(out, "also declared as", view.also_declared)


def why_not_mirrored(index: Index, mirrors: Mapping[str, str], source: str, path: str) -> list[dict[str, Any]]:
    """The refusals about a table in the newest plan of each mirror; ``mirrors`` gives the origin's source by name."""
    from federator.index import plans

    found: list[dict[str, Any]] = []
    with index.read() as connection:
        for name, origin in mirrors.items():
            for row in plans.recent(connection, mirror=name, limit=1):
                for refusal in json.loads(row["body"])["refusals"]:
                    at_target = refusal["target_source"] == source and refusal["target_path"] == path
                    at_origin = origin == source and refusal["origin_path"] == path
                    if at_target or at_origin:
                        found.append(
                            {"mirror": name, "reason": refusal["reason"], "detail": refusal["detail"], "plan": row["digest"]}
                        )
    return found


def _show_dataset(out: Printer, dataset: dict[str, Any] | None) -> None:
    if dataset is None:
        _section(out, "verification", [("state", "not opened yet")])
        return
    rows = [
        ("state", dataset["state"].replace("_", " ")), ("why", dataset["message"]),
        ("version", dataset["version"]), ("rows", None if dataset["rows"] is None else f"{dataset['rows']:,}"),
        ("fragments", dataset["fragments"]), ("opened", at(dataset["checked_at"])), ("through", dataset["checked_through"]),
    ]  # fmt: skip
    _section(out, "verification", [(name, value) for name, value in rows if value is not None])


def _section(out: Printer, title: str, rows: list[tuple[str, object]]) -> None:
    if rows:
        out.line(title, style="bold")
        out.pairs(rows, indent="  ")


def _lines(out: Printer, title: str, lines: list[str]) -> None:
    if lines:
        out.line(title, style="bold")
        for line in lines:
            out.line(f"  {line}")


def _column(column: dict[str, Any]) -> tuple[str, object]:
    notes = [str(column["type"])]
    if column.get("nullable") is False:
        notes.append("not null")
    if column.get("doc"):
        notes.append(f"({column['doc']})")
    return str(column["name"]), "  ".join(notes)
