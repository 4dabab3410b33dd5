"""The write-ahead journal: an intent is committed before an external write, its outcome after."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from federator.index import records
from federator.index import tables as t
from federator.model import TableRecord, parse_key
from federator.model.rows import table_record
from federator.planning.changes import Change
from federator.planning.guards import destructive, shows_effect
from federator.planning.reasons import Reason

INTENT = "intent"
# Outcomes that counted against the deletion guard when they were made.
DESTRUCTIVE = ("deregister_table", "recreate_table")
#: the code of a write that pointed a table elsewhere
LOCATION_CHANGED = "location_changed"
#: the code of both halves of a rename that was carried out: nothing was lost
RENAMED = "renamed"
#: the code of a removal that had been carried out before, so that nothing was left to do or to forget
ALREADY_GONE = "already_gone"
_MAY_BE_DESTRUCTIVE = (*DESTRUCTIVE, "update_table", "adopt")
# Codes of calls that may have been made later, or half of which was made.
_GIVEN_UP = ("not_made", Reason.NAMESPACE_MISSING.value)


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


def names_pending(connection: Connection, target: str, canonical: str) -> set[str]:
    """Paths of a target's tables that open intents, of whichever mirror, would put at a canonical location."""
    j = t.journal.c
    query = select(j.change).where(j.state == INTENT, j.target_source == target)
    changes = (Change.from_json(json.loads(text)) for text in connection.execute(query).scalars())
    return {change.target_path for change in changes if change.after is not None and change.after.canonical == canonical}


def destructive_since(connection: Connection, mirror: str, since: float) -> list[str]:
    """Target paths of the deregistrations and location changes that a mirror has made, or may have made, since a time: the guard's
    rolling window."""
    j = t.journal.c
    harmless = func.coalesce(j.code, "").in_((RENAMED, ALREADY_GONE))
    relevant = (j.action.in_(DESTRUCTIVE) & ~harmless) | (j.code == LOCATION_CHANGED)
    made = j.state.in_(("done", "needs_adoption"))
    query = select(j.target_path).where(j.mirror == mirror, j.intent_at >= since, made, relevant)
    return [*connection.execute(query).scalars(), *_made_after_all(connection, mirror, since)]


def _made_after_all(connection: Connection, mirror: str, since: float) -> list[str]:
    """Target paths of calls whose fate is open, and of those that were given up and whose effect the target shows: they landed late, or
    were half done. Each until something is done there again."""
    j, later = t.journal.c, t.journal.alias("later").c
    given_up = (j.state == INTENT) | ((j.state == "failed") & j.code.in_(_GIVEN_UP))
    same_place = (later.mirror == j.mirror, later.target_source == j.target_source, later.target_path == j.target_path)
    over = select(later.op_id).where(*same_place, later.state == "done", later.intent_at > j.intent_at).exists()
    acts = j.action.in_(_MAY_BE_DESTRUCTIVE)
    query = select(j.state, j.change).where(j.mirror == mirror, j.intent_at >= since, acts, given_up, ~over)
    found = [(state, Change.from_json(json.loads(text))) for state, text in connection.execute(query)]
    removals = [(state, change) for state, change in found if destructive(change)]
    # What the index has may be older than a call that nobody has looked after yet.
    return sorted({c.target_path for state, c in removals if state == INTENT or shows_effect(c, _now(connection, c))})


def _now(connection: Connection, change: Change) -> TableRecord | None:
    row = records.get(connection, change.target_source, parse_key(change.target_path), is_table=True)
    return table_record(change.target_source, {**row}) if row is not None else None


def obstructed(connection: Connection, mirror: str) -> set[str]:
    """Target paths where a mirror's declaration once met something in its way."""
    j = t.journal.c
    query = select(j.target_path).where(
        j.mirror == mirror, j.action == "declare_table", j.state == "skipped", j.code == "moved"
    )
    return set(connection.execute(query.distinct()).scalars())


def unfinished_renames(connection: Connection, mirror: str, since: float) -> list[str]:
    """Deregistrations (``change`` as JSON) that were the first half of a rename and whose second half was not made since then."""
    j = t.journal.c
    scope = (j.mirror == mirror, j.intent_at >= since, j.state == "done", j.code == RENAMED)
    left: dict[str, str] = {}
    for action, change in connection.execute(select(j.action, j.change).where(*scope).order_by(j.intent_at)):
        pair = json.loads(change)["pair"]
        if action == "deregister_table":
            left[pair] = change
        else:
            left.pop(pair, None)
    return list(left.values())
