"""Losses of sources that a mirror's last approved plan did not know yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from federator.index import tables as t
from federator.planning.losses import Loss

v = t.revision.c
# Plans that somebody let go on, with what they were made from.
_LET_GO = ("approved", "applied")


def unapproved(connection: Connection, mirror: str, origin: str, target: str) -> list[Loss]:
    """List the losses of a mirror's two sources since the revisions of its last plan that was approved or applied.

    A source that this plan does not name counts with all its revisions if the mirror has tables of it in the ledger: the mirror was
    pointed at it again, or its ledger was rebuilt. Otherwise the mirror has declared nothing of it yet, and its past does not matter.
    """
    p = t.plan.c
    query = select(p.body).where(p.mirror == mirror, p.state.in_(_LET_GO)).order_by(p.created_at.desc()).limit(1)
    last = connection.execute(query).scalar()
    known = _known(json.loads(last)) if last is not None else {}
    found: list[Loss] = []
    for source, side in ((origin, "origin"), (target, "target")):
        if (source, side) in known:
            found += _since(connection, source, known[source, side])
        elif _declared(connection, mirror, source, side):
            found += _since(connection, source, 0)
    return found


def _known(body: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Return the revisions that a plan was made from, by source and side: a configuration may have named other sources then."""
    return {
        (change[f"{side}_source"], side): int(body.get(f"{side}_revision", 0))
        for change in body["changes"]
        for side in ("origin", "target")
    }


def _declared(connection: Connection, mirror: str, source: str, side: str) -> bool:
    e = t.ledger.c
    return (
        connection.execute(select(e.mirror).where(e.mirror == mirror, e[f"{side}_source"] == source).limit(1)).first()
        is not None
    )


def _since(connection: Connection, source: str, revision: int) -> list[Loss]:
    columns = (v.number, func.coalesce(v.tables, 0), v.gone, v.moved, v.went_back)
    lost = (v.gone + v.moved > 0) | v.went_back.is_not(None)
    query = select(*columns).where(v.source == source, v.number > revision, v.state == "published", lost).order_by(v.number)
    return [Loss(source, *row) for row in connection.execute(query)]
