"""How far a source was followed by its feed of changes, and what the index has of it that a crawl may carry on."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from federator.index import coverage, records
from federator.index import tables as t
from federator.planning.rereading import Followed, Known, pending_origins
from federator.planning.rule import MirrorRule


def followed(connection: Connection, source: str) -> Followed:
    """How far a source was followed. Nobody has followed one that is not in the index."""
    s = t.source.c
    query = select(s.cursor, s.full_at, s.full_config).where(s.name == source)
    row = connection.execute(query).mappings().first()
    return Followed(**row) if row is not None else Followed()


def known(connection: Connection, source: str, revision: int, rules: Iterable[MirrorRule]) -> Known:
    """What the index has of a source at its published revision; ``rules`` are the mirrors of which it is the origin."""
    lost = coverage.lost_origins(connection, source, revision)
    return Known(
        coverage=coverage.read(connection, source, revision),
        namespaces=records.namespaces(connection, source),
        pending=pending_origins(lost, coverage.absences(connection, source), rules),
    )
