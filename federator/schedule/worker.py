"""The worker's loop: lead while we hold the lease, else stand by.

Three threads: this loop polls requests and writes progress; one more runs them, so that runs of a process are serial and a cancel is
still heard; APScheduler's own wakes the jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from apscheduler.schedulers.background import BackgroundScheduler

from federator import audit, logs
from federator.index import Connection, DatabaseError, notices, requests, runs, schedules
from federator.index.leases import Lease, LeaseHeld, LeaseLost, hold
from federator.model.notices import Event, Notice
from federator.notify import Courier
from federator.schedule.clock import ClockWatch
from federator.schedule.execute import Runner
from federator.schedule.jobs import configured, reconcile, scheduler
from federator.schedule.warm import cool
from federator.settings import Settings

LEASE = "scheduler"
_POLL = 0.5
# How often a standby, or a worker whose database does not answer, tries again.
_RETRY = 2.0
_log = logs.get(__name__)


class Worker:
    """Runs scheduled jobs and requests until ``stop``. Raises ConfigError and StateError at once for what cannot work."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._jobs = {job.name for job in configured(settings)}
        self._runner = Runner(settings)
        self._index = self._runner.index
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Asks the loop to end; a run in hand ends between two writes."""
        self._stopping.set()

    def run(self) -> None:
        """Blocks until ``stop``."""
        standby = False
        with ThreadPoolExecutor(1, thread_name_prefix="run") as pool:
            while not self._stopping.is_set():
                try:
                    with hold(self._index, LEASE) as lease:
                        standby = False
                        with self._loud(lease):
                            self._lead(lease, pool)
                except LeaseHeld as error:
                    if not standby:
                        _log.info("standby", leader=error.message)
                    standby = True
                except (DatabaseError, LeaseLost) as error:
                    _log.error("worker interrupted", error=str(error).splitlines()[0])
                self._stopping.wait(_RETRY)
            pool.submit(cool)
        self._index.close()

    @contextmanager
    def _loud(self, lease: Lease) -> Iterator[None]:
        """Whoever is told of such things hears that the lease went before we let it go."""
        try:
            yield
        except LeaseLost:
            lease.lost.set()
            raise
        finally:
            if lease.lost.is_set():
                _log.error("worker lost its lease", lease=lease.name)
                with self._index.write() as connection:
                    text = "another process leads, or the database was away for too long"
                    notices.add(connection, [Notice(Event.LEASE_LOST, f"the lease {lease.name!r}", text)])

    def _lead(self, lease: Lease, pool: ThreadPoolExecutor) -> None:
        _log.info("worker leads", jobs=sorted(self._jobs))
        self._recover(lease)
        pool.submit(self._runner.warm)
        courier = Courier(self.settings, self._index)
        with scheduler(self.settings, self._index) as jobs, courier.at_work(), self._in_hand() as current:
            clock = ClockWatch()
            while not self._stopping.wait(_POLL) and not lease.lost.is_set():
                if (seconds := clock.find_jump()) is not None:
                    _log.warning("the clock jumped: jobs are scheduled again", seconds=round(seconds))
                    reconcile(jobs, self.settings, self._index)
                    jobs.wakeup()
                self._obey(lease, jobs)
                if current and current[0].done():
                    current.pop().result()
                if not current:
                    current += self._next(lease, pool)
                self._runner.show()

    @contextmanager
    def _in_hand(self) -> Iterator[list[Future[None]]]:
        """The run in hand, if any. Whatever ends our lead also stops it, and waits for the call in flight."""
        current: list[Future[None]] = []
        try:
            yield current
        finally:
            while current and wait(current, timeout=_POLL).not_done:
                self._runner.interrupt()

    def _recover(self, lease: Lease) -> None:
        """What a dead worker left running is not running: its run has ended, and its request is taken up again, once."""
        with self._index.write() as connection:
            lease.check(connection)
            left = requests.running(connection)
            for request in left:
                if not requests.again(connection, request):
                    requests.set_state(connection, request.id, requests.FAILED)
        for request in left:
            if request.run_id and runs.going(self._index, request.run_id):
                handle = runs.RunHandle(request.run_id, request.kind, request.actor)
                runs.finish(self._index, handle, "interrupted", summary={}, error="its worker ended before it did")
                _log.warning("run interrupted", run=request.run_id, error="its worker ended before it did")
        if left:
            audit.seal(self._index)

    def _next(self, lease: Lease, pool: ThreadPoolExecutor) -> list[Future[None]]:
        """Begins the oldest request that waits."""
        self._runner.stop.clear()
        with self._index.read() as connection:
            waiting = requests.queued(connection, requests.RUNS, limit=1)
        if not waiting or self._stopping.is_set():
            return []
        with self._index.write() as connection:
            lease.check(connection)
            if not requests.claim(connection, waiting[0].id):
                return []
        self._runner.request = waiting[0]
        return [pool.submit(self._runner.carry_out, waiting[0])]

    def _obey(self, lease: Lease, jobs: BackgroundScheduler) -> None:
        """Cancels, pauses and resumes, as asked."""
        if self._runner.stop.is_set():
            # A Spark job may have begun just after the last interruption.
            self._runner.interrupt()
        with self._index.read() as connection:
            asked = requests.queued(connection, requests.CONTROLS)
        for request in asked:
            with self._index.write() as connection:
                lease.check(connection)
                done = self._cancel(connection, request) if request.kind == "cancel" else self._pause(connection, request)
                requests.set_state(connection, request.id, requests.DONE if done else requests.FAILED)
            if done and request.kind != "cancel":
                # Outside the transaction: the job store writes on a connection of its own, and has no jobs that follow a crawl.
                job = jobs.get_job(str(request.argument["job"]))
                if job is not None:
                    job.pause() if request.kind == "pause" else job.resume()

    def _cancel(self, connection: Connection, request: requests.Request) -> bool:
        number, current = request.argument.get("request"), self._runner.request
        if current is not None and number == current.id:
            _log.warning("run cancelled", request=number, actor=request.actor)
            self._runner.interrupt()
            return True
        return requests.withdraw(connection, int(number or 0))

    def _pause(self, connection: Connection, request: requests.Request) -> bool:
        name = str(request.argument.get("job"))
        if name in self._jobs:
            schedules.pause(connection, name, request.kind == "pause")
            _log.info(f"job {request.kind}d", job=name, actor=request.actor)
        return name in self._jobs
