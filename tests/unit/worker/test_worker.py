"""The worker's loop, with runs that need no Spark: one at a time, cancelled, failed, resumed by another worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import update

from federator import service
from federator.connector import ConfigError, ServiceUnavailable
from federator.connector.options import resolve_reference
from federator.pipeline.publish import PublishResult
from federator.settings import Settings, load_settings
from federator.stages.context import RunContext
from federator.stages.result import ProgressEvent
from federator.store import Index, job_states, migrations, notifications, open_index, requests, runs
from federator.store import tables as t
from federator.store.leases import LeaseHeld, acquire_lease
from federator.worker import Worker, runner
from federator.worker import worker as worker_module
from tests.fixtures.waiting import wait_until


class Spark:
    """Counts interruptions."""

    interrupted = 0

    def interrupt_jobs(self) -> None:
        self.interrupted += 1


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    session = Spark()
    monkeypatch.setattr(runner, "start_warm_session", lambda _: None)
    monkeypatch.setattr(runner, "interrupt_jobs", session.interrupt_jobs)
    monkeypatch.setattr(worker_module, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(worker_module, "_RETRY_SECONDS", 0.2)
    return session


@pytest.fixture
def crawl(monkeypatch: pytest.MonkeyPatch, spark: Spark) -> Callable[[Callable[..., None]], None]:
    """Makes crawling a source do something else."""

    def replace(does: Callable[..., None]) -> None:
        def crawling(work: RunContext, names: list[str], **_: bool) -> None:
            for name in names:
                with work.stage("crawl", name) as done:
                    does(work, name)
                    done("ok", "1 table")

        monkeypatch.setattr(service, "crawl_sources", crawling)

    replace(lambda *_: None)
    return replace


@contextmanager
def working(settings: Settings) -> Iterator[Worker]:
    worker = Worker(settings)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)
        assert not thread.is_alive()


def ask(index: Index, kind: str, argument: dict[str, Any]) -> int:
    with index.write() as connection:
        return requests.queue_request(connection, kind, argument, actor="ann").id


def state(index: Index, number: int) -> str:
    with index.read() as connection:
        return requests.get_request(connection, number).state


def run_of(index: Index, number: int) -> Any:
    with index.read() as connection:
        run_id = requests.get_request(connection, number).run_id
    return runs.get_run(index, run_id)[0] if run_id else None


def test_requests_run_in_order_one_at_a_time(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    seen: list[str] = []
    crawl(lambda _, name: (seen.append(f"+{name}"), time.sleep(0.2), seen.append(f"-{name}")))
    numbers = [ask(index, "crawl", {"sources": [name]}) for name in ("lake", "copy", "lake")]
    with working(configure()):
        wait_until(lambda: state(index, numbers[-1]) == "done")
    assert seen == ["+lake", "-lake", "+copy", "-copy", "+lake", "-lake"]
    assert {(run_of(index, n).state, run_of(index, n).actor, run_of(index, n).trigger) for n in numbers} == {
        ("ok", "ann", "request")
    }


def test_a_table_is_verified_beside_a_long_crawl(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    crawl(lambda work, _: work.stop.wait(60))
    long = ask(index, "crawl", {"sources": ["lake"]})
    with working(configure()):
        wait_until(lambda: run_of(index, long) is not None)
        short = ask(index, "verify", {"tables": ["lake$sales$none"]})
        wait_until(lambda: state(index, short) == "done")
        assert run_of(index, short).state == "failed"
        assert state(index, long) == "running"
        ask(index, "cancel", {"request": long})
        wait_until(lambda: state(index, long) == "cancelled")


def test_a_scheduled_job_runs_and_is_remembered(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    with working(configure('schedule = "@every 1h"')):
        wait_until(lambda: [run.state for run in runs.list_recent_runs(index)] == ["ok"])
    (run,) = runs.list_recent_runs(index)
    assert (run.trigger, run.actor) == ("schedule", "schedule")
    with index.read() as connection:
        assert job_states.list_job_states(connection)["crawl:lake"].last_run_id == run.id


def test_progress_is_read_while_it_runs(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    go = threading.Event()

    def slow(federator: Any, name: str) -> None:
        federator.on_progress(ProgressEvent("change", "declare_table copy$x", "done"))
        assert go.wait(60)

    crawl(slow)
    number = ask(index, "crawl", {"sources": ["lake"]})
    with working(configure()):
        wait_until(lambda: "declare_table copy$x: done" in (getattr(run_of(index, number), "progress", "") or ""))
        assert "crawl lake: running" in run_of(index, number).progress
        go.set()
        wait_until(lambda: state(index, number) == "done")
    assert run_of(index, number).progress is None


@pytest.mark.parametrize(
    "error", [ServiceUnavailable("the catalog is away"), ZeroDivisionError("a bug")], ids=["ours", "a bug"]
)
def test_a_run_that_fails_says_so_and_ends_nothing(
    configure: Callable[..., Settings], index: Index, crawl: Any, error: Exception
) -> None:
    def fail(_: Any, name: str) -> None:
        if name == "lake":
            raise error

    crawl(fail)
    bad, unknown, good = (ask(index, "crawl", {"sources": [name]}) for name in ("lake", "nope", "copy"))
    with working(configure()):
        wait_until(lambda: state(index, good) == "done")
    assert (state(index, bad), run_of(index, bad).state) == ("failed", "failed")
    assert str(error) in run_of(index, bad).error
    assert (state(index, unknown), run_of(index, unknown).state) == ("done", "ok")
    assert run_of(index, good).state == "ok"


@pytest.mark.parametrize(
    ("kind", "argument", "text", "trigger"),
    [
        ("sync", {"mirrors": ["gone"], "job": "sync:gone"}, "no mirror", "schedule"),
        ("apply", {"plans": ["x"]}, "no plan", "request"),
    ],
)
def test_a_request_that_fails_before_its_run_gets_one_that_says_why(
    configure: Callable[..., Settings], index: Index, crawl: Any, kind: str, argument: dict[str, Any], text: str, trigger: str
) -> None:  # fmt: skip
    number = ask(index, kind, argument)
    with working(configure()):
        wait_until(lambda: state(index, number) == "failed")
    assert (run_of(index, number).state, run_of(index, number).trigger) == ("failed", trigger)
    assert text in run_of(index, number).error


def test_a_run_in_hand_is_cancelled_and_the_next_one_runs(
    configure: Callable[..., Settings], index: Index, crawl: Any, spark: Spark
) -> None:
    def until_interrupted(_: Any, name: str) -> None:
        if name == "lake":
            wait_until(lambda: spark.interrupted > 0)
            raise RuntimeError("the job was interrupted")

    crawl(until_interrupted)
    first, second = ask(index, "crawl", {"sources": ["lake", "copy"]}), ask(index, "crawl", {"sources": ["copy"]})
    third = ask(index, "crawl", {"sources": ["lake"]})
    with working(configure()):
        wait_until(lambda: run_of(index, first) is not None)
        wait_until(lambda: ask(index, "cancel", {"request": third}) > 0)
        cancel = ask(index, "cancel", {"request": first})
        wait_until(lambda: state(index, second) == "done")
        assert (state(index, first), run_of(index, first).state, state(index, cancel)) == (
            "cancelled",
            "interrupted",
            "done",
        )
        assert (state(index, third), run_of(index, third)) == ("cancelled", None)
        late = ask(index, "cancel", {"request": first})
        wait_until(lambda: state(index, late) == "failed")
    assert run_of(index, second).state == "ok"


def test_jobs_are_paused_and_resumed_on_request(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    with index.write() as connection:
        job_states.record_job_start(connection, "crawl:lake", "r0")
    with working(configure('schedule = "@every 1s"')):
        pause = ask(index, "pause", {"job": "crawl:lake"})
        wait_until(lambda: state(index, pause) == "done")
        # What had begun before the pause still ends; then nothing comes for longer than from one time to the next.
        wait_until(lambda: _in_a_while(index) == 0)
        before = len(runs.list_recent_runs(index, limit=100))
        resume, unknown = ask(index, "resume", {"job": "crawl:lake"}), ask(index, "pause", {"job": "nope"})
        wait_until(lambda: len(runs.list_recent_runs(index, limit=100)) > before)
        assert (state(index, resume), state(index, unknown)) == ("done", "failed")


def _in_a_while(index: Index) -> int:
    """How many runs come within a little more than a second."""
    before = len(runs.list_recent_runs(index, limit=100))
    time.sleep(1.2)
    return len(runs.list_recent_runs(index, limit=100)) - before


def test_a_crawl_sets_off_the_mirrors_that_follow_it(
    configure: Callable[..., Settings], index: Index, crawl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def crawling(work: RunContext, name: str) -> None:
        asked.append([work.run.kind, name])
        work.result.sources[name] = PublishResult(1, "ok")

    crawl(crawling)
    monkeypatch.setattr(service, "plan_mirrors", lambda *_: None)
    number = ask(index, "crawl", {"sources": ["lake"]})
    with working(configure(mirror='schedule = "@after crawl"')):
        wait_until(lambda: state(index, number) == "done")
        wait_until(lambda: len(asked) == 2)
    # The origin has just been read: only the target is read for the plan.
    assert asked == [["crawl", "lake"], ["sync", "copy"]]


def test_a_standby_takes_over(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    seen: list[str] = []
    crawl(lambda federator, name: seen.append(threading.current_thread().name))
    settings = configure()
    with working(settings) as first:
        wait_until(lambda: held(index))
        with working(settings):
            number = ask(index, "crawl", {"sources": ["lake"]})
            wait_until(lambda: state(index, number) == "done")
            first.stop()
            number = ask(index, "crawl", {"sources": ["lake"]})
            wait_until(lambda: state(index, number) == "done")
    assert len(seen) == 2
    assert not held(index)


def test_what_a_dead_worker_left_running_is_taken_up_again_once(
    configure: Callable[..., Settings], index: Index, crawl: Any
) -> None:
    crawl(lambda federator, name: None)
    run = runs.insert_run(index, "crawl", trigger="request", actor="ann")
    left, twice = ask(index, "crawl", {"sources": ["lake"]}), ask(index, "crawl", {"again": True})
    with index.write() as connection:
        requests.set_request_state(connection, left, requests.RUNNING, run_id=run.id)
        requests.set_request_state(connection, twice, requests.RUNNING)
    with working(configure()):
        wait_until(lambda: state(index, twice) == "failed")
        wait_until(lambda: state(index, left) == "done")
        assert run_of(index, left).id != run.id
        assert runs.get_run(index, run.id)[0].state == "interrupted"


def test_a_lost_lease_ends_the_lead_and_its_run(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    def wait(federator: Any, name: str) -> None:
        if name == "lake":
            assert federator.stop.wait(60)

    crawl(wait)
    number = ask(index, "crawl", {"sources": ["lake"]})
    hook = '[notify.ops]\nkind = "webhook"\nurl = "http://127.0.0.1:9/x"\ngroup_wait = "1h"'
    with working(configure(mirror=hook)):
        wait_until(lambda: run_of(index, number) is not None)
        with index.write() as connection:
            connection.execute(update(t.lease).where(t.lease.c.name == "scheduler").values(token=99))
        pause = ask(index, "cancel", {"request": 0})
        wait_until(lambda: run_of(index, number).state == "interrupted")
        wait_until(lambda: state(index, pause) == "failed")
        again = ask(index, "crawl", {"sources": ["copy"]})
        wait_until(lambda: state(index, again) == "done")
        wait_until(lambda: ("lease_lost", "the lease 'scheduler'") in list_notified(index))


def test_the_end_of_the_worker_interrupts_the_run(configure: Callable[..., Settings], index: Index, crawl: Any) -> None:
    crawl(lambda federator, name: federator.stop.wait(60))
    number = ask(index, "crawl", {"sources": ["lake"]})
    with working(configure()):
        wait_until(lambda: run_of(index, number) is not None)
    assert (state(index, number), run_of(index, number).state) == ("cancelled", "interrupted")
    assert not held(index)


def test_a_worker_refuses_what_it_could_not_run(configure: Callable[..., Settings]) -> None:
    with pytest.raises(ConfigError, match="schedule"):
        Worker(configure('schedule = "61 * * * *"'))


def list_notified(index: Index) -> list[tuple[str, str]]:
    """What notifications tell of: event and subject."""
    with index.read() as connection:
        rows = notifications.list_notifications(connection)
    return [(event["event"], event["subject"]) for row in rows for event in row.first]


def held(index: Index) -> bool:
    try:
        with acquire_lease(index, "scheduler"):
            return False
    except LeaseHeld:
        return True


def test_it_works_on_postgresql_too(
    configure: Callable[..., Settings], crawl: Any, postgres_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job store, requests, a pause, a cancel, and a standby that takes over when the leader lets go."""
    monkeypatch.setenv("POSTGRES_INDEX", postgres_database())
    crawl(lambda federator, name: federator.stop.wait(60) if name == "copy" else None)
    settings = configure('schedule = "@every 1h"')
    text = settings.path.read_text(encoding="utf-8")
    settings.path.write_text(f'[index]\nurl = "${{POSTGRES_INDEX}}"\n{text}', encoding="utf-8")
    settings = load_settings(settings.path)
    index = open_index(resolve_reference(settings.index.url, where=""))
    migrations.upgrade_schema(index)
    with working(settings) as first:
        wait_until(lambda: [run.trigger for run in runs.list_recent_runs(index)] == ["schedule"])
        with working(settings):
            pause, hanging = ask(index, "pause", {"job": "crawl:lake"}), ask(index, "crawl", {"sources": ["copy"]})
            wait_until(lambda: run_of(index, hanging) is not None and state(index, pause) == "done")
            ask(index, "cancel", {"request": hanging})
            wait_until(lambda: state(index, hanging) == "cancelled")
            first.stop()
            number = ask(index, "crawl", {"sources": ["lake"]})
            wait_until(lambda: state(index, number) == "done")
    index.close()
