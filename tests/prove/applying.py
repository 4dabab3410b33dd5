"""Applying in a world: the product's Executor over a journal in memory that can die or lose its lease between two of its writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from federator.apply import Executor, Outcome, State
from federator.apply.leased_journal import LeasedJournal
from federator.apply.outcome import RESTORED
from federator.apply.port import Intent
from federator.connector import StateError
from federator.planning.changes import Action, Change
from federator.planning.namespaces import drop_refusal
from federator.planning.plan import Plan, check, still_proven
from federator.planning.reasons import Reason
from federator.planning.release import release
from federator.planning.rule import MirrorRule
from federator.planning.settlement import ledger_key
from tests.prove.catalog import Crash
from tests.prove.index import Entry, Kept
from tests.prove.oracle import Actor, Violation, keeps_marks

if TYPE_CHECKING:
    from tests.prove.world import Instance, World

_OF_NAMESPACES = (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE)


class LeaseLost(StateError):
    """As ``federator.index.leases`` raises it inside a writing transaction."""


@dataclass
class MemoryLease:
    """A lease that may be lost before a write of the journal, or end too early for a call."""

    strikes: Callable[[str], bool]
    lost: bool = False

    def check(self, _: None) -> None:
        if self.lost:
            raise LeaseLost("the lease was lost to another process")

    def fits(self, _: float) -> bool:
        return not self.strikes("lease_short")


@dataclass
class MemoryJournal(LeasedJournal[None]):
    """``LeasedJournal`` over memory. A fault of the process strikes at a write of the journal: before it is durable, or after."""

    world: World
    instance: Instance
    rule: MirrorRule
    stop: threading.Event

    def __post_init__(self) -> None:
        self.lease = MemoryLease(self._strikes)
        self.leases = (self.lease,)

    def open_intents(self) -> list[Intent]:
        rows = self.instance.index.journal.values()
        # As they come back from SQL.
        return [
            replace(row.intent, change=Change.from_json(row.intent.change.to_json()))
            for row in rows
            if row.mirror == self.rule.name and row.state == "intent"
        ]

    def intend(self, intent: Intent) -> None:
        self._write("intent", lambda: super(MemoryJournal, self).intend(intent))

    def settle(self, intent: Intent, outcome: Outcome) -> None:
        self._write("outcome", lambda: super(MemoryJournal, self).settle(intent, outcome))
        if self._strikes("stop_asked"):
            self.stop.set()

    def _write(self, what: str, write: Callable[[], None]) -> None:
        if self._strikes(f"crash_before_{what}"):
            raise Crash
        self.lease.lost = self.lease.lost or self._strikes("lease_lost")
        write()
        if self.lease.lost:
            raise Violation("a write of the journal without its leases", what)
        if self._strikes(f"crash_after_{what}"):
            raise Crash

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        yield

    def _store_intent(self, transaction: None, intent: Intent) -> None:
        self.instance.index.journal[intent.op_id] = Entry(intent, self.rule.name, self.world.now)

    def _replace_entry(self, transaction: None, change: Change, entry: Mapping[str, Any] | None, *, every_mirror: bool) -> bool:
        ledger, key = self.instance.index.ledger, ledger_key(self.rule, change)
        same = (
            ("target_source", "target_path", "is_table")
            if every_mirror
            else ("mirror", "target_source", "target_path", "is_table")
        )
        before = [at for at, row in ledger.items() if all(row[column] == key[column] for column in same)]
        for at in before:
            del ledger[at]
        if entry is not None:
            ledger[key["mirror"], key["origin_source"], key["origin_path"], key["target_path"], key["is_table"]] = dict(entry)
        return bool(before)

    def _identify(self, transaction: None, change: Change, native_id: str | None) -> None:
        for row in self.instance.index.ledger.values():
            if (row["mirror"], row["target_path"], row["is_table"]) == (self.rule.name, change.target_path, 1):
                row["native_id"] = native_id

    def _store_outcome(
        self, transaction: None, intent: Intent, outcome: Outcome, code: str | None, entry: Mapping[str, Any] | None,
        native_id: str | None,
    ) -> None:  # fmt: skip
        row = self.instance.index.journal[intent.op_id]
        row.state, row.code = outcome.state.value, code
        self.instance.index.version += 1

    def names_at(self, canonical: str) -> Collection[str]:
        return self.instance.index.names_at(self.rule.target, canonical)

    def names_given(self, canonical: str) -> Collection[str]:
        return self.instance.index.names_given(self.rule.target, canonical)

    def names_pending(self, canonical: str) -> Collection[str]:
        return self.instance.index.names_pending(self.rule.target, canonical)

    def origin_digest(self, path: str) -> str | None:
        record = self.instance.index.states[self.rule.origin].tables.get(path)
        return record.digest if record else None

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
    granted = release(plan, instance.index.approved(rule.name, world.now))
    if granted.waiting:
        world.oracle.said(rule, [waiting.reason.value for waiting in granted.waiting])
        world.say(f"    {len(granted.waiting)} of {len(plan.changes)} changes wait: {granted.waiting[0].hold}")
    if not granted.changes:
        return
    executor = _executor(world, instance, rule)
    executor.stored = stored
    try:
        _settle_left(world, instance, rule, executor)
        world.oracle.actor = Actor(instance, rule, _by_path(granted.changes), approved=False)
        proven, unproven = still_proven(rule, granted.changes, instance.index.states[rule.origin].absences)
        outcomes = [Outcome(change, State.SKIPPED, Reason.NOT_COVERED) for change in unproven]
        outcomes += executor.apply(plan.digest, proven)
        _publish(world, instance, rule, outcomes)
        kept.state = "held" if granted.waiting else "applied"
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


def _by_path(changes: Iterable[Change]) -> dict[tuple[bool, str], Change]:
    return {(change.action in _OF_NAMESPACES, change.target_path): change for change in changes}


def _executor(world: World, instance: Instance, rule: MirrorRule) -> Executor:
    origin, target, stop = world.catalogs[rule.origin], world.catalogs[rule.target], threading.Event()
    return Executor(
        MemoryJournal(world, instance, rule, stop), rule, origin, target, target.capabilities.keeps_properties, stop,
        clock=lambda: world.now, monotonic=lambda: world.now, op_ids=world.operation, max_failures=2 if instance.impatient else None,
        drop_refusal=drop_refusal(target.capabilities),
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
