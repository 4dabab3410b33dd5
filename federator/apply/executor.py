"""The executor: carries out a plan's Changes one by one, through the write-ahead journal.

For each Change: look at the object → is it still as the plan read it? → intent, committed → the one call → look again → outcome and
ledger, committed together. A call is made only if the leases outlast its deadline.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from federator.apply.outcome import Outcome, State
from federator.apply.steps import already_settled, carry_out, fate
from federator.connector import (
    Catalog,
    CatalogError,
    ConcurrentModification,
    NamespaceAlreadyExists,
    TableAlreadyExists,
    Unsupported,
)
from federator.index import Connection, Index, audit_log, journal, ledger, records
from federator.index.leases import CALL_DEADLINE, Lease
from federator.index.runs import RunHandle
from federator.model import TableRecord, canonical_json, parse_key
from federator.planning.changes import Action, Change
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule

# A target that fails this often in a row is not there; the rest of the plan waits for the next run.
_GIVE_UP_AFTER = 3
# What a catalog says when somebody was there between our look and our call.
_RACED = (ConcurrentModification, TableAlreadyExists)


@dataclass
class Executor:
    """One mirror's application. ``leases`` are the mirror's and the target's; ``stop`` ends it between two Changes."""

    index: Index
    run: RunHandle
    rule: MirrorRule
    origin: Catalog
    target: Catalog
    leases: Sequence[Lease]
    keeps_properties: bool = True
    stop: threading.Event = field(default_factory=threading.Event)
    #: target paths whose last call's fate is unknown: nothing more is done there until it is settled
    _open: set[str] = field(default_factory=set, init=False)
    #: target paths that this application has freed
    _freed: set[str] = field(default_factory=set, init=False)

    def apply(self, plan: str, changes: Sequence[Change], report: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
        """Carries out the Changes in order; a failed one does not stop the others. ``plan`` is the plan's digest."""
        outcomes: list[Outcome] = []
        for outcome in self._outcomes(plan, changes):
            outcomes.append(outcome)
            report(outcome)
        return outcomes

    def resume(self) -> list[Outcome]:
        """Settles the intents of a run that died, by what their objects say now. The caller has waited out the old lease."""
        with self.index.read() as connection:
            left = journal.open_intents(connection, self.rule.name)
        outcomes = []
        for row in left:
            change = Change.from_json(json.loads(row["change"]))
            outcome = self._fate(change, row["op_id"])
            outcomes.append(outcome)
            self._close(outcome, row["op_id"])
        return outcomes

    def _outcomes(self, plan: str, changes: Sequence[Change]) -> Iterator[Outcome]:
        unavailable = 0
        for number, change in enumerate(changes):
            if self.stop.is_set():
                yield Outcome(change, State.SKIPPED, "stopped", "the run was asked to stop")
                continue
            if unavailable >= _GIVE_UP_AFTER:
                yield Outcome(change, State.SKIPPED, "unavailable", "the target did not answer the calls before")
                continue
            if change.target_path in self._open:
                yield Outcome(change, State.SKIPPED, "open_intent", "the fate of the last call there is not known yet")
                continue
            outcome = self._one(plan, number, change)
            unavailable = unavailable + 1 if outcome.code in ("17", "21") else 0
            yield outcome

    def _one(self, plan: str, number: int, change: Change) -> Outcome:
        if not all(lease.fits(CALL_DEADLINE) for lease in self.leases):
            return Outcome(change, State.SKIPPED, "lease", "the lease ends before the call's deadline")
        try:
            objection = self._moved(change)
        except CatalogError as error:
            return Outcome(change, State.FAILED, str(error.code), f"could not be looked at before the change: {error.message}")
        op_id = uuid.uuid4().hex
        self._intend(plan, number, change, op_id)
        outcome = objection or self._call(change, op_id)
        self._close(outcome, op_id)
        return outcome

    def _close(self, outcome: Outcome, op_id: str) -> None:
        if outcome.state is State.UNKNOWN:
            self._open.add(outcome.change.target_path)
            return
        if outcome.state is State.DONE and outcome.change.action is Action.DEREGISTER_TABLE:
            self._freed.add(outcome.change.target_path)
        self._settle(outcome, op_id)

    def _moved(self, change: Change) -> Outcome | None:
        """Why the Change must not be made: reality is not what the plan read."""
        if change.action is Action.CREATE_NAMESPACE:
            return None
        if change.action is Action.DEREGISTER_TABLE and change.precondition.get("origin") == "absent":
            seen = self.origin.observe(parse_key(change.origin_path))
            if not seen.absent:
                detail = seen.foreign or "a direct look found it"
                return Outcome(change, State.SKIPPED, Reason.STILL_THERE, f"the origin is there: {detail}")
        elif change.precondition.get("origin") not in (None, "any", self._origin_digest(change)):
            return Outcome(change, State.SKIPPED, Reason.MOVED, "the origin has changed since the plan was made")
        seen = self.target.observe(parse_key(change.target_path))
        now = seen.record.digest if seen.record else "absent" if seen.absent else "foreign"
        if now == change.precondition.get("target"):
            return self._second_name(change)
        if already_settled(change, seen):
            return None
        return Outcome(
            change, State.SKIPPED, Reason.MOVED, "the target has changed since the plan was made", seen.record, time.time()
        )

    def _second_name(self, change: Change) -> Outcome | None:
        """The plan saw to it that a location gets one name; since then another mirror may have declared it, or a name not come free."""
        canonical = change.after.canonical if change.after is not None else None
        if change.action is not Action.DECLARE_TABLE or canonical is None:
            return None
        with self.index.read() as connection:
            declared = records.paths_at(connection, change.target_source, [canonical]).get(canonical, [])
        others = sorted(set(declared) - self._freed - {change.target_path})
        if not others:
            return None
        detail = f"{others[0]} already points to {change.after and change.after.location}"
        return Outcome(change, State.SKIPPED, Reason.LOCATION_DECLARED, detail)

    def _origin_digest(self, change: Change) -> str | None:
        with self.index.read() as connection:
            row = records.get(connection, change.origin_source, parse_key(change.origin_path), is_table=True)
        return str(row["digest"]) if row else None

    def _call(self, change: Change, op_id: str) -> Outcome:
        try:
            record = carry_out(self.target, change, op_id)
        except CatalogError as error:
            if error.retryable:
                # The call may have been carried out all the same: only the object itself can tell.
                return self._fate(change, op_id)
            if isinstance(error, NamespaceAlreadyExists):
                return Outcome(change, State.SKIPPED, "already_there", "somebody made it, and it is theirs", op_id=op_id)
            if isinstance(error, _RACED):
                return Outcome(change, State.SKIPPED, Reason.MOVED, error.message, op_id=op_id)
            state = State.SKIPPED if isinstance(error, Unsupported) else State.FAILED
            return Outcome(change, state, str(error.code), error.message, op_id=op_id)
        return Outcome(change, State.DONE, record=record, observed_at=time.time(), op_id=op_id)

    def _fate(self, change: Change, op_id: str) -> Outcome:
        try:
            return fate(self.target, change, op_id, keeps_properties=self.keeps_properties)
        except CatalogError as error:
            return Outcome(change, State.UNKNOWN, str(error.code), f"its fate is unknown: {error.message}", op_id=op_id)

    def _intend(self, plan: str, number: int, change: Change, op_id: str) -> None:
        row = {
            "op_id": op_id, "run_id": self.run.id, "plan": plan, "mirror": self.rule.name, "seq": number,
            "action": change.action.value, "target_source": change.target_source, "target_path": change.target_path,
            "origin_path": change.origin_path, "change": canonical_json(change.to_json()),
        }  # fmt: skip
        with self._fenced() as connection:
            journal.intend(connection, row)

    def _settle(self, outcome: Outcome, op_id: str) -> None:
        change = outcome.change
        code = "location_changed" if outcome.state is State.DONE and change.moves_location else outcome.code
        with self._fenced() as connection:
            journal.settle(connection, op_id, outcome.state.value, code=code, message=outcome.message)
            if outcome.state is State.DONE:
                self._enter(connection, outcome, op_id)
            detail = {
                "action": change.action.value, "mirror": self.rule.name, "state": outcome.state.value, "code": outcome.code,
                "message": outcome.message, "reason": change.reason, "op_id": op_id, "change": change.to_json(),
            }  # fmt: skip
            subject = f"{change.target_source}${change.target_path}"
            audit_log.append(connection, "write", actor=self.run.actor, run_id=self.run.id, subject=subject, detail=detail)

    def _enter(self, connection: Connection, outcome: Outcome, op_id: str) -> None:
        change, record = outcome.change, outcome.record
        row = {
            "mirror": self.rule.name, "origin_source": change.origin_source, "origin_path": change.origin_path,
            "target_source": change.target_source, "target_path": change.target_path,
            "is_table": int(change.action is not Action.CREATE_NAMESPACE),
        }  # fmt: skip
        ledger.forget_target(connection, row)
        if change.action in (Action.DEREGISTER_TABLE, Action.DROP_NAMESPACE):
            return
        table = record if isinstance(record, TableRecord) else None
        values = {
            "op_id": op_id,
            "native_id": record.native_id if record else None,
            "location": record.location if record else None,
            "origin_digest": change.precondition.get("origin"),
            "target_digest": table.digest if table else None,
            "mapping_digest": self.rule.mapping_digest,
            "declared": change.declared,
            "run_id": self.run.id,
        }
        ledger.put(connection, {**row, **values})

    @contextmanager
    def _fenced(self) -> Iterator[Connection]:
        """A writing transaction that begins by checking every lease."""
        with self.index.write() as connection:
            for lease in self.leases:
                lease.check(connection)
            yield connection
