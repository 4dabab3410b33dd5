"""Snapshots: a run or a time, resolved to the revisions of all sources.

The snapshot of a run shows the end of the run. For sources that the run crawled or changed, it contains the run's own revision. For all
others, it contains the newest revision that was published by then.

Rows before a source's retention horizon are deleted (``store.retention``). A query of an older snapshot fails with an error that names
the horizon; it never returns an incomplete result.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, RowMapping, and_, func, select, true

from federator.connector import InvalidInput, StateError
from federator.runtime.text import format_utc
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import Timestamp

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_TIME_FORMS = "use a run id, 2026-11-20, 2026-11-20T08:30:00Z, or a time before now: -90m, -2d"
#: kinds of runs that neither read nor change a catalog
MAINTENANCE_RUN_KINDS = ("prune", "report", "verify")

#: the condition on rows of ``run`` that the principal may see
RunCondition = Callable[[Connection], ColumnElement[bool]]

v, run = t.revision.c, t.run.c
# Conditions that join each source that has a retention horizon with the revision of the horizon.
_HAS_HORIZON = (t.source.c.horizon > 0, v.source == t.source.c.name, v.number == t.source.c.horizon)


class HistoryExpired(StateError):
    """A snapshot is older than the retention horizon of a source."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The published revision of each source at ``at`` (seconds since the epoch). Sources without a revision are not in it.

    ``run`` is the id of the run that the snapshot was resolved from. None if it was resolved from a time.
    """

    at: float
    revisions: Mapping[str, int]
    run: str | None = None

    def revision_of(self, source: str) -> int:
        """Return the revision of a source. 0 if it had none, so that a query finds nothing."""
        return self.revisions.get(source, 0)


def every_run(_: Connection) -> ColumnElement[bool]:
    """The condition of a principal that may see every run."""
    return true()


def resolve_snapshot(index: Index, text: str, visible: RunCondition = every_run) -> Snapshot:
    """Return the snapshot that a text names: a run id or a prefix of one, a time, a time before now (``-2d``), or ``now``.

    Times without a zone are UTC. Raise InvalidInput for any other text, a time in the future, and a run id that is unknown, not
    ``visible`` or ambiguous. Raise StateError for a run that has not finished.
    """
    as_of = parse_time(text.strip(), time.time())
    with index.read() as connection:
        return (
            _build_run_snapshot(connection, _get_run(connection, text.strip(), visible))
            if as_of is None
            else Snapshot(as_of, _revisions_at(connection, as_of))
        )


def snapshot_at(index: Index, as_of: float) -> Snapshot:
    """Return the snapshot of a time in seconds since the epoch."""
    with index.read() as connection:
        return Snapshot(as_of, _revisions_at(connection, as_of))


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A snapshot that can be selected: the end of a run that read or changed catalogs."""

    run: Annotated[str, Field(examples=["0199f0c2a41-1f2e3d4c"], description="id of the run, for `as_of`")]
    kind: Annotated[str, Field(examples=["crawl"], description="kind of the run")]
    at: Annotated[Timestamp, Field(description="end of the run")]


def list_run_snapshots(
    index: Index,
    visible: RunCondition = every_run,
    is_visible_source: Callable[[str], bool] = lambda _: True,
    *,
    before: str | None = None,
    limit: int = 200,
) -> list[RunSnapshot]:
    """List the snapshots of visible, finished runs, newest first. ``before`` is the last run id of the previous page.

    Snapshots before the retention horizon of a visible source are left out.
    """
    conditions = [] if before is None else [run.id < before]
    with index.read() as connection:
        horizons = connection.execute(select(t.source.c.name, v.published_at).where(*_HAS_HORIZON))
        since = max((row.published_at for row in horizons if is_visible_source(row.name)), default=0.0)
        finished = and_(run.finished_at >= since, run.kind.not_in(MAINTENANCE_RUN_KINDS), visible(connection))
        query = select(run.id, run.kind, run.finished_at).where(finished, *conditions).order_by(run.id.desc()).limit(limit)
        return [RunSnapshot(*row) for row in connection.execute(query)]


