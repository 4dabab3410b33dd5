"""Origin confirmation: observe a change's origins immediately before its call, and once more after it.

The connector calls an ``OriginConfirmation`` after its own last read of the target (``connector.Confirm``). An exception here
aborts the write; ``refusal`` then contains the reason. See docs/adr/0013-the-origin-is-observed-last.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from federator.apply.outcome import Outcome, OutcomeState
from federator.connector import Catalog, CatalogError, ConcurrentModification
from federator.model import parse_path_key
from federator.planning.changes import ABSENT
from federator.planning.origins import ExpectedOrigin
from federator.planning.reasons import ApplyCode, OutcomeCode, Reason

LEASE_ENDS = "the lease ends before the call's deadline"
#: how often the origins are observed before a change is given up because the observation took too long
_ATTEMPTS = 2


class NotConfirmed(ConcurrentModification):
    """The origin has changed since the plan read it, or could not be observed in time. Nothing was written."""


@dataclass
class OriginConfirmation:
    """Observe ``expected`` in ``origin``. The observation may be at most ``max_age`` seconds old when the call starts.

    ``age`` is the time in seconds from the start of the observation to the start of the call. None if nothing was observed.
    ``refusal`` is the state, the code and the message of a change that must not be made.
    """

    origin: Catalog
    expected: Sequence[ExpectedOrigin]
    max_age: float
    may_call: Callable[[], bool]
    monotonic: Callable[[], float]
    age: float | None = None
    refusal: tuple[OutcomeState, OutcomeCode, str] | None = None

    def __call__(self) -> None:
        """Confirm the origins. Raise NotConfirmed if a change must not be made."""
        if not self.expected:
            return
        for _ in range(_ATTEMPTS):
            started_at = self.monotonic()
            self.refusal = self._find_refusal()
            self.age = self.monotonic() - started_at
            if self.refusal is not None:
                raise NotConfirmed(self.refusal[2])
            if self.age <= self.max_age:
                return
        detail = f"observing the origin took {self.age:.1f} s, and max_origin_age is {self.max_age:g} s"
        self.refusal = OutcomeState.SKIPPED, Reason.OBSERVATION_TOO_OLD, detail
        raise NotConfirmed(detail)

    def observe_again(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a call with the observation's age, and with any change of the origins since then."""
        if self.age is None:
            return outcome
        outcome = replace(outcome, origin_age=self.age)
        if outcome.state is not OutcomeState.DONE:
            return outcome
        for expected in self.expected:
            try:
                contradiction = expected.find_contradiction(self.origin.observe(parse_path_key(expected.path)))
            except CatalogError as error:
                return replace(outcome, message=f"the origin could not be observed after the change: {error.message}")
            if contradiction is not None:
                code = ApplyCode.ORIGIN_RETURNED if expected.digest == ABSENT else ApplyCode.ORIGIN_CHANGED
                return replace(outcome, code=code, message=f"after the change: {contradiction[1]}")
        return outcome

    def _find_refusal(self) -> tuple[OutcomeState, OutcomeCode, str] | None:
        for expected in self.expected:
            try:
                contradiction = expected.find_contradiction(self.origin.observe(parse_path_key(expected.path)))
            except CatalogError as error:
                message = f"the origin could not be observed before the change: {error.message}"
                return OutcomeState.FAILED, error.code, message
            if contradiction is not None:
                return OutcomeState.SKIPPED, *contradiction
        # Check the lease again: the observation may have been slow, and the call deadline starts now.
        return None if self.may_call() else (OutcomeState.SKIPPED, ApplyCode.LEASE, LEASE_ENDS)
