"""Coverage rows: what the revisions of a source can and cannot prove about its namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from federator.model import Coverage, CoverageState, Evidence, parse_path_key
from federator.model.rows import coverage_to_row
from federator.model.scopes import Scopes
from federator.store import tables as t
from federator.store import visibility
from federator.store.revisions import DraftRevision
from federator.store.sql import chunked, unindexed


def read_coverage(
    connection: Connection, source: str, revision: int, *, only: Sequence[str] | None = None
) -> dict[str, Coverage]:
    """Return the coverage of every namespace at a revision, or of ``only`` some, by path key."""
    c = t.coverage.c
    # Two branches, as for records: each reads a partial index that does not contain the history.
    begun = select(t.coverage).where(c.source == source, unindexed(c.valid_from) <= revision)
    parts = [begun] if only is None else [begun.where(c.namespace.in_(chunk)) for chunk in chunked(only)]
    queries = [union_all(part.where(c.valid_to.is_(None)), part.where(c.valid_to > revision)) for part in parts]
    rows = (row for query in queries for row in connection.execute(query).mappings())
    return {row["namespace"]: _coverage_from_row(source, row) for row in rows}


def select_current_coverage(columns: Sequence[Any], *conditions: ColumnElement[bool]) -> list[Select[Any]]:
    """Return two selects of the published coverage of all sources: open rows, and rows that a draft revision has closed."""
    c, s = t.coverage.c, t.source.c
    base = select(*columns).where(c.source == s.name, unindexed(c.valid_from) <= s.revision, *conditions)
    return [base.where(c.valid_to.is_(None)), base.where(c.valid_to > s.revision)]


def count_incomplete(connection: Connection, source: str, revision: int, scopes: Scopes, *, detail: bool = False) -> int:
    """Count the namespaces inside ``scopes`` without a complete listing. With ``detail``, also those described incompletely."""
    return _count_namespaces(connection, source, revision, scopes, _is_incomplete(detail=detail))


def count_carried(connection: Connection, source: str, revision: int, scopes: Scopes) -> int:
    """Count the namespaces inside ``scopes`` that the last crawl carried: the change feed did not name them."""
    return _count_namespaces(connection, source, revision, scopes, t.coverage.c.presence == CoverageState.CARRIED.value)


def _count_namespaces(
    connection: Connection, source: str, revision: int, scopes: Scopes, condition: ColumnElement[bool]
) -> int:
    c = t.coverage.c
    covered = visibility.is_covered(connection, scopes, c.source, c.namespace)
    begun = select(func.count().label("n")).where(c.source == source, unindexed(c.valid_from) <= revision, condition, covered)
    counts = union_all(begun.where(c.valid_to.is_(None)), begun.where(c.valid_to > revision)).subquery()
    return int(connection.execute(select(func.sum(counts.c.n))).scalar_one())


def list_coverage(
    connection: Connection,
    source: str,
    revision: int,
    scopes: Scopes,
    *,
    incomplete_only: bool,
    after: str | None = None,
    limit: int = 200,
) -> list[Coverage]:
    """List the coverage of the namespaces inside ``scopes``, by path key.

    With ``incomplete_only``, list only namespaces that were not both listed and described completely.
    """
    c = t.coverage.c
    begun = select(t.coverage).where(c.source == source, unindexed(c.valid_from) <= revision)
    begun = begun.where(visibility.is_covered(connection, scopes, c.source, c.namespace))
    if incomplete_only:
        begun = begun.where(_is_incomplete(detail=True))
    if after is not None:
        begun = begun.where(c.namespace > after)
    state = union_all(begun.where(c.valid_to.is_(None)), begun.where(c.valid_to > revision)).subquery()
    rows = connection.execute(select(state).order_by(state.c.namespace).limit(limit)).mappings()
    return [_coverage_from_row(source, row) for row in rows]


def write_coverage(
    connection: Connection, draft: DraftRevision, now: Iterable[Coverage], before: Mapping[str, Coverage]
) -> int:
    """Write the changed ``coverage`` rows of a source into a draft revision. Return their number."""
    c = t.coverage.c
    rows = {coverage.key: coverage_to_row(coverage) for coverage in now}
    unchanged = {key for key, old in before.items() if key in rows and rows[key] == coverage_to_row(old)}
    closed = [key for key in before if key not in unchanged]
    if closed:
        open_row = (c.source == draft.source) & (c.namespace == bindparam("key")) & c.valid_to.is_(None)
        closing = update(t.coverage).where(open_row).values(valid_to=draft.number)
        connection.execute(closing, [{"key": key} for key in closed])
    fresh = [{**row, "source": draft.source, "valid_from": draft.number} for key, row in rows.items() if key not in unchanged]
    if fresh:
        connection.execute(insert(t.coverage), fresh)
    return len(fresh) + len(closed)


def _is_incomplete(*, detail: bool) -> ColumnElement[bool]:
    # Carried evidence is complete: it was complete when it was read.
    c, complete = t.coverage.c, (CoverageState.COMPLETE.value, CoverageState.CARRIED.value)
    return or_(c.presence.not_in(complete), c.detail.not_in(complete)) if detail else c.presence.not_in(complete)


def _coverage_from_row(source: str, row: RowMapping) -> Coverage:
    return Coverage(
        source=source,
        namespace=parse_path_key(row["namespace"]),
        presence=_evidence_from_row(row, "presence"),
        detail=_evidence_from_row(row, "detail"),
        records=row["records"],
    )


def _evidence_from_row(row: RowMapping, part: str) -> Evidence:
    state = CoverageState(row[part])
    revision = row["carried_from"] if state is CoverageState.CARRIED else None
    return Evidence(state, row[f"{part}_reason"], row[f"{part}_code"], revision)
