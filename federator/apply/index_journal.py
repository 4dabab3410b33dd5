"""The journal in the index: every write begins by checking the leases, and an outcome commits with its ledger entry."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from federator.apply.outcome import RESTORED, Outcome, State
from federator.apply.port import Intent
from federator.index import Connection, Index, RowMapping, audit_log, journal, ledger, notices, records
from federator.index.leases import Lease
from federator.index.runs import RunHandle
from federator.model import TableRecord, canonical_json, parse_key
from federator.model.notices import Event, Notice
from federator.planning.changes import Action, Change
from federator.planning.rule import MirrorRule

_OF_NAMESPACES = (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE)
_GONE = (Action.DEREGISTER_TABLE, Action.DROP_NAMESPACE)


@dataclass(frozen=True)
class IndexJournal:
    """``Journal`` over the index, for one run of one mirror. ``leases`` are the mirror's and the target's."""

    index: Index
    run: RunHandle
    rule: MirrorRule
    leases: Sequence[Lease]

    def open_intents(self) -> list[Intent]:
        with self.index.read() as connection:
            rows = journal.open_intents(connection, self.rule.name)
        return [_intent(row) for row in rows]

    def may_call(self, seconds: float) -> bool:
        return all(lease.fits(seconds) for lease in self.leases)

    def intend(self, intent: Intent) -> None:
        change = intent.change
        row = {
            "op_id": intent.op_id, "run_id": self.run.id, "plan": intent.plan, "mirror": self.rule.name, "seq": intent.number,
            "action": change.action.value, "target_source": change.target_source, "target_path": change.target_path,
            "origin_path": change.origin_path, "change": canonical_json(change.to_json()),
            "saved": canonical_json(intent.saved) if intent.saved is not None else None,
        }  # fmt: skip
        with self._fenced() as connection:
            journal.intend(connection, row)

    def settle(self, intent: Intent, outcome: Outcome) -> None:
        change, done = outcome.change, outcome.state is State.DONE
        # A move that nobody can tell of may have been made: the guard counts it.
        moved = change.moves_location and outcome.state in (State.DONE, State.NEEDS_ADOPTION)
        code = journal.LOCATION_CHANGED if moved else outcome.code
        if done and change.pair is not None:
            code = journal.RENAMED
        entry: dict[str, Any] | None = None
        native_id: str | None = None
        with self._fenced() as connection:
            if done:
                entry = self._entry(outcome, intent.op_id)
                forgot = self._enter(connection, change, entry)
                code = journal.ALREADY_GONE if change.action in _GONE and not forgot else code
            elif outcome.code == RESTORED and outcome.record is not None:
                native_id = outcome.record.native_id
                ledger.identify(connection, self.rule.name, change.target_source, change.target_path, native_id)
            journal.settle(connection, intent.op_id, outcome.state.value, code=code, message=outcome.message)
            detail = {
                "action": change.action.value, "mirror": self.rule.name, "state": outcome.state.value, "code": outcome.code,
                "message": outcome.message, "reason": change.reason, "op_id": intent.op_id, "change": change.to_json(),
                "entry": entry, "native_id": native_id,
            }  # fmt: skip
            subject = f"{change.target_source}${change.target_path}"
            audit_log.append(connection, "write", actor=self.run.actor, run_id=self.run.id, subject=subject, detail=detail)
            if outcome.state in (State.FAILED, State.NEEDS_ADOPTION):
                notices.add(connection, [self._notice(subject, outcome)])

    def _notice(self, subject: str, outcome: Outcome) -> Notice:
        message = f"{outcome.change.action.value}: {outcome.message or outcome.state.value}"
        return Notice(
            Event.WRITE_FAILED, subject, message, source=outcome.change.target_source, mirror=self.rule.name, run_id=self.run.id
        )

    def names_at(self, canonical: str) -> Collection[str]:
        with self.index.read() as connection:
            return records.paths_at(connection, self.rule.target, [canonical]).get(canonical, [])

    def names_given(self, canonical: str) -> Collection[str]:
        with self.index.read() as connection:
            return ledger.names_at(connection, self.rule.target, canonical)

    def names_pending(self, canonical: str) -> Collection[str]:
        with self.index.read() as connection:
            return journal.names_pending(connection, self.rule.target, canonical)

    def origin_digest(self, path: str) -> str | None:
        with self.index.read() as connection:
            row = records.get(connection, self.rule.origin, parse_key(path), is_table=True)
        return str(row["digest"]) if row else None

    def _enter(self, connection: Connection, change: Change, entry: Mapping[str, Any] | None) -> bool:
        """Returns whether the ledger had an entry of the target before."""
        forgot = ledger.forget_target(connection, self._key(change), every_mirror=change.action is Action.ADOPT)
        if entry is not None:
            ledger.put(connection, entry)
        return forgot

    def _entry(self, outcome: Outcome, op_id: str) -> dict[str, Any] | None:
        """The ledger's entry of what was done; None where nothing is there any more, or is nobody's mirror's."""
        change, record = outcome.change, outcome.record
        if change.action in _GONE or change.by_person:
            return None
        return {
            **self._key(change),
            "op_id": op_id,
            "native_id": record.native_id if record else None,
            "location": record.location if record else None,
            "canonical": record.canonical if isinstance(record, TableRecord) else None,
            "origin_digest": change.precondition.get("origin"),
            "target_digest": outcome.target_digest,
            "mapping_digest": self.rule.mapping_digest,
            "declared": change.declared,
            "run_id": self.run.id,
        }

    def _key(self, change: Change) -> dict[str, Any]:
        return {
            "mirror": self.rule.name, "origin_source": change.origin_source, "origin_path": change.origin_path,
            "target_source": change.target_source, "target_path": change.target_path,
            "is_table": int(change.action not in _OF_NAMESPACES),
        }  # fmt: skip

    @contextmanager
    def _fenced(self) -> Iterator[Connection]:
        """A writing transaction that begins by checking every lease."""
        with self.index.write() as connection:
            for lease in self.leases:
                lease.check(connection)
            yield connection


def _intent(row: RowMapping) -> Intent:
    saved = json.loads(row["saved"]) if row["saved"] is not None else None
    return Intent(row["op_id"], row["plan"], row["seq"], Change.from_json(json.loads(row["change"])), saved)
