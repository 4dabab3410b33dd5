"""Differences between two snapshots: added, removed or changed objects, with attribution.

Only rows that were opened or closed in between are read. An object that existed only in between, or that changed back, is not a
difference. The journal attributes a difference to the newest write to the object. Only writes between the last revision with the old
state and the first with the new one count. A difference without such a write was made by others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest
from itertools import islice
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, case, func, literal, null, or_, select, tuple_, union_all

from federator.connector.options import mask_secrets
from federator.model import Path, object_id, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.changes import NAMESPACE_ACTIONS
from federator.store import tables as t
from federator.store import visibility
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp
from federator.store.snapshots import Snapshot, read_transaction_at
from federator.store.sql import chunked
from federator.views import verification_history

# Sorts after the name of every source, because differences of verification states come last.
_AFTER_ALL_SOURCES = "\U0010ffff"
_SCALAR_FIELDS = ("kind", "location", "doc", "owner", "native_id", "problem")

r, v, j = t.record.c, t.revision.c, t.journal.c
Columns = Sequence[Mapping[str, Any]]

DifferenceCursor = tuple[str, str, int]


class DifferenceKind(StrEnum):
    """The kind of a difference."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its value in both snapshots; null: not set."""

    field: Annotated[
        str,
        Field(examples=["location"], description="location, doc, owner, kind, property:<key>, column:<name>, state, ..."),
    ]
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Attribution:
    """The journalled write that caused a difference."""

    mirror: str
    run_id: str
    actor: str | None
    action: str
    op_id: str


@dataclass(frozen=True, slots=True)
class Difference:
    """An object that differs, or (kind `dataset`) a location whose verification state differs. `source` is then one that declares
    it."""

    how: Annotated[DifferenceKind, Field(examples=["changed"])]
    id: Annotated[str, Field(examples=["aws$sales$orders"])]
    source: str
    kind: str
    location: str | None
    fields: Annotated[tuple[FieldChange, ...], Field(description="the changed fields of a changed object")]
    revision: Annotated[
        int | None,
        Field(
            description="the source's revision that first had the difference (`run_id` and `at` are of this revision); "
            "null: kind dataset"
        ),
    ]
    run_id: str | None
    at: OptionalTimestamp
    by: Annotated[Attribution | None, Field(description="null: not written by a mirror of this instance, or kind dataset")]


@dataclass(frozen=True, slots=True)
class DifferenceFilter:
    """A filter of differences: by a path prefix that starts with the source's name, and by kind."""

    path_prefix: Path = ()
    kind: DifferenceKind | None = None


@dataclass(frozen=True, slots=True)
class DifferencePage:
    """One page of differences by source and path, and the cursor of the next page; None on the last page."""

    differences: list[Difference]
    next: DifferenceCursor | None


def list_differences(
    index: Index, begin: Snapshot, end: Snapshot, filters: DifferenceFilter = DifferenceFilter(), *,
    after: DifferenceCursor | None = None, limit: int = 200, scopes: Scopes = EVERYTHING,
) -> DifferencePage:  # fmt: skip
    """List the differences between two snapshots. ``end`` may be the earlier one. ``after`` is the cursor of the previous page.

    Differences of verification states come last. Raise HistoryExpired if the history is not kept.
    """
    keyed: list[tuple[DifferenceCursor, Difference]] = []
    with read_transaction_at(index, begin, end) as connection:
        for span, conditions in _revision_ranges(connection, begin, end, filters, scopes):
            if (after and span.source < after[0]) or len(keyed) > limit:
                continue
            last = after[1:] if after and after[0] == span.source else None
            rows = connection.execute(span.query(conditions, last).limit(limit + 1 - len(keyed))).mappings().all()
            keys = [(span.source, row["path"], row["is_table"]) for row in rows]
            keyed += zip(keys, _build_differences(connection, span, rows), strict=True)
        if len(keyed) <= limit:
            after_location = after[1] if after and after[0] == _AFTER_ALL_SOURCES else ""
            changed = _verification_differences(connection, begin, end, filters, after=after_location, scopes=scopes)
            keyed += islice((((_AFTER_ALL_SOURCES, item.id, 1), item) for item in changed), limit + 1 - len(keyed))
    return DifferencePage([difference for _, difference in keyed[:limit]], keyed[limit - 1][0] if len(keyed) > limit else None)


