"""The journal in the index: every write begins by checking the leases, and an outcome commits with its ledger entry."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from federator.apply.leased_journal import LeasedJournal
from federator.apply.outcome import Outcome, State
from federator.apply.port import Intent
from federator.index import Connection, Index, RowMapping, audit_log, journal, ledger, notices, records
from federator.index.leases import Lease
from federator.index.runs import RunHandle
from federator.model import canonical_json, parse_key
from federator.model.notices import Event, Notice
from federator.planning.changes import Change
from federator.planning.rule import MirrorRule
from federator.planning.settlement import ledger_key


@dataclass(frozen=True)
class IndexJournal(LeasedJournal[Connection]):
    """``Journal`` over the index, for one run of one mirror. ``leases`` are the mirror's and the target's."""

    index: Index
    run: RunHandle
    rule: MirrorRule
    leases: Sequence[Lease]

    def open_intents(self) -> list[Intent]:
        with self.index.read() as connection:
            rows = journal.open_intents(connection, self.rule.name)
        return [_intent(row) for row in rows]

    def _transaction(self) -> AbstractContextManager[Connection]:
        return self.index.write()

    def _store_intent(self, transaction: Connection, intent: Intent) -> None:
        change = intent.change
        row = {
            "op_id": intent.op_id, "run_id": self.run.id, "plan": intent.plan, "mirror": self.rule.name, "seq": intent.number,
            "action": change.action.value, "target_source": change.target_source, "target_path": change.target_path,
            "origin_path": change.origin_path, "change": canonical_json(change.to_json()),
            "saved": canonical_json(intent.saved) if intent.saved is not None else None,
        }  # fmt: skip
        journal.intend(transaction, row)

    def _replace_entry(
        self, transaction: Connection, change: Change, entry: Mapping[str, Any] | None, *, every_mirror: bool
    ) -> bool:
        forgotten = ledger.forget_target(transaction, ledger_key(self.rule, change), every_mirror=every_mirror)
        if entry is not None:
            ledger.put(transaction, {**entry, "run_id": self.run.id})
        return forgotten

    def _identify(self, transaction: Connection, change: Change, native_id: str | None) -> None:
        ledger.identify(transaction, self.rule.name, change.target_source, change.target_path, native_id)

    def _store_outcome(
        self, transaction: Connection, intent: Intent, outcome: Outcome, code: str | None, entry: Mapping[str, Any] | None,
        native_id: str | None,
    ) -> None:  # fmt: skip
        change = outcome.change
        journal.settle(transaction, intent.op_id, outcome.state.value, code=code, message=outcome.message)
        detail = {
            "action": change.action.value, "mirror": self.rule.name, "state": outcome.state.value, "code": outcome.code,
            "message": outcome.message, "reason": change.reason, "op_id": intent.op_id, "change": change.to_json(),
            "entry": {**entry, "run_id": self.run.id} if entry is not None else None, "native_id": native_id,
            "origin_age_seconds": None if outcome.origin_age is None else round(outcome.origin_age, 3),
        }  # fmt: skip
        subject = f"{change.target_source}${change.target_path}"
        audit_log.append(transaction, "write", actor=self.run.actor, run_id=self.run.id, subject=subject, detail=detail)
        if outcome.state in (State.FAILED, State.NEEDS_ADOPTION):
            notices.add(transaction, [self._notice(subject, outcome)])

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


def _intent(row: RowMapping) -> Intent:
    saved = json.loads(row["saved"]) if row["saved"] is not None else None
    return Intent(row["op_id"], row["plan"], row["seq"], Change.from_json(json.loads(row["change"])), saved)
