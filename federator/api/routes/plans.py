"""Plans: what a mirror would do, and what a person decides about one.

A decision names the plan that it is about twice, in the address and in ``If-Match`` (its digest, or that of its guarded set): what was
looked at is what is decided.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, SettingsOf, ViewerOf
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import Refused, documented
from federator.api.routes.runs import applicable, plan_row, seen_plan
from federator.api.told import fresh
from federator.connector import InvalidInput
from federator.connector.options import masked
from federator.index import Connection, Index, RowMapping, approvals, plan_views, requests
from federator.index.run_views import Viewer
from federator.planning.declaring import target_of
from federator.planning.release import Release
from federator.settings import Settings
from federator.sync.deciding import Decision, decide

router = APIRouter(prefix="/api/v1/plans", tags=["plans"])

Digest = Annotated[str, Path(max_length=128, description="the plan's whole digest")]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=200,
        description="in quotes, what was looked at: the digest of the guarded set, or of the plan",
        examples=['"9f2c…"'],
    ),
]
STATES = ("ready", "held", "approved", "rejected", "applied", "outdated")
_DECIDES = documented(400, 403, 404, 409, 412, 428)


@router.get("", response_model=m.Plans, responses={**documented_304(), **documented(400)}, summary="Plans, newest first")
def get_plans(
    request: Request,
    index: IndexOf,
    settings: SettingsOf,
    viewer: ViewerOf,
    mirror: Annotated[str | None, Query(max_length=80, description="only this mirror's")] = None,
    state: Annotated[
        str | None, Query(max_length=20, description="ready, held, approved, rejected, applied or outdated")
    ] = None,
    run: Annotated[str | None, Query(max_length=64, description="only those that this run made, by its id")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """A page of plans, with how many changes and refusals each has. Who does not see both catalogs of a mirror whole sees its plans
    as far as they are about what it sees (`partial`): the counts are of that part."""
    if state is not None and state not in STATES:
        raise InvalidInput(f"{state!r} is no state of a plan", hint=f"states: {', '.join(STATES)}")
    listing = f"plans {mirror} {state} {run}"
    last, _ = decode(cursor, listing, scopes=viewer.scopes)
    after = _position(last) if last else None
    named = printable(mirror, "mirror") if mirror is not None else None
    of_run = printable(run, "run") if run is not None else None
    with index.read() as connection:
        found = plan_views.page(connection, viewer, mirror=named, state=state, run=of_run, after=after, limit=limit + 1)
    shown = [summary(seen) for seen in found[:limit]]
    last_row = found[limit - 1].row if len(found) > limit else None
    end = json.dumps([last_row["created_at"], last_row["digest"]]) if last_row is not None else None
    following = encode(listing, end, scopes=viewer.scopes) if end is not None else None
    told = fresh(index, viewer.scopes, {name for plan in shown for name in _ends(settings, plan.mirror)})
    return tagged(request, m.Plans(plans=shown, next=following, freshness=told))


@router.get("/{digest}", response_model=m.PlanView, responses={**documented_304(), **documented(400, 404)}, summary="One plan")
def get_plan(request: Request, index: IndexOf, settings: SettingsOf, viewer: ViewerOf, digest: Digest) -> Response:
    """A plan with every change, refusal and objection. Who does not see both catalogs of its mirror whole sees the changes and refusals
    both of whose ends it sees, without guards and details."""
    with index.read() as connection:
        row, partial, body = seen_plan(connection, viewer, digest)
    return tagged(request, _view(index, settings, viewer, row, body, partial=partial))


@router.post("/{digest}/approve", response_model=m.PlanView, responses=_DECIDES, summary="Approve a plan")
def approve(
    index: IndexOf, settings: SettingsOf, caller: CallerOf, viewer: ViewerOf, digest: Digest, if_match: IfMatch = None
) -> m.PlanView:
    """Lets a held plan be applied, as long as what it read still holds. For who sees all of it."""
    caller.require(Role.OPERATOR)
    return _decided(index, settings, viewer, digest, if_match, "approved")


@router.post("/{digest}/reject", response_model=m.PlanView, responses=_DECIDES, summary="Reject a plan")
def reject(
    index: IndexOf, settings: SettingsOf, caller: CallerOf, viewer: ViewerOf, digest: Digest, if_match: IfMatch = None
) -> m.PlanView:
    """Keeps a plan from being applied. For who sees all of it."""
    caller.require(Role.OPERATOR)
    return _decided(index, settings, viewer, digest, if_match, "rejected")


@router.post("/{digest}/apply", status_code=202, response_model=m.ApplyRequested, responses=_DECIDES, summary="Apply a plan")
def apply(
    index: IndexOf, caller: CallerOf, viewer: ViewerOf, digest: Digest, response: Response, if_match: IfMatch = None
) -> m.ApplyRequested:
    """Asks the worker to apply what may go of a plan; the answer names the changes that wait for an approval. If all of them wait, it
    is refused. The request's address is in `Location`; each change is made only where its object still is as the plan read it."""
    caller.require(Role.OPERATOR)
    with index.write() as connection:
        row = _matched(connection, viewer, digest, if_match)
        found = applicable(connection, row["digest"], viewer)
        asked = requests.add(connection, "apply", {"plans": [row["digest"]]}, actor=caller.name)
    response.headers["Location"] = f"/api/v1/requests/{asked.id}"
    return m.ApplyRequested(**m.Requested.model_validate(asked).model_dump(), waiting=_waiting(found))


