"""What a run says while it goes on (Step) and what it came to (Result)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from federator.apply import Outcome, State
from federator.apply.outcome import NOT_ATTEMPTED
from federator.connector import StateError
from federator.planning.plan import Plan

if TYPE_CHECKING:
    from federator.index.reports import Kept
    from federator.index.retention import Pruned
    from federator.index.roots import Scanned
    from federator.pipeline.publish import Published
    from federator.sync.rebuilding import Rebuilt


class Interrupted(StateError):
    """The run was asked to stop; what it had begun is finished or left for the next run to settle."""


@dataclass(frozen=True, slots=True)
class Step:
    """Progress: what is being done to what, and how it went (``None`` while it is going on)."""

    stage: str
    subject: str
    state: str | None = None
    detail: str = ""
    seconds: float = 0.0


@dataclass
class Result:
    """What a run came to. ``errors`` are by source, or ``mirror <name>``, or ``verify <source>``."""

    run_id: str
    kind: str
    state: str = "ok"
    sources: dict[str, Published] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    rebuilt: list[Rebuilt] = field(default_factory=list)
    pruned: list[Pruned] = field(default_factory=list)
    reports: list[Kept] = field(default_factory=list)
    roots: dict[str, Scanned] = field(default_factory=dict)
    #: subjects whose lease went to another process in the middle
    lost: list[str] = field(default_factory=list)
    #: digests of held plans that a person has approved
    approved: set[str] = field(default_factory=set)

    @property
    def waiting(self) -> list[Plan]:
        """Plans that a guard holds and nobody has approved."""
        return [plan for plan in self.plans if plan.held and plan.digest not in self.approved]

    @property
    def changes(self) -> int:
        return sum(len(plan.changes) for plan in self.plans)

    def settle(self, *, stopped: bool) -> None:
        """Name the state: interrupted, failed and partial before held, held before ok."""
        unknown = any(rebuilt.gaps for rebuilt in self.rebuilt)
        incomplete = self.errors or unknown or any(p.state != "ok" for p in self.sources.values())
        incomplete = incomplete or any(outcome.code in NOT_ATTEMPTED for outcome in self.outcomes)
        incomplete = incomplete or any(root.state != "complete" for root in self.roots.values())
        read = [*(p.state for p in self.sources.values()), *(root.state for root in self.roots.values())]
        useless = not (self.plans or self.rebuilt or self.pruned) and all(state == "failed" for state in read)
        if stopped:
            self.state = "interrupted"
        elif any(map(is_bad, self.outcomes)) or (incomplete and useless):
            self.state = "failed"
        elif incomplete:
            self.state = "partial"
        elif self.waiting:
            self.state = "held"

    def summary(self) -> dict[str, Any]:
        """Counts for the run's row."""
        return {
            "sources": len(self.sources),
            "tables": sum(p.tables for p in self.sources.values()),
            "changes": self.changes,
            "refusals": sum(len(plan.refusals) for plan in self.plans),
            "held": len(self.waiting),
            "outcomes": dict(sorted(Counter(o.state.value for o in self.outcomes).items())),
            "errors": self.errors,
        }


def is_bad(outcome: Outcome) -> bool:
    """Whether an Outcome makes its run a failed one."""
    return outcome.state not in (State.DONE, State.SKIPPED)


def counted(number: int, noun: str) -> str:
    """``1 table``, ``2 tables``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def tally(states: list[str]) -> str:
    """``3 done, 1 skipped``."""
    return ", ".join(f"{count} {state}" for state, count in sorted(Counter(states).items()))
