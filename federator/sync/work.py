"""Work: one run in progress, as its stages see it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from federator import logs
from federator.connector import FederatorError, SourceSpec
from federator.connector.spans import span
from federator.index import DatabaseError, Index
from federator.index.leases import LeaseLost
from federator.index.readers import IndexReader
from federator.index.runs import RunHandle
from federator.settings import Settings
from federator.sync.result import Interrupted, Result, Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logs.get(__name__)

#: a second run of the same thing waits this many seconds for the first: most runs are shorter
LEASE_PATIENCE = 60.0
# What the subject of a stage is, for logs and traces.
_KIND = {
    "crawl": "source", "verify": "source", "resume": "mirror", "plan": "mirror", "apply": "mirror", "rebuild": "mirror",
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """The configuration, the index, the run's row and result; where progress goes and what ends the run early.

    After ``max_failures`` failed changes of a mirror no more of its changes are begun; None: any number. ``drops_confirmed``: a person
    was asked before a namespace is dropped whose catalog drops it with all that is in it.
    """

    settings: Settings
    index: Index
    report: Callable[[Step], None]
    stop: threading.Event
    run: RunHandle
    result: Result
    max_failures: int | None = None
    drops_confirmed: bool = False

    @contextmanager
    def step(self, stage: str, subject: str) -> Iterator[Callable[[str, str], None]]:
        """Reports a step's beginning and end; its body calls what it is given with state and detail. Raises Interrupted."""
        if self.stop.is_set():
            raise Interrupted("the run was stopped before its end")
        began, of = time.monotonic(), _KIND.get(stage, "subject")
        self.report(Step(stage, subject))

        def done(state: str, detail: str) -> None:
            self.report(Step(stage, subject, state, detail, time.monotonic() - began))

        with logs.bound(**{of: subject}), span(f"{stage} {subject}", {f"federator.{of}": subject}):
            try:
                yield done
            except FederatorError as error:
                done("failed", error.message)
                raise
            except Exception as error:
                done("failed", f"an unexpected {type(error).__name__}")
                raise

    @contextmanager
    def recording(self, subject: str) -> Iterator[None]:
        """What fails inside is recorded under ``subject`` and does not stop the others: also what nobody foresaw, by its type.

        A failure of the index itself concerns every subject and passes.
        """
        try:
            yield
        except DatabaseError:
            raise
        except FederatorError as error:
            self.result.errors[subject] = str(error)
            if isinstance(error, LeaseLost):
                self.result.lost.append(subject)
        except Exception as error:
            if self.stop.is_set():
                raise
            # Its text could hold anything, a secret included; the log has it, redacted, with its traceback.
            _log.exception("unexpected error", subject=subject)
            self.result.errors[subject] = f"an unexpected {type(error).__name__}; the log has its traceback"

    def spark(self) -> SparkSession:
        from federator.pipeline.session import session

        return session(self.settings)

    def spec(self, name: str) -> SourceSpec:
        return self.settings.source(name).spec

    def reader(self) -> IndexReader:
        """Where Spark's tasks find the index."""
        file = self.index.file
        return IndexReader(f"sqlite:///{file}" if file is not None else self.settings.index.url)

    @property
    def staging(self) -> Path:
        """The run's own directory for Parquet; removed when the run ends."""
        return self.settings.state_dir / "staging" / self.run.id
