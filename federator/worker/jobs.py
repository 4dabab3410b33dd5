"""Scheduled jobs: the configured jobs are stored in APScheduler, which turns each due job into a request."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from pydantic import Field

from federator import logs
from federator.connector import ConfigError
from federator.settings import AFTER_CRAWL, Settings, load_settings
from federator.store import Connection, Index, job_states, open_index, requests
from federator.store.failures import describe_error
from federator.store.field_types import OptionalTimestamp
from federator.worker.triggers import build_trigger, interval_seconds, next_start

_log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """One scheduled job: crawl a source, sync a mirror, scan a root, build a report, or prune the history."""

    kind: str
    subject: str
    schedule: str

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.subject}"


@dataclass(frozen=True, slots=True)
class JobView:
    """A scheduled job."""

    name: Annotated[str, Field(examples=["crawl:lake_hive"])]
    schedule: Annotated[str, Field(examples=["@every 15m"])]
    paused: bool
    last_run_id: str | None
    last_started_at: OptionalTimestamp
    next_at: Annotated[
        OptionalTimestamp,
        Field(description="when it is due next; null: paused, started by a crawl, or at once because it never ran"),
    ]


def unknown_job_hint(names: Iterable[str]) -> str:
    """Return the hint for a job that is not one of ``names``."""
    return f"jobs: {', '.join(names) or 'none; a schedule of a source or a mirror makes one'}"


def configured_jobs(settings: Settings) -> list[Job]:
    """Return the configured jobs. Raise ConfigError with the name of an invalid schedule."""
    sources = [
        (f"[sources.{source.name}]", Job("crawl", source.name, source.schedule))
        for source in settings.sources.values()
        if source.schedule
    ]
    mirrors = [
        (f"[mirrors.{name}]", Job("sync", name, mirror.schedule))
        for name, mirror in settings.mirrors.items()
        if mirror.schedule
    ]
    reports = [
        (f"[reports.{name}]", Job("report", name, report.schedule))
        for name, report in settings.reports.items()
        if report.schedule
    ]
    roots = [(f"[roots.{name}]", Job("scan", name, root.schedule)) for name, root in settings.roots.items() if root.schedule]
    pruning = [("[history]", Job("prune", "history", settings.history.schedule))] if settings.history.has_limit else []
    jobs = (*sources, *mirrors, *roots, *reports, *pruning)
    for section, job in jobs:
        if job.schedule == AFTER_CRAWL:
            continue
        try:
            build_trigger(job.schedule)
        except ValueError as error:
            setting = f"{settings.path}: {section} schedule"
            raise ConfigError(
                f"{setting}: {job.schedule!r} is not allowed: {error}",
                hint='use a cron line like "*/15 * * * *", or "@every 15m"',
            ) from None
    return [job for _, job in jobs]


def list_jobs(connection: Connection, jobs: Iterable[Job]) -> list[JobView]:
    """Return jobs with their stored states."""
    states, now = job_states.list_job_states(connection), time.time()
    return [_view_job(job, states.get(job.name, job_states.JobState()), now) for job in jobs]


def _view_job(job: Job, state: job_states.JobState, now: float) -> JobView:
    has_time = not state.paused and job.schedule != AFTER_CRAWL
    next_at = next_start(job.schedule, state.last_started_at, now) if has_time else None
    return JobView(job.name, job.schedule, **asdict(state), next_at=next_at)


def jobs_after_crawl(settings: Settings, source: str) -> list[Job]:
    """Return the jobs that a crawl of a source triggers."""
    # Only mirrors can have this schedule.
    rules = settings.mirror_rules
    return [job for job in configured_jobs(settings) if job.schedule == AFTER_CRAWL and rules[job.subject].origin == source]


def request_argument(kind: str, subject: str) -> dict[str, Any]:
    """Return the argument of the request that a job adds."""
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


def queue_job(kind: str, subject: str, config_path: str) -> None:
    """Queue the run of a due job, unless the job is paused or its last run has not ended. APScheduler calls this function."""
    settings = load_settings(Path(config_path))
    index = open_index(settings.resolve_index_url(), base=settings.base)
    try:
        with index.write() as connection:
            state = job_states.list_job_states(connection).get(f"{kind}:{subject}", job_states.JobState())
            if state.paused:
                return
            request_id = requests.queue_unless_pending(connection, kind, request_argument(kind, subject), actor="schedule")
        if request_id is None:
            _log.warning("job skipped", job=f"{kind}:{subject}", reason="its last run has not ended")
    finally:
        index.close()


@contextmanager
def running_scheduler(settings: Settings, index: Index) -> Iterator[BackgroundScheduler]:
    """Run a scheduler with the configured jobs."""
    scheduler = BackgroundScheduler(
        timezone=UTC,
        jobstores={"default": SQLAlchemyJobStore(engine=index.engine)},
        job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": int(settings.schedule.misfire_grace) or 1},
    )
    scheduler.add_listener(_log_job_error, EVENT_JOB_ERROR | EVENT_JOB_MISSED)
    scheduler.start(paused=True)
    try:
        reconcile(scheduler, settings, index)
        scheduler.resume()
        yield scheduler
    finally:
        scheduler.shutdown(wait=True)


def reconcile(scheduler: BackgroundScheduler, settings: Settings, index: Index) -> None:
    """Replace the scheduler's jobs by the configured ones, each with its next time by the current clock."""
    configured = {job.name: job for job in configured_jobs(settings) if job.schedule != AFTER_CRAWL}
    with index.read() as connection:
        states = job_states.list_job_states(connection)
    stored = {job.id: job for job in scheduler.get_jobs()}
    for name in stored.keys() - configured.keys():
        stored[name].remove()
    for name, job in configured.items():
        state = states.get(name, job_states.JobState())
        args = (job.kind, job.subject, str(settings.path))
        stored_job, trigger = stored.get(name), build_trigger(job.schedule, settings.schedule.jitter)
        if (
            stored_job is None
            or stored_job.args != args
            or _is_different_trigger(stored_job.trigger, trigger)
            or _is_beyond_schedule(stored_job.next_run_time, trigger)
        ):
            first_run_at = _first_run_time(job, state)
            options = {"next_run_time": first_run_at} if first_run_at else {}
            scheduler.add_job("federator.worker:queue_job", trigger, args, id=name, name=name, replace_existing=True, **options)
        if state.paused:
            scheduler.pause_job(name)


