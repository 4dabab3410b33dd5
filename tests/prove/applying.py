"""Applying in a world: the product's ``Application`` over memory, and what the oracle and the story are told of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from federator.apply import Application, Executor, Outcome, OutcomeState
from federator.apply.application import list_observations
from federator.connector import StateError
from federator.planning.changes import NAMESPACE_ACTIONS, Action, Change
from federator.planning.namespaces import drop_refusal
from federator.planning.plan import Plan, check_plan
from federator.planning.reasons import ApplyCode, Reason
from federator.planning.release import release_changes
from federator.planning.rule import MirrorRule
from tests.prove.armed import Crash
from tests.prove.books import Actor
from tests.prove.faults import FaultyJournal
from tests.prove.index import SavedPlan
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


def resume(world: World, instance: Instance, rule: MirrorRule) -> None:
    """Resolves the open calls of one mirror."""
    try:
        _application(world, instance, rule).resume()
    except (Crash, StateError) as error:
        world.say(f"    {str(error) or 'the process dies'}")


def apply(world: World, instance: Instance, saved: SavedPlan, *, stored: bool) -> None:
    """Applies one plan, which may be ``stored`` and read back."""
    rule = instance.rules[saved.plan.mirror]
    plan = Plan.from_json(saved.plan.to_json()) if stored else saved.plan
    try:
        check_plan(plan, digest=saved.plan.digest, mirror_digest=rule.digest)
        granted = release_changes(plan, instance.index.approved(rule.name, world.now))
        if granted.waiting:
            world.oracle.count_reasons(rule, [waiting.reason.value for waiting in granted.waiting])
            world.say(f"    {len(granted.waiting)} of {len(plan.changes)} changes wait: {granted.waiting[0].hold}")
        if granted.changes:
            try:
                _application(world, instance, rule, stored=stored).apply(plan, granted)
            finally:
                for source in (rule.origin, rule.target):
                    world.catalogs[source].armed.calm()
                    world.catalogs[source].land()
    except (Crash, StateError) as error:
        world.say(f"    {str(error) or 'the process dies'}")
    if saved.state == "applied":
        world.oracle.doubts.let_go(instance, saved)


def _application(world: World, instance: Instance, rule: MirrorRule, *, stored: bool = False) -> Application:
    origin, target, stop = world.catalogs[rule.origin], world.catalogs[rule.target], threading.Event()
    journal = FaultyJournal(instance.index, rule, world.oracle.now, world, instance, stop)
    executor = WatchedExecutor(
        journal, rule, origin, target, target.capabilities.keeps_properties, stop, clock=world.oracle.now, monotonic=world.oracle.now,
        op_ids=world.operation, max_failures=2 if instance.impatient else None, stored=stored, world=world, instance=instance,
        drop_refusal=drop_refusal(target.capabilities),
    )  # fmt: skip
    return WatchedApplication(executor, instance.index, world, instance)


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