def summary(seen: plan_views.SeenPlan) -> m.PlanSummary:
    """A plan as a list shows it."""
    counts = {"changes": seen.counts.changes, "refusals": seen.counts.refusals, "partial": seen.counts.partial}
    return m.PlanSummary.model_validate({**seen.row, **counts})


def _matched(connection: Connection, viewer: Viewer, digest: str, if_match: str | None) -> RowMapping:
    """The plan's row. Raises Refused without If-Match (428), and where it names neither the plan nor its guarded set (412)."""
    if if_match is None:
        raise Refused(428, "Precondition required", f'If-Match is missing: send the plan\'s digest, If-Match: "{digest[:64]}"')
    row = plan_row(connection, digest, viewer)
    if if_match.strip().strip('"') not in (row["digest"], row["guarded"]):
        raise Refused(412, "Precondition failed", f"If-Match names another plan than {digest[:12]}: look at this one first")
    return row


def _position(last: str) -> tuple[float, str]:
    at, digest = json.loads(last)
    return float(at), str(digest)


def _decided(
    index: Index, settings: Settings, viewer: Viewer, digest: str, if_match: str | None, decision: Decision
) -> m.PlanView:
    with index.read() as connection:
        known = _matched(connection, viewer, digest, if_match)
    row = decide(index, known["digest"], decision, actor=viewer.name)
    return _view(index, settings, viewer, row, json.loads(row["body"]), partial=False)


def _view(
    index: Index, settings: Settings, viewer: Viewer, row: RowMapping, body: Mapping[str, Any], *, partial: bool
) -> m.PlanView:
    told = fresh(index, viewer.scopes, _ends(settings, row["mirror"]))
    with index.read() as connection:
        waiting = [] if partial else _waiting(approvals.released(connection, row))
    return m.PlanView.model_validate(
        {
            **row,
            "guarded": None if partial else row["guarded"],
            "plan": masked(dict(body)),
            "partial": partial,
            "waiting": waiting,
            "freshness": told,
        }
    )


def _waiting(found: Release) -> list[m.WaitingChange]:
    return [m.WaitingChange.model_validate(each.to_json()) for each in found.waiting]


def _ends(settings: Settings, mirror: str) -> list[str]:
    """The sources of a plan's mirror as it is configured now, or the target of a person's declarations."""
    target, known = target_of(mirror), settings.mirrors.get(mirror)
    return [target] if target is not None else [known.origin, known.target] if known is not None else []
