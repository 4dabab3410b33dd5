"""Drift detection: compare declarations, mirrors and storage, and record their differences."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    func,
    insert,
    select,
    union_all,
    update,
)

from federator.model import TableRecord, object_id, parent_key, parse_path_key
from federator.model.drift import Drift, DriftKind
from federator.model.drift import DriftSeverity as Grade
from federator.model.notices import Notice, NoticeEvent, Severity
from federator.model.rows import table_from_row
from federator.planning.comparison import compare_mirrored_pair, compare_schema
from federator.planning.mapping import relocate
from federator.planning.rule import MirrorRule
from federator.store import drift_dirty_set, notices, records
from federator.store import tables as t
from federator.store.drift_dirty_set import MIRRORED_TABLE_COLUMNS, DirtySet, MirroredTable
from federator.store.engine import Index
from federator.store.leases import acquire_lease
from federator.store.records import list_declarations_at, select_current_tables
from federator.store.roots import delete_other_roots, iter_orphans, list_partially_crawled_sources
from federator.store.sql import chunked
from federator.store.stores import has_facts, read_accesses, value_at

r, x = t.record.c, t.drift.c

_LEASE_WAIT_SECONDS = 60.0
_NOTICE_SEVERITY = {Grade.HIGH: Severity.ERROR, Grade.MEDIUM: Severity.WARNING, Grade.LOW: Severity.INFO}


def refresh_drift(index: Index, rules: Mapping[str, MirrorRule], roots: Collection[str] = ()) -> None:
    """Detect the drift of the current state and record it; mark drift that is not found any more as resolved.

    Only objects that changed since the last detection, and those with open drift, are compared. ``roots`` are the configured roots.
    Raise LeaseHeld if another process detects drift.
    """
    with acquire_lease(index, "drift", wait=_LEASE_WAIT_SECONDS):
        with index.write() as connection:
            delete_other_roots(connection, roots)
        with index.read() as connection:
            watermark = drift_dirty_set.build_watermark(connection, rules, time.time())
            only = drift_dirty_set.compute_dirty_set(connection, watermark) if _has_previous_detection(connection) else None
            detected = {drift.key: drift for drift in detect_drift(connection, rules, only)}
        with index.write() as connection:
            _record_drift(connection, detected, time.time())
            drift_dirty_set.save_watermark(connection, watermark)


def detect_drift(connection: Connection, rules: Mapping[str, MirrorRule], only: DirtySet | None = None) -> Iterator[Drift]:
    """Return the drift of the current state, or only of the objects in a dirty set."""
    return chain(
        _detect_mirror_drift(connection, rules, only), _detect_missing(connection, only), _detect_schema_drift(connection, only),
        _detect_duplicates(connection, only), _detect_name_clashes(connection, only), _detect_orphans(connection, only),
    )  # fmt: skip


def _has_previous_detection(connection: Connection) -> bool:
    return connection.execute(select(t.drift_seen.c.name).limit(1)).first() is not None


def _record_drift(connection: Connection, detected: Mapping[tuple[str, str, str], Drift], now: float) -> None:
    known = _load_known_drift(connection, detected)
    fresh = [
        {**_drift_columns(drift), "first_seen": now, "last_seen": now} for key, drift in detected.items() if key not in known
    ]
    for batch in chunked(fresh):
        connection.execute(insert(t.drift), batch)
    same = (x.kind == bindparam("k")) & (x.subject == bindparam("s")) & (x.other == bindparam("o"))
    confirm = update(t.drift).where(same).values(last_seen=now, detail=bindparam("d"), resolved_at=None)
    still_open: list[dict[str, str]] = []
    reopened: list[dict[str, str]] = []
    for key, drift in detected.items():
        if key in known:
            (still_open if known[key] is None else reopened).append(_key_parameters(key) | {"d": drift.detail})
    for rows in chunked(still_open):
        connection.execute(confirm, rows)
    # Drift that returns after it was resolved gets a new first_seen.
    for rows in chunked(reopened):
        connection.execute(confirm.values(first_seen=now), rows)
    resolved = [_key_parameters(key) for key, resolved_at in known.items() if resolved_at is None and key not in detected]
    for rows in chunked(resolved):
        connection.execute(update(t.drift).where(same).values(resolved_at=now), rows)
    opened = [drift for key, drift in detected.items() if key not in known or known[key] is not None]
    notices.add_notices(
        connection, [*map(_opened_notice, opened), *(_resolved_notice(key["k"], key["s"], key["o"]) for key in resolved)]
    )


def _load_known_drift(
    connection: Connection, detected: Mapping[tuple[str, str, str], Drift]
) -> dict[tuple[str, str, str], float | None]:
    """Return the time of resolution by key, of all open drift (None) and of ``detected`` drift that was resolved before."""
    rows = list(connection.execute(select(x.kind, x.subject, x.other, x.resolved_at).where(x.resolved_at.is_(None))))
    for batch in chunked({subject for _, subject, _ in detected}):
        resolved = select(x.kind, x.subject, x.other, x.resolved_at).where(x.subject.in_(batch), x.resolved_at.is_not(None))
        rows += connection.execute(resolved)
    return {(row.kind, row.subject, row.other): row.resolved_at for row in rows}


def _opened_notice(drift: Drift) -> Notice:
    message = f"{drift.kind}: {' '.join(filter(None, (drift.detail, drift.other and f'({drift.other})')))}"
    return Notice(
        NoticeEvent.DRIFT_FOUND, drift.subject, message, source=drift.source, severity=_NOTICE_SEVERITY[drift.severity]
    )


def _resolved_notice(kind: str, subject: str, other: str) -> Notice:
    message = f"{kind}{f' ({other})' if other else ''} is resolved"
    return Notice(
        NoticeEvent.DRIFT_RESOLVED, subject, message, source="" if kind == DriftKind.ORPHAN else parse_path_key(subject)[0]
    )


def _drift_columns(drift: Drift) -> dict[str, Any]:
    return {
        "kind": drift.kind.value, "subject": drift.subject, "other": drift.other, "severity": drift.severity.value,
        "source": drift.source, "detail": drift.detail,
    }  # fmt: skip


def _key_parameters(key: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("k", "s", "o"), key, strict=True))


def _detect_mirror_drift(connection: Connection, rules: Mapping[str, MirrorRule], only: DirtySet | None) -> Iterator[Drift]:
    """Compare origin and target of the ledger's tables. Entries of mirrors that are not in ``rules`` are skipped."""
    rows = (
        drift_dirty_set.iter_dirty_ledger_entries(connection, only, rules)
        if only is not None
        else _iter_ledger_entries(connection, rules)
    )
    for (origin, target), entries in groupby(rows, key=lambda entry: (entry.origin_source, entry.target_source)):
        for batch in chunked(entries):
            origins = _tables_by_path(connection, origin, [entry.origin_path for entry in batch])
            targets = _tables_by_path(connection, target, [entry.target_path for entry in batch])
            for entry in batch:
                sides = origins.get(entry.origin_path), targets.get(entry.target_path)
                yield from _compare_ledger_entry(entry, rules[entry.mirror], *sides)


