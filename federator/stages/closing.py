"""The end of a run: seal, sign and publish its audit events before it is recorded as successful."""

from __future__ import annotations

from federator import audit, logs
from federator.connector import FederatorError
from federator.stages.context import RunContext
from federator.stages.run_notices import build_run_notices, record_unsealed_notice
from federator.store import runs

_log = logs.get_logger(__name__)


def close_run(context: RunContext) -> None:
    """Record the run's end. If its events cannot be signed or published, the run is at best partial, and the next one retries."""
    result = context.result
    result.compute_state(stopped=context.stop.is_set())
    if context.settings.audit.anchor is not None:
        # An observer of the row must not see success before the events are out of this instance's reach.
        seal_run_events(context)
    runs.finish_run(context.index, context.run, result.state, summary=result.summary(), notices=build_run_notices(context))
    recorded_state = result.state
    seal_run_events(context)
    if result.state != recorded_state:
        runs.finish_run(context.index, context.run, result.state, summary=result.summary())
        audit.seal_pending(context.index)


def seal_run_events(context: RunContext) -> None:
    """Seal, sign and publish the audit events. A failure is recorded in the run and stops nothing."""
    try:
        audit.seal_and_publish(context.index, context.settings)
    except FederatorError as error:
        _log.error("audit events not published", run=context.run.id, error=str(error))
        context.result.errors["audit"] = str(error)
        record_unsealed_notice(context, error)
        if context.result.state in ("ok", "held"):
            context.result.state = "partial"
