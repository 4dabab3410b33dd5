"""What the live status of the page is based on: cheap to read, and complete enough to notice that something changed."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from federator.store import tables as t
from federator.store.engine import Index
from federator.views import plans, runs
from federator.views.visibility import Visibility

# Runs and plans on a first page. What older ones change is noticed when the status is read again.
_NEWEST = 20


def read_version(index: Index) -> tuple[object, ...]:
    """Return a value that changes when a source is published, a run starts or ends, or a plan is made, decided or begins to be applied.

    It covers the whole index: compare it, and show it to nobody.
    """
    with index.read() as connection:
        return read_version_in(connection)


def read_version_in(connection: Connection) -> tuple[object, ...]:
    """Do ``read_version`` in a transaction."""
    s, r, p = t.source.c, t.run.c, t.plan.c
    sources = connection.execute(select(s.name, s.revision, s.state, s.message, s.published_at).order_by(s.name)).all()
    newest = connection.execute(select(r.id, r.state).order_by(r.id.desc()).limit(_NEWEST)).all()
    decided = connection.execute(select(func.count(), func.max(p.created_at), func.max(p.decided_at))).one()
    return (*map(tuple, sources), *map(tuple, newest), tuple(decided), *_list_applied_plans(connection))


def list_newest_runs(index: Index, viewer: Visibility) -> list[tuple[str, str, float | None]]:
    """Return id, state and end of the newest visible runs."""
    return [(run.id, run.state, run.finished_at) for run in runs.list_visible_runs(index, viewer, limit=_NEWEST)]


def list_newest_plans(index: Index, viewer: Visibility) -> list[tuple[str, str, float | None, bool]]:
    """Return digest, state and time of the decision of the newest visible plans, and whether they are being applied."""
    with index.read() as connection:
        newest, applied = plans.list_visible_plans(connection, viewer, limit=_NEWEST), _list_applied_plans(connection)
    return [(plan.digest, plan.state, plan.decided_at, plan.digest in applied) for plan in newest]


def _list_applied_plans(connection: Connection) -> list[str]:
    """Return the digests of the plans that are applied now."""
    s, r = t.run_stage.c, t.run.c
    newest = select(r.id).order_by(r.id.desc()).limit(_NEWEST)
    running = (r.id.in_(newest), r.finished_at.is_(None), s.stage == "apply", s.finished_at.is_(None), s.plan.is_not(None))
    return list(connection.execute(select(s.plan).join(t.run, r.id == s.run_id).where(*running).order_by(s.plan)).scalars())
