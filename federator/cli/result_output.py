"""Output of run results: JSON data, tables and exit codes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from federator.cli.context import Cli
from federator.cli.errors import EXIT_CODE_BY_STATE, print_message
from federator.cli.plan_output import plan_title
from federator.cli.terminal import Column
from federator.connector.errors import split_hint
from federator.connector.options import mask_secrets
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.apply import Outcome
    from federator.pipeline.publish import PublishResult
    from federator.stages.result import RunResult
    from federator.store.runs import RunSource

# Maximum number of changes that are listed because they were not done.
_MAX_SHOWN = 20
# Columns of a crawl that are omitted if they say nothing about any source.
_OPTIONAL = frozenset({"carried", "note"})


def result_to_json(result: RunResult) -> dict[str, Any]:
    """Return a run's result as JSON data."""
    return {
        "run": result.run_id,
        "kind": result.kind,
        "state": result.state,
        "sources": [{"name": name, **asdict(published)} for name, published in result.sources.items()],
        "roots": [asdict(scanned) for scanned in result.roots.values()],
        "plans": [
            {"digest": plan.digest, "approved": plan.digest in result.approved, **mask_secrets(plan.to_json())}
            for plan in result.plans
        ],
        "outcomes": [_outcome_to_json(outcome) for outcome in result.outcomes],
        "errors": [_error_to_json(subject, text) for subject, text in result.errors.items()],
    }


def exit_code(result: RunResult) -> int:
    """Return the exit code of the command for the state of its run."""
    return EXIT_CODE_BY_STATE[result.state]


def print_sources(cli: Cli, result: RunResult) -> None:
    """Print a table of the sources with their counts, then the hints of their errors."""
    columns = [
        Column("source"), Column("state"), Column("tables", right=True), Column("namespaces", right=True),
        Column("new", right=True), Column("changed", right=True), Column("removed", right=True), Column("carried", right=True),
        Column("revision", right=True), Column("note", wide=True),
    ]  # fmt: skip
    rows: list[tuple[object, ...]] = [
        (name, p.state, p.tables, p.namespaces, p.added, p.changed, p.removed, p.carried, p.revision, source_note(p))
        for name, p in result.sources.items()
    ]
    # Errors have the name of a source, or a kind and a name ("mirror x"). ``print_errors`` prints them below the table.
    rows += [(name, "failed", *[""] * 7, "see below") for name in result.errors if not name.startswith("mirror ")]
    # The whole table is wider than a terminal of 80 columns; most crawls carry nothing and have no note.
    shown = [
        number for number, column in enumerate(columns) if column.title not in _OPTIONAL or any(row[number] for row in rows)
    ]
    cli.out.table([columns[number] for number in shown], [[row[number] for number in shown] for row in rows])
    print_hints(cli, result.sources)


def source_note(source: PublishResult | RunSource) -> str:
    """Return the text of the column "note": the error without its hint, else why a source with a change feed was read in full."""
    if source.message:
        return split_hint(source.message)[0]
    return f"full crawl: {source.full_because}" if source.full_because else ""


def print_hints(cli: Cli, sources: Mapping[str, PublishResult | RunSource]) -> None:
    """Print the hints of the sources' errors, which have no room in a table."""
    for name, source in sources.items():
        _, hint = split_hint(source.message or "")
        if hint:
            cli.out.line(f"  {name}: hint: {cli.repeat_option(hint)}")


def print_roots(cli: Cli, result: RunResult) -> None:
    """Print the result of each root's scan."""
    if result.roots:
        columns = [
            Column("root"), Column("state"), Column("tables", right=True), Column("directories", right=True), Column("note", wide=True)
        ]  # fmt: skip
        rows = [(name, root.state, root.tables, root.directories, root.message) for name, root in result.roots.items()]
        cli.out.table(columns, rows)
        cli.print_note("list tables that no catalog declares with federator drift --kind orphan")


def print_outcomes(cli: Cli, result: RunResult) -> None:
    """Print what became of held plans, the number of outcomes by state, and the first changes that were not done."""
    states = [outcome.state.value for outcome in result.outcomes]
    attempted = {(outcome.change.target_source, outcome.change.target_path) for outcome in result.outcomes}
    for plan in result.held_plans:
        was_attempted = any((change.target_source, change.target_path) in attempted for change in plan.changes)
        cli.out.line(
            f"{plan_title(plan)}: held, {'the other changes were attempted' if was_attempted else 'none of it was attempted'}"
        )
    if states:
        cli.out.line(", ".join(f"{states.count(state):,} {state.replace('_', ' ')}" for state in sorted(set(states))))
    not_done = [outcome for outcome in result.outcomes if outcome.state.value != "done"]
    for outcome in not_done[:_MAX_SHOWN]:
        change = outcome.change
        cli.out.line(f"  {outcome.state.value} {change.action.value} {change.target_source}${change.target_path}")
        for line in (outcome.message or "").splitlines():
            cli.out.line(f"    {line.strip()}")
    if len(not_done) > _MAX_SHOWN:
        cli.out.line(cli.repeat_option(f"  and {len(not_done) - _MAX_SHOWN:,} more: federator runs {result.run_id}"))


def print_errors(cli: Cli, result: RunResult) -> None:
    """Print errors on stderr, and the command that shows their details."""
    for subject, text in result.errors.items():
        _print_error(cli, subject, text)
    failed = sum(published.failed_namespaces for published in result.sources.values())
    if failed:
        cli.print_note(
            f"hint: {format_count(failed, 'namespace')} could not be read completely; federator runs {result.run_id} shows the reasons"
        )


def print_failed_crawls(cli: Cli, result: RunResult) -> None:
    """Print the errors of the crawls before a plan on stderr. Commands that print no table of the sources need it."""
    for name, source in result.sources.items():
        if source.message:
            _print_error(cli, name, source.message)


def _print_error(cli: Cli, subject: str, text: str) -> None:
    message, hint = split_hint(text)
    # Most messages already begin with the source's name.
    print_message(message if message.startswith(f"{subject}:") else f"{subject}: {message}", hint and cli.repeat_option(hint))


def _outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    change = outcome.change
    return {
        "action": change.action.value, "target": f"{change.target_source}${change.target_path}", "state": outcome.state.value,
        "code": outcome.code_text, "message": outcome.message, "op_id": outcome.op_id,
    }  # fmt: skip


def _error_to_json(subject: str, text: str) -> dict[str, Any]:
    message, hint = split_hint(text)
    return {"subject": subject, "message": message, "hint": hint}