def list_newest_differences(
    index: Index, begin: Snapshot, end: Snapshot, filters: DifferenceFilter = DifferenceFilter(), *,
    limit: int = 200, scopes: Scopes = EVERYTHING,
) -> list[Difference]:  # fmt: skip
    """List the ``limit`` newest of the same differences, newest first. Raise HistoryExpired if the history is not kept."""
    found: list[Difference] = []
    with read_transaction_at(index, begin, end) as connection:
        for span, conditions in _revision_ranges(connection, begin, end, filters, scopes):
            differing = span.query(conditions, None)
            # The revisions of a source are numbered in the order in which they were published.
            c = differing.selected_columns
            newest = differing.order_by(None).order_by(c["last"].desc(), c["path"], c["is_table"]).limit(limit)
            found += _build_differences(connection, span, connection.execute(newest).mappings().all())
        found += _verification_differences(connection, begin, end, filters, after="", scopes=scopes)
    return nsmallest(limit, found, key=lambda difference: (-(difference.at or 0.0), difference.id))


def count_differences(
    index: Index, begin: Snapshot, end: Snapshot, filters: DifferenceFilter = DifferenceFilter(), *, scopes: Scopes = EVERYTHING
) -> dict[str, int]:
    """Return the number of differences of each kind. Raise HistoryExpired if the history is not kept."""
    counts = dict.fromkeys(DifferenceKind, 0)
    with read_transaction_at(index, begin, end) as connection:
        for span, conditions in _revision_ranges(connection, begin, end, filters, scopes):
            differing = span.query(conditions, None).order_by(None).subquery().c
            kind = case(
                (differing.old_id.is_(None), DifferenceKind.ADDED),
                (differing.new_id.is_(None), DifferenceKind.REMOVED),
                else_=DifferenceKind.CHANGED,
            )
            for name, number in connection.execute(select(kind, func.count()).group_by(kind)):
                counts[_reverse_kind(DifferenceKind(name)) if span.is_reversed else DifferenceKind(name)] += number
        counts[DifferenceKind.CHANGED] += sum(
            1 for _ in _verification_differences(connection, begin, end, filters, after="", scopes=scopes)
        )
    return {name.value: number for name, number in counts.items() if filters.kind in (None, name)}


def _verification_differences(
    connection: Connection, begin: Snapshot, end: Snapshot, filters: DifferenceFilter, *, after: str, scopes: Scopes
) -> Iterator[Difference]:
    """Yield the changed verification states by location, with the changed columns of the stored tables."""
    if filters.kind not in (None, DifferenceKind.CHANGED):
        return
    changes = verification_history.iter_state_changes(
        connection, begin, end, below=filters.path_prefix, after=after, scopes=scopes
    )
    for location, source, first, last in changes:
        state = [FieldChange("state", first.state, last.state)] if first.state != last.state else []
        has_both_schemas = first.schema is not None and last.schema is not None
        columns = _column_changes(first.schema, last.schema) if has_both_schemas and first.schema != last.schema else ()
        yield Difference(
            DifferenceKind.CHANGED,
            id=location,
            source=source,
            kind="dataset",
            location=location,
            fields=(*state, *columns),
            revision=None,
            run_id=None,
            at=max(first.since, last.since),
            by=None,
        )


def _find_attribution(writes: Sequence[RowMapping], *, since: float, until: float, is_table: bool) -> RowMapping | None:
    """Return the newest write to an object that explains its first state in a revision published at ``until``. None if none does."""
    matching = [
        write for write in writes
        if since < write["intent_at"] <= until and (write["action"] not in NAMESPACE_ACTIONS) is is_table
    ]  # fmt: skip
    return max(matching, key=lambda write: (write["intent_at"], write["op_id"]), default=None)


