"""What the oracle and the story are told while the product's ``Application`` applies a plan in a world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from federator.apply import Application, Executor, Outcome, OutcomeState
from federator.apply.application import list_observations
from federator.planning.changes import NAMESPACE_ACTIONS, Action, Change
from federator.planning.reasons import ApplyCode, Reason
from federator.planning.rule import MirrorRule
from tests.prove.books import Actor
from tests.prove.oracle import keeps_marks

if TYPE_CHECKING:
    from tests.prove.world import Instance, World


@dataclass(kw_only=True)
class WatchedExecutor(Executor):
    """The product's executor. The oracle hears on whose behalf it writes."""

    world: World
    instance: Instance

    def apply(self, plan: str, changes: Sequence[Change], *arguments: Any, **options: Any) -> list[Outcome]:
        with self._acting(changes, resumes=False):
            return super().apply(plan, changes, *arguments, **options)

    def resolve_open_intents(self) -> list[Outcome]:
        """Only the second half of a recreation may be written: its intent is the plan."""
        open_ = [intent.change for intent in self.journal.list_open_intents()]
        with self._acting([change for change in open_ if change.action is Action.RECREATE_TABLE], resumes=True):
            return super().resolve_open_intents()

    @contextmanager
    def _acting(self, changes: Iterable[Change], *, resumes: bool) -> Iterator[None]:
        by_path = {(change.action in NAMESPACE_ACTIONS, change.target_path): change for change in changes}
        self.world.oracle.actor = Actor(self.instance, self.rule, by_path, approved=resumes, resumes=resumes)
        try:
            yield
        finally:
            self.world.oracle.actor = None


@dataclass(frozen=True)
class WatchedApplication(Application):
    """The product's application. The oracle hears what is published, and the story of each outcome."""

    world: World
    instance: Instance

    def publish(self, outcomes: Sequence[Outcome]) -> None:
        super().publish(outcomes)
        rule = self.executor.rule
        for observation in list_observations(outcomes):
            self.world.oracle.published(self.instance, self.world.catalogs[rule.target], observation)
        for outcome in outcomes:
            _tell(self.world, self.instance, rule, outcome)


def _tell(world: World, instance: Instance, rule: MirrorRule, outcome: Outcome) -> None:
    """What the story's end and its reader want to know of an outcome."""
    change = outcome.change
    # What waits for a place that is never freed, since a recreation there is refused or two tables changed places, waits with it.
    stuck = outcome.code == Reason.LOCATION_DECLARED and (change.moves_location or instance.left_alone)
    # Two mirrors that adopt one object where no mark can be kept do so again and again, or point it to and fro.
    others = (other.index for other in world.instances if other is not instance)
    shared = any(index.entries(target_source=rule.target, target_path=change.target_path) for index in others)
    unmarked = not keeps_marks(world.catalogs[rule.target]) and (
        change.action is Action.ADOPT or (change.moves_location and shared)
    )
    if stuck or unmarked or outcome.code in (ApplyCode.NOT_RESTORABLE, ApplyCode.NOT_EMPTY):
        instance.left_alone.add((rule.name, change.target_path))
    elif outcome.state is OutcomeState.DONE:
        instance.left_alone.discard((rule.name, change.target_path))
    if outcome.code_text is not None:
        world.oracle.count_reasons(rule, [outcome.code_text])
    if world.story is not None:
        ending = f"{outcome.code_text or ''} {outcome.message or ''}"
        world.say(f"      {outcome.state.value} {change.action.value} {change.target_path} {ending}".rstrip())