def _is_different_trigger(first: Any, second: Any) -> bool:
    # The text of a trigger does not contain its jitter.
    return str(first) != str(second) or first.jitter != second.jitter


def _is_beyond_schedule(next_run_time: datetime | None, trigger: Any) -> bool:
    """Tell whether a job's next time is not one of its schedule: never, or far in the future because the clock was set back."""
    if next_run_time is None:
        return True
    latest = trigger.get_next_fire_time(None, datetime.now(UTC)) + timedelta(seconds=(trigger.jitter or 0) + 1)
    return bool(next_run_time > latest)


def _first_run_time(job: Job, state: job_states.JobState) -> datetime | None:
    """Return the first time of an ``@every`` job: as if the worker had not been restarted, and at once if it never ran."""
    seconds = interval_seconds(job.schedule)
    if seconds is None:
        return None
    now = datetime.now(UTC)
    if state.last_started_at is None or state.last_started_at > now.timestamp():
        return now
    return max(now, datetime.fromtimestamp(state.last_started_at + seconds, UTC))


def _log_job_error(event: JobExecutionEvent) -> None:
    if event.code == EVENT_JOB_MISSED:
        _log.warning("job missed", job=event.job_id, due=str(event.scheduled_run_time))
    else:
        _log.error("job failed", job=event.job_id, error=describe_error(event.exception))
