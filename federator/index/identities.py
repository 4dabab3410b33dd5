"""Identities of sources: ``source_identity`` stores each value that was read, by source and scope.

A row is ``accepted``, or ``seen`` while it waits for ``federator sources confirm``. While a source has a ``seen`` row, its mirrors are
held.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, insert, select, update

from federator.index import revisions
from federator.index import tables as t
from federator.planning.identity import Accepted, IdentityReading, IdentityState, IdentityVerdict, changed_text, judge

ACCEPTED, SEEN = "accepted", "seen"
_i = t.source_identity.c


def accepted(connection: Connection, source: str) -> Accepted:
    """Return the accepted values of a source by scope."""
    return _values(connection, source, ACCEPTED)


def unconfirmed(connection: Connection, source: str) -> str | None:
    """Return why the mirrors of a source are held: the text with both identities. None if no identity waits for a confirmation."""
    waiting = list_seen(connection, source)
    return changed_text(source, accepted(connection, source), waiting) if waiting else None


def list_seen(connection: Connection, source: str) -> list[tuple[str, str]]:
    """List scope and value of the identities that wait for a confirmation."""
    return [(scope, value) for scope, values in sorted(_values(connection, source, SEEN).items()) for value in sorted(values)]


def check(connection: Connection, source: str, readings: Sequence[IdentityReading], *, crawl: bool) -> IdentityVerdict:
    """Judge readings and store the result. Only readings of a ``crawl`` end the wait for a confirmation; without any, it goes on."""
    verdict = judge(source, accepted(connection, source), readings)
    if crawl and readings and verdict.state is not IdentityState.UNREADABLE:
        connection.execute(delete(t.source_identity).where(_i.source == source, _i.state == SEEN))
    _add(connection, source, verdict.first, ACCEPTED)
    _add(connection, source, verdict.unknown, SEEN)
    return verdict


def confirm(connection: Connection, source: str, actor: str) -> None:
    """Accept every identity that waits for a confirmation. Forget misses and the feed's cursor: they are the old catalog's."""
    waiting = update(t.source_identity).where(_i.source == source, _i.state == SEEN)
    connection.execute(waiting.values(state=ACCEPTED, confirmed_by=actor))
    connection.execute(delete(t.absence).where(t.absence.c.source == source))
    revisions.set_source(connection, source, {"cursor": None})


def _values(connection: Connection, source: str, state: str) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for scope, value in connection.execute(select(_i.scope, _i.value).where(_i.source == source, _i.state == state)):
        values.setdefault(scope, set()).add(value)
    return values


def _add(connection: Connection, source: str, values: Iterable[tuple[str, str]], state: str) -> None:
    known = set(map(tuple, connection.execute(select(_i.scope, _i.value).where(_i.source == source))))
    now = time.time()
    rows = [
        {"source": source, "scope": scope, "value": value, "state": state, "seen_at": now, "confirmed_by": None}
        for scope, value in values
        if (scope, value) not in known
    ]
    if rows:
        connection.execute(insert(t.source_identity), rows)