@dataclass(frozen=True, slots=True)
class _RevisionRange:
    """One source between two of its revisions. ``is_reversed`` if the comparison begins at the later revision."""

    source: str
    low: int
    high: int
    is_reversed: bool
    kind: DifferenceKind | None

    def events(self, *conditions: ColumnElement[bool]) -> Any:
        """Return each opening and closing of a row in between. ``old_id`` and ``new_id`` are set if the row was valid at that end."""
        scope = (r.source == self.source, *conditions)
        valid_at_low = case((r.valid_from <= self.low, r.id))
        valid_at_high = case((or_(r.valid_to.is_(None), r.valid_to > self.high), r.id))
        closed = select(
            r.path, r.is_table, valid_at_low.label("old_id"), null().label("new_id"),
            case((r.valid_from <= self.low, r.digest)).label("old_digest"), null().label("new_digest"), r.valid_to.label("event"),
        ).where(*scope, r.valid_to > self.low, r.valid_to <= self.high)  # fmt: skip
        opened = select(
            r.path, r.is_table, null(), valid_at_high, null(),
            case((or_(r.valid_to.is_(None), r.valid_to > self.high), r.digest)), r.valid_from,
        ).where(*scope, r.valid_from > self.low, r.valid_from <= self.high)  # fmt: skip
        return union_all(closed, opened).subquery().c

    def query(self, conditions: Sequence[ColumnElement[bool]], after: tuple[str, int] | None) -> Select[Any]:
        """Return a select of the objects that differ, by path: ``old_id``, ``new_id``, the ``first`` and the ``last`` event."""
        if after is not None:
            conditions = [*conditions, tuple_(r.path, r.is_table) > tuple_(literal(after[0]), literal(after[1]))]
        e = self.events(*conditions)
        old, new = func.max(e.old_id), func.max(e.new_id)
        changed: ColumnElement[bool] = func.max(e.old_digest) != func.max(e.new_digest)
        by_kind = {
            DifferenceKind.ADDED: old.is_(None) & new.is_not(None),
            DifferenceKind.REMOVED: old.is_not(None) & new.is_(None),
            DifferenceKind.CHANGED: changed,
        }
        kind = _reverse_kind(self.kind) if self.kind and self.is_reversed else self.kind
        differs = by_kind[kind] if kind else or_(*by_kind.values())
        columns = (old.label("old_id"), new.label("new_id"), func.min(e.event).label("first"), func.max(e.event).label("last"))
        query = select(e.path, e.is_table, *columns).group_by(e.path, e.is_table)
        return query.having(differs).order_by(e.path, e.is_table)

    def previous_events(
        self, connection: Connection, paths: Sequence[str], last: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        """Return the event before the ``last`` one, for objects with several events."""
        previous: dict[tuple[str, int], int] = {}
        for chunk in chunked(paths):
            e = self.events(r.path.in_(chunk))
            for path, is_table, event in connection.execute(select(e.path, e.is_table, e.event)):
                key = (path, is_table)
                if key in last and previous.get(key, 0) < event < last[key]:
                    previous[key] = event
        return previous


def _revision_ranges(
    connection: Connection, begin: Snapshot, end: Snapshot, filters: DifferenceFilter, scopes: Scopes
) -> Iterator[tuple[_RevisionRange, list[ColumnElement[bool]]]]:
    """Yield the sources that may differ, by name, each with the conditions of the filters and the scopes."""
    for source in sorted({*begin.revisions, *end.revisions}):
        first, last = begin.revision_of(source), end.revision_of(source)
        elsewhere = filters.path_prefix and filters.path_prefix[0] != source
        if first == last or elsewhere or not scopes.is_visible((source,)):
            continue
        conditions = [visibility.is_covered(connection, scopes, r.source, r.path)]
        if filters.path_prefix:
            conditions.append(visibility.is_at_or_below(connection, r.path, path_key(filters.path_prefix[1:])))
        yield _RevisionRange(source, min(first, last), max(first, last), first > last, filters.kind), conditions


def _reverse_kind(kind: DifferenceKind) -> DifferenceKind:
    return {DifferenceKind.ADDED: DifferenceKind.REMOVED, DifferenceKind.REMOVED: DifferenceKind.ADDED}.get(kind, kind)


def _build_differences(connection: Connection, span: _RevisionRange, rows: Sequence[RowMapping]) -> list[Difference]:
    """Return the differences for rows of ``_RevisionRange.query``, with facts from the record, the revision and the journal."""
    records = _records_by_id(connection, [number for row in rows for number in (row["old_id"], row["new_id"]) if number])
    several = {(row["path"], row["is_table"]): row["last"] for row in rows if row["first"] < row["last"]}
    before = span.previous_events(connection, sorted({path for path, _ in several}), several)
    published = _revisions_by_number(connection, span.source, {span.low, *before.values(), *(row["last"] for row in rows)})
    writes = _writes_by_path(connection, span.source, sorted({row["path"] for row in rows}))
    differences = []
    for row in rows:
        key = (row["path"], row["is_table"])
        since, revision = published.get(before.get(key, span.low)), published.get(row["last"])
        write = None
        if revision and revision["published_at"] is not None:
            started_at = since["published_at"] if since and since["published_at"] is not None else 0.0
            write = _find_attribution(
                writes.get(row["path"], []), since=started_at, until=revision["published_at"], is_table=bool(row["is_table"])
            )
        differences.append(_build_difference(span, row, records, revision, write))
    return differences


def _build_difference(
    span: _RevisionRange,
    row: RowMapping,
    records: Mapping[int, RowMapping],
    revision: RowMapping | None,
    write: RowMapping | None,
) -> Difference:
    old, new = records.get(row["old_id"]), records.get(row["new_id"])
    if span.is_reversed:
        old, new = new, old
    present = new or old
    assert present is not None
    return Difference(
        how=DifferenceKind.ADDED if old is None else DifferenceKind.REMOVED if new is None else DifferenceKind.CHANGED,
        id=object_id(span.source, row["path"]),
        source=span.source,
        kind=present["kind"],
        location=present["location"],
        fields=tuple(_field_changes(old, new)) if old and new else (),
        revision=row["last"],
        run_id=revision["run_id"] if revision else None,
        at=revision["published_at"] if revision else None,
        by=Attribution(write["mirror"], write["run_id"], write["actor"], write["action"], write["op_id"]) if write else None,
    )


def _field_changes(old: RowMapping, new: RowMapping) -> Iterator[FieldChange]:
    for name in _SCALAR_FIELDS:
        if old[name] != new[name]:
            yield FieldChange(name, old[name], new[name])
    # Properties are compared with their values; values with names of secrets are masked in the result.
    before, after = json.loads(old["properties"]), json.loads(new["properties"])
    masked_before, masked_after = mask_secrets(before), mask_secrets(after)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield FieldChange(f"property:{key}", masked_before.get(key), masked_after.get(key))
    if old["schema"] != new["schema"]:
        yield from _column_changes(*(json.loads(row["schema"]) if row["schema"] else [] for row in (old, new)))


def _column_changes(before: Columns, after: Columns) -> Iterator[FieldChange]:
    by_name = [{column["name"]: column for column in columns} for columns in (before, after)]
    names = list(dict.fromkeys(column["name"] for column in (*before, *after)))
    changed = [name for name in names if by_name[0].get(name) != by_name[1].get(name)]
    for name in changed:
        yield FieldChange(f"column:{name}", *(_format_column(columns.get(name)) for columns in by_name))
    if not changed:
        yield FieldChange("columns", *(", ".join(column["name"] for column in columns) for columns in (before, after)))


def _format_column(column: Mapping[str, Any] | None) -> str | None:
    if column is None:
        return None
    return str(column["type"]) + (f" ({column['doc']})" if column.get("doc") else "")


def _records_by_id(connection: Connection, numbers: Sequence[int]) -> dict[int, RowMapping]:
    columns = [r.id, *(r[name] for name in _SCALAR_FIELDS), r.properties, r.schema]
    records: dict[int, RowMapping] = {}
    for chunk in chunked(numbers):
        rows = connection.execute(select(*columns).where(r.id.in_(chunk))).mappings()
        records |= {row["id"]: row for row in rows}
    return records


def _revisions_by_number(connection: Connection, source: str, numbers: set[int]) -> dict[int, RowMapping]:
    revisions: dict[int, RowMapping] = {}
    for chunk in chunked(sorted(numbers)):
        query = select(t.revision).where(v.source == source, v.number.in_(chunk))
        revisions |= {row["number"]: row for row in connection.execute(query).mappings()}
    return revisions


def _writes_by_path(connection: Connection, source: str, paths: Sequence[str]) -> dict[str, list[RowMapping]]:
    """Return the completed writes to objects of a source, by path, with the actor of the run."""
    columns = (j.target_path, j.mirror, j.run_id, j.action, j.op_id, j.intent_at, t.run.c.actor)
    query = select(*columns).outerjoin_from(t.journal, t.run, t.run.c.id == j.run_id)
    writes: dict[str, list[RowMapping]] = {}
    for chunk in chunked(paths):
        at_paths = j.target_path.in_(chunk)
        for row in connection.execute(query.where(j.target_source == source, at_paths, j.state == "done")).mappings():
            writes.setdefault(row["target_path"], []).append(row)
    return writes
