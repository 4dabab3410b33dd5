"""Notices of a run's failures."""

from __future__ import annotations

from collections.abc import Iterator

from federator.apply import OutcomeState
from federator.connector.errors import FederatorError, split_hint
from federator.model.notices import Notice, NoticeEvent
from federator.stages.context import RunContext
from federator.store import notices
from federator.store.leases import LeaseLost


def build_run_notices(context: RunContext, error: BaseException | None = None) -> Iterator[Notice]:
    """Build the notices of a run's parts. Those that were stored in an earlier transaction are omitted."""
    result, run_id = context.result, context.run.id
    if isinstance(error, LeaseLost):
        yield Notice(NoticeEvent.LEASE_LOST, context.run.kind, error.message, run_id=run_id)
    for subject in result.lost_leases:
        yield Notice(NoticeEvent.LEASE_LOST, subject, result.errors.get(subject, ""), run_id=run_id)
    for subject, text in result.errors.items():
        error_text, _ = split_hint(text)
        if subject.startswith("mirror "):
            yield Notice(NoticeEvent.MIRROR_FAILED, subject, error_text, mirror=subject.removeprefix("mirror "), run_id=run_id)
        elif subject in context.settings.sources and subject not in result.sources:
            yield Notice(NoticeEvent.SOURCE_FAILED, subject, error_text, source=subject, run_id=run_id)
    for outcome in result.outcomes:
        if outcome.state is OutcomeState.UNKNOWN:
            change = outcome.change
            message = f"{change.action.value}: {outcome.message or 'its outcome is unknown'}"
            subject = f"{change.target_source}${change.target_path}"
            yield Notice(NoticeEvent.WRITE_FAILED, subject, message, source=change.target_source, run_id=run_id)


def record_unsealed_notice(context: RunContext, error: FederatorError) -> None:
    """Add a notice that the run's audit events could not be sealed or published."""
    with context.index.write() as connection:
        notices.add_notices(connection, [Notice(NoticeEvent.AUDIT_UNSEALED, "audit", error.message, run_id=context.run.id)])
