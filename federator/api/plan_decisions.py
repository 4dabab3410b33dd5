"""Decisions about a plan, and requests to apply plans. A request about one plan names the plan in ``If-Match``, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from federator.api.models.base import fields_of
from federator.api.models.plans import ApplyRequested
from federator.api.plan_access import get_whole_plan, require_applicable
from federator.api.plan_view import list_waiting
from federator.api.problems import RequestRejected
from federator.api.queued_requests import queue_once
from federator.apply.plan_decisions import Decision, decide_plan
from federator.connector import StateError
from federator.connector.options import mask_secrets
from federator.planning.plan import Plan
from federator.runtime.text import escape_controls
from federator.store import Connection, Index, approvals
from federator.store.plans import StoredPlan
from federator.store.requests import Request
from federator.views.visibility import Visibility

# Number of changes that a question shows.
_SHOWN_CHANGES = 10


def decide_visible_plan(
    index: Index, visibility: Visibility, digest: str, if_match: str, decision: Decision, comment: str | None
) -> StoredPlan:
    """Approve or reject a plan. Return it afterwards. Raise RequestRejected (412), StateError, NotFound or PermissionDenied."""
    with index.read() as connection:
        known = _require_match(connection, visibility, digest, if_match)
    _, overruled = _split_if_match(if_match)
    return decide_plan(index, known.digest, decision, actor=visibility.name, comment=comment, overruled=overruled)


def queue_application(index: Index, visibility: Visibility, digest: str, if_match: str) -> ApplyRequested:
    """Queue a request to apply a plan. Raise as ``decide_visible_plan``."""
    with index.write() as connection:
        stored = _require_match(connection, visibility, digest, if_match)
        release = require_applicable(connection, visibility, stored.digest)
        request = queue_once(connection, "apply", {"plans": [stored.digest]}, visibility.name)
    return ApplyRequested(**fields_of(request), waiting=list_waiting(release))


def queue_applications(index: Index, visibility: Visibility, digests: Sequence[str]) -> Request:
    """Queue one request to apply plans. Raise as ``queue_application``."""
    with index.write() as connection:
        for digest in digests:
            require_applicable(connection, visibility, digest)
        return queue_once(connection, "apply", {"plans": list(digests)}, visibility.name)


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """The question to a person whether a plan is to be approved, and the If-Match of the approval."""

    question: str
    if_match: str


def build_approval_question(connection: Connection, visibility: Visibility, digest: str) -> ApprovalQuestion:
    """Return the question: the mirror, the holds, the number of changes by action, and the first changes.

    Raise NotFound, PermissionDenied, or StateError if the plan is not held.
    """
    stored = get_whole_plan(connection, visibility, digest)
    if stored.state != "held":
        raise StateError(
            f"the plan {digest[:12]} is {stored.state}, not held", hint='list_plans with state "held" shows what waits'
        )
    plan = Plan.from_json(stored.content)
    waiting = approvals.get_release(connection, stored.state, plan).waiting
    counts = Counter(item.change.action.value for item in waiting)
    shown = [item.to_json() for item in waiting[:_SHOWN_CHANGES]]
    lines = [
        f"Approve the held changes of the plan {stored.digest[:12]} of the mirror {stored.mirror}?",
        *(f"held by {mask_secrets(str(hold))}" for hold in plan.holds),
        f"{len(waiting)} changes: {', '.join(f'{number} {action}' for action, number in sorted(counts.items())) or 'none'}",
        *(f"{change['action']} {change['target']}" for change in shown),
        *([f"... and {len(waiting) - len(shown)} more"] if len(waiting) > len(shown) else []),
    ]
    return ApprovalQuestion("\n".join(map(escape_controls, lines)), stored.if_match)


def require_if_match(if_match: str | None, digest: str) -> str:
    """Return If-Match. Raise RequestRejected (428) if it is missing."""
    if if_match is None:
        raise RequestRejected(
            428, "Precondition required", f'If-Match is missing: send the plan\'s digest, If-Match: "{digest[:64]}"'
        )
    return if_match


def _require_match(connection: Connection, visibility: Visibility, digest: str, if_match: str) -> StoredPlan:
    """Return the plan. Raise RequestRejected (412) if If-Match names neither the plan nor its guarded changes."""
    stored = get_whole_plan(connection, visibility, digest)
    if _split_if_match(if_match)[0] not in (stored.digest, stored.guarded):
        raise RequestRejected(
            412, "Precondition failed", f"If-Match does not name the plan {digest[:12]} or its guarded changes"
        )
    return stored


def _split_if_match(text: str) -> tuple[str, str]:
    """Return the digest of a plan or of its guarded changes, and that of the decision about it, or ""."""
    digest, _, decision = text.strip().strip('"').partition(".")
    return digest, decision
