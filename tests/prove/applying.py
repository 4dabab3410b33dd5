"""Applying in a world: the product's ``Application`` over memory, and what the oracle and the story are told of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from federator.apply import Application, Executor, Outcome, State
from federator.connector import StateError
from federator.planning.changes import Action, Change
from federator.planning.namespaces import drop_refusal
from federator.planning.plan import Plan, check
from federator.planning.publication import Observed
from federator.planning.reasons import Reason
from federator.planning.release import release
from federator.planning.rule import MirrorRule
from tests.prove.catalog import Crash
from tests.prove.faults import FaultyJournal
from tests.prove.index import Kept
from tests.prove.oracle import Actor, keeps_marks

if TYPE_CHECKING:
    from tests.prove.world import Instance, World

_OF_NAMESPACES = (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE)


@dataclass(frozen=True)
class WatchedIndex:
    """``ApplicationIndex`` in memory. The oracle hears what is published."""

    world: World
    instance: Instance

    def absences(self, source: str) -> Mapping[str, Sequence[float]]:
        return self.instance.index.states[source].absences

    def publish(self, source: str, seen: Sequence[Observed]) -> None:
        self.instance.index.publish(source, seen)
        for look in seen:
            self.world.oracle.published(self.instance, self.world.catalogs[source], look.key[1], gone=look.record is None)

    def mark_applied(self, plan: str) -> None:
        self.instance.index.plans[plan].state = "applied"


@dataclass(kw_only=True)
class WatchedExecutor(Executor):
    """The product's executor. The oracle hears on whose behalf it writes."""

    world: World
    instance: Instance

    def apply(self, plan: str, changes: Sequence[Change], *arguments: Any, **options: Any) -> list[Outcome]:
        with self._acting(changes, resumes=False):
            return super().apply(plan, changes, *arguments, **options)

    def resume(self) -> list[Outcome]:
        """Only the second half of a recreation may be written: its intent is the plan."""
        open_ = (intent.change for intent in self.instance.index.open_intents(self.rule.name))
        with self._acting((change for change in open_ if change.action is Action.RECREATE_TABLE), resumes=True):
            return super().resume()

    @contextmanager
    def _acting(self, changes: Iterable[Change], *, resumes: bool) -> Iterator[None]:
        by_path = {(change.action in _OF_NAMESPACES, change.target_path): change for change in changes}
        self.world.oracle.actor = Actor(self.instance, self.rule, by_path, approved=resumes, resumes=resumes)
        try:
            yield
        finally:
            self.world.oracle.actor = None


@dataclass(frozen=True)
class WatchedApplication(Application):
    """The product's application. The oracle and the story hear of each outcome."""

    world: World
    instance: Instance

    def publish(self, outcomes: Sequence[Outcome]) -> None:
        super().publish(outcomes)
        for outcome in outcomes:
            _tell(self.world, self.instance, self.executor.rule, outcome)


def resume(world: World, instance: Instance, rule: MirrorRule) -> None:
    """Resolves the open calls of one mirror."""
    try:
        _application(world, instance, rule).resume()
    except (Crash, StateError) as error:
        world.say(f"    the process dies, or loses its lease: {error}")


def apply(world: World, instance: Instance, kept: Kept, *, stored: bool) -> None:
    """Applies one plan, which may be ``stored`` and read back."""
    rule = instance.rules[kept.plan.mirror]
    plan = Plan.from_json(kept.plan.to_json()) if stored else kept.plan
    try:
        check(plan, digest=kept.plan.digest, mirror_digest=rule.digest)
    except StateError:
        world.say("    the mirror was configured differently when this plan was made")
        return
    granted = release(plan, instance.index.approved(rule.name, world.now))
    if granted.waiting:
        world.oracle.said(rule, [waiting.reason.value for waiting in granted.waiting])
        world.say(f"    {len(granted.waiting)} of {len(plan.changes)} changes wait: {granted.waiting[0].hold}")
    if not granted.changes:
        return
    try:
        _application(world, instance, rule, stored=stored).apply(plan, granted)
    except Crash:
        world.say("    the process dies")
    except StateError as error:
        world.say(f"    {error}")
    finally:
        for source in (rule.origin, rule.target):
            catalog = world.catalogs[source]
            catalog.armed.calm()
            catalog.land()


def _application(world: World, instance: Instance, rule: MirrorRule, *, stored: bool = False) -> Application:
    origin, target, stop = world.catalogs[rule.origin], world.catalogs[rule.target], threading.Event()
    clock: Callable[[], float] = lambda: world.now  # noqa: E731
    journal = FaultyJournal(instance.index, rule, clock, world, instance, stop)
    executor = WatchedExecutor(
        journal, rule, origin, target, target.capabilities.keeps_properties, stop, clock=clock, monotonic=clock,
        op_ids=world.operation, max_failures=2 if instance.impatient else None, stored=stored, world=world, instance=instance,
        drop_refusal=drop_refusal(target.capabilities),
    )  # fmt: skip
    return WatchedApplication(executor, WatchedIndex(world, instance), world, instance)


def _tell(world: World, instance: Instance, rule: MirrorRule, outcome: Outcome) -> None:
    """What the story's end and its reader want to know of an outcome."""
    change = outcome.change
    # What waits for a place that is never freed, since a recreation there is refused or two tables changed places, waits with it.
    stuck = outcome.code == Reason.LOCATION_DECLARED and (change.moves_location or instance.left_alone)
    # Two mirrors that adopt one object where no mark can be kept do so again and again, or point it to and fro.
    others = (row for other in world.instances if other is not instance for row in other.index.ledger.values())
    shared = any((row["target_source"], row["target_path"]) == (rule.target, change.target_path) for row in others)
    unmarked = not keeps_marks(world.catalogs[rule.target]) and (
        change.action is Action.ADOPT or (change.moves_location and shared)
    )
    if stuck or unmarked or outcome.code in ("not_restorable", "not_empty"):
        instance.left_alone.add((rule.name, change.target_path))
    elif outcome.state is State.DONE:
        instance.left_alone.discard((rule.name, change.target_path))
    if outcome.code is not None:
        world.oracle.said(rule, [str(outcome.code)])
    if world.story is not None:
        told = f"{outcome.code or ''} {outcome.message or ''}"
        world.say(f"      {outcome.state.value} {change.action.value} {change.target_path} {told}".rstrip())
