"""Carrying out requests through one warm Federator."""

from __future__ import annotations

import json
import threading
from typing import Any

from federator import logs
from federator.connector import FederatorError, StateError
from federator.index import plans, requests, runs, schedules
from federator.planning.plan import Plan
from federator.schedule.jobs import after_crawl, argument
from federator.schedule.progress import Progress
from federator.schedule.warm import warm
from federator.settings import Settings
from federator.sync import Federator, Result
from federator.sync.declaring import Wanted
from federator.sync.reporting import ReportWanted

_log = logs.get(__name__)


class Runner:
    """Carries out one request at a time. ``carry_out`` belongs to one thread, the rest to the worker's loop."""

    def __init__(self, settings: Settings) -> None:
        self.index = Federator.open(settings).index
        self.stop = threading.Event()
        self.request: requests.Request | None = None
        self._settings = settings
        self._handle: runs.RunHandle | None = None
        self._progress = Progress()
        self._spark: Any = None
        self._federator = Federator(settings, self.index, self._progress.note, self.stop, self._begun)

    def warm(self) -> None:
        """Starts Spark; if it does not start, each run says so again."""
        try:
            self._spark = warm(self._settings)
            _log.info("spark is ready")
        except FederatorError as error:
            _log.error("spark does not start", error=str(error))

    def carry_out(self, request: requests.Request) -> None:
        """Runs a request to its end, whatever that is; raises only what the index raises."""
        state = requests.FAILED
        with logs.bound(request=request.id, run=None):
            try:
                result = self._run(request)
                self._tell(result)
                self._follow(result)
                state = requests.CANCELLED if result.state == "interrupted" else requests.DONE
            except FederatorError as error:
                self._failed(request, str(error))
            except Exception as error:  # noqa: BLE001 - the one boundary: no job may end the worker
                _log.exception("run broke")
                self._failed(request, f"{type(error).__name__}: {error}")
            finally:
                self.request = self._handle = None
                self._progress.clear()
                with self.index.write() as connection:
                    requests.set_state(connection, request.id, state)

    def interrupt(self) -> None:
        """Stops the run in hand: between two writes, or in the middle of a Spark job."""
        self.stop.set()
        if self.request is not None and self._spark is not None:
            self._spark.interruptAll()

    def show(self) -> None:
        """Writes new progress to the run's row."""
        handle, text = self._handle, self._progress.take()
        if handle is not None and text is not None:
            runs.progress(self.index, handle, text)

    def _run(self, request: requests.Request) -> Result:
        asked, do = request.argument, self._federator
        how: dict[str, Any] = {"trigger": "schedule" if asked.get("job") else "request", "actor": request.actor}
        match request.kind:
            case "crawl":
                return do.crawl(asked.get("sources") or [], full=bool(asked.get("full")), **how)
            case "plan":
                return do.plan(asked.get("mirrors") or [], **how)
            case "sync":
                return do.sync(asked.get("mirrors") or [], fresh=asked.get("fresh") or [], **how)
            case "apply":
                return do.apply([self._plan(digest) for digest in asked.get("plans") or []], **how)
            case "declare":
                wanted = Wanted(asked["places"], asked["into"], asked.get("template"), roots=bool(asked.get("roots")))
                return do.declare(wanted, **how)
            case "scan":
                return do.scan(asked.get("roots") or [], **how)
            case "prune":
                return do.prune(**how)
            case "report":
                return do.make_report(ReportWanted.of(self._settings, str(asked.get("report"))), **how)
        raise StateError(f"a worker of this version cannot {request.kind!r}")

    def _plan(self, digest: str) -> tuple[Plan, str]:
        with self.index.read() as connection:
            row = plans.get(connection, digest)
        return Plan.from_json(json.loads(row["body"])), row["digest"]

    def _begun(self, handle: runs.RunHandle) -> None:
        request = self.request
        assert request is not None
        self._handle = handle
        logs.bind(run=handle.id)
        with self.index.write() as connection:
            requests.set_state(connection, request.id, requests.RUNNING, run_id=handle.id)
            if job := request.argument.get("job"):
                schedules.started(connection, str(job), handle.id)

    def _failed(self, request: requests.Request, error: str) -> None:
        _log.error("run failed", error=error)
        if self._handle is None:
            # It failed before its run began: a run that says why is what people look at.
            handle = runs.start(self.index, request.kind, trigger="request", actor=request.actor)
            runs.finish(self.index, handle, "failed", summary={}, error=error)
            self._begun(handle)

    def _follow(self, result: Result) -> None:
        """Asks for the jobs that a crawl sets off: they take its word for the source, and do not read it again."""
        if result.kind != "crawl":
            return
        read = [name for name, published in result.sources.items() if published.state != "failed"]
        followers = [(name, job) for name in read for job in after_crawl(self._settings, name)]
        with self.index.write() as connection:
            states = schedules.read(connection)
            for name, job in followers:
                if not states.get(job.name, schedules.JobState()).paused:
                    asked = {**argument(job.kind, job.subject), "fresh": [name]}
                    requests.add_once(connection, job.kind, asked, actor="schedule")

    def _tell(self, result: Result) -> None:
        level = _log.info if result.state == "ok" else _log.warning if result.state in ("partial", "held") else _log.error
        level("run ended", run=result.run_id, state=result.state, changes=result.changes, errors=result.errors)
