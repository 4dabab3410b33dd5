"""Stored plans, their states and the decisions about them."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    RowMapping,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from federator.connector import StateError
from federator.model.notices import Notice, NoticeEvent
from federator.planning.release import keeps_state
from federator.store import notices
from federator.store import tables as t
from federator.store.failures import UnknownId
from federator.store.field_types import OptionalTimestamp, Timestamp, columns_of

# Counts of changes and refusals by plan digest. The limit leaves room for many mirrors.
_MAX_CACHED = 1000
_count_cache: dict[str, PlanCounts] = {}
#: states of a plan that can still be applied
OPEN_STATES = ("ready", "held", "approved")
_DECISION = ("decided_at", "decided_by", "decision_comment")


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan without its body."""

    digest: Annotated[str, Field(examples=["9f2c" * 16])]
    mirror: Annotated[str, Field(examples=["hive-to-glue"])]
    run_id: str
    state: Annotated[str, Field(examples=["held"], description="ready, held, approved, rejected, applied or outdated")]
    created_at: Timestamp
    decided_at: OptionalTimestamp
    decided_by: str | None
    decision_comment: Annotated[
        str | None, Field(examples=["the two tables moved to the archive"], description="comment of the approval or rejection")
    ]


@dataclass(frozen=True, slots=True)
class StoredPlan(PlanRecord):
    """A plan with its body as JSON. ``guarded`` is the digest of its guarded set."""

    guarded: str | None
    body: str

    @property
    def content(self) -> dict[str, Any]:
        """The parsed body."""
        return parse_body(self.body)

    @property
    def decision_digest(self) -> str:
        """The digest of the approval or rejection. "" if there is none."""
        if self.state not in ("approved", "rejected"):
            return ""
        return hashlib.sha256(json.dumps([self.state, self.decided_by, self.decided_at]).encode()).hexdigest()[:16]

    @property
    def if_match(self) -> str:
        """What a decision about the plan as it is now has in If-Match: the digest of its guarded set, and that of its decision."""
        decision = self.decision_digest
        return f"{self.guarded or self.digest}{'.' if decision else ''}{decision}"


def parse_body(text: str) -> dict[str, Any]:
    """Parse a plan's body as ``iter_body`` does."""
    body: dict[str, Any] = {}
    for key, value, is_item in iter_body(text):
        if not is_item:
            body[key] = value
        else:
            body[key].append(value)
    return body


def iter_body(text: str) -> Iterator[tuple[str, Any, bool]]:
    """Yield the fields of a plan's body, a list as ``[]`` before its items; the last value says whether it is an item.

    The parser returns one item at a time: while it runs, no other thread does.
    """
    decode, skip = json.JSONDecoder().raw_decode, re.compile(r"[\s,:]*").match

    def next_token(position: int) -> int:
        match = skip(text, position)
        assert match is not None
        return match.end()

    position = next_token(text.index("{") + 1)
    while text[position] != "}":
        key, position = decode(text, position)
        position = next_token(position)
        if text[position] == "[":
            yield key, [], False
            position = next_token(position + 1)
            while text[position] != "]":
                item, position = decode(text, position)
                yield key, item, True
                position = next_token(position)
            position += 1
        else:
            value, position = decode(text, position)
            yield key, value, False
        position = next_token(position)


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """The numbers of a plan's changes by action, and of its refusals by reason. ``held``: the texts of its holds."""

    changes: dict[str, int]
    refusals: dict[str, int]
    held: tuple[str, ...]


def save_plan(
    connection: Connection, *, digest: str, mirror: str, run_id: str, state: str, body: str, guarded: str | None = None,
    notice: Notice | None = None,
) -> str:  # fmt: skip
    """Store a plan and return its state. ``state`` is the state that follows from the valid approvals.

    ``guarded`` is the digest of the plan's guarded set. A rejection of the same guarded set in an earlier plan stays in force.
    ``notice`` is added once for each guarded set that waits.
    """
    p = t.plan.c
    stored_state = connection.execute(select(p.state).where(p.digest == digest)).scalar()
    if stored_state is not None and keeps_state(str(stored_state), state):
        return str(stored_state)
    earlier = _find_newest_of_guarded_set(connection, mirror, guarded)
    connection.execute(delete(t.plan).where(p.digest == digest))
    row = {
        "digest": digest, "mirror": mirror, "run_id": run_id, "state": state, "body": body, "created_at": time.time(),
        "guarded": guarded,
    }  # fmt: skip
    if earlier is not None and earlier["state"] == "rejected" and state == "held":
        row |= {name: earlier[name] for name in ("state", *_DECISION)}
    connection.execute(insert(t.plan), [row])
    already_waiting = earlier is not None and earlier["state"] in ("held", "rejected")
    notices.add_notices(connection, [notice] if notice is not None and not already_waiting else [])
    return str(row["state"])


