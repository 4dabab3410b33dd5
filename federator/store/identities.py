"""Identities of catalogs: ``source_identity`` stores each value that was read, by source and scope.

A row is ``accepted``, or ``seen`` while it waits for ``federator sources confirm``. The mirrors of a source with a ``seen`` row are
held.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, update

from federator.planning.identity import Accepted, IdentityReading, IdentityVerdict, KnownIdentities
from federator.planning.misses import forget_all
from federator.store import misses, revisions
from federator.store import tables as t

ACCEPTED, SEEN = "accepted", "seen"
_i = t.source_identity.c


def get_known(connection: Connection, source: str) -> KnownIdentities:
    """Return the known identities of a source."""
    rows = {state: set[tuple[str, str]]() for state in (ACCEPTED, SEEN)}
    for scope, value, state in connection.execute(select(_i.scope, _i.value, _i.state).where(_i.source == source)):
        rows[state].add((scope, value))
    return KnownIdentities(frozenset(rows[ACCEPTED]), tuple(sorted(rows[SEEN])))


def get_accepted(connection: Connection, source: str) -> Accepted:
    """Return the accepted values of a source by scope."""
    return get_known(connection, source).by_scope


def find_unconfirmed_problem(connection: Connection, source: str) -> str | None:
    """Return why the mirrors of a source are held. None if no identity waits for a confirmation."""
    return get_known(connection, source).describe_hold(source)


def list_unconfirmed(connection: Connection, source: str) -> list[tuple[str, str]]:
    """List scope and value of the identities that wait for a confirmation."""
    return list(get_known(connection, source).unconfirmed)


def judge_readings(connection: Connection, source: str, readings: Sequence[IdentityReading], *, crawl: bool) -> IdentityVerdict:
    """Judge readings and store the known identities that result (``KnownIdentities.judge``)."""
    before = get_known(connection, source)
    verdict, after = before.judge(source, readings, crawl=crawl)
    for scope, value in {*before.unconfirmed} - {*after.unconfirmed}:
        connection.execute(delete(t.source_identity).where(_i.source == source, _i.scope == scope, _i.value == value))
    now = time.time()
    rows = [
        {"source": source, "scope": scope, "value": value, "state": state, "seen_at": now, "confirmed_by": None}
        for state, added in ((ACCEPTED, after.accepted - before.accepted), (SEEN, {*after.unconfirmed} - {*before.unconfirmed}))
        for scope, value in sorted(added)
    ]
    if rows:
        connection.execute(insert(t.source_identity), rows)
    return verdict


def confirm(connection: Connection, source: str, actor: str) -> None:
    """Accept every identity that waits for a confirmation.

    Delete the misses and the feed cursor of the source: they belong to the old catalog.
    """
    unconfirmed = update(t.source_identity).where(_i.source == source, _i.state == SEEN)
    connection.execute(unconfirmed.values(state=ACCEPTED, confirmed_by=actor))
    misses.save_misses(connection, source, "", forget_all(misses.stored_misses(connection, source)))
    revisions.update_source(connection, source, {"cursor": None})
