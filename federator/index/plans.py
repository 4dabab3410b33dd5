"""Plans as they were made, with what became of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, insert, or_, select, update

from federator.connector import StateError
from federator.index import notices
from federator.index import tables as t
from federator.model.notices import Event, Notice
from federator.planning.release import keeps_state

# Counts of plans' bodies by digest: as many as there are mirrors, with room.
_KEPT = 1000
_KNOWN: dict[str, tuple[dict[str, int], dict[str, int]]] = {}


def save(
    connection: Connection, *, digest: str, mirror: str, run_id: str, state: str, body: str, guarded: str | None = None,
    notice: Notice | None = None,
) -> str:  # fmt: skip
    """Stores a plan whose ``state`` follows from the approvals that hold; returns the state that it has.

    A rejection of its guarded set (``guarded``: that set's digest) stays, whichever plan it was of. ``notice`` is given once for each
    guarded set that waits.
    """
    p = t.plan.c
    known = connection.execute(select(p.state).where(p.digest == digest)).scalar()
    if known is not None and keeps_state(str(known), state):
        return str(known)
    before = _of_set(connection, mirror, guarded)
    connection.execute(delete(t.plan).where(p.digest == digest))
    row = {
        "digest": digest, "mirror": mirror, "run_id": run_id, "state": state, "body": body, "created_at": time.time(),
        "guarded": guarded,
    }  # fmt: skip
    if before is not None and before["state"] == "rejected" and state == "held":
        row |= {name: before[name] for name in ("state", "decided_at", "decided_by")}
    connection.execute(insert(t.plan), [row])
    waits = before is not None and before["state"] in ("held", "rejected")
    notices.add(connection, [notice] if notice is not None and not waits else [])
    return str(row["state"])


def _of_set(connection: Connection, mirror: str, guarded: str | None) -> RowMapping | None:
    """The newest plan of a mirror with this guarded set."""
    p = t.plan.c
    if guarded is None:
        return None
    query = select(p.state, p.decided_at, p.decided_by).where(p.mirror == mirror, p.guarded == guarded)
    return connection.execute(query.order_by(p.created_at.desc(), p.digest).limit(1)).mappings().first()


def supersede(connection: Connection, digest: str, mirror: str, mirror_digest: str) -> None:
    """Takes a mirror's older plans out of those that wait, where the same configuration has a newer one (``digest``). Deciding about
    an older one still decides about the changes that both have."""
    p = t.plan.c
    same = p.body.contains(f'"mirror_digest":"{mirror_digest}"', autoescape=True)
    older = update(t.plan).where(p.mirror == mirror, p.state == "held", p.digest != digest, same)
    connection.execute(older.values(state="outdated"))


def get(connection: Connection, digest: str) -> RowMapping:
    """One plan by its digest or an unambiguous prefix of it. Raises StateError."""
    query = select(t.plan).where(t.plan.c.digest.startswith(digest, autoescape=True)).limit(2)
    found = list(connection.execute(query).mappings())
    if len(found) != 1:
        what = "no plan has" if not found else "several plans have"
        raise StateError(f"{what} the digest {digest!r}", hint="federator plans list shows them")
    return found[0]


def recent(connection: Connection, *, mirror: str | None = None, state: str | None = None, limit: int = 20) -> list[RowMapping]:
    """Plans, newest first; of one mirror, in one state."""
    query = select(t.plan).order_by(t.plan.c.created_at.desc(), t.plan.c.digest).limit(limit)
    if mirror is not None:
        query = query.where(t.plan.c.mirror == mirror)
    if state is not None:
        query = query.where(t.plan.c.state == state)
    return list(connection.execute(query).mappings())


def page(
    connection: Connection,
    *,
    mirrors: Sequence[str] | None = None,
    state: str | None = None,
    run: str | None = None,
    after: tuple[float, str] | None = None,
    limit: int = 20,
) -> list[RowMapping]:
    """Plans without their bodies, newest first: of some mirrors, in one state, made by one run. Keyset paging with ``after`` = the
    last one's ``created_at`` and digest."""
    p = t.plan.c
    query = select(*(column for column in p if column.name != "body")).order_by(p.created_at.desc(), p.digest).limit(limit)
    if mirrors is not None:
        query = query.where(p.mirror.in_(mirrors))
    if state is not None:
        query = query.where(p.state == state)
    if run is not None:
        query = query.where(p.run_id == run)
    if after is not None:
        at, digest = after
        query = query.where(or_(p.created_at < at, and_(p.created_at == at, p.digest > digest)))
    return list(connection.execute(query).mappings())


def counts(connection: Connection, digest: str) -> tuple[dict[str, int], dict[str, int]]:
    """A plan's changes by action and refusals by reason; a body is read once, since its digest says all of it."""
    known = _KNOWN.get(digest)
    if known is None:
        body = json.loads(connection.execute(select(t.plan.c.body).where(t.plan.c.digest == digest)).scalar_one())
        known = (
            dict(Counter(change["action"] for change in body["changes"])),
            dict(Counter(refusal["reason"] for refusal in body["refusals"])),
        )
        while len(_KNOWN) >= _KEPT:
            _KNOWN.pop(next(iter(_KNOWN)), None)
        _KNOWN[digest] = known
    return known


def applicable(connection: Connection, digest: str) -> RowMapping:
    """The plan that this index made under a digest. Raises StateError if there is none, or if a person rejected it."""
    row = get(connection, digest)
    if row["state"] == "rejected":
        raise StateError(f"the plan {digest[:12]} of mirror {row['mirror']!r} was rejected by {row['decided_by']}")
    return row


def decide(connection: Connection, digest: str, state: str, actor: str) -> None:
    """Records ``approved``, ``rejected``, ``applied`` or ``outdated``, with who and when. A person's decision is one about every open
    plan of the mirror with the same guarded set."""
    p = t.plan.c
    values: dict[str, Any] = {"state": state, "decided_at": time.time(), "decided_by": actor}
    connection.execute(update(t.plan).where(p.digest == digest).values(values))
    if state in ("approved", "rejected"):
        mirror, guarded = connection.execute(select(p.mirror, p.guarded).where(p.digest == digest)).one()
        same = (p.mirror == mirror, p.guarded == guarded, p.state.in_(("held", "approved", "rejected")))
        connection.execute(update(t.plan).where(*same).values(values))
        notices.add(connection, [Notice(Event.PLAN_DECIDED, f"plan {digest[:12]}", f"{state} by {actor}", mirror=mirror)])
