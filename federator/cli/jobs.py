"""``jobs``: what is scheduled; pause it, let it go on, run it now."""

from __future__ import annotations

import dataclasses
import getpass
from typing import Annotated, Any

import typer

from federator.cli.context import Cli, command
from federator.cli.output import Column, ago
from federator.connector.errors import ConfigError

NAME = Annotated[str, typer.Argument(metavar="JOB", help="crawl:SOURCE or sync:MIRROR, as jobs list shows it.")]

group = typer.Typer(help="Scheduled jobs: list, pause, resume, run now.", no_args_is_help=True, rich_markup_mode=None)


def list_(cli: Cli) -> None:
    """List the scheduled jobs."""
    from federator.schedule.jobs import listed

    with cli.index() as index, index.read() as connection:
        jobs = listed(cli.settings, connection)
    data: list[dict[str, Any]] = [
        {"name": job.name, "schedule": job.schedule, **dataclasses.asdict(state)} for job, state in jobs
    ]
    if cli.json:
        cli.out.document({"jobs": data})
    elif not data:
        cli.note('nothing is scheduled: schedule = "@every 15m" below [sources.X] or [mirrors.X] does')
    else:
        columns = [Column("job"), Column("schedule"), Column("state"), Column("last began"), Column("run")]
        rows = [
            (d["name"], d["schedule"], "paused" if d["paused"] else "on", ago(d["last_started_at"]), d["last_run_id"])
            for d in data
        ]
        cli.out.table(columns, rows)


def pause(cli: Cli, name: NAME) -> None:
    """Run a job no more until it is resumed; a run in hand goes on."""
    _ask(cli, name, "pause")


def resume(cli: Cli, name: NAME) -> None:
    """Let a paused job go on."""
    _ask(cli, name, "resume")


def run(cli: Cli, name: NAME) -> None:
    """Run a job at the worker's next turn, also where it is paused."""
    _ask(cli, name, "run")


def _ask(cli: Cli, name: str, kind: str) -> None:
    from federator.index import requests
    from federator.schedule.jobs import argument, configured

    jobs = {job.name: job for job in configured(cli.settings)}
    if name not in jobs:
        raise ConfigError(f"no job is called {name!r}", hint=f"jobs: {', '.join(jobs) or 'nothing is scheduled'}")
    job = jobs[name]
    kind, asked = (job.kind, argument(job.kind, job.subject)) if kind == "run" else (kind, {"job": name})
    with cli.index() as index, index.write() as connection:
        made = requests.add(connection, kind, asked, actor=getpass.getuser())
    if cli.json:
        cli.out.document({"request": made.id, "kind": made.kind, "job": name, "state": made.state})
    else:
        cli.out.line(f"asked for {kind} of {name} (request {made.id})")
        cli.note("the service carries it out: federator serve")


def register(app: typer.Typer) -> None:
    command(group, "list")(list_)
    command(group, "pause")(pause)
    command(group, "resume")(resume)
    command(group, "run")(run)
    app.add_typer(group, name="jobs")
