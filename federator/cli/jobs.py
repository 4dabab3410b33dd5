"""``jobs``: list, pause, resume and run scheduled jobs."""

from __future__ import annotations

import dataclasses
import getpass
from typing import Annotated

import typer

from federator.cli.context import Cli, command, create_group
from federator.cli.printer import format_age
from federator.cli.terminal import Column
from federator.connector.errors import ConfigError

NAME = Annotated[str, typer.Argument(metavar="JOB", help="Job, crawl:SOURCE or sync:MIRROR, as jobs list shows it.")]

group = create_group("Scheduled jobs: list, pause, resume, run now.")


def list_(cli: Cli) -> None:
    """List the scheduled jobs."""
    from federator.worker.jobs import JobView, configured_jobs, list_jobs

    with cli.index() as index, index.read() as connection:
        jobs = list_jobs(connection, configured_jobs(cli.settings))
    if cli.json:
        cli.out.document({"jobs": [dataclasses.asdict(job) for job in jobs]}, rows="jobs", columns=JobView)
    elif not jobs:
        cli.print_note('no job is scheduled; set schedule = "@every 15m" in [sources.X] or [mirrors.X]')
    else:
        columns = [Column("job"), Column("schedule"), Column("state"), Column("last start"), Column("run")]
        rows = [
            (job.name, job.schedule, "paused" if job.paused else "on", format_age(job.last_started_at), job.last_run_id)
            for job in jobs
        ]
        cli.out.table(columns, rows)


def pause(cli: Cli, name: NAME) -> None:
    """Pause a job. A run in progress continues."""
    _queue_control(cli, name, "pause")


def resume(cli: Cli, name: NAME) -> None:
    """Resume a paused job."""
    _queue_control(cli, name, "resume")


def run(cli: Cli, name: NAME) -> None:
    """Queue a run of a job, even if it is paused."""
    _queue_control(cli, name, "run")


def _queue_control(cli: Cli, name: str, kind: str) -> None:
    from federator.store import requests
    from federator.worker.jobs import configured_jobs, request_argument, unknown_job_hint

    jobs = {job.name: job for job in configured_jobs(cli.settings)}
    if name not in jobs:
        raise ConfigError(f"there is no job {name!r}", hint=unknown_job_hint(jobs))
    job = jobs[name]
    kind, argument = (job.kind, request_argument(job.kind, job.subject)) if kind == "run" else (kind, {"job": name})
    with cli.index() as index, index.write() as connection:
        request = requests.queue_request(connection, kind, argument, actor=getpass.getuser())
    if cli.json:
        cli.out.document({"request": request.id, "kind": request.kind, "job": name, "state": request.state})
    else:
        cli.out.line(f"queued {kind} of {name} (request {request.id})")
        cli.print_note("federator serve executes the request")


def register(app: typer.Typer) -> None:
    command(group, "list", paged=True)(list_)
    command(group, "pause")(pause)
    command(group, "resume")(resume)
    command(group, "run")(run)
    app.add_typer(group, name="jobs")
