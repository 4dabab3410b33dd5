"""The write path: each write to a catalog or to a table's data is an intent, one call and an outcome.

The intent is durable before the call. The outcome commits together with its audit event. No call is repeated: an intent without an
outcome is resolved by observing its object. ``Executor`` (mirrors) and ``DirectWriter`` (principals) make all their writes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from federator.connector.operation import attribute_calls
from federator.planning.intent_resolution import OutcomeState


class WriteIntent(Protocol):
    """The durable record of a write before its call."""

    @property
    def op_id(self) -> str: ...


class WriteOutcome(Protocol):
    """The result of a write."""

    @property
    def state(self) -> OutcomeState: ...


IntentT = TypeVar("IntentT", bound=WriteIntent)
OutcomeT = TypeVar("OutcomeT", bound=WriteOutcome)
# The same for the protocol, whose methods only take them.
_IntendedT = TypeVar("_IntendedT", bound=WriteIntent, contravariant=True)
_RecordedT = TypeVar("_RecordedT", bound=WriteOutcome, contravariant=True)


class WriteJournal(Protocol[_IntendedT, _RecordedT]):
    """A write-ahead journal. Safe for threads."""

    def record_intent(self, intent: _IntendedT) -> None:
        """Record an intent. It is durable when this returns."""

    def record_outcome(self, intent: _IntendedT, outcome: _RecordedT) -> None:
        """Record the outcome and its audit event in one transaction."""


def carry_out(journal: WriteJournal[IntentT, OutcomeT], intent: IntentT, call: Callable[[], OutcomeT]) -> OutcomeT:
    """Make one write: record its intent, make the call, and record the outcome that ``call`` returns.

    The intent stays open if ``call`` raises, or if its outcome is unknown.
    """
    journal.record_intent(intent)
    return resolve_intent(journal, intent, call)


def resolve_intent(journal: WriteJournal[IntentT, OutcomeT], intent: IntentT, find_outcome: Callable[[], OutcomeT]) -> OutcomeT:
    """Record the outcome of an intent that ``find_outcome`` returns, and return it. The intent stays open if it is unknown."""
    with attribute_calls(intent.op_id):
        outcome = find_outcome()
    if outcome.state is not OutcomeState.UNKNOWN:
        journal.record_outcome(intent, outcome)
    return outcome
