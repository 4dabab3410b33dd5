"""Runs that a principal may see.

These are runs that read or wrote objects inside its scopes, and runs that it requested. A partly visible run has the state of its
visible part, and no summary, progress or error, because they cover all sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Row, case, exists, func, or_, select, true

from federator.connector import StateError
from federator.store import tables as t
from federator.store import visibility
from federator.store.engine import Index
from federator.store.run_stages import RunStage, add_usual_durations, read_run_stages
from federator.store.runs import Run, RunChange, RunSource, read_run_changes, read_run_sources, run_from_row
from federator.views.visibility import Visibility

_ENDED = ("ok", "partial", "failed", "held")

# Runs that are read at a time for those in one state.
_BATCH_RUNS = 200

# Stages whose subject is a source, and those whose subject is a mirror. The others are of subjects that only ``*`` covers.
_SOURCE_STAGES, _MIRROR_STAGES = ("crawl", "verify"), ("resume", "plan", "apply", "rebuild")
# The stage that has the subjects of a run, where it is not called like the kind of the run.
_SUBJECT_STAGES = {"sync": "plan", "declare": "plan"}
# States of stages that say why a run did not succeed, the worst first.
_PROBLEMS = ("failed", "partial", "rejected")

run, part, line, stage = t.run.c, t.run_source.c, t.journal.c, t.run_stage.c


@dataclass(frozen=True, slots=True)
class ListedRun(Run):
    """A run of a list, and what it is about."""

    subjects: Annotated[
        list[str],
        Field(
            examples=[["lake_hive"]],
            description="sources, mirrors, storage roots or reports, in the order of their starts; "
            "without those that are not visible as a whole",
        ),
    ]
    problem: Annotated[
        str | None,
        Field(
            examples=["lake_hive: 10.1.2.3:9083 cannot be reached (Connection refused)"],
            description="why it did not succeed: its error, or the first one of a visible source or mirror; null: not known",
        ),
    ]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Conditions on runs. ``since``: they started at that time or later, in seconds since the epoch. ``subject``: they have a stage of
    this source, mirror, storage root or report."""

    kind: str = ""
    state: str = ""
    since: float | None = None
    subject: str = ""


_EVERY_RUN = RunFilter()


def list_visible_runs(
    index: Index, viewer: Visibility, *, limit: int = 20, before: str | None = None, filters: RunFilter = _EVERY_RUN
) -> list[Run]:
    """List visible runs, newest first, without their sources and writes. ``before`` is the last id of the previous page."""
    runs: list[Run] = []
    # The visible state of a run may differ from the stored one. So many runs may be read for one with the state.
    size = limit if viewer.scopes.covers_all or not filters.state else max(limit, _BATCH_RUNS)
    with index.read() as connection:
        while True:
            page = _read_visible_runs(connection, viewer, filters, size, before)
            runs += [run_of_page for run_of_page in page if filters.state in ("", run_of_page.state)]
            if len(page) < size or len(runs) >= limit:
                return runs[:limit]
            before = page[-1].id


def _read_visible_runs(
    connection: Connection, viewer: Visibility, filters: RunFilter, limit: int, before: str | None
) -> list[Run]:  # fmt: skip
    conditions = [visible_runs_condition(connection, viewer)]
    conditions += [] if before is None else [run.id < before]
    conditions += [run.kind == filters.kind] if filters.kind else []
    conditions += [] if filters.since is None else [run.started_at >= filters.since]
    about = select(stage.run_id).where(stage.subject == filters.subject, _covered_stages(viewer))
    conditions += [run.id.in_(about)] if filters.subject else []
    conditions += [run.state == filters.state] if filters.state and viewer.scopes.covers_all else []
    rows = connection.execute(select(t.run).where(*conditions).order_by(run.id.desc()).limit(limit)).mappings().all()
    sources, lines = _read_visible_states(connection, viewer, [row["id"] for row in rows])
    return [_visible_run(run_from_row(row), viewer, sources.get(row["id"], ()), lines.get(row["id"], ())) for row in rows]


