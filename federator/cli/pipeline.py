"""``crawl``, ``plan``, ``apply``, ``sync``: the runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli import complete, planfile, results
from federator.cli.context import Cli, command
from federator.cli.errors import OK, PENDING
from federator.cli.output import counted
from federator.cli.planview import show_plan
from federator.cli.running import need_sources, working
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.index import Index
    from federator.planning.plan import Plan
    from federator.planning.release import Approvals
    from federator.settings import Settings
    from federator.sync import Result

SOURCES = Annotated[list[str] | None, typer.Argument(metavar="[SOURCE]...", autocompletion=complete.sources, help="Default: every source.")]  # fmt: skip  # noqa: E501
MIRRORS = Annotated[list[str] | None, typer.Argument(metavar="[MIRROR]...", autocompletion=complete.mirrors, help="Default: every mirror.")]  # fmt: skip  # noqa: E501
ALL = Annotated[bool, typer.Option("--all", help="Show every change and refusal, however many.")]
MAX_FAILURES = Annotated[int | None, typer.Option("--max-failures", min=1, metavar="N", help="Begin no more changes of a mirror once N have failed.")]  # fmt: skip  # noqa: E501
YES = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def crawl(
    cli: Cli,
    sources: SOURCES = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read everything, also where a feed of changes names what is new.")
    ] = False,
    roots: Annotated[
        bool, typer.Option("--roots", help="Then scan every storage root for tables that no catalog declares.")
    ] = False,
    root: Annotated[
        list[str] | None,
        typer.Option(
            "--root", metavar="ROOT", autocompletion=complete.roots, help="Scan this root; without SOURCE, only that."
        ),
    ] = None,
) -> int:
    """Read sources into the index, and scan storage roots."""
    settings = cli.settings
    need_sources(settings)
    for name in sources or ():
        settings.source(name)
    for name in root or ():
        settings.root(name)
    scanned = list(settings.roots) if roots else root or []
    with working(cli, spark=True) as federator:
        alone = bool(root) and not sources and not roots
        result = federator.scan(scanned) if alone else federator.crawl(sources or (), full=full, roots=scanned)
    if cli.json:
        cli.out.document(results.as_data(result))
    else:
        if result.kind == "crawl":
            results.show_sources(cli, result)
        results.show_roots(cli, result)
    results.show_errors(cli, result)
    return results.exit_code(result)


def plan(
    cli: Cli,
    mirrors: MIRRORS = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Save the plans for federator apply FILE.")
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh/--no-refresh", help="Read the mirrors' sources first.")] = True,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 where changes are pending.")
    ] = False,
    everything: ALL = False,
) -> int:
    """Show what mirrors would change, and change nothing."""
    need_mirrors(cli.settings, mirrors)
    with working(cli, spark=True) as federator:
        result = federator.plan(mirrors or (), refresh=refresh)
        approved = approvals_of(federator.index, result)
    if out is not None:
        planfile.save(out, result.plans)
    show(cli, result, approved, everything=everything)
    if out is not None:
        cli.note(f"saved in {out}; federator apply {out} carries it out")
    code = results.exit_code(result)
    return PENDING if detailed_exitcode and code == OK and result.changes else code


def apply(
    cli: Cli,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Plans of federator plan -o. Default: plan first.")
    ] = None,
    yes: YES = False,
    everything: ALL = False,
    max_failures: MAX_FAILURES = None,
) -> int:
    """Carry out plans: those of FILE, or new ones after asking."""
    if file is not None:
        with working(cli, spark=False) as federator:
            federator.max_failures = max_failures
            planned = planfile.load(file, federator.index)
            result = federator.apply(planned)
        return done(cli, result)
    need_mirrors(cli.settings, None)
    return plan_and_apply(cli, cli.settings, (), yes=yes, everything=everything, max_failures=max_failures)


def sync(cli: Cli, mirrors: MIRRORS = None, max_failures: MAX_FAILURES = None) -> int:
    """Crawl, plan and apply, within what the guards allow."""
    need_sources(cli.settings)
    for name in mirrors or ():
        cli.settings.rule(name)
    with working(cli, spark=True) as federator:
        federator.max_failures = max_failures
        result = federator.sync(mirrors or ())
        approved = approvals_of(federator.index, result)
    if not cli.json:
        results.show_sources(cli, result)
        for made in result.plans:
            show_plan(cli, made, state=_state(result, made), approvals=approved[made.mirror])
    return done(cli, result)


def plan_and_apply(
    cli: Cli, settings: Settings, mirrors: tuple[str, ...], *, yes: bool, everything: bool, max_failures: int | None = None,
    pruning: bool = False,
) -> int:  # fmt: skip
    """Plans, shows, asks and applies; machines say ``--yes``. Pruning also drops namespaces in a catalog that cascades."""
    if not yes and not sys.stdin.isatty():
        raise ConfigError("this asks before it changes anything, and there is nobody to ask", hint="--yes answers")
    with working(cli, spark=True, settings=settings) as federator:
        federator.drops_confirmed = pruning
        planned = federator.plan(mirrors)
        approved = approvals_of(federator.index, planned)
    changing = [made for made in planned.plans if made.changes]
    if not changing:
        show(cli, planned, approved, everything=everything)
        return results.exit_code(planned)
    if not cli.json:
        for made in planned.plans:
            show_plan(cli, made, everything=everything, state=_state(planned, made), approvals=approved[made.mirror])
    results.show_errors(cli, planned)
    for warning in cascade_warnings(settings, changing):
        cli.note(warning)
    if not yes and not typer.confirm(f"apply {counted(planned.changes, 'change')}?", err=True):
        cli.note("nothing was changed")
        return OK
    with working(cli, spark=False, settings=settings) as federator:
        federator.max_failures, federator.drops_confirmed = max_failures, pruning
        result = federator.apply([(made, made.digest) for made in changing])
    return max(done(cli, result), results.exit_code(planned)) if result.state == "ok" else done(cli, result)


def cascade_warnings(settings: Settings, planned: list[Plan]) -> list[str]:
    """One text for each target that drops namespaces with all that is in them, where a plan does so."""
    from federator.planning.holds import drops
    from federator.registry import capabilities

    named: dict[str, list[str]] = {}
    for change in (change for made in planned for change in made.changes if drops(change)):
        if capabilities(settings.source(change.target_source).spec).drop_cascades:
            named.setdefault(change.target_source, []).append(change.target_path)
    return [
        f"{target} drops a namespace with every table in it, also those that its listing leaves out: {', '.join(paths)}"
        for target, paths in named.items()
    ]


def approvals_of(index: Index, result: Result) -> dict[str, Approvals]:
    """The approvals that hold now, by mirror, for each mirror of which the result has a plan."""
    from federator.index import approvals

    with index.read() as connection:
        return {made.mirror: approvals.current(connection, made.mirror) for made in result.plans}


def show(cli: Cli, result: Result, approvals: Mapping[str, Approvals] | None = None, *, everything: bool) -> None:
    """Plans that were made and not applied; ``approvals`` by mirror."""
    known = approvals or {}
    if cli.json:
        cli.out.document(results.as_data(result))
    else:
        for made in result.plans:
            show_plan(cli, made, everything=everything, state=_state(result, made), approvals=known.get(made.mirror))
    results.show_errors(cli, result)


def done(cli: Cli, result: Result) -> int:
    """What a run changed."""
    if cli.json:
        cli.out.document(results.as_data(result))
    else:
        results.show_outcomes(cli, result)
    results.show_errors(cli, result)
    return results.exit_code(result)


def _state(result: Result, plan: Plan) -> str | None:
    return "approved" if plan.digest in result.approved else None


def need_mirrors(settings: Settings, names: list[str] | None) -> None:
    """Raises ConfigError for a mirror that is not configured, before anything is started."""
    for name in names or ():
        settings.rule(name)
    if not settings.mirrors:
        raise ConfigError(f"{settings.path}: no mirror is configured", hint="add a table [mirrors.NAME] with from and to")


def register(app: typer.Typer) -> None:
    for function in (crawl, plan, apply, sync):
        command(app, function.__name__)(function)
