"""``validate`` checks the configuration, ``doctor`` everything that a run needs."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.context import Cli, command
from federator.cli.errors import FAILED, OK, PARTIAL, USAGE
from federator.cli.printer import format_duration
from federator.cli.terminal import Column
from federator.cli.terminal_logs import configure_terminal_logs
from federator.runtime.config_file import DEFAULT_FILE
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from federator.cli.health_checks import Check


def validate(cli: Cli) -> None:
    """Check the configuration file without opening connections."""
    settings = cli.check_settings()
    sources = [
        {"name": s.name, "impl": s.impl, "schedule": s.schedule, "options": sorted(s.properties)}
        for s in settings.sources.values()
    ]
    mirrors = [{"name": n, "from": m.origin, "to": m.target, "schedule": m.schedule} for n, m in settings.mirrors.items()]
    if cli.json:
        instance = settings.instance.id
        cli.out.document({"file": str(settings.path), "instance": instance, "sources": sources, "mirrors": mirrors})
        return
    cli.out.line(f"{settings.path}: fine, {format_count(len(sources), 'source')}, {format_count(len(mirrors), 'mirror')}")
    if sources:
        cli.out.line()
        columns = [Column("source"), Column("impl"), Column("schedule"), Column("options", wide=True)]
        cli.out.table(
            columns, [(s["name"], s["impl"], s["schedule"] or "by hand", ", ".join(s["options"] or ())) for s in sources]
        )
    if mirrors:
        cli.out.line()
        columns = [Column("mirror"), Column("from"), Column("to"), Column("schedule")]
        cli.out.table(columns, [(m["name"], m["from"], m["to"], m["schedule"] or "by hand") for m in mirrors])


def doctor(
    cli: Cli,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also start Spark and resolve each source's secrets on a worker.")
    ] = False,
) -> int:
    """Check everything that a run needs, and name the next command.

    Checks Python, Java, Spark and the index, and sends one cheap request to each source.
    """
    from federator.cli import health_checks
    from federator.cli.progress import ProgressDisplay

    configure_terminal_logs("error")
    with ProgressDisplay(quiet=cli.quiet) as progress:
        checks = list(health_checks.run_checks(cli, progress, spark=spark))
    following = _next_command(cli, checks)
    if cli.json:
        cli.out.document({"checks": [asdict(check) for check in checks], "next": following}, rows="checks")
    else:
        columns = [Column("check"), Column("state"), Column("took", right=True), Column("found", wide=True)]
        cli.out.table(
            columns, [(c.name, c.state, format_duration(c.seconds) if c.seconds else "", _format_check(c)) for c in checks]
        )
        cli.print_note(f"\nnext: {following}")
    return _exit_code(checks)


def _next_command(cli: Cli, checks: list[Check]) -> str:
    """Return the command to run after these checks: the same one as long as one has failed, else the first that has not been run."""
    option = "" if str(cli.config) == DEFAULT_FILE else f" -c {cli.config}"
    if _is_misconfigured(checks) and not cli.config.exists():
        return f"federator{option} init"
    failed = [check for check in checks if check.state == "fail"]
    if [check.hint for check in failed] == ["federator db upgrade"]:
        return f"federator{option} db upgrade"
    if failed:
        return f"federator{option} doctor, after the failed checks are fixed"
    if _lacks_a_crawl(cli):
        return f"federator{option} crawl"
    return f"federator{option} {'plan' if cli.settings.mirrors else 'tree'}"


def _lacks_a_crawl(cli: Cli) -> bool:
    """Whether the last crawl of a configured source failed, or none was made."""
    from federator.views.freshness import list_freshness

    with cli.unchecked_index() as index:
        if index.file is not None and not index.file.exists():
            return True
        states = {name: freshness.state for name, freshness in list_freshness(index).items()}
    return any(states.get(name, "never") in ("never", "failed") for name in cli.settings.sources)


def _format_check(check: Check) -> str:
    # Paths below the home directory, as those of pipx and uv, would make the table too wide for 80 columns.
    text = re.sub(rf"(?<!\S){re.escape(str(Path.home()))}(?=/)", "~", check.message)
    return f"{text}; {check.hint}" if check.hint else text


def _is_misconfigured(checks: list[Check]) -> bool:
    return any(check.name == "configuration" and check.state == "fail" for check in checks)


def _exit_code(checks: list[Check]) -> int:
    if _is_misconfigured(checks):
        return USAGE
    sources = [check for check in checks if check.source]
    failed = [check for check in sources if check.state == "fail"]
    if any(check.state == "fail" and not check.source for check in checks) or (failed and len(failed) == len(sources)):
        return FAILED
    return PARTIAL if failed else OK


def register(app: typer.Typer) -> None:
    command(app, "validate")(validate)
    command(app, "doctor")(doctor)
