"""The end of a run: its events are sealed, signed and published before it says that it succeeded."""

from __future__ import annotations

from federator import audit, logs
from federator.connector import FederatorError
from federator.index import runs
from federator.sync.telling import notices_of, tell_unsealed
from federator.sync.work import Work

_log = logs.get(__name__)


def finish(work: Work) -> None:
    """Records the run's end. If its events cannot be signed or published, the run is partial at best; the next one tries again."""
    result = work.result
    result.settle(stopped=work.stop.is_set())
    if work.settings.audit.anchor is not None:
        # Whoever watches the row reads of success only after everything that was done is out of our own reach.
        publish(work)
    runs.finish(work.index, work.run, result.state, summary=result.summary(), notices=notices_of(work))
    told = result.state
    publish(work)
    if result.state != told:
        runs.finish(work.index, work.run, result.state, summary=result.summary())
        audit.seal(work.index)


def publish(work: Work) -> None:
    """Seals, signs and publishes; a failure is the run's, and stops nothing."""
    try:
        audit.seal_and_publish(work.index, work.settings)
    except FederatorError as error:
        _log.error("audit not published", run=work.run.id, error=str(error))
        work.result.errors["audit"] = str(error)
        tell_unsealed(work, error)
        if work.result.state in ("ok", "held"):
            work.result.state = "partial"
