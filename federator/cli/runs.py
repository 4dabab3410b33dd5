"""``runs``: list runs, or show one with its failures and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli import completion
from federator.cli.context import Cli, command, cut_list
from federator.cli.printer import format_age, format_duration, format_time
from federator.cli.result_output import print_hints, source_note
from federator.cli.terminal import Column
from federator.connector.errors import split_hint
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from federator.store import Index
    from federator.store.runs import Run, RunChange, RunSource

# Maximum number of listed failures and writes without --all.
_MAX_LINES = 50


@dataclass(frozen=True, slots=True)
class FailedNamespace:
    """A namespace without complete evidence. ``part`` is the incomplete one: ``presence`` or ``detail``."""

    namespace: str
    part: str
    state: str
    code: int | None
    reason: str


def runs(
    cli: Cli,
    run_id: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID", autocompletion=completion.complete_runs, help="Run to show in detail: its id, or a prefix of it."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of runs, newest first.")] = 20,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all failed namespaces and writes of the run, without a limit.")
    ] = False,
) -> None:
    """List runs, or show one with its failures and writes."""
    from federator import audit
    from federator.store import runs as store

    with cli.index() as index:
        if store.finish_interrupted_runs(index):
            audit.seal_pending(index)
        if run_id is None:
            _print_runs(cli, store.list_recent_runs(index, limit=limit + 1), limit)
            return
        run, sources, changes = store.get_run(index, run_id)
        failed = {source.source: _list_failed_namespaces(index, source) for source in sources}
    if cli.json:
        documents = [{**asdict(source), "failed": list(map(asdict, failed[source.source]))} for source in sources]
        cli.out.document({**asdict(run), "sources": documents, "writes": [_write_json(change) for change in changes]})
    else:
        _print_run(cli, run, sources, failed, changes, None if everything else _MAX_LINES)


def _print_runs(cli: Cli, listed: list[Run], limit: int) -> None:
    """Print the runs. ``listed`` has one more than the limit if there are more."""
    from federator.store.runs import Run

    rows, more = cut_list(listed, limit)
    if cli.json:
        cli.out.document({"runs": [asdict(run) for run in rows], "more": more}, rows="runs", columns=Run)
    elif not rows:
        cli.print_note("no run yet; start the first with federator crawl")
    else:
        columns = [
            Column("run"), Column("kind"), Column("state"), Column("by"), Column("started"), Column("took", right=True),
            Column("what", wide=True),
        ]  # fmt: skip
        cells = [
            (
                run.id, run.kind, run.state, f"{run.actor} ({run.trigger})", format_age(run.started_at), _format_duration(run),
                _format_subject(run),
            )
            for run in rows
        ]  # fmt: skip
        cli.out.table(columns, cells)
        if more:
            cli.print_more(limit)


def _print_run(
    cli: Cli, run: Run, sources: list[RunSource], failed_by_source: dict[str, list[FailedNamespace]],
    changes: list[RunChange], limit: int | None,
) -> None:  # fmt: skip
    out = cli.out
    out.pairs([
        ("run", run.id), ("kind", run.kind), ("state", run.state), ("by", f"{run.actor} ({run.trigger})"),
        ("started", format_time(run.started_at)), ("took", _format_duration(run)), ("what", _format_subject(run)),
    ])  # fmt: skip
    if run.error:
        message, hint = split_hint(run.error)
        out.line(f"error: {message}")
        if hint:
            out.line(f"hint: {hint}")
    if sources:
        out.line()
        columns = [
            Column("source"), Column("state"), Column("tables", right=True), Column("new", right=True), Column("changed", right=True),
            Column("removed", right=True), Column("carried", right=True), Column("revision", right=True), Column("note", wide=True),
        ]  # fmt: skip
        out.table(
            columns,
            [
                (s.source, s.state, s.tables, s.added, s.changed, s.removed, s.carried, s.revision, source_note(s))
                for s in sources
            ],
        )
        print_hints(cli, {source.source: source for source in sources})
    failed = [(name, item) for name, items in failed_by_source.items() for item in items]
    if failed:
        out.line()
        out.line("not read completely:")
        for name, item in failed[:limit]:
            # The hints are below the table of sources.
            reason, _ = split_hint(item.reason)
            out.line(f"  {name}{'$' if item.namespace else ''}{item.namespace}  {item.state}: {reason}")
        _print_remaining(cli, failed, limit)
    if changes:
        out.line()
        out.line("writes:")
        for change in changes[:limit]:
            message = f": {change.message}" if change.message else ""
            out.line(f"  {change.state:<8} {change.action}  {_target(change)}  (mirror {change.mirror}){message}")
        _print_remaining(cli, changes, limit)


def _print_remaining(cli: Cli, items: Sequence[object], limit: int | None) -> None:
    if limit is not None and len(items) > limit:
        cli.out.line(f"  and {len(items) - limit:,} more; --all shows them")


def _write_json(change: RunChange) -> dict[str, Any]:
    names = ("mirror", "action", "state", "code", "message", "op_id", "plan", "intent_at", "outcome_at")
    columns = {name: getattr(change, name) for name in names}
    return {"target": _target(change), "origin_path": change.origin_path, **columns}


def _target(change: RunChange) -> str:
    return f"{change.target_source}${change.target_path}"


def _list_failed_namespaces(index: Index, source: RunSource) -> list[FailedNamespace]:
    """List the namespaces without complete evidence in the run's revision of a source."""
    from federator.store import coverage

    if source.revision is None:
        return []
    with index.read() as connection:
        coverage_by_key = coverage.read_coverage(connection, source.source, source.revision)
    failed = []
    for key, namespace_coverage in sorted(coverage_by_key.items()):
        for part, evidence in (("presence", namespace_coverage.presence), ("detail", namespace_coverage.detail)):
            if not evidence.complete_or_carried:
                failed.append(FailedNamespace(key, part, evidence.state.value, evidence.code, evidence.reason))
                break
    return failed


def _format_duration(run: Run) -> str:
    return format_duration(run.finished_at - run.started_at) if run.finished_at else ""


def _format_subject(run: Run) -> str:
    summary = run.summary
    if not summary:
        return run.progress or run.error or ""
    outcomes = ", ".join(f"{number} {state}" for state, number in summary.get("outcomes", {}).items())
    parts = [
        f"{format_count(summary['tables'], 'table')} in {format_count(summary['sources'], 'source')}"
        if summary.get("sources")
        else "",
        format_count(summary["changes"], "change") + (f" ({outcomes})" if outcomes else "") if summary.get("changes") else "",
        format_count(summary["refusals"], "refusal") if summary.get("refusals") else "",
        format_count(len(summary["errors"]), "error") if summary.get("errors") else "",
    ]
    return ", ".join(part for part in parts if part)


def register(app: typer.Typer) -> None:
    command(app, "runs", paged=True)(runs)
