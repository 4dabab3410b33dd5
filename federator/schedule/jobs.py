"""The scheduled jobs: what the configuration wants, kept in APScheduler, which turns each due job into a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from federator import logs
from federator.connector import ConfigError
from federator.connector.options import resolve
from federator.index import Connection, Index, open_index, requests, schedules
from federator.schedule.triggers import interval, trigger
from federator.settings import AFTER_CRAWL, Settings, load

_log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """One scheduled job: crawl a source, sync a mirror, scan a root, make a report, or prune the history."""

    kind: str
    subject: str
    schedule: str

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.subject}"


def configured(settings: Settings) -> list[Job]:
    """The jobs that the configuration wants. Raises ConfigError that names the schedule that cannot be read."""
    sources = [(f"[sources.{s.name}]", Job("crawl", s.name, s.schedule)) for s in settings.sources.values() if s.schedule]
    mirrors = [(f"[mirrors.{name}]", Job("sync", name, m.schedule)) for name, m in settings.mirrors.items() if m.schedule]
    reports = [(f"[reports.{name}]", Job("report", name, r.schedule)) for name, r in settings.reports.items() if r.schedule]
    roots = [(f"[roots.{name}]", Job("scan", name, root.schedule)) for name, root in settings.roots.items() if root.schedule]
    pruning = [("[history]", Job("prune", "history", settings.history.schedule))] if settings.history.limited else []
    everything = (*sources, *mirrors, *roots, *reports, *pruning)
    for section, job in everything:
        if job.schedule == AFTER_CRAWL:
            continue
        try:
            trigger(job.schedule)
        except ValueError as error:
            where = f"{settings.path}: {section} schedule"
            raise ConfigError(
                f"{where}: {job.schedule!r} is not allowed: {error}", hint='"*/15 * * * *" or "@every 15m"'
            ) from None
    return [job for _, job in everything]


def listed(settings: Settings, connection: Connection) -> list[tuple[Job, schedules.JobState]]:
    """The configured jobs, each with what is kept of it."""
    states = schedules.read(connection)
    return [(job, states.get(job.name, schedules.JobState())) for job in configured(settings)]


def after_crawl(settings: Settings, source: str) -> list[Job]:
    """The jobs that a crawl of a source sets off."""
    rules = settings.rules
    return [job for job in configured(settings) if job.schedule == AFTER_CRAWL and rules[job.subject].origin == source]


def argument(kind: str, subject: str) -> dict[str, Any]:
    """The argument of the request that a job makes."""
    job = {"job": f"{kind}:{subject}"}
    match kind:
        case "crawl":
            return {"sources": [subject], **job}
        case "sync":
            return {"mirrors": [subject], **job}
        case "scan":
            return {"roots": [subject], **job}
        case "report":
            return {"report": subject, **job}
    return job


def run_job(kind: str, subject: str, config_path: str) -> None:
    """What APScheduler calls when a job is due: asks for its run, unless it is paused or the last one still goes on."""
    settings = load(Path(config_path))
    index = open_index(resolve(settings.index.url, where="[index] url"), base=settings.base)
    try:
        with index.write() as connection:
            state = schedules.read(connection).get(f"{kind}:{subject}", schedules.JobState())
            if state.paused:
                return
            asked = requests.add_once(connection, kind, argument(kind, subject), actor="schedule")
        if asked is None:
            _log.warning("job skipped", job=f"{kind}:{subject}", reason="its last run has not ended")
    finally:
        index.close()


@contextmanager
def scheduler(settings: Settings, index: Index) -> Iterator[BackgroundScheduler]:
    """A running scheduler whose jobs are those of the configuration."""
    made = BackgroundScheduler(
        timezone=UTC,
        jobstores={"default": SQLAlchemyJobStore(engine=index.engine)},
        job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": int(settings.schedule.misfire_grace) or 1},
    )
    made.add_listener(_loud, EVENT_JOB_ERROR | EVENT_JOB_MISSED)
    made.start(paused=True)
    try:
        reconcile(made, settings, index)
        made.resume()
        yield made
    finally:
        made.shutdown(wait=True)


def reconcile(made: BackgroundScheduler, settings: Settings, index: Index) -> None:
    """Make the scheduler's jobs those of the configuration, each due when its schedule says by the clock of now."""
    wanted = {job.name: job for job in configured(settings) if job.schedule != AFTER_CRAWL}
    with index.read() as connection:
        states = schedules.read(connection)
    known = {job.id: job for job in made.get_jobs()}
    for name in known.keys() - wanted.keys():
        known[name].remove()
    for name, job in wanted.items():
        state = states.get(name, schedules.JobState())
        args = (job.kind, job.subject, str(settings.path))
        old, due = known.get(name), trigger(job.schedule, settings.schedule.jitter)
        if old is None or old.args != args or _differ(old.trigger, due) or _beyond(old.next_run_time, due):
            first = _first(job, state)
            options = {"next_run_time": first} if first else {}
            made.add_job("federator.schedule:run_job", due, args, id=name, name=name, replace_existing=True, **options)
        if state.paused:
            made.pause_job(name)


def _differ(one: Any, other: Any) -> bool:
    # Two triggers print alike whatever their jitter.
    return str(one) != str(other) or one.jitter != other.jitter


def _beyond(next_run_time: datetime | None, due: Any) -> bool:
    """Whether a job is not due by its schedule: it never will be, or only when a clock that went back is there again."""
    if next_run_time is None:
        return True
    latest = due.get_next_fire_time(None, datetime.now(UTC)) + timedelta(seconds=(due.jitter or 0) + 1)
    return bool(next_run_time > latest)


def _first(job: Job, state: schedules.JobState) -> datetime | None:
    """When an ``@every`` job runs first: as if no worker had been restarted, and at once if it never ran."""
    length = interval(job.schedule)
    if length is None:
        return None
    now = datetime.now(UTC)
    if state.last_started_at is None or state.last_started_at > now.timestamp():
        return now
    return max(now, datetime.fromtimestamp(state.last_started_at + length, UTC))


def _loud(event: JobExecutionEvent) -> None:
    if event.code == EVENT_JOB_MISSED:
        _log.warning("job missed", job=event.job_id, due=str(event.scheduled_run_time))
    else:
        _log.error("job failed", job=event.job_id, error=str(event.exception))
