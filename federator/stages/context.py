"""The context of a run in progress, shared by its stages."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from federator import logs
from federator.connector import FederatorError, SourceSpec, StateError
from federator.connector.call_metrics import CallCounts
from federator.runtime.spans import span
from federator.settings import Settings
from federator.stages.result import Interrupted, ProgressEvent, RunResult
from federator.store import DatabaseError, Index, run_stages
from federator.store.leases import LeaseLost
from federator.store.partition_reader import IndexReader
from federator.store.runs import RunHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from federator.pipeline.staging_area import StagingArea

_log = logs.get_logger(__name__)

#: how long a run waits for another run's lease, in seconds: most runs are shorter
LEASE_WAIT_SECONDS = 60.0
# The kind of a stage's subject, for logs and traces.
_SUBJECT_KIND = {
    "crawl": "source", "verify": "source", "resume": "mirror", "plan": "mirror", "apply": "mirror", "rebuild": "mirror",
}  # fmt: skip


class FinishStage(Protocol):
    """Reports the end of a stage, with its state and detail, and the catalog calls that were counted for it."""

    def __call__(self, state: str, detail: str, calls: CallCounts | None = None) -> None: ...


@dataclass(frozen=True)
class RunContext:
    """A run in progress: configuration, index, the run's row and result, progress reports and the stop signal.

    After ``max_failures`` failed changes of a mirror no further change is started. None: no limit. ``drops_confirmed``:
    a user confirms each plan before it is applied, so it may drop namespaces whose catalog would drop all their objects, too.
    """

    settings: Settings
    index: Index
    on_progress: Callable[[ProgressEvent], None]
    stop: threading.Event
    run: RunHandle
    result: RunResult
    max_failures: int | None = None
    drops_confirmed: bool = False

    @contextmanager
    def stage(self, stage: str, subject: str, *, plan: str | None = None) -> Iterator[FinishStage]:
        """Report the start of a stage, and yield the function by which the block reports its end. An error ends it as failed.

        ``plan`` is the digest of the plan that the stage applies.

        Raise Interrupted if the run is stopped.
        """
        self.require_running()
        started_at, subject_kind = time.monotonic(), _SUBJECT_KIND.get(stage, "subject")
        self.on_progress(ProgressEvent(stage, subject))
        with self._without_index_errors(stage, subject):
            run_stages.start_stage(self.index, self.run.id, stage, subject, plan=plan)

        def finish(state: str, detail: str, calls: CallCounts | None = None) -> None:
            self.on_progress(ProgressEvent(stage, subject, state, detail, time.monotonic() - started_at))
            counted = (None, None) if calls is None else (calls.calls.total(), calls.errors.total())
            with self._without_index_errors(stage, subject):
                run_stages.finish_stage(
                    self.index, self.run.id, stage, subject, state=state, detail=detail, calls=counted[0], errors=counted[1]
                )

        with logs.bound(**{subject_kind: subject}), span(f"{stage} {subject}", {f"federator.{subject_kind}": subject}):
            try:
                yield finish
            except FederatorError as error:
                finish("failed", error.message)
                raise
            except Exception as error:
                finish("failed", f"an unexpected {type(error).__name__}")
                raise

    def require_running(self) -> None:
        """Raise Interrupted if the run is stopped."""
        if self.stop.is_set():
            raise Interrupted("the run was stopped before its end")

    @contextmanager
    def _without_index_errors(self, stage: str, subject: str) -> Iterator[None]:
        """Log an error of the index: the times of a stage are for people, and the stage's own writes report the error."""
        try:
            yield
        except DatabaseError as error:
            _log.warning("stage was not recorded", stage=stage, subject=subject, error=type(error).__name__)

    @contextmanager
    def record_errors(self, subject: str) -> Iterator[None]:
        """Record an error of the block under ``subject``, so that it does not stop other subjects.

        Unexpected errors are recorded by their type. A failure of the index concerns every subject and is raised.
        """
        try:
            yield
        except DatabaseError:
            raise
        except FederatorError as error:
            self.result.errors[subject] = str(error)
            if isinstance(error, LeaseLost):
                self.result.lost_leases.append(subject)
        except Exception as error:
            if self.stop.is_set():
                raise
            # The error's text may contain a secret, so only its type is recorded. The log has the redacted text with the traceback.
            _log.exception("unexpected error", subject=subject)
            self.result.errors[subject] = f"an unexpected {type(error).__name__}; see the log for its traceback"

    def spark_session(self) -> SparkSession:
        from federator.pipeline.session import get_session

        return get_session(self.settings)

    def source_spec(self, name: str) -> SourceSpec:
        return self.settings.source(name).spec

    def index_reader(self) -> IndexReader:
        """Return the reader with which Spark tasks open the index."""
        file = self.index.file
        return IndexReader(f"sqlite:///{file}" if file is not None else self.settings.index.url)

    @property
    def local_staging(self) -> Path:
        """The run's own directory on this machine. It is removed when the run ends."""
        return self.settings.state_dir / "staging" / self.run.id

    def staging_area(self) -> StagingArea:
        """Return the run's own directory for what Spark writes. It is removed when the run ends."""
        from federator.pipeline.staging_area import StagingArea

        shared = self.settings.spark.staging
        return StagingArea(self.spark_session(), f"{shared.rstrip('/')}/{self.run.id}" if shared else str(self.local_staging))

    def remove_staging(self) -> None:
        """Remove what the run has staged. A failure is logged, because the run's result is complete without it."""
        shutil.rmtree(self.local_staging, ignore_errors=True)
        if self.settings.spark.staging:
            from federator.pipeline.session import is_session_started
            from federator.pipeline.spark_errors import translate_spark_errors

            try:
                if is_session_started():
                    with translate_spark_errors("remove the staging directory"):
                        self.staging_area().remove()
            except StateError as error:
                _log.warning("staging was not removed", run=self.run.id, error=error.message)
