"""The worker's loop: lead while this process holds the lease, else stand by.

There are four threads. This loop polls requests and writes progress. A second thread runs the requests, so that the runs of a
process are serial and a cancellation is still noticed. A third one runs verifications of single tables, which do not wait for a long
crawl. APScheduler's thread queues the due jobs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from apscheduler.schedulers.background import BackgroundScheduler

from federator import audit, logs
from federator.model.notices import Notice, NoticeEvent
from federator.notify import NotificationSender
from federator.runtime.text import first_line
from federator.settings import Settings
from federator.stages.source_stores import record_stores
from federator.store import Connection, DatabaseError, job_states, notices, requests, runs
from federator.store.leases import Lease, LeaseHeld, LeaseLost, acquire_lease
from federator.worker.jobs import configured_jobs, reconcile, running_scheduler
from federator.worker.runner import RequestRunner, stop_warm_session

LEADER_LEASE = "scheduler"
_POLL_SECONDS = 0.5
# How often a standby, or a worker with an unavailable database, tries again.
_RETRY_SECONDS = 2.0
# Smaller differences of the clocks are usual corrections.
_JUMP_SECONDS = 2.0
_log = logs.get_logger(__name__)


@dataclass
class _Lane:
    """A runner with a thread of its own, and the kinds of requests that it executes one after the other."""

    runner: RequestRunner
    kinds: Sequence[str]
    pool: ThreadPoolExecutor
    current: Future[None] | None = None

    def interrupt_and_wait(self) -> None:
        """Stop the current run, if any, and wait for the call in progress."""
        while self.current is not None and wait([self.current], timeout=_POLL_SECONDS).not_done:
            self.runner.interrupt()
        self.current = None


class Worker:
    """Runs scheduled jobs and requests until ``stop``. Raise ConfigError or StateError at once for an unusable configuration or
    index."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._jobs = {job.name for job in configured_jobs(settings)}
        runner = RequestRunner(settings)
        self._index = runner.index
        self._lanes = [
            _Lane(runner, requests.RUN_KINDS, ThreadPoolExecutor(1, thread_name_prefix="run")),
            _Lane(
                RequestRunner(settings, runner.index),
                requests.SHORT_RUN_KINDS,
                ThreadPoolExecutor(1, thread_name_prefix="short"),
            ),
        ]
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Request the end of the loop. A current run ends between two writes."""
        self._stopping.set()

    def run(self) -> None:
        """Run the loop. Blocks until ``stop``."""
        standby = False
        while not self._stopping.is_set():
            try:
                with acquire_lease(self._index, LEADER_LEASE) as lease:
                    standby = False
                    with self._report_lost_lease(lease):
                        self._run_as_leader(lease)
            except LeaseHeld as error:
                if not standby:
                    _log.info("standby", leader=error.message)
                standby = True
            except (DatabaseError, LeaseLost) as error:
                _log.error("worker interrupted", error=first_line(error))
            self._stopping.wait(_RETRY_SECONDS)
        self._lanes[0].pool.submit(stop_warm_session)
        for lane in self._lanes:
            lane.pool.shutdown()
        self._index.close()

    @contextmanager
    def _report_lost_lease(self, lease: Lease) -> Iterator[None]:
        """Log and notify a lost lease before releasing it."""
        try:
            yield
        except LeaseLost:
            lease.lost.set()
            raise
        finally:
            if lease.lost.is_set():
                _log.error("worker lost its lease", lease=lease.name)
                with self._index.write() as connection:
                    message = "another process leads, or the database was unavailable for too long"
                    notices.add_notices(connection, [Notice(NoticeEvent.LEASE_LOST, f"the lease {lease.name!r}", message)])

    def _run_as_leader(self, lease: Lease) -> None:
        _log.info("worker leads", jobs=sorted(self._jobs))
        self._recover_interrupted(lease)
        record_stores(self._index, self.settings)
        self._lanes[0].pool.submit(self._lanes[0].runner.start_spark)
        sender = NotificationSender(self.settings, self._index)
        with running_scheduler(self.settings, self._index) as scheduler, sender.running(), self._stop_runs_at_end():
            clock = ClockWatch()
            while not self._stopping.wait(_POLL_SECONDS) and not lease.lost.is_set():
                if (seconds := clock.find_jump()) is not None:
                    _log.warning("clock jumped, jobs are scheduled again", seconds=round(seconds))
                    reconcile(scheduler, self.settings, self._index)
                    scheduler.wakeup()
                self._handle_controls(lease, scheduler)
                for lane in self._lanes:
                    if lane.current is not None and lane.current.done():
                        ended, lane.current = lane.current, None
                        # Raises the error of the index that ended the request.
                        ended.result()
                    if lane.current is None:
                        lane.current = self._start_next(lease, lane)
                    lane.runner.write_progress()

    @contextmanager
    def _stop_runs_at_end(self) -> Iterator[None]:
        """Whatever ends the leadership also stops the current runs."""
        try:
            yield
        finally:
            for lane in self._lanes:
                lane.interrupt_and_wait()

    def _recover_interrupted(self, lease: Lease) -> None:
        """End the runs that a dead worker left running. Their requests are queued again, once."""
        with self._index.write() as connection:
            lease.require_held(connection)
            interrupted = requests.list_running(connection)
            for request in interrupted:
                if not requests.requeue_once(connection, request):
                    requests.set_request_state(connection, request.id, requests.FAILED)
        for request in interrupted:
            if request.run_id and runs.is_running(self._index, request.run_id):
                handle = runs.RunHandle(request.run_id, request.kind, request.actor)
                runs.finish_run(self._index, handle, "interrupted", summary={}, error="its worker ended before the run did")
                _log.warning("run interrupted", run=request.run_id, error="its worker ended before the run did")
        if interrupted:
            audit.seal_pending(self._index)

    def _start_next(self, lease: Lease, lane: _Lane) -> Future[None] | None:
        """Start the oldest queued request of a lane. Return None if there is none."""
        lane.runner.stop.clear()
        with self._index.read() as connection:
            queued = requests.list_queued(connection, lane.kinds, limit=1)
        if not queued or self._stopping.is_set():
            return None
        with self._index.write() as connection:
            lease.require_held(connection)
            if not requests.claim_request(connection, queued[0].id):
                return None
        lane.runner.request = queued[0]
        return lane.pool.submit(lane.runner.execute, queued[0])

    def _handle_controls(self, lease: Lease, scheduler: BackgroundScheduler) -> None:
        """Execute queued cancellations, pauses and resumptions."""
        for lane in self._lanes:
            if lane.runner.stop.is_set():
                # A Spark job may have started just after the last interruption.
                lane.runner.interrupt()
        with self._index.read() as connection:
            controls = requests.list_queued(connection, requests.CONTROL_KINDS)
        for request in controls:
            with self._index.write() as connection:
                lease.require_held(connection)
                done = self._cancel(connection, request) if request.kind == "cancel" else self._pause(connection, request)
                requests.set_request_state(connection, request.id, requests.DONE if done else requests.FAILED)
            if done and request.kind != "cancel":
                # Outside the transaction, because the job store writes on its own connection. It does not contain jobs that follow
                # a crawl.
                job = scheduler.get_job(str(request.argument["job"]))
                if job is not None:
                    job.pause() if request.kind == "pause" else job.resume()

    def _cancel(self, connection: Connection, request: requests.Request) -> bool:
        number = request.argument.get("request")
        for lane in self._lanes:
            current = lane.runner.request
            if current is not None and number == current.id:
                _log.warning("run cancelled", request=number, actor=request.actor)
                lane.runner.interrupt()
                return True
        return requests.cancel_queued(connection, int(number or 0))

    def _pause(self, connection: Connection, request: requests.Request) -> bool:
        name = str(request.argument.get("job"))
        if name in self._jobs:
            job_states.set_paused(connection, name, request.kind == "pause")
            _log.info(f"job {request.kind}d", job=name, actor=request.actor)
        return name in self._jobs


@dataclass
class ClockWatch:
    """Detection of wall clock jumps, by comparison with the monotonic clock. After a jump, a scheduler may sleep for far too long."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    _offset: float = field(init=False)

    def __post_init__(self) -> None:
        self._offset = self.wall() - self.monotonic()

    def find_jump(self) -> float | None:
        """Return by how many seconds the wall clock jumped since the last call, negative for backwards. None if it did not."""
        previous, self._offset = self._offset, self.wall() - self.monotonic()
        jump = self._offset - previous
        return jump if abs(jump) > _JUMP_SECONDS else None
