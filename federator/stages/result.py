"""Progress events of a run, and the run's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from federator.apply import Outcome, OutcomeState
from federator.apply.outcome import NOT_ATTEMPTED
from federator.connector import StateError
from federator.model import Record
from federator.planning.ledger import OwnedObject
from federator.planning.plan import Plan

if TYPE_CHECKING:
    from federator.pipeline.publish import PublishResult
    from federator.store.reports import StoredReport
    from federator.store.retention import PruneResult
    from federator.store.roots import ScanResult


class Interrupted(StateError):
    """The run was stopped. Its open changes are finished, or the next run resolves them."""


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """The start or the end of a stage for one subject. ``state`` is None while the stage is in progress."""

    stage: str
    subject: str
    state: str | None = None
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RecoverableEntry:
    """An object that is missing in a mirror's ledger, as observed at ``observed_at``, and the ``reason``.

    ``entry`` is the ledger's, without the run's id.
    """

    record: Record
    observed_at: float
    reason: str
    entry: OwnedObject


@dataclass(frozen=True, slots=True)
class UnrecoverableObject:
    """An object with this instance's marker that cannot be added, by its path key."""

    target_path: str
    reason: str


@dataclass
class RebuildResult:
    """The entries that a mirror's ledger lacks.

    ``gaps`` say where ownership is unknown. ``applied`` says whether the ledger has the entries now.
    """

    mirror: str
    target: str
    entries: list[RecoverableEntry] = field(default_factory=list)
    unrecoverable: list[UnrecoverableObject] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    applied: bool = False


@dataclass
class RunResult:
    """The result of a run. The keys of ``errors`` are a source, ``mirror <name>`` or ``verify <source>``."""

    run_id: str
    kind: str
    state: str = "ok"
    sources: dict[str, PublishResult] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    rebuilt: list[RebuildResult] = field(default_factory=list)
    pruned: list[PruneResult] = field(default_factory=list)
    reports: list[StoredReport] = field(default_factory=list)
    roots: dict[str, ScanResult] = field(default_factory=dict)
    #: subjects whose lease was lost to another process during the run
    lost_leases: list[str] = field(default_factory=list)
    #: digests of held plans that were approved
    approved: set[str] = field(default_factory=set)

    @property
    def held_plans(self) -> list[Plan]:
        """Plans that a guard holds and that were not approved."""
        return [plan for plan in self.plans if plan.held and plan.digest not in self.approved]

    @property
    def change_count(self) -> int:
        return sum(len(plan.changes) for plan in self.plans)

    def compute_state(self, *, stopped: bool) -> None:
        """Set the state. Interrupted, failed and partial take precedence over held, and held over ok."""
        has_gaps = any(rebuilt.gaps for rebuilt in self.rebuilt)
        incomplete = self.errors or has_gaps or any(published.state != "ok" for published in self.sources.values())
        incomplete = incomplete or any(outcome.code in NOT_ATTEMPTED for outcome in self.outcomes)
        # A person asked for these changes. A sync plans them again.
        incomplete = incomplete or (
            self.kind == "apply" and any(outcome.state is OutcomeState.SKIPPED for outcome in self.outcomes)
        )
        incomplete = incomplete or any(root.state != "complete" for root in self.roots.values())
        read_states = [*(published.state for published in self.sources.values()), *(root.state for root in self.roots.values())]
        nothing_done = not (self.plans or self.rebuilt or self.pruned) and all(state == "failed" for state in read_states)
        if stopped:
            self.state = "interrupted"
        elif any(map(is_failure, self.outcomes)) or (incomplete and nothing_done):
            self.state = "failed"
        elif incomplete:
            self.state = "partial"
        elif self.held_plans:
            self.state = "held"

    def summary(self) -> dict[str, Any]:
        """Return the counts for the run's row."""
        return {
            "sources": len(self.sources),
            "tables": sum(published.tables for published in self.sources.values()),
            "changes": self.change_count,
            "refusals": sum(len(plan.refusals) for plan in self.plans),
            "held": len(self.held_plans),
            "outcomes": dict(sorted(Counter(outcome.state.value for outcome in self.outcomes).items())),
            "errors": self.errors,
        }


def is_failure(outcome: Outcome) -> bool:
    """Tell whether an outcome makes its run a failed one."""
    return outcome.state not in (OutcomeState.DONE, OutcomeState.SKIPPED)


def format_state_counts(states: Iterable[str]) -> str:
    """Format the counts of states: ``3 done, 1 skipped``."""
    return ", ".join(f"{count} {state}" for state, count in sorted(Counter(states).items()))
