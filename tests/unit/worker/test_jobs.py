"""Jobs: they follow the configuration, APScheduler's store is a cache, and a due job becomes one request."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from federator.connector import ConfigError
from federator.settings import Settings
from federator.store import Index, job_states, requests
from federator.store import tables as t
from federator.worker import Job, configured_jobs, queue_job
from federator.worker.jobs import jobs_after_crawl, reconcile, request_argument, running_scheduler
from federator.worker.worker import ClockWatch
from tests.fixtures.waiting import wait_until


def waiting(index: Index) -> list[requests.Request]:
    with index.read() as connection:
        return requests.list_queued(connection, requests.RUN_KINDS)


def test_jobs_are_those_of_the_configuration(configure: Callable[..., Settings]) -> None:
    settings = configure('schedule = "@every 15m"', 'schedule = "0 6 * * 1-5"')
    assert configured_jobs(settings) == [Job("crawl", "lake", "@every 15m"), Job("sync", "m", "0 6 * * 1-5")]


def test_reports_and_pruning_are_jobs_too(configure: Callable[..., Settings]) -> None:
    kept = '[history]\nkeep_days = 90\n[reports.weekly]\nkind = "drift"\nschedule = "0 6 * * 1"\n[reports.by-hand]\nkind = "access"'
    settings = configure(mirror=kept)
    assert configured_jobs(settings) == [Job("report", "weekly", "0 6 * * 1"), Job("prune", "history", "17 3 * * *")]
    assert [request_argument(job.kind, job.subject) for job in configured_jobs(settings)] == [
        {"report": "weekly", "job": "report:weekly"},
        {"job": "prune:history"},
    ]


def test_a_schedule_that_cannot_be_read_names_its_key(configure: Callable[..., Settings]) -> None:
    with pytest.raises(ConfigError, match=r"\[sources.lake\] schedule: '99 \* \* \* \*' is not allowed"):
        configured_jobs(configure('schedule = "99 * * * *"'))


def test_a_due_job_asks_for_one_run(configure: Callable[..., Settings], index: Index) -> None:
    path = str(configure().path)
    queue_job("crawl", "lake", path)
    queue_job("crawl", "lake", path)
    queue_job("sync", "m", path)
    assert [(r.kind, r.argument["job"], r.actor) for r in waiting(index)] == [
        ("crawl", "crawl:lake", "schedule"),
        ("sync", "sync:m", "schedule"),
    ]


def test_a_paused_job_asks_for_none(configure: Callable[..., Settings], index: Index) -> None:
    with index.write() as connection:
        job_states.set_paused(connection, "crawl:lake", True)
    queue_job("crawl", "lake", str(configure().path))
    assert waiting(index) == []


def test_the_store_follows_the_configuration(configure: Callable[..., Settings], index: Index) -> None:
    with running_scheduler(configure('schedule = "0 6 * * *"', 'schedule = "@every 1h"'), index) as jobs:
        kept = jobs.get_job("sync:m").next_run_time
        assert {job.id for job in jobs.get_jobs()} == {"crawl:lake", "sync:m"}
    with running_scheduler(configure('schedule = "0 7 * * *"', 'schedule = "@every 1h"'), index) as jobs:
        assert jobs.get_job("crawl:lake").next_run_time.hour == 7
        assert jobs.get_job("sync:m").next_run_time >= kept
    with running_scheduler(configure(mirror='schedule = "@every 2h"'), index) as jobs:
        assert [(job.id, str(job.trigger)) for job in jobs.get_jobs()] == [("sync:m", "interval[2:00:00]")]


def test_a_first_every_runs_at_once_and_later_ones_count_from_the_last(
    configure: Callable[..., Settings], index: Index
) -> None:
    settings = configure('schedule = "@every 1h"')
    with running_scheduler(settings, index):
        wait_until(lambda: len(waiting(index)) == 1)
    with index.write() as connection:
        requests.cancel_queued(connection, waiting(index)[0].id)
        job_states.record_job_start(connection, "crawl:lake", "r1")
    other = configure('schedule = "@every 30m"')
    with running_scheduler(other, index) as jobs:
        due = jobs.get_job("crawl:lake").next_run_time - datetime.now(UTC)
        assert timedelta(minutes=29) < due <= timedelta(minutes=30)
        assert waiting(index) == []


def test_a_paused_job_stays_paused_over_a_restart(configure: Callable[..., Settings], index: Index) -> None:
    settings = configure('schedule = "@every 1s"')
    with index.write() as connection:
        job_states.set_paused(connection, "crawl:lake", True)
    with running_scheduler(settings, index) as jobs:
        assert jobs.get_job("crawl:lake").next_run_time is None
    with index.write() as connection:
        job_states.set_paused(connection, "crawl:lake", False)
    with running_scheduler(settings, index):
        wait_until(lambda: len(waiting(index)) == 1)


def test_jitter_and_grace_are_the_configurations(configure: Callable[..., Settings], index: Index) -> None:
    settings = configure('schedule = "0 6 * * *"')
    late = settings.model_copy(
        update={"schedule": settings.schedule.model_copy(update={"jitter": 90.0, "misfire_grace": 60.0})}
    )
    with running_scheduler(settings, index) as jobs:
        assert jobs.get_job("crawl:lake").trigger.jitter is None
    with running_scheduler(late, index) as jobs:
        job = jobs.get_job("crawl:lake")
        assert (job.trigger.jitter, job.misfire_grace_time, job.coalesce, job.max_instances) == (90, 60, True, 1)


def test_a_mirror_may_follow_the_crawls_of_its_origin(configure: Callable[..., Settings], index: Index) -> None:
    settings = configure('schedule = "@every 1h"', 'schedule = "@after crawl"')
    assert configured_jobs(settings)[1] == Job("sync", "m", "@after crawl")
    assert jobs_after_crawl(settings, "lake") == [Job("sync", "m", "@after crawl")]
    assert jobs_after_crawl(settings, "copy") == []
    with running_scheduler(settings, index) as jobs:
        assert [job.id for job in jobs.get_jobs()] == ["crawl:lake"]
    with pytest.raises(ConfigError, match="schedule"):
        configure('schedule = "@after crawl"')


def test_a_job_that_breaks_does_not_end_the_scheduler(configure: Callable[..., Settings], index: Index) -> None:
    settings = configure('schedule = "@every 1s"')
    settings.path.write_text("not = [toml")
    with running_scheduler(settings, index) as jobs:
        time.sleep(1.2)
        assert jobs.running
        configure('schedule = "@every 1s"')
        wait_until(lambda: len(waiting(index)) == 1)


def test_jobs_are_due_again_after_the_clock_went_back(configure: Callable[..., Settings], index: Index) -> None:
    """A worker wrote these times by a clock that was a day ahead: without a repair each job waits for a day."""
    settings = configure('schedule = "@every 1h"', 'schedule = "*/15 * * * *"')
    with running_scheduler(settings, index) as jobs:
        wait_until(lambda: len(waiting(index)) == 1)
        with index.write() as connection:
            requests.cancel_queued(connection, waiting(index)[0].id)
            job_states.record_job_start(connection, "crawl:lake", "r1")
            connection.execute(update(t.schedule_state).values(last_started_at=time.time() + 86_400))
        for job in jobs.get_jobs():
            job.modify(next_run_time=job.next_run_time + timedelta(days=1))
        reconcile(jobs, settings, index)
        assert jobs.get_job("sync:m").next_run_time - datetime.now(UTC) <= timedelta(minutes=15)
        wait_until(lambda: len(waiting(index)) == 1)


def test_a_jump_of_the_clock_is_found_once() -> None:
    wall = iter([100.0, 101.0, 86_502.0, 86_503.0, 104.0])
    watch = ClockWatch(lambda: next(wall), iter([0.0, 1.0, 2.0, 3.0, 4.0]).__next__)
    assert [watch.find_jump() for _ in range(4)] == [None, 86_400.0, None, -86_400.0]