def _iter_ledger_entries(connection: Connection, rules: Mapping[str, MirrorRule]) -> Iterator[MirroredTable]:
    e = t.ledger.c
    query = select(*MIRRORED_TABLE_COLUMNS)
    query = query.where(e.is_table == 1, e.mirror.in_(list(rules))).order_by(e.origin_source, e.target_source)
    # Streamed: a mirror may have declared millions of tables.
    for row in connection.execute(query.execution_options(yield_per=5000)):
        yield MirroredTable(*row)


def _compare_ledger_entry(
    entry: MirroredTable, rule: MirrorRule, origin: TableRecord | None, target: TableRecord | None
) -> Iterator[Drift]:
    if origin is not None and target is not None:
        yield from compare_mirrored_pair(origin, target, relocate(rule, str(origin.location)))
        return
    absent = " and ".join(name for name, record in (("origin", origin), ("target", target)) if record is None)
    target_id, origin_id = object_id(entry.target_source, entry.target_path), object_id(entry.origin_source, entry.origin_path)
    yield Drift(DriftKind.DANGLING_MIRROR, entry.target_source, target_id, origin_id, f"mirror {entry.mirror}: {absent} absent")


def _detect_missing(connection: Connection, only: DirtySet | None) -> Iterator[Drift]:
    missing = select(t.dataset.c.canonical, t.dataset.c.access).where(t.dataset.c.state == "missing")
    queries = (
        [missing] if only is None else [missing.where(t.dataset.c.canonical.in_(chunk)) for chunk in chunked(only.locations)]
    )
    missing_locations = {(row.canonical, row.access) for query in queries for row in connection.execute(query)}
    accesses = read_accesses(connection)
    for location, tables in list_declarations_at(connection, sorted({canonical for canonical, _ in missing_locations})).items():
        for table in tables:
            if (location, value_at(accesses, table.source, location)) in missing_locations:
                subject = object_id(table.source, table.key)
                yield Drift(DriftKind.MISSING, table.source, subject, location, "nothing is at its location")


