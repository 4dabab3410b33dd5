"""Drift in the index: found over the current state of every source at the end of a run, and kept with when it was first and last seen.

What is found is decided by pure functions (``agreement``); here are the queries that bring them what may differ.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    union_all,
    update,
)

from federator.index import notices, records, touched, visible
from federator.index import tables as t
from federator.index.agreement import pair_drift, schema_drift
from federator.index.bulk import chunks
from federator.index.datasets import current, declared_at
from federator.index.engine import Index
from federator.index.leases import hold
from federator.index.roots import keep_only, orphans, unread_sources
from federator.index.touched import Touched
from federator.model import TableRecord, parent, parse_key, path_key
from federator.model.drift import Drift, DriftKind
from federator.model.drift import Severity as Grade
from federator.model.notices import Event, Notice, Severity
from federator.model.rows import table_record
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.mapping import relocated
from federator.planning.rule import MirrorRule

_Entry = tuple[str, str, str, str, str]
_PATIENCE = 60.0
# How urgent it is to say.
_URGENT = {Grade.HIGH: Severity.ERROR, Grade.MEDIUM: Severity.WARNING, Grade.LOW: Severity.INFO}
#: kinds whose ``other`` is no object, but a location or a root
_OF_PLACES = (DriftKind.MISSING.value, DriftKind.SCHEMA_DIFFERS.value, DriftKind.ORPHAN.value)

r, x = t.record.c, t.drift.c


@dataclass(frozen=True, slots=True)
class SeenDrift:
    """A Drift as the index keeps it. Times are seconds since the epoch; ``resolved_at`` is when it was first found gone."""

    kind: str
    severity: str
    source: str
    subject: str
    other: str
    detail: str
    first_seen: float
    last_seen: float
    resolved_at: float | None

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.kind, self.subject, self.other)


def refresh(index: Index, rules: Mapping[str, MirrorRule], roots: Collection[str] = ()) -> None:
    """Finds the Drift of the current state, notes it as seen now, and what is found no more as resolved. Raises LeaseHeld.

    Only what has changed since the last time is compared, and what had drifted then. ``roots`` are those that are configured.
    """
    with hold(index, "drift", wait=_PATIENCE):
        with index.write() as connection:
            keep_only(connection, roots)
        with index.read() as connection:
            seen = touched.state(connection, rules, time.time())
            only = touched.since_last(connection, seen) if _looked_before(connection) else None
            found = {drift.key: drift for drift in find(connection, rules, only)}
        with index.write() as connection:
            _note(connection, found, time.time())
            touched.remember(connection, seen)


def find(connection: Connection, rules: Mapping[str, MirrorRule], only: Touched | None = None) -> Iterator[Drift]:
    """Every Drift of the current state, or that among what was touched."""
    return chain(
        _mirrors(connection, rules, only), _missing(connection, only), _schemas(connection, only), _duplicates(connection, only),
        _clashes(connection, only), _orphans(connection, only),
    )  # fmt: skip


def _looked_before(connection: Connection) -> bool:
    return connection.execute(select(t.drift_seen.c.name).limit(1)).first() is not None


def page(
    index: Index,
    *,
    kind: str | None = None,
    severity: str | None = None,
    source: str | None = None,
    about: str | None = None,
    resolved: bool = False,
    after: tuple[str, str, str] | None = None,
    limit: int = 200,
    scopes: Scopes = EVERYTHING,
) -> list[SeenDrift]:
    """What has drifted, or what was ``resolved``, by kind, subject and other; ``after`` is the last one's key. ``about``: at one
    end is this path, from the tree's root.

    A scope must cover both objects of a Drift.
    """
    conditions: list[ColumnElement[bool]] = [x.resolved_at.is_not(None) if resolved else x.resolved_at.is_(None)]
    conditions += [column == value for column, value in ((x.kind, kind), (x.severity, severity), (x.source, source)) if value]
    if about is not None:
        conditions.append(or_(x.subject == about, x.other == about))
    if after is not None:
        conditions.append(tuple_(x.kind, x.subject, x.other) > tuple_(*map(literal, after)))
    query = select(t.drift).where(*conditions).order_by(x.kind, x.subject, x.other).limit(limit)
    with index.read() as connection:
        other = or_(x.kind.in_(_OF_PLACES), visible.inside_id(connection, scopes, x.other))
        query = query.where(visible.inside_id(connection, scopes, x.subject), other)
        found = [SeenDrift(**row) for row in connection.execute(query).mappings()]
    return found if scopes.everything else [_uncounted(seen) for seen in found]


def _uncounted(seen: SeenDrift) -> SeenDrift:
    """Without the number of names that clash: some may be outside the scope."""
    clash = seen.kind == DriftKind.NAME_CLASH
    return replace(seen, detail=seen.detail.partition(" ")[2]) if clash else seen


def _note(connection: Connection, found: Mapping[tuple[str, str, str], Drift], now: float) -> None:
    known = _known(connection, found)
    fresh = [{**_values(drift), "first_seen": now, "last_seen": now} for key, drift in found.items() if key not in known]
    for batch in chunks(fresh):
        connection.execute(insert(t.drift), batch)
    same = (x.kind == bindparam("k")) & (x.subject == bindparam("s")) & (x.other == bindparam("o"))
    seen = update(t.drift).where(same).values(last_seen=now, detail=bindparam("d"), resolved_at=None)
    for back in (False, True):
        # What comes back after it was resolved begins anew.
        again = [
            _key(key) | {"d": drift.detail} for key, drift in found.items() if key in known and (known[key] is not None) is back
        ]
        for rows in chunks(again):
            connection.execute(seen.values(first_seen=now) if back else seen, rows)
    gone = [_key(key) for key, resolved in known.items() if resolved is None and key not in found]
    for rows in chunks(gone):
        connection.execute(update(t.drift).where(same).values(resolved_at=now), rows)
    begun = [drift for key, drift in found.items() if known.get(key, now) is not None]
    notices.add(connection, [*map(_found, begun), *(_resolved(key["k"], key["s"], key["o"]) for key in gone)])


def _known(connection: Connection, found: Mapping[tuple[str, str, str], Drift]) -> dict[tuple[str, str, str], float | None]:
    """What stands, and what of ``found`` was resolved before."""
    rows = list(connection.execute(select(x.kind, x.subject, x.other, x.resolved_at).where(x.resolved_at.is_(None))))
    for batch in chunks({subject for _, subject, _ in found}):
        resolved = select(x.kind, x.subject, x.other, x.resolved_at).where(x.subject.in_(batch), x.resolved_at.is_not(None))
        rows += connection.execute(resolved)
    return {(row.kind, row.subject, row.other): row.resolved_at for row in rows}


def _found(drift: Drift) -> Notice:
    message = f"{drift.kind}: {' '.join(filter(None, (drift.detail, drift.other and f'({drift.other})')))}"
    return Notice(Event.DRIFT_FOUND, drift.subject, message, source=drift.source, severity=_URGENT[drift.severity])


def _resolved(kind: str, subject: str, other: str) -> Notice:
    message = f"{kind}{f' ({other})' if other else ''} is no more"
    return Notice(Event.DRIFT_RESOLVED, subject, message, source="" if kind == DriftKind.ORPHAN else parse_key(subject)[0])


def _values(drift: Drift) -> dict[str, Any]:
    return {
        "kind": drift.kind.value, "subject": drift.subject, "other": drift.other, "severity": drift.severity.value,
        "source": drift.source, "detail": drift.detail,
    }  # fmt: skip


def _key(key: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("k", "s", "o"), key, strict=True))


def _mirrors(connection: Connection, rules: Mapping[str, MirrorRule], only: Touched | None) -> Iterator[Drift]:
    """What we put somewhere: whether both ends are still there, and still say the same. A removed mirror's entries are nobody's."""
    rows = touched.entries(connection, only, rules) if only is not None else _every_entry(connection, rules)
    for (origin, target), entries in groupby(rows, key=lambda row: (row[1], row[3])):
        for batch in chunks(entries):
            origins = _tables(connection, origin, [row[2] for row in batch])
            targets = _tables(connection, target, [row[4] for row in batch])
            for row in batch:
                yield from _entry(row, rules[row[0]], origins.get(row[2]), targets.get(row[4]))


def _every_entry(connection: Connection, rules: Mapping[str, MirrorRule]) -> list[_Entry]:
    e = t.ledger.c
    query = select(e.mirror, e.origin_source, e.origin_path, e.target_source, e.target_path)
    query = query.where(e.is_table == 1, e.mirror.in_(list(rules))).order_by(e.origin_source, e.target_source)
    return [tuple(row) for row in connection.execute(query)]


def _entry(row: _Entry, rule: MirrorRule, origin: TableRecord | None, target: TableRecord | None) -> Iterator[Drift]:
    if origin is not None and target is not None:
        yield from pair_drift(origin, target, relocated(rule, str(origin.location)))
        return
    gone = " and ".join(name for name, record in (("origin", origin), ("target", target)) if record is None)
    mirror, *of, target_source, target_path = row
    at = _id(target_source, target_path)
    yield Drift(DriftKind.DANGLING_MIRROR, target_source, at, _id(*of), f"mirror {mirror}: {gone} gone")


def _missing(connection: Connection, only: Touched | None) -> Iterator[Drift]:
    lost = select(t.dataset.c.canonical).where(t.dataset.c.state == "missing")
    queries = [lost] if only is None else [lost.where(t.dataset.c.canonical.in_(chunk)) for chunk in chunks(only.places)]
    places = [place for query in queries for place in connection.execute(query).scalars()]
    for place, rows in declared_at(connection, places).items():
        for row in rows:
            yield Drift(DriftKind.MISSING, row["source"], _id(row["source"], row["path"]), place, "nothing is at its location")


def _schemas(connection: Connection, only: Touched | None) -> Iterator[Drift]:
    d = t.dataset.c
    columns = [r.source, r.path, r.canonical, r.schema.label("declared"), d.schema.label("stored")]
    both = (d.canonical == r.canonical, d.state == "valid", r.schema.is_not(None))
    wanted: Iterable[tuple[ColumnElement[bool], ...]]
    wanted = [()] if only is None else ((r.canonical.in_(chunk),) for chunk in chunks(only.places))
    for condition in wanted:
        for query in current(columns, *both, *condition):
            for row in connection.execute(query.execution_options(yield_per=5000)).mappings():
                subject = _id(row["source"], row["path"])
                if drift := schema_drift(row["source"], subject, row["canonical"], row["declared"], row["stored"]):
                    yield drift


def _duplicates(connection: Connection, only: Touched | None) -> Iterator[Drift]:
    places = _declared_twice(connection) if only is None else list(only.places)
    for where, rows in declared_at(connection, places).items():
        for source, same in groupby(rows, key=lambda row: row["source"]):
            first, *others = (_id(source, row["path"]) for row in same)
            for other in others:
                yield Drift(DriftKind.DUPLICATE, source, other, first, f"both are at {where}")


def _declared_twice(connection: Connection) -> list[str]:
    place = func.coalesce(t.alias.c.place, r.canonical).label("place")
    queries = current([r.source, place], r.canonical.is_not(None))
    at = union_all(
        *(query.outerjoin_from(t.record, t.alias, t.alias.c.canonical == r.canonical) for query in queries)
    ).subquery()
    twice = select(at.c.source, at.c.place).group_by(at.c.source, at.c.place).having(func.count() > 1)
    return sorted({row.place for row in connection.execute(twice)})


def _clashes(connection: Connection, only: Touched | None) -> Iterator[Drift]:
    lower = func.unicode_lower if connection.dialect.name == "sqlite" else func.lower
    columns = [r.source, r.parent, r.path, lower(r.name).label("folded")]
    wanted: Iterable[tuple[ColumnElement[bool], ...]] = [()]
    if only is not None:
        above = {source: {path_key(parent(parse_key(path))) for path in paths} for source, paths in only.paths.items()}
        wanted = ((r.source == source, r.parent.in_(chunk)) for source, parents in above.items() for chunk in chunks(parents))
    for condition in wanted:
        names = union_all(*current(columns, *condition)).subquery().c
        groups = select(
            names.source, func.min(names.path).label("one"), func.max(names.path).label("other"), func.count().label("n")
        )
        for row in connection.execute(groups.group_by(names.source, names.parent, names.folded).having(func.count() > 1)):
            one, other = sorted((row.one, row.other))
            told = f"{row.n} names that differ in case only: catalogs that fold case take them for one"
            yield Drift(DriftKind.NAME_CLASH, row.source, _id(row.source, one), _id(row.source, other), told)


def _orphans(connection: Connection, only: Touched | None) -> Iterator[Drift]:
    places = None if only is None or only.scanned else sorted(only.places)
    unread = unread_sources(connection)
    told = f"; not known in full: {', '.join(unread)}" if unread else ""
    for orphan in orphans(connection, places):
        yield Drift(DriftKind.ORPHAN, "", orphan.canonical, orphan.root, f"no catalog declares {orphan.location}{told}")


def _tables(connection: Connection, source: str, paths: Sequence[str]) -> dict[str, TableRecord]:
    query: Select[Any] = records.at_revision(source, records.published(connection, source), r.path.in_(paths), r.is_table == 1)
    return {row["path"]: table_record(source, dict(row)) for row in connection.execute(query).mappings()}


def _id(source: str, path: str) -> str:
    return path_key((source, *parse_key(path)))