def count_active_runs(connection: Connection, viewer: Visibility) -> int:
    """Return the number of visible runs that are running."""
    active = select(func.count()).select_from(t.run).where(run.state == "running", visible_runs_condition(connection, viewer))
    return int(connection.execute(active).scalar_one())


def get_visible_run(index: Index, viewer: Visibility, run_id: str) -> tuple[Run, list[RunSource], list[RunChange]]:
    """Return a run by its complete id, its results per source and its journal lines.

    Raise StateError if it does not exist or is not visible.
    """
    with index.read() as connection:
        stored, sources = _read_visible_run(connection, viewer, run_id)
        changes = read_run_changes(connection, run_id, _visible_writes_condition(connection, viewer))
    states = [source.state for source in sources], [change.state for change in changes]
    return _visible_run(stored, viewer, *states), sources, [_visible_change(change, viewer) for change in changes]


def get_run_progress(index: Index, viewer: Visibility, run_id: str) -> tuple[Run, list[RunSource], dict[str, int]]:
    """Return a run with its results per source so far, and the number of its writes by state.

    Raise StateError if it does not exist or is not visible.
    """
    with index.read() as connection:
        stored, sources = _read_visible_run(connection, viewer, run_id)
        counted = (
            select(line.state, func.count())
            .where(line.run_id == run_id, _visible_writes_condition(connection, viewer))
            .group_by(line.state)
        )
        writes = dict(connection.execute(counted.order_by(line.state)).tuples().all())
    return _visible_run(stored, viewer, [source.state for source in sources], list(writes)), sources, writes


def list_run_stages(index: Index, viewer: Visibility, of_run: Run, *, with_usual: bool = False) -> list[RunStage]:
    """List the stages of a visible run whose subject is visible as a whole, in the order of their starts.

    A stage without an end in a run that has ended is ``interrupted``. ``with_usual``: each has its usual duration.
    """
    with index.read() as connection:
        stages = read_run_stages(connection, of_run.id, _covered_stages(viewer))
        if with_usual:
            stages = add_usual_durations(connection, of_run.id, of_run.kind, stages)
    if of_run.finished_at is None:
        return stages
    return [replace(stage, state="interrupted") if stage.finished_at is None else stage for stage in stages]


def _covered_stages(viewer: Visibility) -> ColumnElement[bool]:
    """Return the condition on rows of ``run_stage`` whose subject is visible as a whole."""
    return true() if viewer.scopes.covers_all else or_(
        stage.stage.in_(_SOURCE_STAGES) & stage.subject.in_(viewer.fully_visible_sources),
        stage.stage.in_(_MIRROR_STAGES) & stage.subject.in_(viewer.mirrors),
    )  # fmt: skip


def describe_runs(index: Index, viewer: Visibility, runs: Sequence[Run]) -> list[ListedRun]:
    """Return visible runs with what they are about, and why they did not succeed.

    A sync that has planned nothing yet is about the sources that it reads.
    """
    has_subject = stage.stage == case(_SUBJECT_STAGES, value=run.kind, else_=run.kind)
    reads = (run.kind == "sync") & run.finished_at.is_(None) & (stage.stage == "crawl")
    of_runs = select(stage.run_id, stage.stage, stage.subject, stage.state, stage.detail).join(t.run, run.id == stage.run_id)
    of_interest = has_subject | reads | stage.state.in_(_PROBLEMS)
    conditions = stage.run_id.in_([each.id for each in runs]), of_interest, _covered_stages(viewer)
    stages: dict[str, list[Row[Any]]] = {}
    with index.read() as connection:
        for row in connection.execute(of_runs.where(*conditions).order_by(stage.started_at, stage.subject)):
            stages.setdefault(row.run_id, []).append(row)
    return [_describe_run(each, stages.get(each.id, [])) for each in runs]


def _describe_run(listed: Run, stages: Sequence[Row[Any]]) -> ListedRun:
    main = _SUBJECT_STAGES.get(listed.kind, listed.kind)
    subjects = [each.subject for each in stages if each.stage == main] or [
        each.subject for each in stages if each.stage == "crawl"
    ]
    problems = [each.detail for state in _PROBLEMS for each in stages if each.state == state and each.detail]
    errors = [*filter(None, [listed.error]), *problems, *(listed.summary or {}).get("errors", {}).values()]
    return ListedRun(**asdict(listed), subjects=subjects, problem=next(iter(errors), None))


