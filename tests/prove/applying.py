"""Applying in a world: the product's Executor over a journal in memory that can die or lose its lease between two of its writes."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from federator.apply import Executor, Outcome, State
from federator.apply.outcome import RESTORED
from federator.apply.port import Intent
from federator.connector import StateError
from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.plan import Plan, check, still_proven
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule
from tests.prove.catalog import Crash
from tests.prove.index import Entry, Kept
from tests.prove.oracle import Actor, keeps_marks

if TYPE_CHECKING:
    from tests.prove.world import Instance, World

_OF_NAMESPACES = (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE)
_GONE = (Action.DEREGISTER_TABLE, Action.DROP_NAMESPACE)
_RENAMED, _ALREADY_GONE = "renamed", "already_gone"


class LeaseLost(StateError):
    """As ``federator.index.leases`` raises it inside a writing transaction."""


@dataclass(frozen=True)
class MemoryJournal:
    """``federator.apply.index_journal.IndexJournal`` over memory. A fault of the process strikes at a write of the journal: before
    it is durable, or after."""

    world: World
    instance: Instance
    rule: MirrorRule
    stop: threading.Event

    def open_intents(self) -> list[Intent]:
        rows = self.instance.index.journal.values()
        # As they come back from SQL.
        return [
            replace(row.intent, change=Change.from_json(row.intent.change.to_json()))
            for row in rows
            if row.mirror == self.rule.name and row.state == "intent"
        ]

    def may_call(self, seconds: float) -> bool:
        return not self._strikes("lease_short")

    def intend(self, intent: Intent) -> None:
        if self._strikes("crash_before_intent"):
            raise Crash
        if self._strikes("lease_lost"):
            raise LeaseLost("the lease was lost to another process")
        self.instance.index.journal[intent.op_id] = Entry(intent, self.rule.name, self.world.now)
        if self._strikes("crash_after_intent"):
            raise Crash

    def settle(self, intent: Intent, outcome: Outcome) -> None:
        if self._strikes("crash_before_outcome"):
            raise Crash
        if self._strikes("lease_lost"):
            raise LeaseLost("the lease was lost to another process")
        index, done = self.instance.index, outcome.state is State.DONE
        moved = outcome.change.moves_location and outcome.state in (State.DONE, State.NEEDS_ADOPTION)
        code = "location_changed" if moved else outcome.code
        row = index.journal[intent.op_id]
        row.state, row.code = outcome.state.value, _RENAMED if done and outcome.change.pair is not None else code
        index.version += 1
        if done:
            forgot = self._enter(outcome, intent.op_id)
            row.code = _ALREADY_GONE if outcome.change.action in _GONE and not forgot else row.code
        elif outcome.code == RESTORED and outcome.record is not None:
            for key, entry in index.ledger.items():
                # The ledger's ``identify``.
                if (key[0], key[3], key[4], entry["target_source"]) == (
                    self.rule.name,
                    outcome.change.target_path,
                    1,
                    self.rule.target,
                ):
                    entry["native_id"] = outcome.record.native_id
        if self._strikes("crash_after_outcome"):
            raise Crash
        if self._strikes("stop_asked"):
            self.stop.set()

    def names_at(self, canonical: str) -> Collection[str]:
        return self.instance.index.names_at(self.rule.target, canonical)

    def names_given(self, canonical: str) -> Collection[str]:
        return self.instance.index.names_given(self.rule.target, canonical)

    def names_pending(self, canonical: str) -> Collection[str]:
        return self.instance.index.names_pending(self.rule.target, canonical)

    def origin_digest(self, path: str) -> str | None:
        record = self.instance.index.states[self.rule.origin].tables.get(path)
        return record.digest if record else None

    def _enter(self, outcome: Outcome, op_id: str) -> bool:
        """Returns whether the ledger had an entry of the target before."""
        change, record, ledger = outcome.change, outcome.record, self.instance.index.ledger
        is_table = int(change.action not in _OF_NAMESPACES)
        before = [
            key
            for key, row in ledger.items()
            if (key[0] == self.rule.name or change.action is Action.ADOPT)
            and (row["target_source"], key[3], key[4]) == (change.target_source, change.target_path, is_table)
        ]
        for key in before:
            del ledger[key]
        if change.action in _GONE:
            return bool(before)
        ledger[self.rule.name, change.origin_source, change.origin_path, change.target_path, is_table] = {
            "mirror": self.rule.name,
            "origin_source": change.origin_source,
            "origin_path": change.origin_path,
            "target_source": change.target_source,
            "target_path": change.target_path,
            "is_table": is_table,
            "op_id": op_id,
            "native_id": record.native_id if record else None,
            "canonical": record.canonical if isinstance(record, TableRecord) else None,
            "origin_digest": change.precondition.get("origin"),
            "target_digest": outcome.target_digest,
            "mapping_digest": self.rule.mapping_digest,
            "declared": change.declared,
        }
        return bool(before)

    def _strikes(self, fault: str) -> bool:
        armed = self.instance.armed
        if armed is None or armed[0] != fault:
            return False
        if armed[1] > 0:
            self.instance.armed = (fault, armed[1] - 1)
            return False
        self.instance.armed = None
        self.world.oracle.struck(fault, self.rule.origin, self.rule.target)
        return True


def resume(world: World, instance: Instance, rule: MirrorRule) -> None:
    """``sync.applying.resume`` of one mirror."""
    try:
        _settle_left(world, instance, rule, _executor(world, instance, rule))
    except (Crash, StateError) as error:
        world.say(f"    the process dies, or loses its lease: {error}")


def apply(world: World, instance: Instance, kept: Kept, *, stored: bool) -> None:
    """``sync.Federator.apply`` and ``sync.applying.apply`` of one plan, which may be ``stored`` and read back."""
    rule = instance.rules[kept.plan.mirror]
    plan = Plan.from_json(kept.plan.to_json()) if stored else kept.plan
    try:
        check(plan, digest=kept.plan.digest, mirror_digest=rule.digest)
    except StateError:
        world.say("    the mirror was configured differently when this plan was made")
        return
    if plan.held and kept.state != "approved":
        world.oracle.said(rule, [Reason.HELD_BY_GUARD.value])
        world.say(f"    held: {plan.held[0]}")
        return
    executor = _executor(world, instance, rule)
    # Between the last look at an origin and the call, nobody can know what happens there: users wait until the target's turn.
    world.catalogs[rule.origin].armed.race = None
    try:
        _settle_left(world, instance, rule, executor)
        world.oracle.actor = Actor(instance, rule, _by_path(plan), kept.state == "approved")
        proven, unproven = still_proven(rule, plan.changes, instance.index.states[rule.origin].absences)
        outcomes = [Outcome(change, State.SKIPPED, Reason.NOT_COVERED) for change in unproven]
        outcomes += executor.apply(plan.digest, proven)
        _publish(world, instance, rule, outcomes)
        kept.state = "applied"
    except Crash:
        world.say("    the process dies")
    except StateError as error:
        world.say(f"    {error}")
    finally:
        world.oracle.actor = None
        for source in (rule.origin, rule.target):
            catalog = world.catalogs[source]
            catalog.armed.calm()
            catalog.land()


def _by_path(plan: Plan) -> dict[tuple[bool, str], Change]:
    return {(change.action in _OF_NAMESPACES, change.target_path): change for change in plan.changes}


def _executor(world: World, instance: Instance, rule: MirrorRule) -> Executor:
    origin, target, stop = world.catalogs[rule.origin], world.catalogs[rule.target], threading.Event()
    return Executor(
        MemoryJournal(world, instance, rule, stop), rule, origin, target, target.capabilities.keeps_properties, stop,
        clock=lambda: world.now, op_ids=world.operation, max_failures=2 if instance.impatient else None,
    )  # fmt: skip


def _settle_left(world: World, instance: Instance, rule: MirrorRule, executor: Executor) -> None:
    """Only the second half of a recreation may be written now: its intent is the plan."""
    open_ = [
        entry.intent.change
        for entry in instance.index.journal.values()
        if entry.state == "intent" and entry.mirror == rule.name
    ]
    halves = {(False, change.target_path): change for change in open_ if change.action is Action.RECREATE_TABLE}
    world.oracle.actor = Actor(instance, rule, halves, approved=True, resumes=True)
    try:
        _publish(world, instance, rule, executor.resume())
    finally:
        world.oracle.actor = None


def _publish(world: World, instance: Instance, rule: MirrorRule, outcomes: Iterable[Outcome]) -> None:
    """``sync.applying._publish``, and what the oracle and the story want to know."""
    for outcome in outcomes:
        change = outcome.change
        if outcome.state is State.DONE or outcome.code == RESTORED:
            is_table = change.action not in _OF_NAMESPACES
            instance.index.observed(rule.target, change.target_path, outcome.record, outcome.observed_at, is_table=is_table)
            world.oracle.published(instance, world.catalogs[rule.target], change.target_path, gone=outcome.record is None)
        # What waits for a place that is never freed, since a recreation there is refused or two tables changed places, waits with it.
        stuck = outcome.code == Reason.LOCATION_DECLARED and (change.moves_location or instance.left_alone)
        adopts = change.action is Action.ADOPT and not keeps_marks(world.catalogs[rule.target])
        if stuck or adopts or outcome.code in ("not_restorable", "not_empty"):
            instance.left_alone.add((rule.name, change.target_path))
        elif outcome.state is State.DONE:
            instance.left_alone.discard((rule.name, change.target_path))
        if outcome.code is not None:
            world.oracle.said(rule, [str(outcome.code)])
        if world.story is not None:
            told = f"{outcome.code or ''} {outcome.message or ''}"
            world.say(f"      {outcome.state.value} {change.action.value} {change.target_path} {told}".rstrip())
