"""The response with one plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from federator.api.freshness import list_source_freshness
from federator.api.models.plans import PlanView, WaitingChange
from federator.connector.options import mask_secrets
from federator.planning.plan import Plan
from federator.planning.release import Release
from federator.planning.user_declarations import user_plan_target
from federator.settings import Settings
from federator.store import Index, approvals
from federator.store.plans import PlanRecord
from federator.store.requests import find_application
from federator.views.plan_contents import list_change_contents
from federator.views.plan_outcomes import list_change_outcomes
from federator.views.plans import VisiblePlan
from federator.views.visibility import Visibility


def build_plan_view(index: Index, visibility: Visibility, visible: VisiblePlan, sources: Sequence[str]) -> PlanView:
    """Return the response with the visible part of a plan. ``sources`` are those of its mirror."""
    stored, partial = visible.stored, visible.partial
    body = stored.content if visible.part is None else visible.part
    source_freshness = list_source_freshness(index, visibility.scopes, sources)
    with index.read() as connection:
        waiting = [] if partial else list_waiting(approvals.get_release(connection, stored.state, Plan.from_json(body)))
        application = None if partial else find_application(connection, stored.digest)
        outcomes = list_change_outcomes(connection, stored.digest, body["changes"])
        contents = list_change_contents(connection, body["changes"])
    if not visibility.sees_whole(stored.mirror):
        # A message may name a hidden object.
        outcomes = [replace(outcome, message=None) for outcome in outcomes]
    return PlanView(
        **{field.name: getattr(stored, field.name) for field in fields(PlanRecord)}, partial=partial,
        guarded=None if partial else stored.guarded, if_match=None if partial else stored.if_match, waiting=waiting, outcomes=outcomes,
        application=application, contents=contents, plan=mask_secrets(dict(body)), freshness=source_freshness,
    )  # fmt: skip


def list_waiting(release: Release) -> list[WaitingChange]:
    """Return the changes that wait, as responses have them."""
    return [WaitingChange.model_validate(change.to_json()) for change in release.waiting]


def plan_sources(settings: Settings, mirror: str) -> list[str]:
    """Return the sources of a plan's mirror as it is configured now, or the target of a plan of declarations by a user."""
    target = user_plan_target(mirror)
    if target is not None:
        return [target]
    configured = settings.mirrors.get(mirror)
    return [configured.origin, configured.target] if configured is not None else []
