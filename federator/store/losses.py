"""Losses of sources, and the revisions that a mirror's last accepted plan was made from. ``planning.losses`` has the rules."""

from __future__ import annotations

import json

from sqlalchemy import Connection, and_, exists, func, select

from federator.planning.losses import ACCEPTED_STATES, Loss, known_revisions
from federator.store import tables as t
from federator.store.revisions import DraftRevision
from federator.store.sql import unindexed

v = t.revision.c


def read_accepted_revisions(connection: Connection, mirror: str) -> dict[tuple[str, str], int]:
    """Return the revisions that a mirror's last approved or applied plan was made from. Empty if no plan was accepted."""
    p = t.plan.c
    query = select(p.body).where(p.mirror == mirror, p.state.in_(ACCEPTED_STATES)).order_by(p.created_at.desc()).limit(1)
    last = connection.execute(query).scalar()
    if last is None:
        return {}
    body = json.loads(last)
    sources = ((change["origin_source"], change["target_source"]) for change in body["changes"])
    return known_revisions(sources, int(body.get("origin_revision", 0)), int(body.get("target_revision", 0)))


def list_losses(connection: Connection, source: str, revision: int) -> list[Loss]:
    """List the losses of a source after a revision."""
    columns = (v.number, func.coalesce(v.tables, 0), v.gone, v.moved, v.went_back)
    lost = (v.gone + v.moved > 0) | v.went_back.is_not(None)
    query = select(*columns).where(v.source == source, v.number > revision, v.state == "published", lost).order_by(v.number)
    return [Loss(source, *row) for row in connection.execute(query)]


def count_draft_losses(connection: Connection, draft: DraftRevision) -> tuple[int, int]:
    """Return how many tables a draft removes, and how many it moves. A table whose location has another name now was renamed, and is
    not removed.

    All records of the draft must be written. Both databases look for them one by one: the number of tables has no limit.
    """
    before, now = t.record.alias("before").c, t.record.alias("now").c
    closed = and_(before.source == draft.source, before.is_table == 1, before.valid_to == draft.number)
    # All records of a large draft have the same revision.
    written = and_(
        now.source == draft.source, now.is_table == 1, now.valid_to.is_(None), unindexed(now.valid_from) == draft.number
    )
    replacement = and_(written, now.path == before.path)
    renamed = exists().where(written, now.canonical == before.canonical)
    gone = select(func.count()).where(closed, ~exists().where(replacement), ~renamed)
    moved = select(func.count()).where(closed, replacement, now.canonical.is_distinct_from(before.canonical))
    return connection.execute(gone).scalar_one(), connection.execute(moved).scalar_one()
