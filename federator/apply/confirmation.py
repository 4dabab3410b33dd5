"""The observation of a change's origins immediately before its call, and once more after it.

The connector calls an ``OriginConfirmation`` after its own last read of the target (``connector.Confirm``). What this raises aborts the
write; ``refusal`` then says why. See docs/adr/0013-the-origin-is-observed-last.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from federator.apply.outcome import ORIGIN_CHANGED, ORIGIN_RETURNED, Outcome, State
from federator.connector import Catalog, CatalogError, ConcurrentModification
from federator.model import parse_key
from federator.planning.origins import ABSENT, ExpectedOrigin
from federator.planning.reasons import Reason

LEASE_ENDS = "the lease ends before the call's deadline"
#: how often the origins are observed before a change is given up because observing them took too long
_ATTEMPTS = 2


class NotConfirmed(ConcurrentModification):
    """The origin is not as the plan read it, or could not be observed in time; nothing was written."""


@dataclass
class OriginConfirmation:
    """Observe ``expected`` in ``origin``. The observation may be at most ``max_age`` seconds old when the call begins.

    ``age`` is the time in seconds from the begin of the observation to the begin of the call; None if nothing was observed. ``refusal``
    is the state, the code and the message of a change that must not be made.
    """

    origin: Catalog
    expected: Sequence[ExpectedOrigin]
    max_age: float
    may_call: Callable[[], bool]
    monotonic: Callable[[], float]
    age: float | None = None
    refusal: tuple[State, str, str] | None = None

    def __call__(self) -> None:
        """Raises NotConfirmed."""
        if not self.expected:
            return
        for _ in range(_ATTEMPTS):
            began = self.monotonic()
            self.refusal = self._find_refusal()
            self.age = self.monotonic() - began
            if self.refusal is None and self.age <= self.max_age:
                return
            if self.refusal is not None:
                break
        else:
            detail = f"observing the origin took {self.age:.1f} s, and max_origin_age is {self.max_age:g} s"
            self.refusal = State.SKIPPED, Reason.OBSERVATION_TOO_OLD, detail
        raise NotConfirmed(self.refusal[2])

    def observe_again(self, outcome: Outcome) -> Outcome:
        """The outcome of a call with the age of the observation, and with what the origins are afterwards."""
        if self.age is None:
            return outcome
        outcome = replace(outcome, origin_age=self.age)
        if outcome.state is not State.DONE:
            return outcome
        for expected in self.expected:
            try:
                found = expected.find_contradiction(self.origin.observe(parse_key(expected.path)))
            except CatalogError as error:
                return replace(outcome, message=f"the origin could not be observed after the change: {error.message}")
            if found is not None:
                code = ORIGIN_RETURNED if expected.digest == ABSENT else ORIGIN_CHANGED
                return replace(outcome, code=code, message=f"after the change: {found[1]}")
        return outcome

    def _find_refusal(self) -> tuple[State, str, str] | None:
        for expected in self.expected:
            try:
                found = expected.find_contradiction(self.origin.observe(parse_key(expected.path)))
            except CatalogError as error:
                message = f"the origin could not be observed before the change: {error.message}"
                return State.FAILED, str(error.code), message
            if found is not None:
                return State.SKIPPED, *found
        # Observing may have taken its time: the deadline of the call counts from here.
        return None if self.may_call() else (State.SKIPPED, "lease", LEASE_ENDS)
