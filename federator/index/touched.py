"""Touched: what may have drifted, or have stopped to, since drift was last looked for, so that nothing else is compared again.

Noted with every look: the revision of each source, the digest of each mirror's rule, the state of the aliases, the time. What is
known to have drifted is always looked at again; where more has changed than is left as it was, everything is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select

from federator.index import tables as t
from federator.index.bulk import chunks
from federator.index.datasets import current
from federator.model import parse_key, path_key
from federator.planning.rule import MirrorRule

#: with more touched tables than this, everything is compared
LIMIT = 20_000
# What another process wrote by a clock that is behind ours by this much (seconds) is still seen.
_SKEW = 300.0

r, x, e = t.record.c, t.drift.c, t.ledger.c


@dataclass
class Touched:
    """Tables (paths by source) and places (canonical) to be looked at; mirrors of which every pair is; what was written at ``since``
    (seconds since the epoch) or later; whether storage roots were scanned."""

    since: float
    paths: dict[str, set[str]] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)
    mirrors: set[str] = field(default_factory=set)
    scanned: bool = False

    def add(self, identifier: str) -> None:
        """A table by its path from the tree's root."""
        source, *path = parse_key(identifier)
        self.paths.setdefault(source, set()).add(path_key(tuple(path)))


def state(connection: Connection, rules: Mapping[str, MirrorRule], now: float) -> dict[str, str]:
    """What ``remember`` keeps of the present."""
    sources = connection.execute(select(t.source.c.name, t.source.c.revision))
    return {
        "at": repr(now), "aliases": _aliases(connection), **{f"source:{name}": str(revision) for name, revision in sources},
        **{f"mirror:{name}": rule.digest for name, rule in rules.items()},
    }  # fmt: skip


def remember(connection: Connection, seen: Mapping[str, str]) -> None:
    """Notes up to where drift was looked for, in the transaction that notes what was found."""
    connection.execute(delete(t.drift_seen))
    connection.execute(insert(t.drift_seen), [{"name": name, "value": value} for name, value in seen.items()])


def since_last(connection: Connection, now: Mapping[str, str]) -> Touched | None:
    """What to look at; None: everything, since nothing is known of the last time, or too much has changed."""
    before = {row.name: row.value for row in connection.execute(select(t.drift_seen))}
    if before.get("aliases") != now["aliases"] or any(name.startswith("source:") and name not in now for name in before):
        return None
    found = Touched(float(before["at"]) - _SKEW)
    found.mirrors = {
        name.partition(":")[2]
        for name in now.keys() | before.keys()
        if name.startswith("mirror:") and before.get(name) != now.get(name)
    }
    for name, revision in now.items():
        if name.startswith("source:") and before.get(name) != revision:
            source = name.partition(":")[2]
            if not _changed(connection, found, source, int(before.get(name, "0"))):
                return None
    for row in connection.execute(select(x.subject, x.other, x.kind).where(x.resolved_at.is_(None))):
        _known(found, row.kind, row.subject, row.other)
    checked = select(t.dataset.c.canonical).where(t.dataset.c.checked_at >= found.since)
    found.places |= set(connection.execute(checked).scalars())
    found.scanned = bool(connection.execute(select(t.root.c.name).where(t.root.c.scanned_at >= found.since).limit(1)).first())
    if sum(map(len, found.paths.values())) + len(found.places) > LIMIT:
        return None
    _places_of(connection, found)
    return found


def entries(connection: Connection, found: Touched, rules: Collection[str]) -> Iterator[tuple[str, str, str, str, str]]:
    """The ledger's entries that are touched, each once: mirror, origin's source and path, target's source and path."""
    columns = (e.mirror, e.origin_source, e.origin_path, e.target_source, e.target_path)
    mine = select(*columns).where(e.is_table == 1, e.mirror.in_(list(rules)))
    # Of a mirror whose rule changed, everything; the rest by what changed at either end.
    queries = [mine.where(e.updated_at >= found.since)]
    queries += [mine.where(e.mirror == name) for name in found.mirrors]
    for source, paths in found.paths.items():
        for chunk in chunks(paths):
            queries.append(mine.where(e.origin_source == source, e.origin_path.in_(chunk)))
            queries.append(mine.where(e.target_source == source, e.target_path.in_(chunk)))
    seen = {tuple(row) for query in queries for row in connection.execute(query)}
    yield from sorted(seen, key=lambda row: (row[1], row[3], row))


def _changed(connection: Connection, found: Touched, source: str, revision: int) -> bool:
    """Adds what a source's revisions after this one brought or closed; False where that is too much, or not kept any more."""
    horizon = connection.execute(select(t.source.c.horizon).where(t.source.c.name == source)).scalar() or 0
    if horizon > revision > 0:
        return False
    changed = select(r.path, r.canonical).where(r.source == source, r.is_table == 1)
    for when in (r.valid_from > revision, r.valid_to > revision):
        rows: Sequence[Any] = connection.execute(changed.where(when).limit(LIMIT + 1)).all()
        if len(rows) > LIMIT:
            return False
        found.paths.setdefault(source, set()).update(row.path for row in rows)
        found.places.update(row.canonical for row in rows if row.canonical is not None)
    return True


def _known(found: Touched, kind: str, subject: str, other: str) -> None:
    if kind == "orphan":
        found.places.add(subject)
        return
    found.add(subject)
    if kind in ("missing", "schema_differs"):
        found.places.add(other)
    elif other:
        found.add(other)


def _places_of(connection: Connection, found: Touched) -> None:
    """Adds where the touched tables are now, and every name of each place."""
    for source, paths in found.paths.items():
        for chunk in chunks(paths):
            for query in current([r.canonical], r.source == source, r.path.in_(chunk), r.canonical.is_not(None)):
                found.places.update(connection.execute(query).scalars())
    a = t.alias.c
    for chunk in chunks(set(found.places)):
        for row in connection.execute(select(a.canonical, a.place).where(or_(a.canonical.in_(chunk), a.place.in_(chunk)))):
            found.places |= {row.canonical, row.place}


def _aliases(connection: Connection) -> str:
    digest = hashlib.sha256()
    for row in connection.execute(select(t.alias.c.canonical, t.alias.c.place).order_by(t.alias.c.canonical)):
        digest.update(f"{row.canonical}\n{row.place}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()
