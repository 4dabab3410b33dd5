"""The executor: apply a plan's changes through the write-ahead journal, one after the other or several at once.

Steps for each change: observe the target and compare it with the plan; store the intent; observe the origin if the change removes,
moves or recreates a table; make the one call; observe target and origin again; commit outcome and ledger entry together. A call is
made only if the leases outlast its deadline. Where concurrent declarations race, and where tables are recreated, each declaration
holds its table's lock (``table_locks``) during all steps.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from federator import logs
from federator.apply.confirmation import LEASE_ENDS, OriginConfirmation
from federator.apply.gate import ChangeGate
from federator.apply.journal import Intent, Journal
from federator.apply.operations import execute_change
from federator.apply.ordering import ChangeGroup, group_changes, rank_groups
from federator.apply.outcome import Outcome, OutcomeState
from federator.apply.preflight import PreflightCheck
from federator.apply.recovery import complete_recreate, resolve, undo_unfinished
from federator.apply.table_locks import TableLocks
from federator.apply.write_path import carry_out, resolve_intent
from federator.connector import (
    Catalog,
    CatalogError,
    ConcurrentModification,
    Internal,
    NameNotAllowed,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    TableAlreadyExists,
    Unsupported,
)
from federator.connector.call_policy import RateLimiter
from federator.connector.operation import new_operation_id
from federator.model import TableRecord, parse_path_key
from federator.planning import change_windows
from federator.planning.changes import Action, Change
from federator.planning.origins import expected_origins
from federator.planning.reasons import ApplyCode, Reason
from federator.planning.rule import MirrorRule

# A catalog's errors if another client changed the object between the preflight check and the call, or if only the server knows which
# names it allows, and the outcome codes for them.
_RACE_CODES: tuple[tuple[type[CatalogError], Reason | ApplyCode], ...] = (
    (ConcurrentModification, Reason.MOVED),
    (TableAlreadyExists, Reason.MOVED),
    (NamespaceAlreadyExists, ApplyCode.ALREADY_THERE),
    (NamespaceNotEmpty, ApplyCode.NOT_EMPTY),
    (NameNotAllowed, Reason.NAME_NOT_ALLOWED),
)


@dataclass(frozen=True)
class CatalogPair:
    """One opened catalog of each side, for one thread."""

    origin: Catalog
    target: Catalog


@dataclass
class Executor:
    """The application of one mirror's plan. ``stop`` ends it between two changes. A call takes at most ``deadline`` seconds.

    The number of parallel calls is the number of connections: ``origin`` and ``target``, and those of ``extra_connections``.
    ``writes_per_second`` limits all of them together. After ``max_failures`` no further change is started.
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
    op_ids: Callable[[], str] = new_operation_id
    extra_connections: Sequence[CatalogPair] = ()
    writes_per_second: float | None = None
    max_failures: int | None = None
    #: another run made the plan, so each origin is observed before its change
    stored: bool = False
    #: why no namespace of the target is dropped (``planning.namespaces.drop_refusal``), also in a plan that was made when drops
    #: were allowed
    drop_refusal: str | None = None
    #: the locks of tables, which direct writes hold too. None if the target refuses all but one of concurrent declarations, and no
    #: table is recreated.
    locks: TableLocks | None = None
    #: target paths whose last call has an unknown outcome: they get no further call until it is resolved
    _unresolved_paths: set[str] = field(default_factory=set, init=False)
    #: locations that target paths have left in this application: (path, canonical location)
    _freed_locations: set[tuple[str, str]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._rate = RateLimiter(self.writes_per_second, time.monotonic, time.sleep)

    def apply(
        self,
        plan: str,
        changes: Sequence[Change],
        report: Callable[[Outcome], None] = lambda _: None,
        *,
        any_time: bool = False,
    ) -> list[Outcome]:
        """Apply the changes and return their outcomes in the plan's order. A failed change stops only those that depend on it.

        ``plan`` is the plan's digest. ``report`` gets each outcome as it arrives, in this thread. The mirror's change windows are
        checked when each change starts, unless an approval allows the plan at ``any_time``.
        """
        outcomes: dict[int, Outcome] = {}
        for number, outcome in self._outcomes(plan, changes, any_time=any_time):
            outcomes[number] = outcome
            report(outcome)
        return [outcomes[number] for number in sorted(outcomes)]

    def resolve_open_intents(self) -> list[Outcome]:
        """Resolve the open intents of a dead run by observing their objects. The caller has waited until the old lease expired."""
        connections = CatalogPair(self.origin, self.target)

        def resolve_one(intent: Intent) -> Outcome:
            with self._table_lock(intent.change) as busy:
                unknown = busy and Outcome(intent.change, OutcomeState.UNKNOWN, ApplyCode.LEASE, busy, op_id=intent.op_id)
                return resolve_intent(
                    self.journal, intent, lambda: self._remember(unknown or self._resolve_intent(connections, intent))
                )

        return list(map(resolve_one, self.journal.list_open_intents()))

    @contextmanager
    def _table_lock(self, change: Change) -> Iterator[str | None]:
        """Hold the lock of a table that a change declares: some catalogs carry out both of two concurrent declarations of a name.

        Yield None, or the message of the outcome if another write holds the lock for too long: then it is not held in the block.
        """
        with ExitStack() as held:
            busy = None
            if self.locks is not None and change.action in (Action.DECLARE_TABLE, Action.RECREATE_TABLE):
                try:
                    held.enter_context(self.locks.hold(change.target_source, parse_path_key(change.target_path)))
                except ConcurrentModification as error:
                    busy = error.message
            yield busy

    def _outcomes(self, plan: str, changes: Sequence[Change], *, any_time: bool) -> Iterator[tuple[int, Outcome]]:
        gate = ChangeGate(
            self.stop,
            self.max_failures,
            lambda change: None if any_time else change_windows.closed_reason(self.rule, change, self.clock()),
        )
        groups = group_changes(changes)
        if self.extra_connections:
            yield from self._apply_concurrently(plan, rank_groups(groups), gate)
            return
        connections = CatalogPair(self.origin, self.target)
        for group in groups:
            yield from self._apply_group(plan, group, connections, gate)

    def _apply_concurrently(
        self, plan: str, ranked: Sequence[Sequence[ChangeGroup]], gate: ChangeGate
    ) -> Iterator[tuple[int, Outcome]]:
        free: queue.SimpleQueue[CatalogPair] = queue.SimpleQueue()
        for connections in (CatalogPair(self.origin, self.target), *self.extra_connections):
            free.put(connections)
        broken = threading.Event()

        def apply_group(group: ChangeGroup) -> list[tuple[int, Outcome]]:
            if broken.is_set():
                return []
            connections = free.get()
            try:
                return list(self._apply_group(plan, group, connections, gate))
            except BaseException:
                # A lost lease or an unavailable index: the running calls end, and no further call starts.
                broken.set()
                raise
            finally:
                free.put(connections)

        with ThreadPoolExecutor(1 + len(self.extra_connections), thread_name_prefix=f"apply {self.rule.name}") as threads:
            for rank in ranked:
                futures: list[Future[list[tuple[int, Outcome]]]] = [
                    threads.submit(logs.with_bound_context(apply_group), group) for group in rank
                ]
                for future in as_completed(futures):
                    yield from future.result()

    def _apply_group(
        self, plan: str, group: ChangeGroup, connections: CatalogPair, gate: ChangeGate
    ) -> Iterator[tuple[int, Outcome]]:
        skipped = gate.find_skip_reason(change for _, change in group.steps)
        for number, change in group.steps:
            if skipped is not None:
                yield number, Outcome(change, OutcomeState.SKIPPED, *skipped)
                continue
            outcome = self._apply_change(plan, number, change, connections, [member for _, member in group.steps])
            gate.record_outcome(outcome)
            if outcome.state is not OutcomeState.DONE:
                skipped = ApplyCode.FIRST_HALF, f"{change.target_path} was not freed"
            yield number, outcome

    def _apply_change(
        self, plan: str, number: int, change: Change, connections: CatalogPair, group: Sequence[Change]
    ) -> Outcome:
        if change.target_path in self._unresolved_paths:
            return Outcome(
                change,
                OutcomeState.SKIPPED,
                ApplyCode.OPEN_INTENT,
                "the outcome of the last call to this path is not known yet",
            )
        self._rate.wait()
        # Only now: other writes to the table may wait for a change, but not for the rate of this run.
        with self._table_lock(change) as busy:
            if busy:
                return Outcome(change, OutcomeState.SKIPPED, ApplyCode.LEASE, busy)
            return self._check_and_call(plan, number, change, connections, group)

    def _check_and_call(
        self, plan: str, number: int, change: Change, connections: CatalogPair, group: Sequence[Change]
    ) -> Outcome:
        if not self._may_call():
            return Outcome(change, OutcomeState.SKIPPED, ApplyCode.LEASE, LEASE_ENDS)
        preflight = self._preflight(connections)
        try:
            native_before = None
            blocker = preflight.find_blocker(change)
            if blocker is None:
                native_before, blocker = preflight.save_native(change)
        except CatalogError as error:
            return Outcome(
                change,
                OutcomeState.FAILED,
                error.code,
                f"the target could not be observed before the change: {error.message}",
            )
        intent = Intent(self.op_ids(), plan, number, change, native_before)
        return carry_out(
            self.journal, intent, lambda: self._remember(blocker or self._call_catalog(connections, intent, group))
        )

    def _remember(self, outcome: Outcome) -> Outcome:
        """Note what an outcome means for later changes: a path without a known outcome, or a location that is free now."""
        change = outcome.change
        freed_location = change.before.canonical if change.before is not None else None
        if outcome.state is OutcomeState.UNKNOWN:
            self._unresolved_paths.add(change.target_path)
        elif (
            outcome.state is OutcomeState.DONE
            and freed_location
            and (change.action is Action.DEREGISTER_TABLE or change.moves_location)
        ):
            self._freed_locations.add((change.target_path, freed_location))
        return outcome

    def _call_catalog(self, connections: CatalogPair, intent: Intent, group: Sequence[Change]) -> Outcome:
        change, op_id = intent.change, intent.op_id
        # Check the lease again: writing the intent may have been slow, and the call deadline starts now.
        if not self._may_call():
            return Outcome(change, OutcomeState.SKIPPED, ApplyCode.LEASE, LEASE_ENDS, op_id=op_id)
        confirm = OriginConfirmation(
            connections.origin, expected_origins(change, group), self.rule.max_origin_age, self._may_call, self.monotonic
        )
        try:
            record = execute_change(connections.target, intent, self._may_call, confirm)
        except CatalogError as error:
            if confirm.refusal is not None:
                return Outcome(change, *confirm.refusal, op_id=op_id, origin_age=confirm.age)
            if error.retryable:
                # The call may have been carried out completely or in part: only an observation of the object shows it.
                return confirm.observe_again(self._resolve_intent(connections, intent))
            if isinstance(error, Internal) and _took_effect(resolved := self._resolve_intent(connections, intent)):
                # The response is not one of the catalog's, but the call may have been carried out.
                return confirm.observe_again(resolved)
            race_code = next((code for error_class, code in _RACE_CODES if isinstance(error, error_class)), None)
            skipped = race_code is not None or isinstance(error, Unsupported)
            state = OutcomeState.SKIPPED if skipped else OutcomeState.FAILED
            return Outcome(change, state, race_code or error.code, error.message, op_id=op_id)
        return confirm.observe_again(Outcome(change, OutcomeState.DONE, record=record, observed_at=self.clock(), op_id=op_id))

    def _may_call(self) -> bool:
        return self.journal.can_call_within(self.deadline)

    def _preflight(self, connections: CatalogPair) -> PreflightCheck:
        return PreflightCheck(
            self.journal,
            connections.target,
            self._freed_locations,
            self.clock,
            connections.origin if self.stored else None,
            self.drop_refusal,
        )

    def _resolve_intent(self, connections: CatalogPair, intent: Intent) -> Outcome:
        try:
            outcome = resolve(connections.target, intent, self.clock(), keeps_properties=self.keeps_properties)
            if outcome is not None:
                return outcome
            if not self._may_call():
                return Outcome(intent.change, OutcomeState.UNKNOWN, ApplyCode.LEASE, LEASE_ENDS)
            if (undone := undo_unfinished(connections.target, intent, self.clock())) is not None:
                return undone
            refusal = self._preflight(connections).find_recreate_refusal(intent.change)
            return complete_recreate(connections.target, intent, self.clock, self._may_call, refusal)
        except CatalogError as error:
            message = f"the outcome is unknown: {error.message}"
            return Outcome(intent.change, OutcomeState.UNKNOWN, error.code, message, op_id=intent.op_id)


def _took_effect(resolved: Outcome) -> bool:
    """Tell whether the observation after an unreadable response shows that the call was carried out, or cannot exclude it."""
    if resolved.code is ApplyCode.NOT_MADE:
        return False
    # A table that differs from the change's is not its effect: the error of the call then says more.
    differs = isinstance(resolved.record, TableRecord) and resolved.ledger_digest is None
    return not (differs and resolved.state in (OutcomeState.DONE, OutcomeState.NEEDS_ADOPTION))
