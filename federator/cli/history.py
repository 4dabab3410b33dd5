"""``runs``: what was done when, and how it went."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli.context import Cli, command
from federator.cli.output import Column, ago, at, counted, lasted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.index import Index

# Journal lines of a run before the rest is only counted.
_LINES = 50


def runs(
    cli: Cli,
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN_ID]", help="One run in detail; the beginning of its id is enough.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, newest first.")] = 20,
    everything: Annotated[bool, typer.Option("--all", help="Show every failed namespace and write of the run.")] = False,
) -> None:
    """List runs, or show one with its failures and its writes."""
    from federator.index import runs as store

    with cli.index() as index:
        if run_id is None:
            _list(cli, [_run(row) for row in store.recent(index, limit=limit)])
            return
        row, sources, lines = store.get(index, run_id)
        data = _run(row)
        data["sources"] = [{**_without(source, "run_id"), "failed": _failed(index, source)} for source in sources]
        data["writes"] = [_write(line) for line in lines]
    if cli.json:
        cli.out.document(data)
    else:
        _show(cli, data, None if everything else _LINES)


def _list(cli: Cli, rows: list[dict[str, Any]]) -> None:
    if cli.json:
        cli.out.document({"runs": rows})
    elif not rows:
        cli.note("no run yet; federator crawl makes the first")
    else:
        columns = [
            Column("run"),
            Column("kind"),
            Column("state"),
            Column("by"),
            Column("started"),
            Column("took", right=True),
            Column("what", wide=True),
        ]
        cli.out.table(
            columns,
            [
                (r["id"], r["kind"], r["state"], f"{r['actor']} ({r['trigger']})", ago(r["started_at"]), _took(r), _what(r))
                for r in rows
            ],
        )


def _show(cli: Cli, run: dict[str, Any], limit: int | None) -> None:
    out = cli.out
    out.pairs([
        ("run", run["id"]), ("kind", run["kind"]), ("state", run["state"]), ("by", f"{run['actor']} ({run['trigger']})"),
        ("started", at(run["started_at"])), ("took", _took(run)), ("what", _what(run)),
    ])  # fmt: skip
    if run["error"]:
        out.line(f"error: {run['error']}")
    if run["sources"]:
        out.line()
        columns = [
            Column("source"), Column("state"), Column("tables", right=True), Column("new", right=True), Column("changed", right=True),
            Column("gone", right=True), Column("carried", right=True), Column("revision", right=True), Column("note", wide=True),
        ]  # fmt: skip
        names = ("source", "state", "tables", "added", "changed", "removed", "carried", "revision")
        out.table(columns, [[*(source[name] for name in names), _note(source)] for source in run["sources"]])
    failed = [(source["source"], item) for source in run["sources"] for item in source["failed"]]
    if failed:
        out.line()
        out.line("not read in full:")
        for name, item in failed[:limit]:
            out.line(f"  {name}{'$' if item['namespace'] else ''}{item['namespace']}  {item['state']}: {item['reason']}")
        _more(cli, failed, limit)
    if run["writes"]:
        out.line()
        out.line("writes:")
        for line in run["writes"][:limit]:
            told = f": {line['message']}" if line["message"] else ""
            out.line(f"  {line['state']:<8} {line['action']}  {line['target']}  (mirror {line['mirror']}){told}")
        _more(cli, run["writes"], limit)


def _note(source: Mapping[str, Any]) -> str:
    because = source["full_because"]
    return source["message"] or (f"read in full: {because}" if because else "")


def _more(cli: Cli, items: list[Any], limit: int | None) -> None:
    if limit is not None and len(items) > limit:
        cli.out.line(f"  and {len(items) - limit:,} more; --all shows them")


def _run(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {**row, "summary": json.loads(row["summary"]) if row["summary"] else None}


def _write(line: Mapping[Any, Any]) -> dict[str, Any]:
    kept = {
        name: line[name]
        for name in ("mirror", "action", "state", "code", "message", "op_id", "plan", "intent_at", "outcome_at")
    }
    return {"target": f"{line['target_source']}${line['target_path']}", "origin_path": line["origin_path"], **kept}


def _failed(index: Index, source: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """The namespaces whose listing proved nothing, as the run's revision has them."""
    from federator.index import coverage

    if source["revision"] is None:
        return []
    with index.read() as connection:
        found = coverage.read(connection, source["source"], source["revision"])
    rows = []
    for key, item in sorted(found.items()):
        evidence = item.presence if not item.presence.holds else item.detail
        if not evidence.holds:
            part = "presence" if not item.presence.holds else "detail"
            rows.append(
                {
                    "namespace": key,
                    "part": part,
                    "state": evidence.state.value,
                    "code": evidence.code,
                    "reason": evidence.reason,
                }
            )
    return rows


def _took(run: Mapping[Any, Any]) -> str:
    return lasted(run["finished_at"] - run["started_at"]) if run["finished_at"] else ""


def _what(run: Mapping[Any, Any]) -> str:
    summary = run["summary"]
    if not summary:
        return run["progress"] or run["error"] or ""
    outcomes = ", ".join(f"{number} {state}" for state, number in summary.get("outcomes", {}).items())
    parts = [
        f"{counted(summary['tables'], 'table')} in {counted(summary['sources'], 'source')}" if summary.get("sources") else "",
        counted(summary["changes"], "change") + (f" ({outcomes})" if outcomes else "") if summary.get("changes") else "",
        counted(summary["refusals"], "refusal") if summary.get("refusals") else "",
        counted(len(summary["errors"]), "error") if summary.get("errors") else "",
    ]
    return ", ".join(part for part in parts if part)


def _without(row: Mapping[Any, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def register(app: typer.Typer) -> None:
    command(app, "runs")(runs)
