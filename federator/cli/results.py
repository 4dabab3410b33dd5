"""A Result, as JSON data and as a person reads it, and the exit code that it comes to."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from federator.cli.context import Cli
from federator.cli.errors import OF_STATE, say_error, split
from federator.cli.output import Column, counted
from federator.cli.planview import subject

if TYPE_CHECKING:
    from federator.apply import Outcome
    from federator.pipeline.publish import Published
    from federator.sync import Result

# Lines of what was not done before the rest is only counted.
SHOWN = 20


def as_data(result: Result) -> dict[str, Any]:
    """Everything a run came to, as JSON data."""
    return {
        "run": result.run_id,
        "kind": result.kind,
        "state": result.state,
        "sources": [{"name": name, **asdict(published)} for name, published in result.sources.items()],
        "roots": [asdict(scanned) for scanned in result.roots.values()],
        "plans": [
            {"digest": plan.digest, "approved": plan.digest in result.approved, **plan.to_json()} for plan in result.plans
        ],
        "outcomes": [_outcome(outcome) for outcome in result.outcomes],
        "errors": [_error(subject, text) for subject, text in result.errors.items()],
    }


def exit_code(result: Result) -> int:
    return OF_STATE[result.state]


def show_sources(cli: Cli, result: Result) -> None:
    """What each source holds and what changed."""
    columns = [
        Column("source"), Column("state"), Column("tables", right=True), Column("namespaces", right=True),
        Column("new", right=True), Column("changed", right=True), Column("gone", right=True), Column("carried", right=True),
        Column("revision", right=True), Column("note", wide=True),
    ]  # fmt: skip
    rows: list[tuple[object, ...]] = [
        (name, p.state, p.tables, p.namespaces, p.added, p.changed, p.removed, p.carried, p.revision, _note(p))
        for name, p in result.sources.items()
    ]
    rows += [(name, "failed", *[""] * 7, "see below") for name in result.errors if not name.startswith("mirror ")]
    cli.out.table(columns, rows)


def _note(published: Published) -> str | None:
    """What went wrong; else why a source was read in full that has a feed of changes."""
    because = published.full_because
    return published.message or (f"read in full: {because}" if because else None)


def show_roots(cli: Cli, result: Result) -> None:
    """What the scan of each root found."""
    if result.roots:
        columns = [
            Column("root"), Column("state"), Column("tables", right=True), Column("directories", right=True), Column("note", wide=True)
        ]  # fmt: skip
        rows = [(name, root.state, root.tables, root.directories, root.message) for name, root in result.roots.items()]
        cli.out.table(columns, rows)
        cli.note("federator drift --kind orphan lists those that no catalog declares")


def show_outcomes(cli: Cli, result: Result) -> None:
    """What became of the Changes: counts, and each one that was not made."""
    states = [outcome.state.value for outcome in result.outcomes]
    for plan in result.waiting:
        cli.out.line(f"{subject(plan)}: held, {'the rest goes on' if states else 'nothing was changed'}")
    if states:
        cli.out.line(", ".join(f"{states.count(state):,} {state.replace('_', ' ')}" for state in sorted(set(states))))
    left = [outcome for outcome in result.outcomes if outcome.state.value != "done"]
    for outcome in left[:SHOWN]:
        change = outcome.change
        cli.out.line(f"  {outcome.state.value} {change.action.value} {change.target_source}${change.target_path}")
        if outcome.message:
            cli.out.line(f"    {outcome.message}")
    if len(left) > SHOWN:
        cli.out.line(f"  and {len(left) - SHOWN:,} more: federator runs {result.run_id}")


def show_errors(cli: Cli, result: Result) -> None:
    """What failed, on stderr, and where the details are."""
    for about, text in result.errors.items():
        message, hint = split(text)
        # Most messages begin with the source's name already.
        say_error(message if message.startswith(f"{about}:") else f"{about}: {message}", hint)
    failed = sum(published.failed_namespaces for published in result.sources.values())
    if failed:
        cli.note(f"hint: {counted(failed, 'namespace')} could not be read in full; federator runs {result.run_id} says why")


def _outcome(outcome: Outcome) -> dict[str, Any]:
    change = outcome.change
    return {
        "action": change.action.value, "target": f"{change.target_source}${change.target_path}", "state": outcome.state.value,
        "code": outcome.code, "message": outcome.message, "op_id": outcome.op_id,
    }  # fmt: skip


def _error(subject: str, text: str) -> dict[str, Any]:
    message, hint = split(text)
    return {"subject": subject, "message": message, "hint": hint}
