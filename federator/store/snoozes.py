"""Snoozes: entries that a principal hides in its own list of what needs attention.

A snooze is bound to the digest of what was hidden and has an end, so an entry that changes is shown again, and none is hidden for ever.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from federator.connector import StateError
from federator.model.audit_kinds import AuditKind
from federator.store import audit_log
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.sql import insert_or_update

s = t.snooze.c
#: snoozes of one principal
MAX_SNOOZES = 500
# Snoozes last whole hours. Two ends that are less than half an hour apart come from one request that was sent twice.
_SAME_SECONDS = 1800.0


def list_snoozes(connection: Connection, principal: str, *, now: float) -> dict[tuple[str, str], float]:
    """Return the ends of a principal's snoozes in seconds since the epoch, by key and digest. Ended ones are left out."""
    query = select(s.key, s.digest, s.until).where(s.principal == principal, s.until > now)
    return {(row.key, row.digest): row.until for row in connection.execute(query)}


def save_snooze(index: Index, principal: str, key: str, digest: str, *, until: float, now: float) -> float:
    """Hide the entry with a key and a digest until a time, and record it in the audit log. Return the end of the snooze.

    It replaces a snooze of the same key. One with the same digest and almost the same end stays: a repeated request is no event. Ended
    snoozes of all principals are deleted. Raise StateError if the principal has ``MAX_SNOOZES`` others.
    """
    with index.write() as connection:
        connection.execute(delete(t.snooze).where(s.until <= now))
        own = {row.key: row for row in connection.execute(select(s.key, s.digest, s.until).where(s.principal == principal))}
        known = own.pop(key, None)
        if known is not None and known.digest == digest and abs(known.until - until) < _SAME_SECONDS:
            return float(known.until)
        if len(own) >= MAX_SNOOZES:
            raise StateError(f"{principal} has {len(own)} snoozes, the largest number", hint="end one of them")
        values = {"digest": digest, "until": until}
        statement = insert_or_update(connection, t.snooze).values(principal=principal, key=key, **values)
        connection.execute(statement.on_conflict_do_update(index_elements=[s.principal, s.key], set_=values))
        _append(connection, AuditKind.ATTENTION_SNOOZED, principal, key, values)
    return until


def delete_snooze(index: Index, principal: str, key: str) -> None:
    """End a snooze and record it in the audit log. A snooze that does not exist is not recorded."""
    with index.write() as connection:
        if connection.execute(delete(t.snooze).where(s.principal == principal, s.key == key)).rowcount:
            _append(connection, AuditKind.SNOOZE_ENDED, principal, key, {})


def _append(connection: Connection, kind: AuditKind, principal: str, key: str, detail: dict[str, object]) -> None:
    audit_log.append_event(connection, kind, actor=principal, run_id=None, subject=key, detail=detail)
