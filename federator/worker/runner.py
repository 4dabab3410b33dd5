"""Request runner: executes requests through one warm Federator."""

from __future__ import annotations

import threading
from typing import Any

from federator import logs
from federator.connector import FederatorError, StateError
from federator.planning.plan import Plan
from federator.service import Federator
from federator.settings import Settings
from federator.stages.declare import DeclareSpec
from federator.stages.report import ReportSpec
from federator.stages.result import RunResult
from federator.store import DatabaseError, Index, job_states, plans, requests, runs
from federator.store.failures import describe_error
from federator.worker.jobs import jobs_after_crawl, request_argument
from federator.worker.progress import RunProgress

_log = logs.get_logger(__name__)


class RequestRunner:
    """Executes one request at a time. ``execute`` is called in one thread, everything else in the worker's loop."""

    def __init__(self, settings: Settings, index: Index | None = None) -> None:
        self.index = index or Federator.open(settings).index
        self.stop = threading.Event()
        self.request: requests.Request | None = None
        self._settings = settings
        self._handle: runs.RunHandle | None = None
        self._progress = RunProgress()
        self._uses_spark = False
        self._federator = Federator(settings, self.index, self._progress.record, self.stop, self._on_run_started)

    def start_spark(self) -> None:
        """Start Spark. If it fails, each run reports the failure again."""
        try:
            start_warm_session(self._settings)
            self._uses_spark = True
            _log.info("spark is ready")
        except FederatorError as error:
            _log.error("spark failed to start", error=str(error))

    def execute(self, request: requests.Request) -> None:
        """Run a request to its end, successful or not. Raise only errors of the index."""
        state = requests.FAILED
        with logs.bound(request=request.id, run=None):
            try:
                result = self._dispatch(request)
                self._log_result(result)
                self._queue_dependent_jobs(result)
                state = requests.CANCELLED if result.state == "interrupted" else requests.DONE
            except (FederatorError, DatabaseError) as error:
                self._record_failure(request, describe_error(error))
            except Exception as error:  # noqa: BLE001 - the boundary of the worker: no request may end it
                _log.exception("run failed unexpectedly")
                self._record_failure(request, f"{type(error).__name__}: {error}")
            finally:
                self.request = self._handle = None
                self._progress.clear()
                with self.index.write() as connection:
                    requests.set_request_state(connection, request.id, state)

    def interrupt(self) -> None:
        """Stop the current run: between two writes, or in the middle of a Spark job."""
        self.stop.set()
        if self.request is not None and self._uses_spark:
            interrupt_jobs()

    def write_progress(self) -> None:
        """Write new progress to the run's row."""
        handle, text = self._handle, self._progress.take_text()
        if handle is not None and text is not None:
            runs.set_progress(self.index, handle, text)

    def _dispatch(self, request: requests.Request) -> RunResult:
        argument, federator = request.argument, self._federator
        recorded: dict[str, Any] = {"trigger": _trigger_of(request), "actor": request.actor}
        match request.kind:
            case "crawl":
                return federator.crawl(argument.get("sources") or [], full=bool(argument.get("full")), **recorded)
            case "plan":
                return federator.plan(argument.get("mirrors") or [], **recorded)
            case "sync":
                return federator.sync(argument.get("mirrors") or [], fresh=argument.get("fresh") or [], **recorded)
            case "apply":
                return federator.apply([self._load_plan(digest) for digest in argument.get("plans") or []], **recorded)
            case "declare":
                spec = DeclareSpec(
                    argument["places"], argument["into"], argument.get("template"), roots=bool(argument.get("roots"))
                )
                return federator.declare(spec, **recorded)
            case "scan":
                return federator.scan(argument.get("roots") or [], **recorded)
            case "verify":
                return federator.verify(argument["tables"], **recorded)
            case "prune":
                return federator.prune(**recorded)
            case "report":
                return federator.make_report(ReportSpec.from_settings(self._settings, str(argument.get("report"))), **recorded)
        raise StateError(f"a worker of this version cannot execute requests of kind {request.kind!r}")

    def _load_plan(self, digest: str) -> tuple[Plan, str]:
        with self.index.read() as connection:
            stored = plans.get_plan(connection, digest)
        return Plan.from_json(stored.content), stored.digest

    def _on_run_started(self, handle: runs.RunHandle) -> None:
        request = self.request
        assert request is not None
        self._handle = handle
        logs.bind(run=handle.id)
        with self.index.write() as connection:
            requests.set_request_state(connection, request.id, requests.RUNNING, run_id=handle.id)
            if job := request.argument.get("job"):
                job_states.record_job_start(connection, str(job), handle.id)

    def _record_failure(self, request: requests.Request, error: str) -> None:
        _log.error("run failed", error=error)
        if self._handle is None:
            # The request failed before its run started: insert a run with the error, because users look at runs.
            handle = runs.insert_run(self.index, request.kind, trigger=_trigger_of(request), actor=request.actor)
            runs.finish_run(self.index, handle, "failed", summary={}, error=error)
            self._on_run_started(handle)

    def _queue_dependent_jobs(self, result: RunResult) -> None:
        """Queue the jobs that a crawl triggers. They use the crawl's result and do not read the source again."""
        if result.kind != "crawl":
            return
        crawled = [name for name, published in result.sources.items() if published.state != "failed"]
        dependent_jobs = [(name, job) for name in crawled for job in jobs_after_crawl(self._settings, name)]
        with self.index.write() as connection:
            states = job_states.list_job_states(connection)
            for name, job in dependent_jobs:
                if not states.get(job.name, job_states.JobState()).paused:
                    argument = {**request_argument(job.kind, job.subject), "fresh": [name]}
                    requests.queue_unless_pending(connection, job.kind, argument, actor="schedule")

    def _log_result(self, result: RunResult) -> None:
        level = _log.info if result.state == "ok" else _log.warning if result.state in ("partial", "held") else _log.error
        level("run ended", run=result.run_id, state=result.state, changes=result.change_count, errors=result.errors)


def _trigger_of(request: requests.Request) -> str:
    """Return what started the run of a request: ``schedule`` or ``request``."""
    return "schedule" if request.argument.get("job") else "request"


def start_warm_session(settings: Settings) -> None:
    """Start this process's Spark session, and run one tiny Python job on it. Raise FederatorError."""
    from federator.pipeline import session

    session.warm_workers(session.get_session(settings))


def interrupt_jobs() -> None:
    """Cancel the running Spark jobs of this process."""
    from federator.pipeline import session

    session.interrupt_jobs()


def stop_warm_session() -> None:
    """Stop the session and its JVM. Call it in the thread that started the session."""
    from federator.pipeline import session

    session.stop_session()
