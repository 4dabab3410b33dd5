"""Losses of sources that a mirror's last approved plan did not know yet."""

from __future__ import annotations

import json

from sqlalchemy import Connection, func, select

from federator.index import tables as t
from federator.planning.losses import Loss

v = t.revision.c
# Plans that somebody let go on, with what they were made from.
_LET_GO = ("approved", "applied")


def unapproved(connection: Connection, mirror: str, origin: str, target: str) -> list[Loss]:
    """List the losses of a mirror's two sources since the revisions of its last plan that was approved or applied.

    A mirror without such a plan has declared nothing yet: what its sources were before is nothing to it.
    """
    p = t.plan.c
    query = select(p.body).where(p.mirror == mirror, p.state.in_(_LET_GO)).order_by(p.created_at.desc()).limit(1)
    last = connection.execute(query).scalar()
    if last is None:
        return []
    body = json.loads(last)
    known = {origin: int(body.get("origin_revision", 0)), target: int(body.get("target_revision", 0))}
    return [loss for source, revision in known.items() for loss in _since(connection, source, revision)]


def _since(connection: Connection, source: str, revision: int) -> list[Loss]:
    columns = (v.number, func.coalesce(v.tables, 0), v.gone, v.moved, v.went_back)
    lost = (v.gone + v.moved > 0) | v.went_back.is_not(None)
    query = select(*columns).where(v.source == source, v.number > revision, v.state == "published", lost).order_by(v.number)
    return [Loss(source, *row) for row in connection.execute(query)]
