"""Outcomes of a plan's changes, from the journal. A part of a held plan may be carried out before the rest is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Row, func, select

from federator.planning.changes import Change
from federator.store import tables as t
from federator.store.field_types import Timestamp

_DONE = "done"
j = t.journal.c


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """The newest journal line of a plan's change."""

    change: Annotated[int, Field(examples=[0], description="position in the plan's `changes`, from 0")]
    state: Annotated[
        str, Field(examples=["done"], description="intent (no outcome yet), done, failed, skipped or needs_adoption")
    ]
    code: Annotated[str | None, Field(examples=["recreate_denied"])]
    message: Annotated[str | None, Field(description="null if the scopes do not cover both sources of the mirror")]
    run_id: Annotated[str, Field(description="the run that made the change")]
    at: Annotated[Timestamp, Field(description="time of the outcome, or of the intent if there is no outcome yet")]


class _Target(NamedTuple):
    """The identity of a change in its plan. Its number is not: the journal counts only the changes that were released."""

    action: str
    source: str
    path: str


def list_change_outcomes(connection: Connection, digest: str, changes: Sequence[Mapping[str, Any]]) -> list[ChangeOutcome]:
    """Return the outcomes of a plan's changes that were started, in the order of the changes."""
    newest = _find_newest_lines(connection, digest)
    numbered = [(number, newest.get(_target_of(change))) for number, change in enumerate(changes)]
    return [_build_outcome(number, line) for number, line in numbered if line is not None]


def find_change_outcome(connection: Connection, digest: str, number: int, change: Change) -> ChangeOutcome | None:
    """Return the outcome of the change at position ``number`` of a plan. None if it was never started."""
    target = _Target(change.action.value, change.target_source, change.target_path)
    same_target = (j.action == target.action, j.target_source == target.source, j.target_path == target.path)
    line = _find_newest_lines(connection, digest, *same_target).get(target)
    return _build_outcome(number, line) if line is not None else None


def count_done(connection: Connection, digests: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the numbers of carried-out changes by action, by plan digest. Plans without any are missing."""
    targets = (
        select(j.plan, j.action, j.target_source, j.target_path)
        .where(j.plan.in_(digests), j.state == _DONE)
        .distinct()
        .subquery()
    )
    query = select(targets.c.plan, targets.c.action, func.count()).group_by(targets.c.plan, targets.c.action)
    counts: dict[str, dict[str, int]] = {}
    for digest, action, number in connection.execute(query.order_by(targets.c.action)):
        counts.setdefault(digest, {})[action] = number
    return counts


def list_done_changes(connection: Connection, digest: str, changes: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the positions of the carried-out changes, of some changes of a plan."""
    return {outcome.change for outcome in list_change_outcomes(connection, digest, changes) if outcome.state == _DONE}


def _find_newest_lines(connection: Connection, digest: str, *conditions: ColumnElement[bool]) -> dict[_Target, Row[Any]]:
    """Return the newest journal line of each change of a plan that was started."""
    query = select(j.action, j.target_source, j.target_path, j.state, j.code, j.message, j.run_id, j.intent_at, j.outcome_at)
    lines = connection.execute(query.where(j.plan == digest, *conditions).order_by(j.intent_at))
    return {_Target(line.action, line.target_source, line.target_path): line for line in lines}


def _build_outcome(number: int, line: Row[Any]) -> ChangeOutcome:
    return ChangeOutcome(number, line.state, line.code, line.message, line.run_id, line.outcome_at or line.intent_at)


def _target_of(change: Mapping[str, Any]) -> _Target:
    return _Target(change["action"], change["target_source"], change["target_path"])
