"""What opening places found over time: ``dataset`` has how each place is, ``dataset_past`` how it was before.

A state, with the schema that was found, counts from the look that first found it to the one that found it otherwise. Only such a change
is written, never that a place was found as before. Versions and rows of the past are told by the tables themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from federator.index import tables as t
from federator.index import visible
from federator.index.bulk import VALUES, chunks
from federator.index.bytewise import ordered
from federator.index.moments import Moment
from federator.model import Path, path_key
from federator.model.scopes import Scopes

#: the state of a place that was never opened
UNVERIFIED = "unverified"
# The key of ``deployment`` under which stands how far back the past is kept.
_HORIZON = "dataset_past_from"

d, p, r = t.dataset.c, t.dataset_past.c, t.record.c


@dataclass(frozen=True, slots=True)
class Look:
    """How a place was found, from the look at ``since`` (seconds since the epoch) on; ``message`` is the last such look's, ``schema``
    the Lance schema as JSON."""

    state: str
    message: str | None
    schema: str | None
    since: float

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "schema": json.loads(self.schema) if self.schema else None}


def turn(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Writes down how places were until now, where they are found otherwise. Returns since when each place is as it is now.

    ``rows`` are columns of ``dataset``, at most 500; called before they replace what is there.
    """
    found = {row["canonical"]: row for row in rows}
    known = select(d.canonical, d.state, d.fingerprint, d.since).where(d.canonical.in_(list(found)))
    since = {canonical: float(row["checked_at"]) for canonical, row in found.items()}
    ended = []
    for row in connection.execute(known):
        if (row.state, row.fingerprint) == (found[row.canonical]["state"], found[row.canonical].get("fingerprint")):
            since[row.canonical] = row.since
        elif row.since < since[row.canonical]:
            ended.append(row.canonical)
    if ended:
        columns = (d.canonical, d.state, d.message, d.schema, d.fingerprint, d.since)
        past = connection.execute(select(*columns).where(d.canonical.in_(ended))).mappings()
        connection.execute(insert(t.dataset_past), [{**row, "until": since[row["canonical"]]} for row in past])
    return since


def then(connection: Connection, canonicals: Iterable[str], at: float) -> dict[str, Look]:
    """How places had been found at a time; a place is left out that had not been opened by then, or of which that is not kept."""
    found: dict[str, Look] = {}
    for some in chunks(canonicals):
        for c, kept in ((d, d.since <= at), (p, (p.since <= at) & (p.until > at))):
            query = select(c.canonical, c.state, c.message, c.schema, c.since).where(c.canonical.in_(some), kept)
            found |= {row.canonical: Look(*row[1:]) for row in connection.execute(query)}
    return found


def unknown(connection: Connection, at: float) -> str | None:
    """The state of a place of which nothing is told for a time: ``unverified``, or None where so old looks are not kept."""
    return UNVERIFIED if at >= horizon(connection) else None


def horizon(connection: Connection) -> float:
    """The time from which on it is kept how places were found; 0: all of it."""
    query = select(t.deployment.c.value).where(t.deployment.c.key == _HORIZON)
    return float(connection.execute(query).scalar() or 0)


def changes(
    connection: Connection, begin: Moment, end: Moment, *, below: Path = (), after: str = "", scopes: Scopes
) -> Iterator[tuple[str, str, Look, Look]]:
    """Places that were found otherwise at one moment than at another, by their text: the place, a source that declares it then or
    declared it before, what was found first and what last. A first look at a place is no change."""
    low, high = sorted((begin.at, end.at))
    place = ordered(connection, p.canonical)
    turned = select(place).where(p.until > low, p.until <= high).distinct().order_by(place).limit(VALUES)
    while places := list(connection.execute(turned.where(place > after)).scalars()):
        first, last = then(connection, places, begin.at), then(connection, places, end.at)
        differ = [name for name in places if name in first and name in last and _differ(first[name], last[name])]
        seen = _declaring(connection, (begin, end), differ, below, scopes)
        yield from ((name, seen[name], first[name], last[name]) for name in differ if name in seen)
        after = places[-1]


def keep_from(connection: Connection, at: float) -> None:
    """Says that the past is kept from a time on; never that more is kept than was before."""
    if at > horizon(connection):
        connection.execute(delete(t.deployment).where(t.deployment.c.key == _HORIZON))
        connection.execute(insert(t.deployment), [{"key": _HORIZON, "value": repr(at)}])


def _differ(first: Look, last: Look) -> bool:
    return (first.state, first.schema) != (last.state, last.schema)


def _declaring(
    connection: Connection, moments: tuple[Moment, Moment], places: Sequence[str], below: Path, scopes: Scopes
) -> dict[str, str]:
    """A source for each place that declared it at one of two moments, by a table that is below a path and inside the scope."""
    found: dict[str, str] = {}
    if not places:
        return found
    for source in sorted({*moments[0].revisions, *moments[1].revisions}):
        if not scopes.shows((source,)) or below[:1] not in ((), (source,)):
            continue
        inside = [visible.inside(connection, scopes, r.source, r.path)]
        if below:
            inside.append(visible.below(connection, r.path, path_key(below[1:])))
        base = select(r.canonical).where(r.source == source, r.is_table == 1, r.canonical.in_(places), *inside).distinct()
        for number in {at.revision(source) for at in moments}:
            # Those that still stand, and those that were closed since, each along its own index.
            for stood in (r.valid_to.is_(None), r.valid_to > number):
                for place in connection.execute(base.where(r.valid_from + 0 <= number, stood)).scalars():
                    found.setdefault(place, source)
    return found
