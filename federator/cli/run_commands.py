"""``crawl``, ``plan``, ``apply`` and ``sync``: commands that start runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli import completion, plan_file, result_output
from federator.cli.context import Cli, command
from federator.cli.errors import OK, PENDING
from federator.cli.interactive_run import open_run, require_sources
from federator.cli.plan_output import print_plan
from federator.connector.errors import ConfigError
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.planning.plan import Plan
    from federator.planning.release import Approvals
    from federator.settings import Settings
    from federator.stages.result import RunResult
    from federator.store import Index

SOURCES = Annotated[list[str] | None, typer.Argument(metavar="SOURCE", autocompletion=completion.complete_sources, help="Sources. Default: all sources.")]  # fmt: skip  # noqa: E501
MIRRORS = Annotated[list[str] | None, typer.Argument(metavar="MIRROR", autocompletion=completion.complete_mirrors, help="Mirrors. Default: all mirrors.")]  # fmt: skip  # noqa: E501
ALL = Annotated[bool, typer.Option("--all", help="Show all changes and refusals, without a limit.")]
MAX_FAILURES = Annotated[int | None, typer.Option("--max-failures", min=1, metavar="N", help="Start no more changes of a mirror after N failures.")]  # fmt: skip  # noqa: E501
YES = Annotated[bool, typer.Option("--yes", "-y", help="Apply without a confirmation prompt.")]


def crawl(
    cli: Cli,
    sources: SOURCES = None,
    full: Annotated[bool, typer.Option("--full", help="Full crawl, even if the catalog has a change feed.")] = False,
    roots: Annotated[
        bool, typer.Option("--roots", help="Scan all storage roots afterwards, for tables that no catalog declares.")
    ] = False,
    root: Annotated[
        list[str] | None,
        typer.Option(
            "--root",
            metavar="ROOT",
            autocompletion=completion.complete_roots,
            help="Scan this storage root. Without SOURCE, nothing else is read. Repeatable.",
        ),
    ] = None,
) -> int:
    """Read sources into the index, and scan storage roots."""
    settings = cli.settings
    require_sources(settings)
    for name in sources or ():
        settings.source(name)
    for name in root or ():
        settings.root(name)
    scanned = list(settings.roots) if roots else root or []
    with open_run(cli, spark=True) as federator:
        scan_only = bool(root) and not sources and not roots
        result = federator.scan(scanned) if scan_only else federator.crawl(sources or (), full=full, roots=scanned)
    if cli.json:
        cli.out.document(result_output.result_to_json(result))
    else:
        if result.kind == "crawl":
            result_output.print_sources(cli, result)
        result_output.print_roots(cli, result)
    result_output.print_errors(cli, result)
    return result_output.exit_code(result)


def plan(
    cli: Cli,
    mirrors: MIRRORS = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to save the plans in, for federator apply FILE.")
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh/--no-refresh", help="Crawl the mirrors' sources first. Default: --refresh.")
    ] = True,
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 if changes are pending.")] = False,
    everything: ALL = False,
) -> int:
    """Plan mirrors and show the changes without applying them."""
    require_mirrors(cli.settings, mirrors)
    with open_run(cli, spark=True) as federator:
        result = federator.plan(mirrors or (), refresh=refresh)
        approved = approvals_of(federator.index, result)
    if out is not None:
        plan_file.save_plans(out, result.plans)
    print_plans(cli, result, approved, everything=everything)
    if out is not None:
        cli.print_note(f"saved in {out}; apply it with federator apply {out}")
    code = result_output.exit_code(result)
    return PENDING if detailed_exitcode and code == OK and result.change_count else code


def apply(
    cli: Cli,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File of federator plan -o. Default: create new plans.")
    ] = None,
    yes: YES = False,
    everything: ALL = False,
    max_failures: MAX_FAILURES = None,
) -> int:
    """Apply plans: those in FILE, or new ones after a confirmation."""
    if file is not None:
        with open_run(cli, spark=False) as federator:
            federator.max_failures = max_failures
            planned = plan_file.load_plans(file, federator.index)
            result = federator.apply(planned)
        return print_result(cli, result)
    require_mirrors(cli.settings, None)
    return plan_and_apply(cli, cli.settings, (), yes=yes, everything=everything, max_failures=max_failures)


def sync(cli: Cli, mirrors: MIRRORS = None, max_failures: MAX_FAILURES = None) -> int:
    """Crawl, plan and apply. Changes that a guard holds are not applied."""
    require_sources(cli.settings)
    for name in mirrors or ():
        cli.settings.mirror_rule(name)
    with open_run(cli, spark=True) as federator:
        federator.max_failures = max_failures
        result = federator.sync(mirrors or ())
        approved = approvals_of(federator.index, result)
    if not cli.json:
        result_output.print_sources(cli, result)
        for plan in result.plans:
            print_plan(cli, plan, state=_plan_state(result, plan), approvals=approved[plan.mirror])
    return print_result(cli, result)


def plan_and_apply(
    cli: Cli, settings: Settings, mirrors: tuple[str, ...], *, yes: bool, everything: bool, max_failures: int | None = None,
    pruning: bool = False,
) -> int:  # fmt: skip
    """Plan, show, ask and apply. Scripts use ``--yes``. Pruning also drops namespaces in a catalog whose drops cascade."""
    if not yes and not sys.stdin.isatty():
        raise ConfigError("a confirmation is needed, but stdin is not a terminal", hint="confirm with --yes")
    with open_run(cli, spark=True, settings=settings) as federator:
        federator.drops_confirmed = pruning
        planned = federator.plan(mirrors)
        approved = approvals_of(federator.index, planned)
    changing = [plan for plan in planned.plans if plan.changes]
    if not changing:
        print_plans(cli, planned, approved, everything=everything)
        return result_output.exit_code(planned)
    if not cli.json:
        for plan in planned.plans:
            print_plan(cli, plan, everything=everything, state=_plan_state(planned, plan), approvals=approved[plan.mirror])
    result_output.print_failed_crawls(cli, planned)
    result_output.print_errors(cli, planned)
    for warning in cascade_warnings(settings, changing):
        cli.print_note(warning)
    if not yes and not typer.confirm(f"apply {format_count(planned.change_count, 'change')}?", err=True):
        cli.print_note("nothing was changed")
        return OK
    with open_run(cli, spark=False, settings=settings) as federator:
        federator.max_failures, federator.drops_confirmed = max_failures, pruning
        result = federator.apply([(plan, plan.digest) for plan in changing])
    return (
        max(print_result(cli, result), result_output.exit_code(planned)) if result.state == "ok" else print_result(cli, result)
    )


def cascade_warnings(settings: Settings, planned: list[Plan]) -> list[str]:
    """Return a warning for each target whose namespace drops cascade, if a plan drops namespaces in it."""
    from federator.planning.holds import is_namespace_drop
    from federator.registry import source_capabilities

    paths_by_target: dict[str, list[str]] = {}
    for change in (change for plan in planned for change in plan.changes if is_namespace_drop(change)):
        if source_capabilities(settings.source(change.target_source).spec).drop_cascades:
            paths_by_target.setdefault(change.target_source, []).append(change.target_path)
    return [
        f"{target} drops a namespace with every table in it, also those that its listing leaves out: {', '.join(paths)}"
        for target, paths in paths_by_target.items()
    ]


def approvals_of(index: Index, result: RunResult) -> dict[str, Approvals]:
    """Return the valid approvals of each mirror that has a plan in the result."""
    from federator.store import approvals

    with index.read() as connection:
        return {plan.mirror: approvals.get_valid(connection, plan.mirror) for plan in result.plans}


def print_plans(cli: Cli, result: RunResult, approvals: Mapping[str, Approvals] | None = None, *, everything: bool) -> None:
    """Print plans that were not applied. ``approvals`` is by mirror."""
    approvals_by_mirror = approvals or {}
    if cli.json:
        cli.out.document(result_output.result_to_json(result))
    else:
        for plan in result.plans:
            print_plan(
                cli,
                plan,
                everything=everything,
                state=_plan_state(result, plan),
                approvals=approvals_by_mirror.get(plan.mirror),
            )
    result_output.print_failed_crawls(cli, result)
    result_output.print_errors(cli, result)


def print_result(cli: Cli, result: RunResult) -> int:
    """Print what a run changed. Return the exit code."""
    if cli.json:
        cli.out.document(result_output.result_to_json(result))
    else:
        result_output.print_outcomes(cli, result)
    result_output.print_errors(cli, result)
    return result_output.exit_code(result)


def _plan_state(result: RunResult, plan: Plan) -> str | None:
    return "approved" if plan.digest in result.approved else None


def require_mirrors(settings: Settings, names: list[str] | None) -> None:
    """Raise ConfigError for a mirror that is not configured, before a run starts."""
    for name in names or ():
        settings.mirror_rule(name)
    if not settings.mirrors:
        raise ConfigError(f"{settings.path}: no mirror is configured", hint="add a table [mirrors.NAME] with from and to")


def register(app: typer.Typer) -> None:
    for function in (crawl, plan, apply, sync):
        command(app, function.__name__)(function)
