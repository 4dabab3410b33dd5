"""Plans that a principal may see: completely, in part, or not at all.

A principal sees a mirror's plan completely if its scopes cover both sources, because guards and evidence refer to all objects of the
mirror. Otherwise it sees the changes and refusals whose origin and target are both covered, and counts of these only. A plan without
any of them does not exist for the principal. A partial plan has no text that may refer to hidden objects: no guards, no details of
refusals, no number of selected tables, no comment on the decision. Declarations by users have no origin: their plan is complete if the
scopes cover the target, or all changes of a plan without refusals, because these name other paths of the target.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, TypeVar
from weakref import WeakValueDictionary

from pydantic import Field
from sqlalchemy import Connection, select

from federator.connector import StateError
from federator.model import parse_path_key
from federator.planning.user_declarations import PLAN_NAME_PREFIX, user_plan_target
from federator.store import plans
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.plans import PlanCounts, PlanRecord, StoredPlan
from federator.views import plan_outcomes
from federator.views.visibility import Visibility

# Counts of plans by index, digest and scopes, which never change. A page may need those of many earlier plans: all that a principal
# sees nothing of.
_MAX_CACHED = 20_000
_count_cache: dict[tuple[object, ...], _VisibleCounts | None] = {}
_BATCH_ROWS = 50

#: characters of a plan that takes so much memory that one is read at a time, by a process of its own: 50,000 changes take 240 MiB
LARGE_PLAN = 4_000_000
_large_plan = threading.Lock()
# By principal: the requests of one wait for each other before they wait for those of others.
_large_plan_of: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

Record = TypeVar("Record", bound=PlanRecord)
Counted = dict[str, int]


@dataclass(frozen=True, slots=True)
class _VisibleCounts:
    counts: PlanCounts
    partial: bool


@dataclass(frozen=True, slots=True)
class PlanSummary(PlanRecord):
    """A plan without its body."""

    changes: Annotated[Counted, Field(examples=[{"declare_table": 3}], description="number of changes by action")]
    done: Annotated[
        Counted,
        Field(
            examples=[{"declare_table": 2}],
            description="number of carried-out changes by action; empty if the plan can no longer be applied",
        ),
    ]
    refusals: Annotated[Counted, Field(examples=[{"no_location": 1}], description="number of refusals by reason")]
    held: Annotated[
        list[str],
        Field(
            examples=[["max_delete_percent: 4 of 9 tables removed or moved within 24 h, max_delete_percent is 20"]],
            description="why guards or policies held it, each with the guard's name; empty if the plan is shown in part",
        ),
    ]
    partial: Annotated[
        bool,
        Field(
            examples=[False],
            description="true: the principal sees and counts only a part of the plan; a decision needs the complete plan",
        ),
    ]

    @property
    def remaining(self) -> Counted:
        """The number of changes by action that were not carried out. Actions without any are missing."""
        return dict(Counter(self.changes) - Counter(self.done))


@dataclass(frozen=True, slots=True)
class TableRefusal:
    """A refusal about one table in the newest plan of a mirror. ``plan`` is the digest of the plan."""

    mirror: str
    reason: str
    detail: str
    plan: str


@dataclass(frozen=True, slots=True)
class VisiblePlan:
    """A plan as a principal sees it. ``part`` is the visible part of its content, None if all of it is visible."""

    stored: StoredPlan
    part: dict[str, Any] | None = None

    @property
    def partial(self) -> bool:
        return self.part is not None


@contextmanager
def bounding_memory(size: int, principal: str) -> Iterator[bool]:
    """Yield whether a plan of ``size`` characters is large, so that a process of its own reads it. The block reads the plan.

    One thread at a time is in a block with a large plan. The threads of one principal, given by its name, first wait for each other:
    so another principal waits for one of them, not for all.
    """
    if size <= LARGE_PLAN:
        yield False
        return
    with _large_plan_of.setdefault(principal, threading.Lock()), _large_plan:
        yield True


def list_visible_plans(
    connection: Connection, viewer: Visibility, *, mirror: str | None = None, state: str | None = None, run: str | None = None,
    digest: str | None = None, after: tuple[float, str] | None = None, limit: int = 20,
) -> list[PlanSummary]:  # fmt: skip
    """List the plans that are visible at least in part, newest first. Filters as for ``plans.list_plans``."""
    mirrors = None if viewer.scopes.covers_all else _list_mirrors(viewer)
    if mirror is not None:
        mirrors = [mirror] if mirrors is None or mirror in mirrors else []
    visible: list[PlanSummary] = []
    while len(visible) < limit:
        size = limit if viewer.scopes.covers_all else _BATCH_ROWS
        records = plans.list_plans(connection, mirrors=mirrors, state=state, run=run, digest=digest, after=after, limit=size)
        # Plans that are over may have a million lines in the journal.
        done = plan_outcomes.count_done(connection, [record.digest for record in records if record.state in plans.OPEN_STATES])
        summaries = (_summarize(connection, viewer, record, done.get(record.digest, {})) for record in records)
        visible += [summary for summary in summaries if summary is not None]
        if len(records) < size:
            break
        after = (records[-1].created_at, records[-1].digest)
    return visible[:limit]


def list_table_refusals(index: Index, origins: Mapping[str, str], source: str, path: str) -> list[TableRefusal]:
    """Return the refusals about a table, by its path key, in the newest plan of each mirror. ``origins`` are those of the mirrors."""
    refusals: list[TableRefusal] = []
    with index.read() as connection:
        for mirror, origin in origins.items():
            newest = plans.find_newest_plan(connection, mirror, about=path)
            if newest is None or newest.size == 0:
                continue
            plan = plans.get_plan(connection, newest.record.digest)
            refusals += (
                TableRefusal(mirror, refusal["reason"], refusal["detail"], plan.digest)
                for refusal in plan.content["refusals"]
                if (refusal["target_source"], refusal["target_path"]) == (source, path)
                or (origin, refusal["origin_path"]) == (source, path)
            )
    return refusals


def _summarize(connection: Connection, viewer: Visibility, record: PlanRecord, done: Counted) -> PlanSummary | None:
    """Return the visible part of a plan without its body. None if nothing of it is visible. ``done`` is of the whole plan."""
    visible = _count_visible(connection, viewer, record.digest, record.mirror)
    if visible is None:
        return None
    if visible.partial:
        record, done = _without_comment(record), _count_visible_done(connection, viewer, record) if done else done
    counts = visible.counts
    return PlanSummary(
        **asdict(record), changes=counts.changes, done=done, refusals=counts.refusals, held=list(counts.held),
        partial=visible.partial,
    )  # fmt: skip


def get_visible_plan(connection: Connection, viewer: Visibility, digest: str) -> VisiblePlan:
    """Return a plan by its complete digest.

    Raise StateError if the plan does not exist or is not visible.
    """
    _get_mirror(connection, viewer, digest)
    stored = plans.get_plan(connection, digest)
    if viewer.sees_whole(stored.mirror):
        return VisiblePlan(stored)
    body = stored.content
    visible = _visible_body(viewer, stored.mirror, body)
    if visible is None:
        raise StateError(f"no plan has the digest {digest!r}")
    return VisiblePlan(stored) if visible is body else VisiblePlan(_without_comment(stored), visible)


def measure_visible_plan(connection: Connection, viewer: Visibility, digest: str) -> tuple[int, bool]:
    """Return the number of characters of a plan, without reading it, and whether the viewer sees its mirror completely.

    Raise StateError if no part of a plan of its mirror is visible.
    """
    mirror = _get_mirror(connection, viewer, digest)
    return plans.measure_plan(connection, digest), viewer.sees_whole(mirror)


def _get_mirror(connection: Connection, viewer: Visibility, digest: str) -> str:
    """Return the mirror of a plan of which the viewer may see something. Raise StateError if there is none.

    The body, which may be large, is not read: neither its size nor the time of the response tells of hidden plans.
    """
    mirror = plans.find_mirror(connection, digest)
    if mirror is None or not (viewer.scopes.covers_all or mirror in _list_mirrors(viewer)):
        raise StateError(f"no plan has the digest {digest!r}")
    return mirror


def _list_mirrors(viewer: Visibility) -> list[str]:
    """List the mirrors of whose plans a viewer may see something, and the names of plans by users that it may see."""
    targets = {prefix[0] for prefix in viewer.scopes.prefixes if prefix}
    return [*viewer.mirrors, *viewer.origins, *(f"{PLAN_NAME_PREFIX}{target}" for target in sorted(targets))]


def _without_comment(record: Record) -> Record:
    """Return a plan that is visible in part: a comment may name what is hidden."""
    return replace(record, decision_comment=None)


def _count_visible(connection: Connection, viewer: Visibility, digest: str, mirror: str) -> _VisibleCounts | None:
    """Return the counts of the visible part of a plan. None if nothing of it is visible."""
    if viewer.sees_whole(mirror):
        return _VisibleCounts(plans.count_plan(connection, digest), partial=False)
    key = (connection.engine, digest, viewer.origins.get(mirror, ""), *viewer.scopes.texts)
    # Another thread may clear the cache between a check and a read, so read it once.
    with suppress(KeyError):
        return _count_cache[key]
    counts = _count_part(connection, viewer, digest, mirror)
    while len(_count_cache) >= _MAX_CACHED:
        _count_cache.pop(next(iter(_count_cache)), None)
    _count_cache[key] = counts
    return counts


def _count_part(connection: Connection, viewer: Visibility, digest: str, mirror: str) -> _VisibleCounts | None:
    """Return what ``_count_visible`` returns for a viewer who does not see the whole mirror, with one item in memory at a time."""
    target_of_user, origin = user_plan_target(mirror), viewer.origins.get(mirror, "")
    if not (target_of_user or origin):
        return None
    text = connection.execute(select(t.plan.c.body).where(t.plan.c.digest == digest)).scalar_one()
    part = plans.count_items(
        (key, item)
        for key, item, is_item in plans.iter_body(text)
        if is_item
        and key in ("changes", "refusals")
        and _covers_both_ends(viewer, item, item["origin_source"] if key == "changes" else origin)
    )
    if not (part.changes or part.refusals):
        return None
    whole = plans.count_plan(connection, digest) if target_of_user else part
    is_whole = target_of_user is not None and whole.changes == part.changes and not whole.refusals
    return _VisibleCounts(whole if is_whole else part, partial=not is_whole)


def _count_visible_done(connection: Connection, viewer: Visibility, record: PlanRecord) -> Counted:
    body = _visible_body(viewer, record.mirror, plans.get_plan(connection, record.digest).content)
    changes = body["changes"] if body is not None else []
    done = plan_outcomes.list_done_changes(connection, record.digest, changes)
    return dict(Counter(changes[number]["action"] for number in sorted(done)))


def _visible_body(viewer: Visibility, mirror: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the visible part of a plan's body for a viewer who does not see its whole mirror: the body itself if all of it is
    visible, None if nothing is."""
    target_of_user, origin = user_plan_target(mirror), viewer.origins.get(mirror, "")
    if not (target_of_user or origin):
        return None
    changes = [change for change in body["changes"] if _covers_both_ends(viewer, change, change["origin_source"])]
    refusals = [refusal for refusal in body["refusals"] if _covers_both_ends(viewer, refusal, origin)]
    if not (changes or refusals):
        return None
    if target_of_user and len(changes) == len(body["changes"]) and not body["refusals"]:
        return body
    return {
        "mirror": body["mirror"],
        "origin_revision": body["origin_revision"],
        "target_revision": body["target_revision"],
        "changes": list(_hide_partial_pairs(changes)),
        "refusals": [{**refusal, "detail": ""} for refusal in refusals],
        "held": [],
    }


def _covers_both_ends(viewer: Visibility, line: Mapping[str, Any], origin: str) -> bool:
    """Return whether the scopes cover origin and target of a change or a refusal, as far as it has them."""
    sides = [
        (source, line[end]) for source, end in ((origin, "origin_path"), (line["target_source"], "target_path")) if line[end]
    ]
    target_visible = viewer.scopes.is_visible((line["target_source"],))
    covered = all(viewer.scopes.covers((source, *parse_path_key(path))) for source, path in sides)
    return bool(sides) and target_visible and covered


def _hide_partial_pairs(changes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Remove the pair id of a rename from a change whose counterpart is hidden, and the earlier origin from all reasons."""
    pairs = Counter(change.get("pair") for change in changes)
    for change in changes:
        alone = change.get("pair") is not None and pairs[change["pair"]] < 2
        fields = {key: value for key, value in change.items() if not (alone and key == "pair")}
        # The text after " for " names an earlier origin, which may be hidden.
        yield {**fields, "reason": change["reason"].partition(" for ")[0]}