def latest_run_snapshots(index: Index, visible: RunCondition = every_run) -> tuple[Snapshot, Snapshot]:
    """Return the snapshots of the last two visible, finished runs that read or changed catalogs, the older one first.

    Raise StateError if there are fewer than two.
    """
    query = (
        select(t.run)
        .where(run.finished_at.is_not(None), run.kind.not_in(MAINTENANCE_RUN_KINDS))
        .order_by(run.id.desc())
        .limit(2)
    )
    with index.read() as connection:
        newest = list(connection.execute(query.where(visible(connection))).mappings())
        if len(newest) < 2:
            raise StateError("there are fewer than two runs to compare", hint="pass times as --from and --to")
        return _build_run_snapshot(connection, newest[1]), _build_run_snapshot(connection, newest[0])


@contextmanager
def read_transaction_at(index: Index, *snapshots: Snapshot) -> Iterator[Connection]:
    """Read transaction for queries of these snapshots.

    Raise HistoryExpired if one of them is older than a retention horizon. This is checked again at the end of the block: if rows were
    deleted meanwhile, the results of its queries may be incomplete.
    """
    with index.read() as connection:
        _require_retained(connection, snapshots)
        yield connection
    with index.read() as connection:
        _require_retained(connection, snapshots)


def _require_retained(connection: Connection, snapshots: tuple[Snapshot, ...]) -> None:
    query = select(t.source.c.name, t.source.c.horizon, v.published_at).where(*_HAS_HORIZON)
    for row in connection.execute(query.order_by(t.source.c.name)):
        for snapshot in snapshots:
            # Revision 0 means that the source was not crawled yet: no deleted row is missing there.
            if 0 < snapshot.revision_of(row.name) < row.horizon:
                raise HistoryExpired(
                    f"the history of {row.name} is kept from {format_utc(row.published_at)} on (revision {row.horizon}); "
                    f"{format_utc(snapshot.at)} is before that",
                    hint="[history] keep_days sets how much history is kept",
                )


def parse_time(text: str, now: float) -> float | None:
    """Return the time that a text names, in seconds since the epoch. None if it does not look like a time; it may be a run id.

    Raise InvalidInput for an invalid time and for a time in the future.
    """
    if text == "now":
        return now
    if match := re.fullmatch(r"-(\d{1,9})([smhdw])", text):
        return max(0.0, now - int(match[1]) * _UNITS[match[2]])
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        # In the query string of a URL, the plus sign of an offset is decoded as a space.
        parsed = datetime.fromisoformat(re.sub(r" (\d\d:?\d\d)$", r"+\1", text) if "T" in text else text)
        as_of = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is not a valid time", hint=_TIME_FORMS) from None
    if as_of > now:
        raise InvalidInput(f"{text!r} is in the future", hint="omit the option to use the current state")
    return as_of


def _get_run(connection: Connection, text: str, visible: RunCondition) -> RowMapping:
    """Return the visible run with an id or with an unambiguous prefix of one. Raise InvalidInput."""
    if not re.fullmatch(r"[0-9a-f-]{1,64}", text):
        raise InvalidInput(f"{text!r} is neither a run id nor a time", hint=_TIME_FORMS)
    query = select(t.run).where(run.id.startswith(text, autoescape=True), visible(connection)).limit(2)
    rows = list(connection.execute(query).mappings())
    if len(rows) != 1:
        matching = "several runs have" if rows else "no run has"
        raise InvalidInput(f"{matching} the id {text!r}", hint=f"federator runs lists the runs; {_TIME_FORMS}")
    return rows[0]


def _build_run_snapshot(connection: Connection, row: RowMapping) -> Snapshot:
    """Return the snapshot of a row of ``run``. Raise StateError if the run has not finished."""
    run_id, finished_at = row["id"], row["finished_at"]
    if finished_at is None:
        raise StateError(f"the run {run_id} has not finished yet", hint="use a time instead, for example now")
    s = t.run_source.c
    # A crawl that changed nothing publishes no revision: ``run_source`` has the one that it confirmed.
    crawled = connection.execute(select(s.source, s.revision).where(s.run_id == run_id, s.revision > 0))
    own_revisions = {source.source: source.revision for source in crawled}
    query = select(v.source, func.max(v.number).label("number")).where(v.run_id == run_id, v.state == "published")
    for published in connection.execute(query.group_by(v.source)):
        own_revisions[published.source] = max(published.number, own_revisions.get(published.source, 0))
    return Snapshot(finished_at, _revisions_at(connection, finished_at) | own_revisions, run_id)


def _revisions_at(connection: Connection, as_of: float) -> dict[str, int]:
    """Return the newest revision of each source that was published by a time."""
    query = select(v.source, func.max(v.number).label("number")).where(v.state == "published", v.published_at <= as_of)
    return {row.source: row.number for row in connection.execute(query.group_by(v.source))}
