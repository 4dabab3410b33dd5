"""The write-ahead journal: an intent is committed before an external write, its outcome after."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from federator.index import tables as t

INTENT = "intent"
# Outcomes that counted against the deletion guard when they were made.
DESTRUCTIVE = ("deregister_table", "drop_namespace")


def intend(connection: Connection, row: Mapping[str, Any]) -> None:
    """Records an intent. The caller commits before the call."""
    connection.execute(insert(t.journal), [{**row, "state": INTENT, "intent_at": time.time()}])


def settle(connection: Connection, op_id: str, state: str, *, code: str | None = None, message: str | None = None) -> None:
    """Records the outcome: ``done``, ``failed``, ``skipped`` or ``needs_adoption``."""
    values = {"state": state, "code": code, "message": message, "outcome_at": time.time()}
    connection.execute(update(t.journal).where(t.journal.c.op_id == op_id).values(values))


def open_intents(connection: Connection, mirror: str) -> list[RowMapping]:
    """Intents without outcome: their process died between the call and its record."""
    query = select(t.journal).where(t.journal.c.mirror == mirror, t.journal.c.state == INTENT).order_by(t.journal.c.intent_at)
    return list(connection.execute(query).mappings())


def destructive_since(connection: Connection, mirror: str, since: float) -> list[str]:
    """Target paths of the deregistrations and location changes that a mirror has made since a time: the guard's rolling window."""
    j = t.journal.c
    relevant = j.action.in_(DESTRUCTIVE) | (j.code == "location_changed")
    query = select(j.target_path).where(j.mirror == mirror, j.intent_at >= since, j.state == "done", relevant)
    return list(connection.execute(query).scalars())
