"""The write-ahead journal: an intent is committed before an external write, its outcome after.

Times are in seconds since the epoch. What journal lines mean is decided in ``planning.journal_lines``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, exists, func, insert, select, update

from federator.connector import StateError
from federator.model import canonical_json, canonical_location, parse_path_key
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import (
    ABANDONED_CODES,
    DESTRUCTIVE,
    INTENT,
    POSSIBLY_DESTRUCTIVE,
    JournalEffect,
    JournalLine,
    Question,
    needs_resolution,
    pending_paths,
)
from federator.planning.reasons import Reason
from federator.store import records
from federator.store import tables as t

#: the mirror of direct writes, which belong to none
NO_MIRROR = ""


@dataclass(frozen=True, slots=True)
class StoredIntent:
    """An intent as the journal stores it. ``seq`` is the number of the change in its plan.

    ``change`` and ``saved`` (the native object that a recreate replaces) are JSON objects. A direct write has the mirror
    ``NO_MIRROR``, its operation id as ``run_id``, its request as ``change``, and in ``writer`` the lease of its process.
    """

    op_id: str
    run_id: str
    plan: str
    mirror: str
    seq: int
    action: str
    target_source: str
    target_path: str
    change: Mapping[str, Any]
    origin_path: str | None = None
    saved: Mapping[str, Any] | None = None
    writer: str | None = None
    intent_at: float = field(default_factory=time.time)

    @property
    def subject(self) -> str:
        """The object id of the target, as audit events and notices name it."""
        return f"{self.target_source}${self.target_path}"


_COLUMNS = tuple(f.name for f in fields(StoredIntent))


def insert_intent(connection: Connection, intent: StoredIntent) -> None:
    """Insert an intent. The caller commits it before the external call."""
    saved = None if intent.saved is None else canonical_json(intent.saved)
    row = {name: getattr(intent, name) for name in _COLUMNS}
    connection.execute(insert(t.journal), [{**row, "change": canonical_json(intent.change), "saved": saved, "state": INTENT}])


def record_outcome(
    connection: Connection, op_id: str, state: str, *, code: str | None = None, message: str | None = None
) -> None:
    """Record the outcome of an intent: ``done``, ``failed``, ``skipped`` or ``needs_adoption``.

    Raise StateError for an operation that the journal does not have.
    """
    if not _update_outcome(connection, t.journal.c.op_id == op_id, state, code, message):
        raise StateError(f"the journal has no intent {op_id!r}, so its outcome cannot be recorded")


def close_intent(
    connection: Connection, op_id: str, state: str, *, code: str | None = None, message: str | None = None
) -> bool:
    """Record the outcome of an open intent. Return False, and change nothing, if it already has an outcome."""
    return _update_outcome(connection, (t.journal.c.op_id == op_id) & (t.journal.c.state == INTENT), state, code, message)


def _update_outcome(
    connection: Connection, lines: ColumnElement[bool], state: str, code: str | None, message: str | None
) -> bool:
    values = {"state": state, "code": code, "message": message, "outcome_at": time.time()}
    return connection.execute(update(t.journal).where(lines).values(values)).rowcount > 0


def is_open(connection: Connection, op_id: str) -> bool:
    """Tell whether an intent has no outcome."""
    query = select(t.journal.c.op_id).where(t.journal.c.op_id == op_id, t.journal.c.state == INTENT)
    return connection.execute(query).first() is not None


def list_open_direct_writes(connection: Connection, sources: Collection[str]) -> list[StoredIntent]:
    """List the intents of direct writes into sources that have no outcome, the oldest first: of living and of dead processes."""
    j = t.journal.c
    query = select(*_selected()).where(j.mirror == NO_MIRROR, j.state == INTENT, j.target_source.in_(sources))
    return [_parse_intent(row) for row in connection.execute(query.order_by(j.intent_at)).all()]


def list_open_writers(connection: Connection) -> set[str]:
    """Return the leases of the processes that have direct writes without an outcome."""
    j = t.journal.c
    query = select(j.writer).where(j.mirror == NO_MIRROR, j.state == INTENT, j.writer.is_not(None)).distinct()
    return set(connection.execute(query).scalars())


def _selected() -> list[ColumnElement[Any]]:
    return [t.journal.c[name] for name in _COLUMNS]


def _parse_intent(values: Sequence[Any]) -> StoredIntent:
    row = dict(zip(_COLUMNS, values, strict=True))
    saved = row["saved"] and json.loads(row["saved"])
    return StoredIntent(**{**row, "change": json.loads(row["change"]), "saved": saved})


def list_open_intents(connection: Connection, mirror: str) -> list[StoredIntent]:
    """List the intents of a mirror that are to be resolved (``journal_lines.needs_resolution``), the oldest first.

    They have no outcome: their calls are running, their processes have died, or the catalog did not respond when the outcome was
    resolved. Or the outcome was that the call was not carried out, and the index now has a table with the marker of the operation.
    """
    j = t.journal.c
    query = select(*_selected(), j.state, j.code).where(j.mirror == mirror, (j.state == INTENT) | _may_have_landed())

    intents = []
    for *values, state, code in connection.execute(query.order_by(j.intent_at)).all():
        intent = _parse_intent(values)
        find_indexed = partial(records.find_table, connection, intent.target_source, parse_path_key(intent.target_path))
        if needs_resolution(intent.op_id, state, code, find_indexed):
            intents.append(intent)
    return intents


def _may_have_landed() -> ColumnElement[bool]:
    """Return a condition that holds for every line with an outcome that needs a resolution, and for few others."""
    j, r = t.journal.c, t.record.c
    at_target = (r.source == j.target_source, r.path == j.target_path, r.is_table == 1)
    mentions = r.properties.contains(j.op_id) | func.coalesce(r.doc, "").contains(j.op_id)
    return abandoned_condition() & exists().where(*at_target, mentions).correlate(t.journal)


def has_intent(connection: Connection, op_id: str, mirror: str, target: str) -> bool:
    """Tell whether the journal has this intent of a mirror in a target source, with or without outcome."""
    query = select(t.journal.c.op_id).where(
        t.journal.c.op_id == op_id, t.journal.c.mirror == mirror, t.journal.c.target_source == target
    )
    return connection.execute(query).first() is not None


def list_pending_paths(connection: Connection, target: str, canonical: str) -> set[str]:
    """Return the path keys of a target where open intents may put a table at a canonical location.

    All mirrors count, and direct writes that name a location.
    """
    j = t.journal.c
    query = select(j.mirror, j.target_path, j.change).where(j.state == INTENT, j.target_source == target)
    rows = connection.execute(query).all()
    requested = {path for mirror, path, text in rows if mirror == NO_MIRROR and _requested_location(text) == canonical}
    return requested | pending_paths(
        (_parse_change(text) for mirror, _, text in rows if mirror != NO_MIRROR), target, canonical
    )


def _requested_location(direct_write: str) -> str | None:
    location = json.loads(direct_write)["request"].get("location")
    return canonical_location(location) if location else None


def list_refused_names(connection: Connection, target: str, since: float) -> tuple[set[str], set[str]]:
    """Return the names of namespaces and of tables that a target refused since a time. All mirrors count."""
    j = t.journal.c
    query = select(j.action, j.target_path).where(
        j.target_source == target, j.state == "skipped", j.code == Reason.NAME_NOT_ALLOWED, j.intent_at >= since
    )
    namespaces: set[str] = set()
    tables: set[str] = set()
    for action, path in connection.execute(query):
        (namespaces if action == Action.CREATE_NAMESPACE else tables).add(parse_path_key(path)[-1])
    return namespaces, tables


def iter_lines(connection: Connection, mirror: str, question: Question, since: float) -> Iterator[JournalLine]:
    """Yield the lines of a mirror that answer a question, in the order of their intents.

    All lines that the question needs are included; further lines may be. Lines with an intent before ``since`` are omitted.
    """
    j = t.journal.c
    query = select(j.change, j.state, j.code).where(
        j.mirror == mirror, j.intent_at >= since, _condition_for(question, mirror, since)
    )
    for change, state, code in connection.execute(query.order_by(j.intent_at)).all():
        yield JournalLine(_parse_change(change), state, code)


def _condition_for(question: Question, mirror: str, since: float) -> ColumnElement[bool]:
    match question:
        case Question.REMOVALS:
            return removal_condition() | _shares_path_with_abandoned(mirror, since)
        case Question.DROPPED:
            return t.journal.c.action == Action.DROP_NAMESPACE.value
        case Question.OBSTRUCTED:
            return obstructed_condition()
        case Question.RENAMES:
            return renamed_condition()
        case Question.RECREATES:
            return t.journal.c.action == Action.RECREATE_TABLE.value


def _shares_path_with_abandoned(mirror: str, since: float) -> ColumnElement[bool]:
    """Return the condition that some abandoned line, whose change may be destructive, has the same target path.

    Later lines of that path show whether the abandoned change took effect (``journal_lines.list_late_removals``).
    """
    abandoned = t.journal.alias("abandoned")
    j, a = t.journal.c, abandoned.c
    may_destroy = (a.mirror == mirror, a.intent_at >= since, a.action.in_(POSSIBLY_DESTRUCTIVE), abandoned_condition(abandoned))
    return select(a.op_id).where(*may_destroy, a.target_source == j.target_source, a.target_path == j.target_path).exists()


# Conditions in SQL. For every action, state and code, each has the result of the function that its docstring names.


def removal_condition() -> ColumnElement[bool]:
    """``journal_lines.counts_as_removal`` in SQL."""
    j = t.journal.c
    counted = j.action.in_(DESTRUCTIVE) & func.coalesce(j.code, "").not_in((JournalEffect.RENAMED, JournalEffect.ALREADY_GONE))
    return j.state.in_(("done", "needs_adoption")) & (counted | (func.coalesce(j.code, "") == JournalEffect.LOCATION_CHANGED))


def abandoned_condition(lines: FromClause = t.journal) -> ColumnElement[bool]:
    """``journal_lines.is_abandoned`` in SQL. ``lines`` is the journal or an alias of it."""
    j = lines.c
    return (j.state == INTENT) | ((j.state == "failed") & func.coalesce(j.code, "").in_(ABANDONED_CODES))


def obstructed_condition() -> ColumnElement[bool]:
    """``journal_lines.is_obstructed`` in SQL."""
    j = t.journal.c
    return (j.action == Action.DECLARE_TABLE) & (j.state == "skipped") & (func.coalesce(j.code, "") == Reason.MOVED)


def renamed_condition() -> ColumnElement[bool]:
    """``journal_lines.is_renamed`` in SQL."""
    j = t.journal.c
    return (j.state == "done") & (func.coalesce(j.code, "") == JournalEffect.RENAMED)


def _parse_change(text: str) -> Change:
    return Change.from_json(json.loads(text))
