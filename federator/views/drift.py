"""Recorded drift, open or resolved, filtered by the scopes of a principal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field
from sqlalchemy import (
    ColumnElement,
    Connection,
    case,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from federator.model.drift import DriftKind, DriftSeverity
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import tables as t
from federator.store import visibility
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp, Timestamp

#: kinds whose ``other`` is a location or a root instead of an object
LOCATION_KINDS = (DriftKind.MISSING.value, DriftKind.SCHEMA_DIFFERS.value, DriftKind.ORPHAN.value)

r, x = t.record.c, t.drift.c


@dataclass(frozen=True, slots=True)
class DriftView:
    """A persistent difference between catalogs, or between a catalog and its storage."""

    kind: Annotated[str, Field(examples=["location_differs"])]
    severity: Annotated[str, Field(examples=["high"], description="high, medium or low")]
    source: str
    subject: Annotated[str, Field(examples=["aws$sales$orders"], description="object id of the table")]
    other: Annotated[str, Field(examples=["lake_hive$sales$orders"], description="object id or location that it differs from")]
    detail: str
    first_seen: Timestamp
    last_seen: Timestamp
    resolved_at: Annotated[OptionalTimestamp, Field(description="time of the first detection that did not find it")]

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.kind, self.subject, self.other)


@dataclass(frozen=True, slots=True)
class DriftCount:
    """The number of differences of one kind and severity."""

    kind: Annotated[str, Field(examples=["location_differs"])]
    severity: Annotated[str, Field(examples=["high"])]
    count: int


_SEVERITY_ORDER = {
    severity.value: n for n, severity in enumerate((DriftSeverity.HIGH, DriftSeverity.MEDIUM, DriftSeverity.LOW))
}


def list_drift(
    index: Index,
    *,
    kind: str | None = None,
    severity: str | None = None,
    source: str | None = None,
    about: str | None = None,
    below: str | None = None,
    resolved: bool = False,
    severe_first: bool = False,
    after: tuple[str, str, str] | None = None,
    limit: int = 200,
    scopes: Scopes = EVERYTHING,
) -> list[DriftView]:
    """List open drift, or with ``resolved`` resolved drift, by kind, subject and other. ``after`` is the last key of the previous page.
    ``severe_first`` sorts by severity before that, and allows no ``after``.

    ``about`` is the object id of one of the two objects, and ``below`` that of a source or namespace around the first one. The scopes
    must cover both objects.
    """
    conditions: list[ColumnElement[bool]] = [x.resolved_at.is_not(None) if resolved else x.resolved_at.is_(None)]
    conditions += [column == value for column, value in ((x.kind, kind), (x.severity, severity), (x.source, source)) if value]
    if about is not None:
        conditions.append(or_(x.subject == about, x.other == about))
    if after is not None:
        conditions.append(tuple_(x.kind, x.subject, x.other) > tuple_(*map(literal, after)))
    severity_order = [case(_SEVERITY_ORDER, value=x.severity)] if severe_first else []
    query = select(t.drift).where(*conditions).order_by(*severity_order, x.kind, x.subject, x.other).limit(limit)
    with index.read() as connection:
        query = query.where(*_both_covered(connection, scopes))
        if below is not None:
            query = query.where(visibility.is_at_or_below(connection, x.subject, below))
        views = [DriftView(**row) for row in connection.execute(query).mappings()]
    return views if scopes.covers_all else [_without_clash_count(view) for view in views]


def count_drift(index: Index, *, source: str | None, resolved: bool, scopes: Scopes) -> list[DriftCount]:
    """Count open drift, or with ``resolved`` resolved drift, by kind and severity. The scopes must cover both objects."""
    conditions: list[ColumnElement[bool]] = [x.resolved_at.is_not(None) if resolved else x.resolved_at.is_(None)]
    conditions += [x.source == source] if source else []
    query = select(x.kind, x.severity, func.count()).where(*conditions).group_by(x.kind, x.severity)
    with index.read() as connection:
        rows = connection.execute(query.where(*_both_covered(connection, scopes)).order_by(x.kind, x.severity))
        return [DriftCount(*row) for row in rows]


def _both_covered(connection: Connection, scopes: Scopes) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    other = or_(x.kind.in_(LOCATION_KINDS), visibility.is_covered_id(connection, scopes, x.other))
    return visibility.is_covered_id(connection, scopes, x.subject), other


def _without_clash_count(view: DriftView) -> DriftView:
    """Remove the number of clashing names from the detail, because some may be outside the scopes."""
    clash = view.kind == DriftKind.NAME_CLASH
    return replace(view, detail=view.detail.partition(" ")[2]) if clash else view
