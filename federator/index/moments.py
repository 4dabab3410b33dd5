"""Moments: a run or a time, as the vector of revisions that every source had then.

A run's moment is its end: what it published itself counts, whatever others published meanwhile; of the other sources, what was
published by then. Of a source's revisions older than its horizon only newer ones' rows are left (``retention.py``): asking for them
is an error that names the horizon, never an answer with less in it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, RowMapping, func, select

from federator.connector import InvalidInput, StateError
from federator.index import tables as t
from federator.index.engine import Index

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_FORMS = "a run's id, 2026-11-20, 2026-11-20T08:30:00Z, or how long ago: -90m, -2d"
#: runs that read or change no catalog
ASIDE = ("prune", "report")

v, x = t.revision.c, t.run.c


class BeyondHorizon(StateError):
    """The history that was asked for is not kept any more."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What was known at ``at`` (seconds since the epoch): the revision of each source, by name; a source that is not in it had none.

    ``run`` is the run whose end it is, if it was named by one.
    """

    at: float
    revisions: Mapping[str, int]
    run: str | None = None

    def revision(self, source: str) -> int:
        return self.revisions.get(source, 0)


def moment(index: Index, text: str) -> Moment:
    """The moment that a text names: a run's id or the beginning of one, a time, or how long ago. Times without a zone are UTC.

    Raises InvalidInput for a text of another form or a time to come, StateError for a run that has not ended.
    """
    at = _time(text.strip(), time.time())
    with index.read() as connection:
        return _of_run(connection, _run(connection, text.strip())) if at is None else Moment(at, _published(connection, at))


def at_time(index: Index, at: float) -> Moment:
    """The moment of a time, in seconds since the epoch."""
    with index.read() as connection:
        return Moment(at, _published(connection, at))


def last_runs(index: Index) -> tuple[Moment, Moment]:
    """The moments of the last two runs that looked at catalogs. Raises StateError where there are not two yet."""
    query = select(t.run).where(x.finished_at.is_not(None), x.kind.not_in(ASIDE)).order_by(x.id.desc()).limit(2)
    with index.read() as connection:
        found = list(connection.execute(query).mappings())
        if len(found) < 2:
            raise StateError("there are no two runs yet to compare", hint="--from and --to take times as well")
        return _of_run(connection, found[1]), _of_run(connection, found[0])


@contextmanager
def reading(index: Index, *moments: Moment) -> Iterator[Connection]:
    """A reading transaction in which some moments can be looked at. Raises BeyondHorizon, also where their history was removed
    meanwhile: what was read then is not whole."""
    with index.read() as connection:
        _kept(connection, moments)
        yield connection
    with index.read() as connection:
        _kept(connection, moments)


def _kept(connection: Connection, moments: tuple[Moment, ...]) -> None:
    query = select(t.source.c.name, t.source.c.horizon, v.published_at).where(
        t.source.c.horizon > 0, v.source == t.source.c.name, v.number == t.source.c.horizon
    )
    for row in connection.execute(query.order_by(t.source.c.name)):
        for moment in moments:
            # Before its first revision nothing was known of a source, and that is still known.
            if 0 < moment.revision(row.name) < row.horizon:
                raise BeyondHorizon(
                    f"the history of {row.name} is kept from {iso(row.published_at)} on (revision {row.horizon}); "
                    f"{iso(moment.at)} is before that",
                    hint="[history] keep_days says how much is kept",
                )


def iso(at: float) -> str:
    """A time as people and programs read it, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _time(text: str, now: float) -> float | None:
    """The time that a text names; None for one that is no time, and may be a run's id."""
    if text == "now":
        return now
    if match := re.fullmatch(r"-(\d{1,9})([smhdw])", text):
        return max(0.0, now - int(match[1]) * _UNITS[match[2]])
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        # In the query of a URL, the plus of an offset is read as a space.
        found = datetime.fromisoformat(re.sub(r" (\d\d:?\d\d)$", r"+\1", text) if "T" in text else text)
        at = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no time", hint=_FORMS) from None
    if at > now:
        raise InvalidInput(f"{text!r} is still to come", hint="leave it out for what is known now")
    return at


def _run(connection: Connection, text: str) -> RowMapping:
    if not re.fullmatch(r"[0-9a-f-]{1,64}", text):
        raise InvalidInput(f"{text!r} is neither a run nor a time", hint=_FORMS)
    query = select(t.run).where(x.id.startswith(text, autoescape=True)).limit(2)
    found = list(connection.execute(query).mappings())
    if len(found) != 1:
        what = "several runs have" if found else "no run has"
        raise InvalidInput(f"{what} the id {text!r}", hint=f"federator runs lists them; {_FORMS}")
    return found[0]


def _of_run(connection: Connection, run: RowMapping) -> Moment:
    if run["finished_at"] is None:
        raise StateError(f"the run {run['id']} has not ended yet", hint="a time will do: now")
    revisions = _published(connection, run["finished_at"])
    q = t.run_source.c
    read = connection.execute(select(q.source, q.revision).where(q.run_id == run["id"], q.revision > 0))
    own = {row.source: row.revision for row in read}
    query = select(v.source, func.max(v.number).label("number")).where(v.run_id == run["id"], v.state == "published")
    for row in connection.execute(query.group_by(v.source)):
        own[row.source] = max(row.number, own.get(row.source, 0))
    return Moment(run["finished_at"], revisions | own, run["id"])


def _published(connection: Connection, at: float) -> dict[str, int]:
    query = select(v.source, func.max(v.number).label("number")).where(v.state == "published", v.published_at <= at)
    return {row.source: row.number for row in connection.execute(query.group_by(v.source))}
