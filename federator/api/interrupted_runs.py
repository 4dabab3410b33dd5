"""Runs whose process was killed, also the worker: the API ends them as interrupted, so that no reader takes them for running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from federator import audit, logs
from federator.connector import StateError
from federator.runtime.text import first_line
from federator.store import DatabaseError, Index, runs

_SECONDS = 5.0
_log = logs.get_logger(__name__)


@contextmanager
def ending_interrupted_runs(index: Index) -> Iterator[None]:
    """End such runs every few seconds within the block, in a thread that is not waited for."""
    stop = threading.Event()
    threading.Thread(target=_end_until, args=(index, stop), name="interrupted runs", daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def _end_until(index: Index, stop: threading.Event) -> None:
    failed = False
    while not stop.wait(_SECONDS):
        try:
            ended = runs.finish_interrupted_runs(index)
            for run_id in ended:
                _log.warning("run interrupted", run=run_id)
            if ended:
                audit.seal_pending(index)
            failed = False
        except (DatabaseError, StateError) as error:
            # Readiness reports an unavailable index. Once is enough here.
            if not failed:
                _log.warning("interrupted runs are not known", error=first_line(error))
            failed = True
