"""Responses about plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.store.plans import PlanRecord
from federator.store.requests import Request
from federator.views.plan_contents import ChangeContent
from federator.views.plan_outcomes import ChangeOutcome
from federator.views.plans import PlanSummary


class WaitingChange(ResponseModel):
    """A change of a plan that cannot be applied now."""

    change: int = Field(examples=[0], description="position in the plan's `changes`, from 0")
    action: str = Field(examples=["deregister_table"])
    target: str = Field(examples=["aws$sales$orders"])
    reason: str = Field(examples=["held_by_guard"], description="held_by_guard, approval_required or outside_window")
    held_by: str = Field(
        examples=["max_delete_percent"], description="guard or policy that holds this change, or a change on which it depends"
    )
    detail: str = Field(examples=["5 of 9 tables removed or moved within 24 h, max_delete_percent is 20"])


@dataclass(frozen=True, slots=True)
class ApplyRequested(Request):
    """A request to apply a plan. `waiting` lists the changes that are not applied until they are approved."""

    waiting: list[WaitingChange]


@dataclass(frozen=True, slots=True)
class PlanView(PlanRecord):
    """A plan with its state, and with the decision of a person, if one was made."""

    partial: Annotated[
        bool,
        Field(
            examples=[False],
            description="true: the principal sees only changes and refusals inside its scopes, and no guards",
        ),
    ]
    guarded: Annotated[str | None, Field(description="digest of the guarded changes; an approval or a rejection refers to it")]
    if_match: Annotated[
        str | None,
        Field(description="what a decision about the plan has in If-Match; another decision about it changes this text"),
    ]
    waiting: Annotated[
        list[WaitingChange],
        Field(description="the changes that cannot be applied now. Empty if the plan is applied or outdated, or shown in part"),
    ]
    outcomes: Annotated[
        list[ChangeOutcome],
        Field(description="what became of the changes that were started; a held plan may be carried out in part"),
    ]
    contents: Annotated[
        list[ChangeContent],
        Field(description="what verification last found at the changes' locations; without those that were never inspected"),
    ]
    application: Annotated[
        Request | None,
        Field(
            description="the queued or running request that applies the plan, or that of a sync in which the plan is being applied; "
            "a further application is refused. null: there is none, or the plan is shown in part"
        ),
    ]
    plan: Annotated[
        dict[str, Any],
        Field(description="changes, refusals, holds and guards (what each guard measured) of the plan, with secrets masked"),
    ]
    freshness: FreshnessList


class PlanPage(ResponseModel):
    """A page of plans."""

    plans: list[PlanSummary]
    next: str | None
    freshness: FreshnessList
