"""Coverage and proven absences: what the published revision of a source can and cannot prove."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from federator.index import tables as t
from federator.index import visible
from federator.index.bulk import chunks
from federator.index.revisions import Draft
from federator.model import Coverage, CoverageState, Evidence, parse_key
from federator.model.rows import coverage_row
from federator.model.scopes import Scopes
from federator.planning.misses import Missed, MissUpdate, valid_misses


def read(connection: Connection, source: str, revision: int, *, only: Sequence[str] | None = None) -> dict[str, Coverage]:
    """Every namespace's Coverage at a revision, or that of ``only`` some, by the namespace's text form."""
    c = t.coverage.c
    # Two branches, as for records: each reads a partial index, and the history is in neither.
    begun = select(t.coverage).where(c.source == source, c.valid_from + 0 <= revision)
    wanted = [begun] if only is None else [begun.where(c.namespace.in_(part)) for part in chunks(only)]
    queries = [union_all(part.where(c.valid_to.is_(None)), part.where(c.valid_to > revision)) for part in wanted]
    rows = (row for query in queries for row in connection.execute(query).mappings())
    return {row["namespace"]: _coverage(source, row) for row in rows}


def unread(connection: Connection, source: str, revision: int, scopes: Scopes, *, detail: bool = False) -> int:
    """How many namespaces inside a scope were not listed completely, or, with ``detail``, not described completely either."""
    return _count(connection, source, revision, scopes, _short(detail=detail))


def carried(connection: Connection, source: str, revision: int, scopes: Scopes) -> int:
    """How many namespaces inside a scope the last crawl did not read, because the feed of changes did not name them."""
    return _count(connection, source, revision, scopes, t.coverage.c.presence == CoverageState.CARRIED.value)


def _count(connection: Connection, source: str, revision: int, scopes: Scopes, which: ColumnElement[bool]) -> int:
    c = t.coverage.c
    seen = visible.inside(connection, scopes, c.source, c.namespace)
    begun = select(func.count().label("n")).where(c.source == source, c.valid_from + 0 <= revision, which, seen)
    counts = union_all(begun.where(c.valid_to.is_(None)), begun.where(c.valid_to > revision)).subquery()
    return int(connection.execute(select(func.sum(counts.c.n))).scalar_one())


def page(
    connection: Connection,
    source: str,
    revision: int,
    scopes: Scopes,
    *,
    short: bool,
    after: str | None = None,
    limit: int = 200,
) -> list[Coverage]:
    """Coverage of the namespaces inside a scope, by the namespace's text form; ``short``: only of those that were not both listed
    and described completely."""
    c = t.coverage.c
    begun = select(t.coverage).where(c.source == source, c.valid_from + 0 <= revision)
    begun = begun.where(visible.inside(connection, scopes, c.source, c.namespace))
    if short:
        begun = begun.where(_short(detail=True))
    if after is not None:
        begun = begun.where(c.namespace > after)
    state = union_all(begun.where(c.valid_to.is_(None)), begun.where(c.valid_to > revision)).subquery()
    rows = connection.execute(select(state).order_by(state.c.namespace).limit(limit)).mappings()
    return [_coverage(source, row) for row in rows]


def write(connection: Connection, draft: Draft, now: Iterable[Coverage], before: Mapping[str, Coverage]) -> int:
    """Writes what changed of a source's Coverage into a draft; returns how many rows."""
    c = t.coverage.c
    rows = {coverage.key: coverage_row(coverage) for coverage in now}
    kept = {key for key, old in before.items() if key in rows and rows[key] == coverage_row(old)}
    closed = [key for key in before if key not in kept]
    if closed:
        mine = (c.source == draft.source) & (c.namespace == bindparam("key")) & c.valid_to.is_(None)
        closing = update(t.coverage).where(mine).values(valid_to=draft.number)
        connection.execute(closing, [{"key": key} for key in closed])
    fresh = [{**row, "source": draft.source, "valid_from": draft.number} for key, row in rows.items() if key not in kept]
    if fresh:
        connection.execute(insert(t.coverage), fresh)
    return len(fresh) + len(closed)


def absences(connection: Connection, source: str) -> dict[str, list[float]]:
    """Times at which a crawl proved a table absent, by path; only for tables that a mirror's ledger names as origin.

    A process that has not yet heard of the source's new configuration may still have crawled by the old one: that proves nothing.
    """
    config = connection.execute(select(t.source.c.config_digest).where(t.source.c.name == source)).scalar()
    return valid_misses(stored_misses(connection, source), config) if config is not None else {}


def stored_misses(connection: Connection, source: str) -> dict[str, Missed]:
    """Every miss that is stored of a source, by path, whatever the configuration it was counted under."""
    a = t.absence.c
    query = select(a.path, a.misses, a.config_digest).where(a.source == source)
    return {path: Missed(json.loads(misses), config) for path, misses, config in connection.execute(query)}


def lost_origins(connection: Connection, source: str, revision: int) -> set[str]:
    """Tables of the source that some mirror has copied and that are not in the revision: ``planning.misses.lost_origins``."""
    r, origin = t.record.c, t.ledger.c
    open_ = r.valid_to.is_(None) | (r.valid_to > revision)
    there = exists().where(r.source == source, r.is_table == 1, r.path == origin.origin_path, r.valid_from <= revision, open_)
    query = select(origin.origin_path).where(origin.origin_source == source, origin.is_table == 1, ~there).distinct()
    return set(connection.execute(query).scalars())


def save_misses(connection: Connection, source: str, config_digest: str, update: MissUpdate) -> None:
    """Stores what a crawl under a configuration did to the misses of its source."""
    a = t.absence.c
    changed = [{"path_": path} for path in {*update.forgotten, *update.counted}]
    if changed:
        connection.execute(delete(t.absence).where(a.source == source, a.path == bindparam("path_")), changed)
    rows = [
        {"source": source, "path": path, "misses": json.dumps(misses), "config_digest": config_digest}
        for path, misses in update.counted.items()
    ]
    if rows:
        connection.execute(insert(t.absence), rows)


def _short(*, detail: bool) -> ColumnElement[bool]:
    """Not listed completely, or, with ``detail``, not described completely either; what was carried was both."""
    c, whole = t.coverage.c, (CoverageState.COMPLETE.value, CoverageState.CARRIED.value)
    return or_(c.presence.not_in(whole), c.detail.not_in(whole)) if detail else c.presence.not_in(whole)


def _coverage(source: str, row: RowMapping) -> Coverage:
    return Coverage(
        source=source,
        namespace=parse_key(row["namespace"]),
        presence=_evidence(row, "presence"),
        detail=_evidence(row, "detail"),
        records=row["records"],
    )


def _evidence(row: RowMapping, part: str) -> Evidence:
    state = CoverageState(row[part])
    revision = row["carried_from"] if state is CoverageState.CARRIED else None
    return Evidence(state, row[f"{part}_reason"], row[f"{part}_code"], revision)
