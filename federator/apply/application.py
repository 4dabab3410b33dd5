"""Application of a mirror's plan: the order of its parts, without I/O of its own. The product and its proof run this.

Open calls of an earlier run are resolved first. Then the changes that may go are carried out, less the removals whose proof no longer
holds. What was observed of the target is published, and a plan of which nothing waits is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from federator.apply.executor import Executor
from federator.apply.outcome import RESTORED, Outcome, State
from federator.model import parse_key
from federator.planning.changes import Action
from federator.planning.plan import Plan, still_proven
from federator.planning.publication import Observed
from federator.planning.reasons import Reason
from federator.planning.release import Release

_OF_NAMESPACES = (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE)
_OUTDATED = "what proved at the time of the plan that its origin is gone does not hold any more"
# Outcomes of resolved calls that are this run's failures too: nobody can tell what became of the call.
_LOST = (State.NEEDS_ADOPTION, State.UNKNOWN)


class ApplicationIndex(Protocol):
    """What an application reads from the index of its instance, and what it stores there."""

    def absences(self, source: str) -> Mapping[str, Sequence[float]]:
        """The misses of a source that count now, by path."""
        ...

    def publish(self, source: str, seen: Sequence[Observed]) -> None:
        """Make direct observations of a source its current state."""
        ...

    def mark_applied(self, plan: str) -> None:
        """Record that a plan (its digest) was applied."""
        ...


@dataclass(frozen=True)
class Application:
    """One mirror's application. The executor's journal has its leases."""

    executor: Executor
    index: ApplicationIndex

    def resume(self) -> list[Outcome]:
        """Resolve the open calls of a run that died, and publish what they left. Return the outcomes that are this run's failures.

        A call that was made, or not made, is as good as any other. A call of which nobody can tell is not, nor is one that was half
        made and can never be made whole.
        """
        resolved = self.executor.resume()
        self.publish(resolved)
        return [outcome for outcome in resolved if outcome.state in _LOST or outcome.code == Reason.NAMESPACE_MISSING]

    def apply(self, plan: Plan, granted: Release, report: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
        """Carry out the changes of a plan that may go. ``report`` gets the outcome of each call as it comes."""
        rule = self.executor.rule
        left = self.resume()
        proven, unproven = still_proven(rule, granted.changes, self.index.absences(rule.origin))
        # What goes of a plan that is held for its windows was approved all the same.
        any_time = any(hold.guard == Reason.OUTSIDE_WINDOW for hold in plan.holds)
        outcomes = [Outcome(change, State.SKIPPED, Reason.NOT_COVERED, _OUTDATED) for change in unproven]
        outcomes += self.executor.apply(plan.digest, proven, report, any_time=any_time)
        self.publish(outcomes)
        if not granted.waiting:
            self.index.mark_applied(plan.digest)
        return [*left, *outcomes]

    def publish(self, outcomes: Sequence[Outcome]) -> None:
        """Make what was observed of the target after the calls its current state."""
        seen = [
            Observed(parse_key(o.change.target_path), o.record, o.observed_at, o.change.action not in _OF_NAMESPACES)
            for o in outcomes
            if o.state is State.DONE or o.code == RESTORED
        ]
        self.index.publish(self.executor.rule.target, seen)
