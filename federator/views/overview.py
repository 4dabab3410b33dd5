"""The overview: how well the tables of each source are, and what needs attention, filtered by scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, Row, func, or_, select, union_all

from federator.model.drift import DriftSeverity
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import notifications, records, visibility
from federator.store import tables as t
from federator.store.field_types import OptionalTimestamp
from federator.store.verifications import UNVERIFIED
from federator.views import plans
from federator.views.drift import LOCATION_KINDS
from federator.views.freshness import Freshness
from federator.views.runs import Visibility

#: verification states that need attention, and how much; a table that was never verified, or is only declared, needs none
_STATE_SEVERITIES = {
    "missing": "high", "corrupt": "high", "not_lance": "high", "denied": "medium", "unreachable": "medium",
    "refers_outside": "low", "empty": "low",
}  # fmt: skip
_SOURCE_SEVERITIES = {"failed": "high", "partial": "medium", "never": "low"}
_SEVERITIES = [severity.value for severity in (DriftSeverity.HIGH, DriftSeverity.MEDIUM, DriftSeverity.LOW)]
#: the most held plans that are listed
_MAX_PLANS = 50
#: numbers of tables by verification state
StateCounts = dict[str, int]

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
    since: OptionalTimestamp


def count_states(connection: Connection, scopes: Scopes = EVERYTHING) -> dict[str, StateCounts]:
    """Return the number of tables by verification state, by source. Only tables that the scopes cover are counted."""
    state = func.coalesce(d.state, UNVERIFIED)
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    current = union_all(*records.select_current_tables([r.source, r.canonical], covered)).subquery()
    query = select(current.c.source, state, func.count()).select_from(
        current.outerjoin(t.dataset, d.canonical == current.c.canonical)
    )
    counted: dict[str, StateCounts] = {}
    for source, name, number in connection.execute(query.group_by(current.c.source, state)):
        counted.setdefault(source, {})[name] = number
    return {source: dict(sorted(states.items())) for source, states in sorted(counted.items())}


def count_drift(connection: Connection, scopes: Scopes = EVERYTHING) -> dict[str, int]:
    """Return the number of open differences by severity, as ``list_drift`` lists them with the same scopes."""
    return {item.state: item.count for item in _list_drift_items(connection, scopes)}


def list_attention(
    connection: Connection, viewer: Visibility, fresh: Mapping[str, Freshness], states: Mapping[str, StateCounts],
    overdue: Mapping[str, float], *, with_notifications: bool,
) -> list[AttentionItem]:  # fmt: skip
    """List what needs attention: the most severe first, and the oldest of equal severity first.

    ``fresh`` has every visible source, also those that were never crawled. ``states`` is ``count_states``. ``overdue`` has the time at
    which a crawl was due, by source.
    """
    items = [*_list_held_plans(connection, viewer), *_list_source_items(fresh, overdue), *_list_table_items(states)]
    items += _list_drift_items(connection, viewer.scopes)
    if with_notifications:
        items += _list_dead_notifications(connection)
    return sorted(items, key=lambda item: (_SEVERITIES.index(item.severity), item.since or float("inf"), item.key))


def _list_held_plans(connection: Connection, viewer: Visibility) -> list[AttentionItem]:
    return [
        AttentionItem(
            f"plan:{plan.digest}", "plan", "held", "high", plan.mirror, plan.digest, sum(plan.changes.values()),
            ", ".join(f"{number} {action}" for action, number in plan.changes.items()) or None, {}, plan.created_at,
        )
        for plan in plans.list_visible_plans(connection, viewer, state="held", limit=_MAX_PLANS)
    ]  # fmt: skip


def _list_source_items(fresh: Mapping[str, Freshness], overdue: Mapping[str, float]) -> list[AttentionItem]:
    items = []
    for name, freshness in fresh.items():
        state = freshness.state if freshness.state != "ok" or name not in overdue else "overdue"
        if state == "ok":
            continue
        since = overdue[name] if state == "overdue" else freshness.crawled_at
        items.append(
            AttentionItem(
                f"source:{name}:{state}", "source", state, _SOURCE_SEVERITIES.get(state, "medium"), name, None, 1,
                freshness.message, {}, since,
            )
        )  # fmt: skip
    return items


def _list_table_items(states: Mapping[str, StateCounts]) -> list[AttentionItem]:
    items = []
    for state, severity in _STATE_SEVERITIES.items():
        by_source = {source: counts[state] for source, counts in states.items() if counts.get(state)}
        if by_source:
            total = sum(by_source.values())
            items.append(AttentionItem(f"tables:{state}", "tables", state, severity, "", None, total, None, by_source, None))
    return items


def _list_drift_items(connection: Connection, scopes: Scopes) -> list[AttentionItem]:
    other = or_(x.kind.in_(LOCATION_KINDS), visibility.is_covered_id(connection, scopes, x.other))
    visible = (x.resolved_at.is_(None), visibility.is_covered_id(connection, scopes, x.subject), other)
    query = select(x.severity, x.kind, x.source, func.count().label("n"), func.min(x.first_seen).label("since")).where(*visible)
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
    since = min(row.since for row in rows)
    return AttentionItem(
        f"drift:{severity}", "drift", severity, severity, "", None, sum(by_kind.values()), detail, dict(by_source), since
    )


def _list_dead_notifications(connection: Connection) -> list[AttentionItem]:
    query = select(n.channel, func.count().label("n"), func.max(n.error).label("error"), func.min(n.created_at).label("since"))
    dead = query.where(n.state == notifications.DEAD).group_by(n.channel).order_by(n.channel)
    return [
        AttentionItem(
            f"notifications:{row.channel}",
            "notifications",
            "dead",
            "medium",
            row.channel,
            None,
            row.n,
            row.error,
            {},
            row.since,
        )
        for row in connection.execute(dead)
    ]
