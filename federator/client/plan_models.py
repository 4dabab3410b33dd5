"""Models of plans. ``federator.client.models`` has them, too."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from federator.client.base_models import Freshness, Model


class PlanState(Model):
    """A plan's mirror, run and state, and the decision about it."""

    digest: str
    mirror: str
    run_id: str
    state: str
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_comment: str | None


class PlanSummary(PlanState):
    """A plan without its content: counts of changes by action, of those carried out, and of refusals by reason; and why it was held."""

    changes: dict[str, int]
    done: dict[str, int]
    refusals: dict[str, int]
    held: list[str]
    partial: bool


class PlanPage(Model):
    plans: list[PlanSummary]
    next: str | None
    freshness: list[Freshness]


class WaitingChange(Model):
    """A change that cannot be applied now; ``change`` is its position in the plan."""

    change: int
    action: str
    target: str
    reason: str
    held_by: str
    detail: str


class ChangeOutcome(Model):
    """What became of a change that was started. ``change`` is its position in the plan's changes."""

    change: int
    state: str
    code: str | None
    message: str | None
    run_id: str
    at: datetime


class ChangeContent(Model):
    """What verification last found at the location of a change. ``change`` is its position in the plan's changes."""

    change: int
    state: str
    version: int | None
    rows: int | None
    checked_at: datetime


class Request(Model):
    """A queued request to the worker. ``run_id`` is null until its run has started."""

    id: int
    kind: str
    actor: str
    state: str
    run_id: str | None
    created_at: datetime


class PlanView(PlanState):
    """A plan with its content. ``partial``: the principal sees only the changes inside its scopes."""

    partial: bool
    guarded: str | None
    if_match: str | None
    waiting: list[WaitingChange]
    outcomes: list[ChangeOutcome]
    contents: list[ChangeContent]
    application: Request | None
    plan: dict[str, Any]
    freshness: list[Freshness]
