"""Access to plans: the part that a principal may see, and what it may decide or have applied."""

from __future__ import annotations

from federator.api.paging import require_storable
from federator.api.problems import NotFound, RequestRejected
from federator.connector import PermissionDenied, StateError
from federator.planning.plan import Plan
from federator.planning.release import Release
from federator.store import Connection, Index, approvals, requests
from federator.store.plans import OPEN_STATES, StoredPlan
from federator.views import plans
from federator.views.plan_outcomes import list_done_changes
from federator.views.plans import VisiblePlan
from federator.views.visibility import Visibility


def measure_plan(index: Index, visibility: Visibility, digest: str, max_size: int | None = None) -> int:
    """Return the number of characters of a plan.

    Raise NotFound like ``get_visible_plan``, and RequestRejected (413) if a completely visible plan has more than ``max_size``
    characters.
    """
    try:
        with index.read() as connection:
            size, is_whole = plans.measure_visible_plan(connection, visibility, require_storable(digest, "digest"))
    except StateError:
        raise _not_found(digest) from None
    if is_whole and max_size is not None and size > max_size:
        detail = f"the plan has {size:,} characters, and at most {max_size:,} are allowed"
        raise RequestRejected(413, "Content too large", detail)
    return size


def _not_found(digest: str) -> NotFound:
    return NotFound(f"there is no plan with the digest {digest!r}", hint="use the complete digest")


def get_visible_plan(connection: Connection, visibility: Visibility, digest: str) -> VisiblePlan:
    """Return a plan by its complete digest, like ``federator.views.plans.get_visible_plan``.

    Raise NotFound if there is none, or if no part of it is visible.
    """
    try:
        return plans.get_visible_plan(connection, visibility, require_storable(digest, "digest"))
    except StateError:
        raise _not_found(digest) from None


def get_whole_plan(connection: Connection, visibility: Visibility, digest: str) -> StoredPlan:
    """Return a completely visible plan. Raise NotFound, or PermissionDenied if only a part is visible."""
    visible = get_visible_plan(connection, visibility, digest)
    if visible.partial:
        raise PermissionDenied(f"a decision needs the complete plan {digest[:12]}; {visibility.name} sees only a part of it")
    return visible.stored


def sees_whole_plan(connection: Connection, visibility: Visibility, digest: str) -> bool:
    """Return whether a plan exists and is visible completely."""
    try:
        return not plans.get_visible_plan(connection, visibility, digest).partial
    except StateError:
        return False


def require_applicable(connection: Connection, visibility: Visibility, digest: str) -> Release:
    """Return the changes of a plan that may be applied now, and those that wait.

    Raise NotFound or PermissionDenied like ``get_whole_plan``. Raise StateError if all changes that were not carried out wait for a
    decision, if the plan can no longer be applied, or if it is being applied. An equal request of the same principal that is still
    queued does not count: the caller returns it.
    """
    stored = get_whole_plan(connection, visibility, digest)
    application = requests.find_application(connection, stored.digest)
    if application is not None and (application.state, application.actor) != (requests.QUEUED, visibility.name):
        cause = "a sync applies" if application.kind == "sync" else f"{application.actor} has requested the application of"
        raise StateError(
            f"{cause} the plan {digest[:12]}, and it has not ended",
            hint="wait for its end, then read the plan again",
        )
    state, content = stored.state, stored.content
    if state not in OPEN_STATES:
        raise StateError(f"the plan {digest[:12]} is {state}", hint="create a new plan")
    plan = Plan.from_json(content)
    release = approvals.get_release(connection, state, plan)
    done = list_done_changes(connection, stored.digest, content["changes"])
    may_go = len(release.changes) - len(done - {change.number for change in release.waiting})
    if not may_go and (release.waiting or state == "held"):
        reason = f": {release.waiting[0].hold}" if release.waiting else ""
        raise StateError(
            f"all {'remaining ' if done else ''}changes of the plan {digest[:12]} are held{reason}",
            hint=plan.release_command,
        )
    return release