def _find_newest_of_guarded_set(connection: Connection, mirror: str, guarded: str | None) -> RowMapping | None:
    """Return the newest plan of a mirror with this guarded set. None if there is none."""
    p = t.plan.c
    if guarded is None:
        return None
    query = select(p.state, *(p[name] for name in _DECISION)).where(p.mirror == mirror, p.guarded == guarded)
    return connection.execute(query.order_by(p.created_at.desc(), p.digest).limit(1)).mappings().first()


def outdate_held_plans(connection: Connection, digest: str, mirror: str, mirror_digest: str) -> None:
    """Mark the held plans of a mirror as outdated that the same configuration made before the plan ``digest``.

    A decision about an outdated plan still applies to the changes that both plans have.
    """
    p = t.plan.c
    # The digest of the mirror's configuration is only in the body.
    same_configuration = p.body.contains(f'"mirror_digest":"{mirror_digest}"', autoescape=True)
    others = update(t.plan).where(p.mirror == mirror, p.state == "held", p.digest != digest, same_configuration)
    connection.execute(others.values(state="outdated"))


def get_plan(connection: Connection, digest: str) -> StoredPlan:
    """Return a plan by its digest or an unambiguous prefix of it. Raise UnknownId if no plan or several plans match."""
    query = select(t.plan).where(t.plan.c.digest.startswith(digest, autoescape=True)).limit(2)
    rows = list(connection.execute(query).mappings())
    if len(rows) != 1:
        matching = "no plan has" if not rows else "several plans have"
        raise UnknownId(f"{matching} the digest {digest!r}", hint="federator plans list shows the plans")
    return StoredPlan(**rows[0])


def lock_plan(connection: Connection, digest: str) -> StoredPlan:
    """Return a plan as ``get_plan`` does, and let other decisions about its guarded set wait until the transaction ends."""
    plan, p = get_plan(connection, digest), t.plan.c
    # In one order, so that two decisions do not wait for each other. SQLite has one writer.
    connection.execute(select(p.digest).where(_has_guarded_set(plan)).order_by(p.digest).with_for_update()).all()
    return get_plan(connection, plan.digest)


def _has_guarded_set(plan: StoredPlan) -> ColumnElement[bool]:
    p = t.plan.c
    return or_(p.digest == plan.digest, and_(p.mirror == plan.mirror, p.guarded == plan.guarded))


def find_decided(connection: Connection, plan: StoredPlan, state: str) -> StoredPlan | None:
    """Return the plan with the newest decision ``state`` about the guarded set of a plan. None if nobody decided so."""
    p = t.plan.c
    query = select(t.plan).where(_has_guarded_set(plan), p.state == state).order_by(p.decided_at.desc(), p.digest).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else StoredPlan(**row)


def find_mirror(connection: Connection, digest: str) -> str | None:
    """Return the mirror of the plan with a complete digest, without reading its body. None if there is no such plan."""
    return connection.execute(select(t.plan.c.mirror).where(t.plan.c.digest == digest)).scalar()


def measure_plan(connection: Connection, digest: str) -> int:
    """Return the number of characters of a plan's body. The digest must be complete."""
    return int(connection.execute(select(func.length(t.plan.c.body)).where(t.plan.c.digest == digest)).scalar_one())


@dataclass(frozen=True, slots=True)
class NewestPlan:
    """The newest plan of a mirror. ``size`` is the number of characters of its body, 0 if the body does not name the object."""

    record: PlanRecord
    size: int


def find_newest_plan(connection: Connection, mirror: str, *, about: str) -> NewestPlan | None:
    """Return the newest plan of a mirror, and whether its body names the path key ``about``. None if the mirror has no plan."""
    p = t.plan.c
    position = func.instr if connection.dialect.name == "sqlite" else func.strpos
    # As any JSON encoder writes the text.
    texts = {json.dumps(about, ensure_ascii=is_ascii) for is_ascii in (False, True)}
    size = case((or_(*(position(p.body, text, type_=Integer) > 0 for text in texts)), func.length(p.body)), else_=0)
    query = select(*columns_of(t.plan, PlanRecord), size.label("size")).where(p.mirror == mirror)
    row = connection.execute(query.order_by(p.created_at.desc(), p.digest).limit(1)).mappings().first()
    if row is None:
        return None
    return NewestPlan(PlanRecord(**{name: value for name, value in row.items() if name != "size"}), int(row["size"]))


