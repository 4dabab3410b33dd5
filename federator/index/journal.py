"""The write-ahead journal: an intent is committed before an external write, its outcome after."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update

from federator.index import records
from federator.index import tables as t
from federator.model import TableRecord, parse_key
from federator.model.rows import table_record
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import ALREADY_GONE as ALREADY_GONE
from federator.planning.journal_lines import (
    DESTRUCTIVE,
    GIVEN_UP,
    INTENT,
    MAY_BE_DESTRUCTIVE,
    JournalLine,
    count_dropped,
    late_removals,
    pending_paths,
)
from federator.planning.journal_lines import LOCATION_CHANGED as LOCATION_CHANGED
from federator.planning.journal_lines import RENAMED as RENAMED
from federator.planning.journal_lines import unfinished_renames as rename_halves_left


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


def is_direct_write(connection: Connection, op_id: str, mirror: str, source: str) -> bool:
    """Return whether an operation id belongs to a write that the journal keeps under ``mirror``, to a catalog of this source."""
    query = select(t.journal.c.op_id).where(
        t.journal.c.op_id == op_id, t.journal.c.mirror == mirror, t.journal.c.target_source == source
    )
    return connection.execute(query).first() is not None


def names_pending(connection: Connection, target: str, canonical: str) -> set[str]:
    """Paths of a target's tables that open intents, of whichever mirror, would put at a canonical location."""
    j = t.journal.c
    query = select(j.change).where(j.state == INTENT, j.target_source == target)
    return pending_paths(map(_change, connection.execute(query).scalars()), target, canonical)


def destructive_since(connection: Connection, mirror: str, since: float) -> list[str]:
    """Target paths of the deregistrations and location changes that a mirror has made, or may have made, since a time: the guard's
    rolling window. ``planning.journal_lines.removals`` over the journal, without reading every change."""
    j = t.journal.c
    made = select(j.target_path).where(j.mirror == mirror, j.intent_at >= since, removal_condition())
    late = late_removals(_given_up_lines(connection, mirror, since), lambda source, path: _table(connection, source, path))
    return [*connection.execute(made).scalars(), *late]


def _given_up_lines(connection: Connection, mirror: str, since: float) -> Iterator[JournalLine]:
    """Lines that may be destructive and whose call nobody knows of, with what is done at their paths, in the order of the intents."""
    j, lost = t.journal.alias("line").c, t.journal.c
    may = (lost.mirror == mirror, lost.intent_at >= since, lost.action.in_(MAY_BE_DESTRUCTIVE), given_up_condition())
    same_path = (lost.target_source == j.target_source, lost.target_path == j.target_path)
    wanted = select(lost.op_id).where(*may, *same_path).exists()
    query = select(j.state, j.code, j.change).where(j.mirror == mirror, j.intent_at >= since, wanted)
    for state, code, change in connection.execute(query.order_by(j.intent_at)).all():
        yield JournalLine(_change(change), state, code)


def dropped_since(connection: Connection, mirror: str, since: float) -> int:
    """How many namespaces a mirror has dropped, or may have dropped, since a time: ``planning.journal_lines.count_dropped``."""
    j = t.journal.c
    query = select(j.change, j.state, j.code).where(
        j.mirror == mirror, j.intent_at >= since, j.action == Action.DROP_NAMESPACE.value
    )
    return count_dropped(JournalLine(_change(change), state, code) for change, state, code in connection.execute(query).all())


def obstructed(connection: Connection, mirror: str) -> set[str]:
    """Target paths where a mirror's declaration once met something in its way."""
    query = select(t.journal.c.target_path).where(t.journal.c.mirror == mirror, obstructed_condition())
    return set(connection.execute(query.distinct()).scalars())


def unfinished_renames(connection: Connection, mirror: str, since: float) -> list[Change]:
    """Deregistrations that were the first half of a rename and whose second half was not made since then."""
    j = t.journal.c
    query = select(j.change).where(j.mirror == mirror, j.intent_at >= since, renamed_condition()).order_by(j.intent_at)
    return rename_halves_left(map(_change, connection.execute(query).scalars()))


# Conditions in SQL, each equal to a function of ``planning.journal_lines`` on every action, state and code.


def removal_condition() -> ColumnElement[bool]:
    """``counts_as_removal`` in SQL."""
    j = t.journal.c
    counted = j.action.in_(DESTRUCTIVE) & func.coalesce(j.code, "").not_in((RENAMED, ALREADY_GONE))
    return j.state.in_(("done", "needs_adoption")) & (counted | (func.coalesce(j.code, "") == LOCATION_CHANGED))


def given_up_condition() -> ColumnElement[bool]:
    """``is_given_up`` in SQL."""
    j = t.journal.c
    return (j.state == INTENT) | ((j.state == "failed") & func.coalesce(j.code, "").in_(GIVEN_UP))


def obstructed_condition() -> ColumnElement[bool]:
    """``is_obstructed`` in SQL."""
    j = t.journal.c
    return (j.action == Action.DECLARE_TABLE) & (j.state == "skipped") & (func.coalesce(j.code, "") == "moved")


def renamed_condition() -> ColumnElement[bool]:
    """``is_renamed`` in SQL."""
    j = t.journal.c
    return (j.state == "done") & (func.coalesce(j.code, "") == RENAMED)


def _change(text: str) -> Change:
    return Change.from_json(json.loads(text))


def _table(connection: Connection, source: str, path: str) -> TableRecord | None:
    row = records.get(connection, source, parse_key(path), is_table=True)
    return table_record(source, {**row}) if row is not None else None
