"""What changed between two moments: which objects were added, removed or changed, in which fields, when, and by whom.

Only rows that were opened or closed in between are read, never what stayed as it was. An object that came and went in between, or is as
it was before, is no difference. Who did it is told by the journal: a write of ours to the object since the last revision that had
it otherwise, and before the one that has it so. Whatever no write of ours explains was done by others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, case, func, literal, null, or_, select, tuple_, union_all

from federator.connector.options import masked
from federator.index import looks, visible
from federator.index import tables as t
from federator.index.bulk import chunks
from federator.index.engine import Index
from federator.index.moments import Moment, reading
from federator.model import Path, parse_key, path_key
from federator.model.scopes import EVERYTHING, Scopes

_OF_NAMESPACES = ("create_namespace", "drop_namespace")
# Sorts behind the name of every source: what opening places found comes last.
_LOOKS = "\U0010ffff"
_PLAIN = ("kind", "location", "doc", "owner", "native_id", "problem")

r, v, j = t.record.c, t.revision.c, t.journal.c

Cursor = tuple[str, str, int]


class How(StrEnum):
    """How an object differs."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field before and after: ``location``, ``doc``, ``property:<key>``, ``column:<name>``, ...; None where it was not there."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Doer:
    """A write of ours: the mirror and the run that made it, for whom, and its number in the journal."""

    mirror: str
    run_id: str
    actor: str | None
    action: str
    op_id: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One object that differs. ``id`` is its path in text form from the root; ``revision``, ``run_id`` and ``at`` (seconds since the
    epoch) are those that first showed it so; ``by`` is None for what others did.

    Of kind ``dataset`` are places that were found otherwise: ``id`` is the location, ``source`` one that declares it; a look has no
    revision.
    """

    how: How
    id: str
    source: str
    kind: str
    location: str | None
    fields: tuple[FieldChange, ...]
    revision: int | None
    run_id: str | None
    at: float | None
    by: Doer | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which differences: of a source or below a path from the tree's root, and how."""

    below: Path = ()
    how: How | None = None


@dataclass(frozen=True, slots=True)
class DifferencePage:
    """Some differences by source and path, and the cursor of the next page (None: that was all)."""

    differences: list[Difference]
    next: Cursor | None


def page(
    index: Index, begin: Moment, end: Moment, wanted: Wanted = Wanted(), *, after: Cursor | None = None, limit: int = 200,
    scopes: Scopes = EVERYTHING,
) -> DifferencePage:  # fmt: skip
    """Differences between two moments, of which ``end`` may be the earlier one; ``after`` is the last page's cursor.

    Those of places come last. Raises BeyondHorizon.
    """
    found: list[tuple[Cursor, Difference]] = []
    with reading(index, begin, end) as connection:
        for span, seen in _spans(connection, begin, end, wanted, scopes):
            if (after and span.source < after[0]) or len(found) > limit:
                continue
            last = after[1:] if after and after[0] == span.source else None
            rows = connection.execute(span.query(seen, last).limit(limit + 1 - len(found))).mappings().all()
            keys = [(span.source, row["path"], row["is_table"]) for row in rows]
            found += zip(keys, _told(connection, span, rows), strict=True)
        if len(found) <= limit:
            after_place = after[1] if after and after[0] == _LOOKS else ""
            changed = _looks(connection, begin, end, wanted, after=after_place, scopes=scopes)
            found += islice((((_LOOKS, seen.id, 1), seen) for seen in changed), limit + 1 - len(found))
    return DifferencePage([told for _, told in found[:limit]], found[limit - 1][0] if len(found) > limit else None)


def walk(
    index: Index, begin: Moment, end: Moment, wanted: Wanted = Wanted(), *, scopes: Scopes = EVERYTHING
) -> Iterator[Difference]:
    """Every difference, page by page."""
    after: Cursor | None = None
    while True:
        found = page(index, begin, end, wanted, after=after, limit=20_000, scopes=scopes)
        yield from found.differences
        after = found.next
        if after is None:
            return


def totals(
    index: Index, begin: Moment, end: Moment, wanted: Wanted = Wanted(), *, scopes: Scopes = EVERYTHING
) -> dict[str, int]:
    """How many differences of each kind there are. Raises BeyondHorizon."""
    counts = dict.fromkeys(How, 0)
    with reading(index, begin, end) as connection:
        for span, seen in _spans(connection, begin, end, wanted, scopes):
            found = span.query(seen, None).order_by(None).subquery().c
            how = case((found.old_id.is_(None), How.ADDED), (found.new_id.is_(None), How.REMOVED), else_=How.CHANGED)
            for name, number in connection.execute(select(how, func.count()).group_by(how)):
                counts[_reversed(How(name)) if span.back else How(name)] += number
        counts[How.CHANGED] += sum(1 for _ in _looks(connection, begin, end, wanted, after="", scopes=scopes))
    return {how.value: number for how, number in counts.items() if wanted.how in (None, how)}