def list_recent_plans(
    connection: Connection, *, mirror: str | None = None, state: str | None = None, limit: int = 20
) -> list[StoredPlan]:
    """List plans with their bodies, newest first, optionally of one mirror or in one state."""
    query = select(t.plan).order_by(t.plan.c.created_at.desc(), t.plan.c.digest).limit(limit)
    if mirror is not None:
        query = query.where(t.plan.c.mirror == mirror)
    if state is not None:
        query = query.where(t.plan.c.state == state)
    return [StoredPlan(**row) for row in connection.execute(query).mappings()]


def list_plans(
    connection: Connection,
    *,
    mirrors: Sequence[str] | None = None,
    state: str | None = None,
    run: str | None = None,
    digest: str | None = None,
    after: tuple[float, str] | None = None,
    limit: int = 20,
) -> list[PlanRecord]:
    """List plans without their bodies, newest first, optionally of some mirrors, in one state or of one run.

    ``digest`` is the beginning of the digests. ``after`` is the ``created_at`` and the digest of the last plan of the previous page.
    """
    p = t.plan.c
    query = select(*columns_of(t.plan, PlanRecord)).order_by(p.created_at.desc(), p.digest).limit(limit)
    if mirrors is not None:
        query = query.where(p.mirror.in_(mirrors))
    if state is not None:
        query = query.where(p.state == state)
    if run is not None:
        query = query.where(p.run_id == run)
    if digest is not None:
        query = query.where(p.digest.startswith(digest, autoescape=True))
    if after is not None:
        created_at, last_digest = after
        query = query.where(or_(p.created_at < created_at, and_(p.created_at == created_at, p.digest > last_digest)))
    return [PlanRecord(**row) for row in connection.execute(query).mappings()]


def count_items(items: Iterable[tuple[str, Any]]) -> PlanCounts:
    """Count the changes and the refusals among items of a plan's body, each with the name of its list."""
    changes: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    held = []
    for key, item in items:
        if key == "changes":
            changes[item["action"]] += 1
        elif key == "refusals":
            refusals[item["reason"]] += 1
        elif key == "held":
            held.append(item)
    return PlanCounts(dict(changes), dict(refusals), tuple(held))


def count_plan(connection: Connection, digest: str) -> PlanCounts:
    """Count the changes and the refusals of a plan. Results are cached per digest, because a digest fixes the plan's content."""
    counts = _count_cache.get(digest)
    if counts is None:
        text = connection.execute(select(t.plan.c.body).where(t.plan.c.digest == digest)).scalar_one()
        counts = count_items((key, item) for key, item, is_item in iter_body(text) if is_item)
        while len(_count_cache) >= _MAX_CACHED:
            _count_cache.pop(next(iter(_count_cache)), None)
        _count_cache[digest] = counts
    return counts


def require_applicable(connection: Connection, digest: str) -> StoredPlan:
    """Return the plan with a digest. Raise StateError if this index has no such plan, or if it was rejected."""
    plan = get_plan(connection, digest)
    if plan.state == "rejected":
        raise StateError(f"the plan {digest[:12]} of mirror {plan.mirror!r} was rejected by {plan.decided_by}")
    return plan


def _is_approved_already(connection: Connection, digest: str) -> bool:
    """Tell whether a plan is approved, and no approval was stored since then."""
    p, a = t.plan.c, t.approval.c
    is_newer = exists().where(a.mirror == p.mirror, a.plan == p.digest, a.approved_at > p.decided_at)
    return connection.execute(select(p.digest).where(p.digest == digest, p.state == "approved", ~is_newer)).first() is not None


def record_decision(connection: Connection, digest: str, state: str, actor: str, *, comment: str | None = None) -> None:
    """Record ``approved``, ``rejected``, ``applied`` or ``outdated`` with the actor and the time.

    ``comment`` belongs to an approval or a rejection, and stays when the plan is applied. An approval or a rejection applies to every
    open plan of the mirror with the same guarded set. A plan that is approved already keeps the actor and the time of its approval.
    """
    p = t.plan.c
    if state == "approved" and _is_approved_already(connection, digest):
        return
    values: dict[str, Any] = {"state": state, "decided_at": time.time(), "decided_by": actor}
    if state in ("approved", "rejected"):
        values["decision_comment"] = comment
    connection.execute(update(t.plan).where(p.digest == digest).values(values))
    if state in ("approved", "rejected"):
        mirror, guarded = connection.execute(select(p.mirror, p.guarded).where(p.digest == digest)).one()
        same_guarded_set = (p.mirror == mirror, p.guarded == guarded, p.state.in_(("held", "approved", "rejected")))
        connection.execute(update(t.plan).where(*same_guarded_set).values(values))
        notices.add_notices(
            connection, [Notice(NoticeEvent.PLAN_DECIDED, f"plan {digest[:12]}", f"{state} by {actor}", mirror=mirror)]
        )
