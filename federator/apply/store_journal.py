"""Journals in the index: of a mirror's plan, and of direct writes. An outcome commits with its audit event."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from federator import logs
from federator.apply.journal import Intent, LeasedJournal
from federator.apply.outcome import Outcome, OutcomeState
from federator.audit.sealing import seal_batch
from federator.connector import FederatorError
from federator.model import parse_path_key
from federator.model.audit_kinds import AuditKind
from federator.model.notices import Notice, NoticeEvent
from federator.planning.changes import Change
from federator.planning.ledger import OwnedObject
from federator.planning.rule import MirrorRule
from federator.store import Connection, Index, audit_log, journal, ledger, notices, records
from federator.store.journal import StoredIntent
from federator.store.leases import Lease
from federator.store.runs import RunHandle

T = TypeVar("T")
_log = logs.get_logger(__name__)


@dataclass(frozen=True)
class StoreJournal(LeasedJournal[Connection]):
    """``Journal`` over the index, for one run of one mirror. ``leases`` are those of the mirror and of the target.

    An outcome commits with its ledger entry.
    """

    index: Index
    run: RunHandle
    rule: MirrorRule
    leases: Sequence[Lease]

    def list_open_intents(self) -> list[Intent]:
        with self.index.read() as connection:
            return [
                Intent(stored.op_id, stored.plan, stored.seq, Change.from_json(stored.change), stored.saved)
                for stored in journal.list_open_intents(connection, self.rule.name)
            ]

    def _transaction(self) -> AbstractContextManager[Connection]:
        return self.index.write()

    def _store_intent(self, transaction: Connection, intent: Intent) -> None:
        journal.insert_intent(transaction, self._to_stored_intent(intent))

    def _to_stored_intent(self, intent: Intent) -> StoredIntent:
        change = intent.change
        return StoredIntent(
            intent.op_id, self.run.id, intent.plan, self.rule.name, intent.change_number, change.action.value,
            change.target_source, change.target_path, change.to_json(), change.origin_path, intent.native_before,
        )  # fmt: skip

    def _replace_entry(self, transaction: Connection, change: Change, entry: OwnedObject | None, mirror: str | None) -> bool:
        deleted = ledger.delete_target_entries(
            transaction, change.target_source, change.target_path, is_table=change.is_table, mirror=mirror
        )
        if entry is not None:
            ledger.upsert_entry(transaction, replace(entry, run_id=self.run.id))
        return deleted

    def _store_native_id(self, transaction: Connection, change: Change, native_id: str | None) -> None:
        ledger.record_native_id(transaction, self.rule.name, change.target_source, change.target_path, native_id)

    def _store_outcome(
        self, transaction: Connection, intent: Intent, outcome: Outcome, code: str | None, entry: OwnedObject | None,
        native_id: str | None,
    ) -> None:  # fmt: skip
        change, stored = intent.change, self._to_stored_intent(intent)
        detail = {
            "mirror": self.rule.name, "state": outcome.state.value, "code": outcome.code_text, "message": outcome.message,
            "reason": change.reason, "change": stored.change, "native_id": native_id,
            "entry": replace(entry, run_id=self.run.id).to_json() if entry is not None else None,
            "origin_age_seconds": None if outcome.origin_age is None else round(outcome.origin_age, 3),
        }  # fmt: skip
        journal.record_outcome(transaction, stored.op_id, outcome.state.value, code=code, message=outcome.message)
        _append_event(transaction, stored, AuditKind.WRITE, self.run.actor, detail)
        if outcome.state in (OutcomeState.FAILED, OutcomeState.NEEDS_ADOPTION):
            notice = Notice(
                NoticeEvent.WRITE_FAILED,
                stored.subject,
                f"{change.action.value}: {outcome.message or outcome.state.value}",
                source=change.target_source,
                mirror=self.rule.name,
                run_id=self.run.id,
            )
            notices.add_notices(transaction, [notice])

    def paths_at(self, canonical_location: str) -> Collection[str]:
        with self.index.read() as connection:
            return records.list_paths_by_location(connection, self.rule.target, [canonical_location]).get(
                canonical_location, []
            )

    def paths_declared_at(self, canonical_location: str) -> Collection[str]:
        with self.index.read() as connection:
            return ledger.list_paths_at(connection, self.rule.target, canonical_location)

    def paths_pending_at(self, canonical_location: str) -> Collection[str]:
        with self.index.read() as connection:
            return journal.list_pending_paths(connection, self.rule.target, canonical_location)

    def origin_digest(self, path: str) -> str | None:
        with self.index.read() as connection:
            record = records.find_record(connection, self.rule.origin, parse_path_key(path), is_table=True)
        return record.digest if record else None


@dataclass(frozen=True, slots=True)
class DirectOutcome(Generic[T]):
    """The outcome of a direct write: the call's response, or its error. ``code`` is the code of a catalog's error, as text."""

    state: OutcomeState
    code: str | None = None
    message: str | None = None
    response: T | None = None
    error: FederatorError | None = None


@dataclass(frozen=True)
class DirectJournal:
    """``WriteJournal`` of direct writes over the index, for one ``actor``. ``lease`` is that of the writing process."""

    index: Index
    actor: str
    lease: Lease | None = None

    def record_intent(self, intent: StoredIntent) -> None:
        with self.index.write() as connection:
            if self.lease is not None:
                self.lease.require_held(connection)
            journal.insert_intent(connection, intent)

    def record_outcome(self, intent: StoredIntent, outcome: DirectOutcome[Any]) -> None:
        """Record the outcome and its audit event, unless another process has resolved the intent of this one."""
        detail = {
            "request": intent.change.get("request", {}), "state": outcome.state.value, "code": outcome.code,
            "message": outcome.message, "requested_by": intent.change.get("actor"),
        }  # fmt: skip
        with self.index.write() as connection:
            # Sealed in the same transaction: a run would seal it, but none may follow for a long time.
            audit_log.lock_chain(connection)
            if not journal.close_intent(
                connection, intent.op_id, outcome.state.value, code=outcome.code, message=outcome.message
            ):
                _log.warning("direct write had been resolved by another process", op=intent.op_id, state=outcome.state.value)
                return
            _append_event(connection, intent, AuditKind.OWN_WRITE, self.actor, detail)
            seal_batch(connection)


def _append_event(connection: Connection, intent: StoredIntent, kind: AuditKind, actor: str, detail: Mapping[str, Any]) -> None:
    detail = {**detail, "action": intent.action, "op_id": intent.op_id}
    audit_log.append_event(connection, kind, actor=actor, run_id=intent.run_id, subject=intent.subject, detail=detail)
