"""The application of a mirror's plan: the order of its parts, without I/O of its own. The product and its proof run this.

Open calls of an earlier run are resolved first. Then the released changes are applied, except removals whose proof no longer holds.
The observations of the target are published, and a plan without waiting changes is marked as applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from federator.apply.executor import Executor
from federator.apply.outcome import Outcome, OutcomeState
from federator.model import parse_path_key
from federator.planning.plan import Plan
from federator.planning.plan_filters import split_by_proof
from federator.planning.publication import ObservedObject
from federator.planning.reasons import ApplyCode, Reason
from federator.planning.release import Release

_PROOF_LOST = "the proof that its origin is absent, valid when the plan was made, no longer holds"
# Outcomes of resolved calls that also count as this run's failures: the result of the call is unknown.
_UNRESOLVED_STATES = (OutcomeState.NEEDS_ADOPTION, OutcomeState.UNKNOWN)


class ApplicationIndex(Protocol):
    """The reads and writes of an application in the index of its instance."""

    def list_misses(self, source: str) -> Mapping[str, Sequence[float]]:
        """Return the times (seconds since the epoch) of the misses that count now for the origins of a source, by path key."""

    def publish(self, source: str, observations: Sequence[ObservedObject]) -> None:
        """Make direct observations of a source its current state."""

    def mark_applied(self, digest: str) -> None:
        """Record that the plan with a digest was applied."""


@dataclass(frozen=True)
class Application:
    """One mirror's application. The executor's journal has its leases."""

    executor: Executor
    index: ApplicationIndex

    def resume(self) -> list[Outcome]:
        """Resolve the open calls of a dead run, and publish the observations. Return the outcomes that are this run's failures.

        A call that was carried out, or was not, is no failure. A call with an unknown outcome is one, and so is a half-done call
        that can never be completed.
        """
        resolved = self.executor.resolve_open_intents()
        self.publish(resolved)
        return [
            outcome for outcome in resolved if outcome.state in _UNRESOLVED_STATES or outcome.code is Reason.NAMESPACE_MISSING
        ]

    def apply(self, plan: Plan, release: Release, report: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
        """Apply the released changes of a plan. ``report`` gets the outcome of each call as it arrives."""
        rule = self.executor.rule
        failures = self.resume()
        proven, unproven = split_by_proof(rule, release.changes, self.index.list_misses(rule.origin))
        # Released changes of a plan that is held for its change windows were approved, so they may be made now.
        any_time = any(hold.guard == Reason.OUTSIDE_WINDOW for hold in plan.holds)
        outcomes = [Outcome(change, OutcomeState.SKIPPED, Reason.NOT_COVERED, _PROOF_LOST) for change in unproven]
        outcomes += self.executor.apply(plan.digest, proven, report, any_time=any_time)
        self.publish(outcomes)
        if not release.waiting:
            self.index.mark_applied(plan.digest)
        return [*failures, *outcomes]

    def publish(self, outcomes: Sequence[Outcome]) -> None:
        """Make the observations of the target after the calls its current state."""
        self.index.publish(self.executor.rule.target, list_observations(outcomes))


def list_observations(outcomes: Iterable[Outcome]) -> list[ObservedObject]:
    """Return the target's objects as they were observed after calls that changed them, or that restored them."""
    return [
        ObservedObject(
            parse_path_key(outcome.change.target_path),
            outcome.record,
            outcome.observed_at,
            outcome.change.is_table,
        )
        for outcome in outcomes
        if outcome.state is OutcomeState.DONE or outcome.code is ApplyCode.RESTORED
    ]
