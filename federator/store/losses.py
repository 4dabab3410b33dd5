"""Losses of sources, and the revisions that a mirror's last accepted plan was made from. ``planning.losses`` has the rules."""

from __future__ import annotations

import json

from sqlalchemy import Connection, func, select

from federator.planning.losses import ACCEPTED_STATES, Loss, known_revisions
from federator.store import tables as t

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
