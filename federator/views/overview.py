"""The overview: the tables of each source by verification state, and what needs attention, filtered by scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, Row, func, or_, select

from federator.model.digests import digest_of
from federator.model.drift import DriftSeverity
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import notifications, runs, snoozes, visibility
from federator.store import tables as t
from federator.store.field_types import OptionalTimestamp
from federator.views import plans
from federator.views.drift import LOCATION_KINDS
from federator.views.freshness import Freshness
from federator.views.plans import PlanSummary
from federator.views.table_counts import StateGroup
from federator.views.visibility import Visibility

#: verification states that need attention, and how much; a table that was never verified, or is only declared, needs none
_STATE_SEVERITIES = {
    "missing": "high", "corrupt": "high", "not_lance": "high", "denied": "medium", "unreachable": "medium",
    "refers_outside": "low", "empty": "low",
}  # fmt: skip
_SOURCE_SEVERITIES = {"failed": "high", "partial": "medium", "never": "low"}
_SEVERITIES = [severity.value for severity in (DriftSeverity.HIGH, DriftSeverity.MEDIUM, DriftSeverity.LOW)]
#: the most held plans that are listed
_MAX_PLANS = 50

r, d, x, n = t.record.c, t.dataset.c, t.drift.c, t.notification.c


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Something that needs attention: a held plan, a source, tables in one verification state, drift, or dead notifications."""

    key: Annotated[str, Field(examples=["source:aws:failed"], description="stable as long as the cause is the same")]
    kind: Annotated[str, Field(examples=["source"], description="plan, source, tables, drift or notifications")]
    state: Annotated[
        str,
        Field(examples=["failed"], description="held; the source's state or overdue; verification state; drift severity; dead"),
    ]
    severity: Annotated[str, Field(examples=["high"], description="high, medium or low")]
    subject: Annotated[str, Field(examples=["aws"], description="mirror or source; empty if it is about several")]
    target: Annotated[str | None, Field(description="digest of the plan; null for other kinds")]
    count: Annotated[int, Field(examples=[1], description="number of changes, tables, differences or notifications")]
    detail: Annotated[str | None, Field(description="text for people, for example the error of the last crawl")]
    by_source: Annotated[dict[str, int], Field(description="`count` by source, for tables and drift")]
    since: Annotated[
        OptionalTimestamp, Field(description="time of the oldest table, difference or notification, or of the crawl")
    ]
    digest: Annotated[str, Field(description="hash of the content; a snooze ends when it changes")]
    snoozed_until: Annotated[OptionalTimestamp, Field(description="the principal snoozed it until then; null: not snoozed")]


def count_drift(connection: Connection, scopes: Scopes = EVERYTHING) -> dict[str, int]:
    """Return the number of open differences by severity, as ``list_drift`` lists them with the same scopes."""
    return {item.state: item.count for item in _list_drift_items(connection, scopes)}


def list_attention(
    connection: Connection, viewer: Visibility, fresh: Mapping[str, Freshness], states: Mapping[str, Mapping[str, StateGroup]],
    overdue: Mapping[str, float], *, with_notifications: bool, now: float,
) -> list[AttentionItem]:  # fmt: skip
    """List what needs attention: the most severe first, and the oldest of equal severity first. What the viewer snoozed is in it.

    ``fresh`` has every visible source, also those that were never crawled. ``states``: see ``Counts``. ``overdue`` has the time at
    which a crawl was due, by source.
    """
    items = [*_list_held_plans(connection, viewer), *_list_source_items(connection, viewer.scopes, fresh, overdue)]
    items += [*_list_table_items(states), *_list_drift_items(connection, viewer.scopes)]
    if with_notifications:
        items += _list_dead_notifications(connection)
    snoozed_until = snoozes.list_snoozes(connection, viewer.name, now=now)
    items = [replace(item, snoozed_until=snoozed_until.get((item.key, item.digest))) for item in items]
    return sorted(items, key=lambda item: (_SEVERITIES.index(item.severity), item.since or float("inf"), item.key))


def _build_item(
    key: str, kind: str, state: str, severity: str, subject: str = "", *, target: str | None = None, count: int = 1,
    detail: str | None = None, by_source: Mapping[str, int] | None = None, since: float | None = None, newest: float | None = None,
) -> AttentionItem:  # fmt: skip
    """Build an item with its digest.

    ``newest`` is the time of the newest table, difference or notification. It is a part of the digest: a new one ends a snooze, even if
    an old one ended and the count stays the same.
    """
    counts = dict(by_source or {})
    digest = digest_of([key, severity, count, detail, counts, newest])
    return AttentionItem(key, kind, state, severity, subject, target, count, detail, counts, since, digest, None)


