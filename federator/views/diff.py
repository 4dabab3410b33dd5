"""Differences between two snapshots: added, removed or changed objects, with attribution.

An object that existed only in between, or that changed back, is not a difference. The journal attributes a difference to the newest
write to the object. Only writes between the last revision with the old state and the first with the new one count. A difference
without such a write was made by others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, RowMapping, select

from federator.connector.options import mask_secrets
from federator.model import Path, object_id, path_key
from federator.model.differences import DifferenceKind
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.changes import NAMESPACE_ACTIONS
from federator.store import tables as t
from federator.store import visibility
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp
from federator.store.snapshots import Snapshot, read_transaction_at
from federator.store.sql import chunked
from federator.views import verification_history
from federator.views.revision_range import ObjectKey, RevisionRange

# Sorts after the name of every source, because differences of verification states come last.
_AFTER_ALL_SOURCES = "\U0010ffff"
_SCALAR_FIELDS = ("kind", "location", "doc", "owner", "native_id", "problem")

r, v, j = t.record.c, t.revision.c, t.journal.c

#: the columns of a Lance schema (``lance.columns.list_columns``)
Columns = Sequence[Mapping[str, Any]]
#: source, path key and ``is_table`` of the last object of a page, in the order of the differences
DifferenceCursor = tuple[str, str, int]


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
        for revisions, conditions in _list_revision_ranges(connection, begin, end, filters, scopes):
            if (after and revisions.source < after[0]) or len(keyed) > limit:
                continue
            previous = after[1:] if after and after[0] == revisions.source else None
            query = revisions.select_differing(conditions, kind=filters.kind, after=previous).limit(limit + 1 - len(keyed))
            rows = connection.execute(query).mappings().all()
            keys = [(revisions.source, row["path"], row["is_table"]) for row in rows]
            keyed += zip(keys, _build_differences(connection, revisions, rows), strict=True)
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
        for revisions, conditions in _list_revision_ranges(connection, begin, end, filters, scopes):
            differing = revisions.select_differing(conditions, kind=filters.kind)
            # The revisions of a source are numbered in the order in which they were published.
            c = differing.selected_columns
            newest = differing.order_by(None).order_by(c["last"].desc(), c["path"], c["is_table"]).limit(limit)
            found += _build_differences(connection, revisions, connection.execute(newest).mappings().all())
        found += _verification_differences(connection, begin, end, filters, after="", scopes=scopes)
    return nsmallest(limit, found, key=lambda difference: (-(difference.at or 0.0), difference.id))


def count_differences(
    index: Index, begin: Snapshot, end: Snapshot, filters: DifferenceFilter = DifferenceFilter(), *, scopes: Scopes = EVERYTHING
) -> dict[str, int]:
    """Return the number of differences of each kind. Raise HistoryExpired if the history is not kept."""
    counts = dict.fromkeys(DifferenceKind, 0)
    with read_transaction_at(index, begin, end) as connection:
        for revisions, conditions in _list_revision_ranges(connection, begin, end, filters, scopes):
            for kind, number in revisions.count_differing(connection, conditions).items():
                counts[kind] += number
        counts[DifferenceKind.CHANGED] += sum(
            1 for _ in _verification_differences(connection, begin, end, filters, after="", scopes=scopes)
        )
    return {kind.value: number for kind, number in counts.items() if filters.kind in (None, kind)}


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
        has_new_schema = None not in (first.schema, last.schema) and first.schema != last.schema
        columns = _column_changes(first.schema, last.schema) if has_new_schema else ()
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


def _list_revision_ranges(
    connection: Connection, begin: Snapshot, end: Snapshot, filters: DifferenceFilter, scopes: Scopes
) -> Iterator[tuple[RevisionRange, list[ColumnElement[bool]]]]:
    """Yield the sources that may differ, by name, each with the conditions of the path prefix and the scopes."""
    for source in sorted({*begin.revisions, *end.revisions}):
        first, last = begin.revision_of(source), end.revision_of(source)
        elsewhere = filters.path_prefix and filters.path_prefix[0] != source
        if first == last or elsewhere or not scopes.is_visible((source,)):
            continue
        conditions = [visibility.is_covered(connection, scopes, r.source, r.path)]
        if filters.path_prefix:
            conditions.append(visibility.is_at_or_below(connection, r.path, path_key(filters.path_prefix[1:])))
        yield RevisionRange(source, min(first, last), max(first, last), is_reversed=first > last), conditions


def _build_differences(connection: Connection, revisions: RevisionRange, rows: Sequence[RowMapping]) -> list[Difference]:
    """Return the differences for rows of ``RevisionRange.select_differing``, with facts from record, revision and journal."""
    records = _records_by_id(connection, [number for row in rows for number in (row["old_id"], row["new_id"]) if number])
    last_of_several: dict[ObjectKey, int] = {
        (row["path"], row["is_table"]): row["last"] for row in rows if row["first"] < row["last"]
    }
    previous = revisions.find_previous_events(connection, sorted({path for path, _ in last_of_several}), last_of_several)
    numbers = {revisions.low, *previous.values(), *(row["last"] for row in rows)}
    published = _revisions_by_number(connection, revisions.source, numbers)
    writes = _writes_by_path(connection, revisions.source, sorted({row["path"] for row in rows}))
    differences = []
    for row in rows:
        # The write came after the last revision with the old state.
        since = published.get(previous.get((row["path"], row["is_table"]), revisions.low))
        revision = published.get(row["last"])
        write = None
        if revision and revision["published_at"] is not None:
            started_at = since["published_at"] if since and since["published_at"] is not None else 0.0
            write = _find_attribution(
                writes.get(row["path"], []), since=started_at, until=revision["published_at"], is_table=bool(row["is_table"])
            )
        differences.append(_build_difference(revisions, row, records, revision, write))
    return differences


def _build_difference(
    revisions: RevisionRange,
    row: RowMapping,
    records: Mapping[int, RowMapping],
    revision: RowMapping | None,
    write: RowMapping | None,
) -> Difference:
    old, new = records.get(row["old_id"]), records.get(row["new_id"])
    if revisions.is_reversed:
        old, new = new, old
    present = new or old
    assert present is not None
    return Difference(
        how=DifferenceKind.ADDED if old is None else DifferenceKind.REMOVED if new is None else DifferenceKind.CHANGED,
        id=object_id(revisions.source, row["path"]),
        source=revisions.source,
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
