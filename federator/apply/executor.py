"""The executor: carries out a plan's Changes through the write-ahead journal, one after the other or some at once.

For each Change: look at the object → is it still as the plan read it? → intent, durable → the origin observed, where the Change
removes, moves or recreates → the one call → both observed again → outcome and ledger, committed together. A call is made only if the
leases outlast its deadline.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from federator import logs
from federator.apply.brake import Brake
from federator.apply.confirmation import LEASE_ENDS, OriginConfirmation
from federator.apply.looking import Look
from federator.apply.order import Unit, ranks, units
from federator.apply.outcome import Outcome, State
from federator.apply.port import Intent, Journal
from federator.apply.steps import carry_out, finish_recreation, resolve, undo_unfinished
from federator.connector import (
    Catalog,
    CatalogError,
    ConcurrentModification,
    Internal,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    TableAlreadyExists,
    Unsupported,
)
from federator.connector.politeness import Rate
from federator.model import TableRecord
from federator.planning import windows
from federator.planning.changes import Action, Change
from federator.planning.origins import expected_origins
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule

# What a catalog says when somebody was there between our look and our call, and what we say then.
_RACED: tuple[tuple[type[CatalogError], str], ...] = (
    (ConcurrentModification, Reason.MOVED),
    (TableAlreadyExists, Reason.MOVED),
    (NamespaceAlreadyExists, "already_there"),
    (NamespaceNotEmpty, "not_empty"),
)


@dataclass(frozen=True)
class Connections:
    """One opened catalog of each side: what one thread uses."""

    origin: Catalog
    target: Catalog


@dataclass
class Executor:
    """One mirror's application. ``stop`` ends it between two Changes; a call takes at most ``deadline`` seconds.

    As many calls are made at once as there are connections: ``origin`` and ``target``, and those of ``more``.
    ``writes_per_second`` bounds all of them together; after ``max_failures`` no further Change is begun.
    """

    journal: Journal
    rule: MirrorRule
    origin: Catalog
    target: Catalog
    keeps_properties: bool = True
    stop: threading.Event = field(default_factory=threading.Event)
    deadline: float = 60.0
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    op_ids: Callable[[], str] = lambda: uuid.uuid4().hex
    more: Sequence[Connections] = ()
    writes_per_second: float | None = None
    max_failures: int | None = None
    #: the plan was made by another run: each origin is observed before its change
    stored: bool = False
    #: why no namespace of the target is dropped (``planning.namespaces.drop_refusal``), also in a plan that was made when it could be
    drop_refusal: str | None = None
    #: target paths whose last call's fate is unknown: nothing more is done there until it is settled
    _open: set[str] = field(default_factory=set, init=False)
    #: places that target paths have left in this application: (path, canonical location)
    _freed: set[tuple[str, str]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._rate = Rate(self.writes_per_second, time.monotonic, time.sleep)

    def apply(
        self,
        plan: str,
        changes: Sequence[Change],
        report: Callable[[Outcome], None] = lambda _: None,
        *,
        any_time: bool = False,
    ) -> list[Outcome]:
        """Carries out the Changes; a failed one stops only what depends on it. ``plan`` is the plan's digest.

        ``report`` gets each Outcome as it comes, in this thread; they are returned in the plan's order. The mirror's windows are asked
        as each Change begins, unless a person let the plan go at ``any_time``.
        """
        outcomes: dict[int, Outcome] = {}
        for number, outcome in self._outcomes(plan, changes, any_time=any_time):
            outcomes[number] = outcome
            report(outcome)
        return [outcomes[number] for number in sorted(outcomes)]

    def resume(self) -> list[Outcome]:
        """Settles the intents of a run that died, by what their objects say now. The caller has waited out the old lease."""
        outcomes, here = [], Connections(self.origin, self.target)
        for intent in self.journal.open_intents():
            outcomes.append(self._fate(here, intent))
            self._close(intent, outcomes[-1])
        return outcomes

    def _outcomes(self, plan: str, changes: Sequence[Change], *, any_time: bool) -> Iterator[tuple[int, Outcome]]:
        brake, ordered = Brake(self.stop, self.max_failures, (lambda _: None) if any_time else self._late), units(changes)
        if self.more:
            yield from self._at_once(plan, ranks(ordered), brake)
            return
        here = Connections(self.origin, self.target)
        for unit in ordered:
            yield from self._unit(plan, unit, here, brake)

    def _late(self, change: Change) -> str | None:
        return windows.closed(self.rule, change, self.clock())

    def _at_once(self, plan: str, ranked: Sequence[Sequence[Unit]], brake: Brake) -> Iterator[tuple[int, Outcome]]:
        free: queue.SimpleQueue[Connections] = queue.SimpleQueue()
        for connections in (Connections(self.origin, self.target), *self.more):
            free.put(connections)
        broken = threading.Event()

        def work(unit: Unit) -> list[tuple[int, Outcome]]:
            if broken.is_set():
                return []
            connections = free.get()
            try:
                return list(self._unit(plan, unit, connections, brake))
            except BaseException:
                # A lost lease, or an index that is away: the calls in flight end, and none is begun.
                broken.set()
                raise
            finally:
                free.put(connections)

        with ThreadPoolExecutor(1 + len(self.more), thread_name_prefix=f"apply {self.rule.name}") as threads:
            for rank in ranked:
                futures: list[Future[list[tuple[int, Outcome]]]] = [threads.submit(logs.carried(work), unit) for unit in rank]
                for future in as_completed(futures):
                    yield from future.result()

    def _unit(self, plan: str, unit: Unit, at: Connections, brake: Brake) -> Iterator[tuple[int, Outcome]]:
        why = brake.objection(change for _, change in unit.steps)
        for number, change in unit.steps:
            if why is not None:
                yield number, Outcome(change, State.SKIPPED, *why)
                continue
            outcome = self._one(plan, number, change, at, [each for _, each in unit.steps])
            brake.count(outcome)
            if outcome.state is not State.DONE:
                why = "first_half", f"{change.target_path} did not come free"
            yield number, outcome

    def _one(self, plan: str, number: int, change: Change, at: Connections, together: Sequence[Change]) -> Outcome:
        if change.target_path in self._open:
            return Outcome(change, State.SKIPPED, "open_intent", "the fate of the last call there is not known yet")
        self._rate.wait()
        if not self._may_call():
            return Outcome(change, State.SKIPPED, "lease", LEASE_ENDS)
        look = self._look(at)
        try:
            objection, saved = look.objection(change), None
            if objection is None:
                saved, objection = look.saved(change)
        except CatalogError as error:
            return Outcome(change, State.FAILED, str(error.code), f"could not be looked at before the change: {error.message}")
        intent = Intent(self.op_ids(), plan, number, change, saved)
        self.journal.intend(intent)
        outcome = objection or self._call(at, intent, together)
        self._close(intent, outcome)
        return outcome

    def _close(self, intent: Intent, outcome: Outcome) -> None:
        if outcome.state is State.UNKNOWN:
            self._open.add(outcome.change.target_path)
            return
        change = outcome.change
        left = change.before.canonical if change.before is not None else None
        if outcome.state is State.DONE and left and (change.action is Action.DEREGISTER_TABLE or change.moves_location):
            self._freed.add((change.target_path, left))
        self.journal.settle(intent, outcome)

    def _call(self, at: Connections, intent: Intent, together: Sequence[Change]) -> Outcome:
        change, op_id = intent.change, intent.op_id
        # Again, since the intent may have taken its time: the deadline counts from here.
        if not self._may_call():
            return Outcome(change, State.SKIPPED, "lease", LEASE_ENDS, op_id=op_id)
        confirm = OriginConfirmation(
            at.origin, expected_origins(change, together), self.rule.max_origin_age, self._may_call, self.monotonic
        )
        try:
            record = carry_out(at.target, intent, self._may_call, confirm)
        except CatalogError as error:
            if confirm.refusal is not None:
                return Outcome(change, *confirm.refusal, op_id=op_id, origin_age=confirm.age)
            if error.retryable:
                # The call may have been carried out all the same, or half of it: only the object itself can tell.
                return confirm.observe_again(self._fate(at, intent))
            if isinstance(error, Internal) and _took_effect(resolved := self._fate(at, intent)):
                # The response was not one that the catalog gives, though the call may have been carried out.
                return confirm.observe_again(resolved)
            for raced, code in _RACED:
                if isinstance(error, raced):
                    return Outcome(change, State.SKIPPED, code, error.message, op_id=op_id)
            state = State.SKIPPED if isinstance(error, Unsupported) else State.FAILED
            return Outcome(change, state, str(error.code), error.message, op_id=op_id)
        return confirm.observe_again(Outcome(change, State.DONE, record=record, observed_at=self.clock(), op_id=op_id))

    def _may_call(self) -> bool:
        return self.journal.may_call(self.deadline)

    def _look(self, at: Connections) -> Look:
        return Look(self.journal, at.target, self._freed, self.clock, at.origin if self.stored else None, self.drop_refusal)

    def _fate(self, at: Connections, intent: Intent) -> Outcome:
        try:
            told = resolve(at.target, intent, self.clock(), keeps_properties=self.keeps_properties)
            if told is not None:
                return told
            if not self._may_call():
                return Outcome(intent.change, State.UNKNOWN, "lease", LEASE_ENDS)
            if (undone := undo_unfinished(at.target, intent, self.clock())) is not None:
                return undone
            taken = self._look(at).taken_since(intent.change)
            return finish_recreation(at.target, intent, self.clock, self._may_call, taken)
        except CatalogError as error:
            message = f"its fate is unknown: {error.message}"
            return Outcome(intent.change, State.UNKNOWN, str(error.code), message, op_id=intent.op_id)


def _took_effect(resolved: Outcome) -> bool:
    """Whether the observation after an unreadable response shows that the call was carried out, or cannot exclude it. A table that is
    there otherwise than the change asked for does not: the error says more."""
    other = isinstance(resolved.record, TableRecord) and resolved.target_digest is None
    return resolved.code != "not_made" and not (other and resolved.state in (State.DONE, State.NEEDS_ADOPTION))
