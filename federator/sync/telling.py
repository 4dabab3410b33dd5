"""What a run tells: notices of what went wrong in it, and the calls that this process made to catalogs."""

from __future__ import annotations

from collections.abc import Iterator

from federator import logs
from federator.apply import State
from federator.connector import FederatorError
from federator.index import DatabaseError, Index, calls, notices
from federator.index.leases import LeaseLost
from federator.model.notices import Event, Notice
from federator.sync.work import Work

_log = logs.get(__name__)


def notices_of(work: Work, error: BaseException | None = None) -> Iterator[Notice]:
    """What is to be said of a run's parts. What was said in a transaction of its own already is left out."""
    result, run_id = work.result, work.run.id
    if isinstance(error, LeaseLost):
        yield Notice(Event.LEASE_LOST, work.run.kind, error.message, run_id=run_id)
    for subject in result.lost:
        yield Notice(Event.LEASE_LOST, subject, result.errors.get(subject, ""), run_id=run_id)
    for subject, text in result.errors.items():
        first = text.split("\n  hint: ")[0]
        if subject.startswith("mirror "):
            yield Notice(Event.MIRROR_FAILED, subject, first, mirror=subject.removeprefix("mirror "), run_id=run_id)
        elif subject in work.settings.sources and subject not in result.sources:
            yield Notice(Event.SOURCE_FAILED, subject, first, source=subject, run_id=run_id)
    for outcome in result.outcomes:
        if outcome.state is State.UNKNOWN:
            change = outcome.change
            message = f"{change.action.value}: {outcome.message or 'nobody knows whether it was made'}"
            subject = f"{change.target_source}${change.target_path}"
            yield Notice(Event.WRITE_FAILED, subject, message, source=change.target_source, run_id=run_id)


def tell_unsealed(work: Work, error: FederatorError) -> None:
    """Notes that the run's events are not proven."""
    with work.index.write() as connection:
        notices.add(connection, [Notice(Event.AUDIT_UNSEALED, "audit", error.message, run_id=work.run.id)])


def keep_counts(index: Index) -> None:
    """Adds the calls that this process counted to the index; if it is away, they are added another time."""
    try:
        calls.flush(index)
    except DatabaseError as error:
        _log.warning("calls not counted yet", error=type(error).__name__)