def _list_held_plans(connection: Connection, viewer: Visibility) -> list[AttentionItem]:
    return [
        _build_item(
            f"plan:{plan.digest}", "plan", "held", "high", plan.mirror, target=plan.digest, count=sum(plan.remaining.values()),
            detail=_describe_held(plan) or None, since=plan.created_at,
        )
        for plan in plans.list_visible_plans(connection, viewer, state="held", limit=_MAX_PLANS)
        # A partial plan without remaining changes waits for hidden ones.
        if plan.remaining or not plan.partial
    ]  # fmt: skip


def _describe_held(plan: PlanSummary) -> str:
    """Return what a held plan would still do, and the first reason why it is held."""
    changes, reason = (f"{number} {action}" for action, number in plan.remaining.items()), "".join(plan.held[:1])
    return ": ".join(part for part in (", ".join(changes), reason.partition(": ")[2] or reason) if part)


def _list_source_items(
    connection: Connection, scopes: Scopes, fresh: Mapping[str, Freshness], overdue: Mapping[str, float]
) -> list[AttentionItem]:
    items = []
    for name, freshness in fresh.items():
        state = freshness.state if freshness.state != "ok" or name not in overdue else "overdue"
        if state == "ok":
            continue
        # The state in earlier runs is of the whole source, which may fail outside of the scopes.
        began_at = runs.find_state_begin(connection, name, state) if scopes.covers((name,)) else None
        since = overdue[name] if state == "overdue" else began_at or freshness.crawled_at
        severity = _SOURCE_SEVERITIES.get(state, "medium")
        items.append(
            _build_item(f"source:{name}:{state}", "source", state, severity, name, detail=freshness.message, since=since)
        )
    return items


def _list_table_items(states: Mapping[str, Mapping[str, StateGroup]]) -> list[AttentionItem]:
    items = []
    for state, severity in _STATE_SEVERITIES.items():
        groups = {source: by_state[state] for source, by_state in states.items() if state in by_state}
        if not groups:
            continue
        by_source = {source: group.count for source, group in groups.items()}
        since = min((group.since for group in groups.values() if group.since is not None), default=None)
        newest = max((group.newest for group in groups.values() if group.newest is not None), default=None)
        total = sum(by_source.values())
        items.append(
            _build_item(
                f"tables:{state}", "tables", state, severity, count=total, by_source=by_source, since=since, newest=newest
            )
        )
    return items


def _list_drift_items(connection: Connection, scopes: Scopes) -> list[AttentionItem]:
    other = or_(x.kind.in_(LOCATION_KINDS), visibility.is_covered_id(connection, scopes, x.other))
    visible = (x.resolved_at.is_(None), visibility.is_covered_id(connection, scopes, x.subject), other)
    times = func.min(x.first_seen).label("since"), func.max(x.first_seen).label("newest")
    query = select(x.severity, x.kind, x.source, func.count().label("n"), *times).where(*visible)
    groups: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(query.group_by(x.severity, x.kind, x.source).order_by(x.severity, x.kind, x.source)):
        groups.setdefault(row.severity, []).append(row)
    return [_drift_item(severity, rows) for severity, rows in groups.items()]


def _drift_item(severity: str, rows: Sequence[Row[Any]]) -> AttentionItem:
    by_source, by_kind = Counter[str](), Counter[str]()
    for row in rows:
        by_source[row.source] += row.n
        by_kind[row.kind] += row.n
    detail = ", ".join(f"{number} {kind}" for kind, number in sorted(by_kind.items()))
    return _build_item(
        f"drift:{severity}", "drift", severity, severity, count=sum(by_kind.values()), detail=detail, by_source=by_source,
        since=min(row.since for row in rows), newest=max(row.newest for row in rows),
    )  # fmt: skip


def _list_dead_notifications(connection: Connection) -> list[AttentionItem]:
    times = func.min(n.created_at).label("since"), func.max(n.created_at).label("newest")
    query = select(n.channel, func.count().label("n"), func.max(n.error).label("error"), *times)
    dead = query.where(n.state == notifications.DEAD).group_by(n.channel).order_by(n.channel)
    return [
        _build_item(
            f"notifications:{row.channel}", "notifications", "dead", "medium", row.channel, count=row.n, detail=row.error,
            since=row.since, newest=row.newest,
        )
        for row in connection.execute(dead)
    ]  # fmt: skip