def _looks(
    connection: Connection, begin: Moment, end: Moment, wanted: Wanted, *, after: str, scopes: Scopes
) -> Iterator[Difference]:
    """Places that were found otherwise, by their text, with the columns of the tables that are stored there."""
    if wanted.how not in (None, How.CHANGED):
        return
    found = looks.changes(connection, begin, end, below=wanted.below, after=after, scopes=scopes)
    for place, source, first, last in found:
        state = [FieldChange("state", first.state, last.state)] if first.state != last.state else []
        both = first.schema and last.schema and first.schema != last.schema
        columns = _columns(first.schema, last.schema) if both else ()
        at = max(first.since, last.since)
        yield Difference(How.CHANGED, place, source, "dataset", place, (*state, *columns), None, None, at, None)


def _cause(writes: Sequence[RowMapping], *, since: float, until: float, is_table: bool) -> RowMapping | None:
    """The newest of an object's writes that explains what a revision published at ``until`` shows for the first time."""
    fitting = [
        write for write in writes
        if since < write["intent_at"] <= until and (write["action"] not in _OF_NAMESPACES) is is_table
    ]  # fmt: skip
    return max(fitting, key=lambda write: (write["intent_at"], write["op_id"]), default=None)


@dataclass(frozen=True, slots=True)
class _Span:
    """One source between two of its revisions; ``back`` where the later one is where the comparison begins."""

    source: str
    low: int
    high: int
    back: bool
    how: How | None

    def events(self, *conditions: ColumnElement[bool]) -> Any:
        """Each opening and closing of a row in between, with the row where it stood at either end."""
        scope = (r.source == self.source, *conditions)
        stood = case((r.valid_from <= self.low, r.id))
        stands = case((or_(r.valid_to.is_(None), r.valid_to > self.high), r.id))
        closed = select(
            r.path, r.is_table, stood.label("old_id"), null().label("new_id"), case((r.valid_from <= self.low, r.digest)).label("was"),
            null().label("now"), r.valid_to.label("event"),
        ).where(*scope, r.valid_to > self.low, r.valid_to <= self.high)  # fmt: skip
        opened = select(
            r.path, r.is_table, null(), stands, null(),
            case((or_(r.valid_to.is_(None), r.valid_to > self.high), r.digest)), r.valid_from,
        ).where(*scope, r.valid_from > self.low, r.valid_from <= self.high)  # fmt: skip
        return union_all(closed, opened).subquery().c

    def query(self, conditions: Sequence[ColumnElement[bool]], after: tuple[str, int] | None) -> Select[Any]:
        """The objects that differ, by path: ``old_id``, ``new_id``, the ``first`` and the ``last`` event in between."""
        if after is not None:
            conditions = [*conditions, tuple_(r.path, r.is_table) > tuple_(literal(after[0]), literal(after[1]))]
        e = self.events(*conditions)
        old, new = func.max(e.old_id), func.max(e.new_id)
        changed: ColumnElement[bool] = func.max(e.was) != func.max(e.now)
        differs = {
            How.ADDED: old.is_(None) & new.is_not(None),
            How.REMOVED: old.is_not(None) & new.is_(None),
            How.CHANGED: changed,
        }
        how = _reversed(self.how) if self.how and self.back else self.how
        kept = differs[how] if how else or_(*differs.values())
        columns = (old.label("old_id"), new.label("new_id"), func.min(e.event).label("first"), func.max(e.event).label("last"))
        query = select(e.path, e.is_table, *columns).group_by(e.path, e.is_table)
        return query.having(kept).order_by(e.path, e.is_table)

    def last_but_one(
        self, connection: Connection, paths: Sequence[str], last: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        """For objects with several events in between: the one before the last."""
        found: dict[tuple[str, int], int] = {}
        for part in chunks(paths):
            e = self.events(r.path.in_(part))
            for path, is_table, event in connection.execute(select(e.path, e.is_table, e.event)):
                key = (path, is_table)
                if key in last and found.get(key, 0) < event < last[key]:
                    found[key] = event
        return found


def _spans(
    connection: Connection, begin: Moment, end: Moment, wanted: Wanted, scopes: Scopes
) -> Iterator[tuple[_Span, list[ColumnElement[bool]]]]:
    """The sources that may differ, by name, each with what of it is wanted and seen."""
    for source in sorted({*begin.revisions, *end.revisions}):
        first, last = begin.revision(source), end.revision(source)
        elsewhere = wanted.below and wanted.below[0] != source
        if first == last or elsewhere or not scopes.shows((source,)):
            continue
        seen = [visible.inside(connection, scopes, r.source, r.path)]
        if wanted.below:
            seen.append(visible.below(connection, r.path, path_key(wanted.below[1:])))
        yield _Span(source, min(first, last), max(first, last), first > last, wanted.how), seen


def _reversed(how: How) -> How:
    return {How.ADDED: How.REMOVED, How.REMOVED: How.ADDED}.get(how, how)


def _told(connection: Connection, span: _Span, rows: Sequence[RowMapping]) -> list[Difference]:
    """Rows of ``_Span.query`` as Differences, with what the record, the revision and the journal tell of each."""
    records = _by_id(connection, [number for row in rows for number in (row["old_id"], row["new_id"]) if number])
    several = {(row["path"], row["is_table"]): row["last"] for row in rows if row["first"] < row["last"]}
    before = span.last_but_one(connection, sorted({path for path, _ in several}), several)
    published = _revisions(connection, span.source, {span.low, *before.values(), *(row["last"] for row in rows)})
    writes = _writes(connection, span.source, sorted({row["path"] for row in rows}))
    found = []
    for row in rows:
        key = (row["path"], row["is_table"])
        since, shown = published.get(before.get(key, span.low)), published.get(row["last"])
        write = None
        if shown and shown["published_at"] is not None:
            began = since["published_at"] if since and since["published_at"] is not None else 0.0
            write = _cause(
                writes.get(row["path"], []), since=began, until=shown["published_at"], is_table=bool(row["is_table"])
            )
        found.append(_difference(span, row, records, shown, write))
    return found


def _difference(
    span: _Span, row: RowMapping, records: Mapping[int, RowMapping], shown: RowMapping | None, write: RowMapping | None
) -> Difference:
    old, new = records.get(row["old_id"]), records.get(row["new_id"])
    if span.back:
        old, new = new, old
    there = new or old
    assert there is not None
    return Difference(
        how=How.ADDED if old is None else How.REMOVED if new is None else How.CHANGED,
        id=path_key((span.source, *parse_key(row["path"]))),
        source=span.source,
        kind=there["kind"],
        location=there["location"],
        fields=tuple(_fields(old, new)) if old and new else (),
        revision=row["last"],
        run_id=shown["run_id"] if shown else None,
        at=shown["published_at"] if shown else None,
        by=Doer(write["mirror"], write["run_id"], write["actor"], write["action"], write["op_id"]) if write else None,
    )


def _fields(old: RowMapping, new: RowMapping) -> Iterator[FieldChange]:
    for name in _PLAIN:
        if old[name] != new[name]:
            yield FieldChange(name, old[name], new[name])
    # Compared as they are, shown without what is secret by its name.
    was, now = json.loads(old["properties"]), json.loads(new["properties"])
    shown_was, shown_now = masked(was), masked(now)
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            yield FieldChange(f"property:{key}", shown_was.get(key), shown_now.get(key))
    if old["schema"] != new["schema"]:
        yield from _columns(old["schema"], new["schema"])


def _columns(old: str | None, new: str | None) -> Iterator[FieldChange]:
    was, now = (json.loads(schema) if schema else [] for schema in (old, new))
    by_name = [{column["name"]: column for column in columns} for columns in (was, now)]
    names = list(dict.fromkeys(column["name"] for column in (*was, *now)))
    changed = [name for name in names if by_name[0].get(name) != by_name[1].get(name)]
    for name in changed:
        yield FieldChange(f"column:{name}", *(_column(columns.get(name)) for columns in by_name))
    if not changed:
        yield FieldChange("columns", *(", ".join(column["name"] for column in columns) for columns in (was, now)))


def _column(column: Mapping[str, Any] | None) -> str | None:
    if column is None:
        return None
    return str(column["type"]) + (f" ({column['doc']})" if column.get("doc") else "")


def _by_id(connection: Connection, numbers: Sequence[int]) -> dict[int, RowMapping]:
    wanted = [r.id, *(r[name] for name in _PLAIN), r.properties, r.schema]
    found: dict[int, RowMapping] = {}
    for part in chunks(numbers):
        rows = connection.execute(select(*wanted).where(r.id.in_(part))).mappings()
        found |= {row["id"]: row for row in rows}
    return found


def _revisions(connection: Connection, source: str, numbers: set[int]) -> dict[int, RowMapping]:
    found: dict[int, RowMapping] = {}
    for part in chunks(sorted(numbers)):
        query = select(t.revision).where(v.source == source, v.number.in_(part))
        found |= {row["number"]: row for row in connection.execute(query).mappings()}
    return found


def _writes(connection: Connection, source: str, paths: Sequence[str]) -> dict[str, list[RowMapping]]:
    """The writes that were carried out on objects of a source, by path, with who the run was for."""
    columns = (j.target_path, j.mirror, j.run_id, j.action, j.op_id, j.intent_at, t.run.c.actor)
    query = select(*columns).outerjoin_from(t.journal, t.run, t.run.c.id == j.run_id)
    found: dict[str, list[RowMapping]] = {}
    for part in chunks(paths):
        some = j.target_path.in_(part)
        for row in connection.execute(query.where(j.target_source == source, some, j.state == "done")).mappings():
            found.setdefault(row["target_path"], []).append(row)
    return found