def find_last_run_of_mirror(connection: Connection, viewer: Visibility, mirror: str) -> str | None:
    """Return the id of the newest visible run that planned or wrote for a mirror. None if there is none."""
    staged = select(stage.run_id).where(stage.subject == mirror, stage.stage.in_(_MIRROR_STAGES))
    query = select(run.id).where(run.id.in_(staged), visible_runs_condition(connection, viewer))
    return connection.execute(query.order_by(run.id.desc()).limit(1)).scalar()


def list_affected_sources(index: Index, viewer: Visibility, run_ids: Sequence[str]) -> set[str]:
    """Return the visible sources that some runs read or wrote."""
    read = select(part.source).where(part.run_id.in_(run_ids))
    if not viewer.scopes.covers_all:
        read = read.where(part.source.in_(viewer.fully_visible_sources))
    with index.read() as connection:
        wrote = select(line.target_source).where(line.run_id.in_(run_ids), _visible_writes_condition(connection, viewer))
        return set(connection.execute(read.union(wrote)).scalars())


def _read_visible_run(connection: Connection, viewer: Visibility, run_id: str) -> tuple[Run, list[RunSource]]:
    query = select(t.run).where(run.id == run_id, visible_runs_condition(connection, viewer))
    row = connection.execute(query).mappings().first()
    if row is None:
        raise StateError(f"no run has the id {run_id!r}", hint="use the complete id")
    return run_from_row(row), _visible_run_sources(connection, viewer, run_id)


def visible_runs_condition(connection: Connection, viewer: Visibility) -> ColumnElement[bool]:
    """Return the condition on rows of ``run`` that a viewer may see."""
    if viewer.scopes.covers_all:
        return true()
    read = exists().where(part.run_id == run.id, part.source.in_(viewer.fully_visible_sources))
    wrote = exists().where(line.run_id == run.id, _visible_writes_condition(connection, viewer))
    return or_(run.actor == viewer.name, read, wrote)


def _visible_writes_condition(connection: Connection, viewer: Visibility) -> ColumnElement[bool]:
    return visibility.is_covered(connection, viewer.scopes, line.target_source, line.target_path)


def _read_visible_states(
    connection: Connection, viewer: Visibility, run_ids: Sequence[str]
) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    """Return the states of the visible sources of runs, by run, and those of their visible writes. Both are empty for all scopes, which
    do not need them."""
    if viewer.scopes.covers_all:
        return {}, {}
    read = select(part.run_id, part.state).where(part.run_id.in_(run_ids), part.source.in_(viewer.fully_visible_sources))
    wrote = select(line.run_id, line.state).where(line.run_id.in_(run_ids), _visible_writes_condition(connection, viewer))
    by_run: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for query, states in zip((read, wrote), by_run, strict=True):
        for run_id, state in connection.execute(query.distinct()):
            states.setdefault(run_id, []).append(state)
    return by_run


def _visible_run_sources(connection: Connection, viewer: Visibility, run_id: str) -> list[RunSource]:
    covered = true() if viewer.scopes.covers_all else part.source.in_(viewer.fully_visible_sources)
    return read_run_sources(connection, run_id, covered)


def _visible_change(change: RunChange, viewer: Visibility) -> RunChange:
    return change if viewer.sees_whole(change.mirror) else replace(change, origin_path=None, message=None)


def _visible_run(run: Run, viewer: Visibility, sources: Sequence[str], lines: Sequence[str]) -> Run:
    if viewer.scopes.covers_all:
        return run
    state = run.state
    if state in _ENDED and (sources or lines):
        successes = [text == "ok" for text in sources] + [text not in ("failed", "needs_adoption") for text in lines]
        state = "ok" if all(successes) else "partial" if any(successes) else "failed"
    return replace(run, state=state, progress=None, summary=None, error=None)