def _detect_schema_drift(connection: Connection, only: DirtySet | None) -> Iterator[Drift]:
    d = t.dataset.c
    columns = [r.source, r.path, r.canonical, r.schema.label("declared"), d.schema.label("stored")]
    both = (has_facts(r.source, r.canonical), d.state == "valid", r.schema.is_not(None))
    filters: Iterable[tuple[ColumnElement[bool], ...]]
    filters = [()] if only is None else ((r.canonical.in_(chunk),) for chunk in chunked(only.locations))
    for conditions in filters:
        for query in select_current_tables(columns, *both, *conditions):
            for row in connection.execute(query.execution_options(yield_per=5000)).mappings():
                subject = object_id(row["source"], row["path"])
                if drift := compare_schema(row["source"], subject, row["canonical"], row["declared"], row["stored"]):
                    yield drift


def _detect_duplicates(connection: Connection, only: DirtySet | None) -> Iterator[Drift]:
    locations = _list_duplicate_locations(connection) if only is None else list(only.locations)
    for location, tables in list_declarations_at(connection, locations).items():
        for source, same_source in groupby(tables, key=lambda table: table.source):
            first, *duplicates = (object_id(source, table.key) for table in same_source)
            for duplicate in duplicates:
                yield Drift(DriftKind.DUPLICATE, source, duplicate, first, f"both are at {location}")


def _list_duplicate_locations(connection: Connection) -> list[str]:
    location = func.coalesce(t.alias.c.place, r.canonical).label("location")
    queries = select_current_tables([r.source, location], r.canonical.is_not(None))
    tables = union_all(
        *(query.outerjoin_from(t.record, t.alias, t.alias.c.canonical == r.canonical) for query in queries)
    ).subquery()
    shared = select(tables.c.source, tables.c.location).group_by(tables.c.source, tables.c.location).having(func.count() > 1)
    return sorted({row.location for row in connection.execute(shared)})


def _detect_name_clashes(connection: Connection, only: DirtySet | None) -> Iterator[Drift]:
    lower = func.unicode_lower if connection.dialect.name == "sqlite" else func.lower
    columns = [r.source, r.parent, r.path, lower(r.name).label("folded")]
    filters: Iterable[tuple[ColumnElement[bool], ...]] = [()]
    if only is not None:
        by_source = {source: {parent_key(path) for path in paths} for source, paths in only.paths.items()}
        filters = (
            (r.source == source, r.parent.in_(chunk)) for source, parents in by_source.items() for chunk in chunked(parents)
        )
    for conditions in filters:
        names = union_all(*select_current_tables(columns, *conditions)).subquery().c
        groups = select(
            names.source, func.min(names.path).label("first"), func.max(names.path).label("last"), func.count().label("n")
        )
        for row in connection.execute(groups.group_by(names.source, names.parent, names.folded).having(func.count() > 1)):
            first, last = sorted((row.first, row.last))
            detail = f"{row.n} names differ only in case: catalogs that ignore case treat them as one"
            yield Drift(DriftKind.NAME_CLASH, row.source, object_id(row.source, first), object_id(row.source, last), detail)


def _detect_orphans(connection: Connection, only: DirtySet | None) -> Iterator[Drift]:
    locations = None if only is None or only.roots_scanned else sorted(only.locations)
    incomplete = list_partially_crawled_sources(connection)
    caveat = f"; not crawled completely: {', '.join(incomplete)}" if incomplete else ""
    for orphan in iter_orphans(connection, locations):
        yield Drift(DriftKind.ORPHAN, "", orphan.canonical, orphan.root, f"no catalog declares {orphan.location}{caveat}")


def _tables_by_path(connection: Connection, source: str, paths: Sequence[str]) -> dict[str, TableRecord]:
    query: Select[Any] = records.select_at_revision(
        source, records.published_revision(connection, source), r.path.in_(paths), r.is_table == 1
    )
    return {row["path"]: table_from_row(source, dict(row)) for row in connection.execute(query).mappings()}
