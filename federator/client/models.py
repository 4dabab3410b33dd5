"""Responses of the API as the client returns them. Fields that a newer service adds are ignored.

``tests/unit/api/test_client.py`` compares each model with the service's OpenAPI document: names, types and optional fields.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from federator.client.base_models import Freshness as Freshness
from federator.client.base_models import Model as Model
from federator.client.plan_models import ChangeContent as ChangeContent
from federator.client.plan_models import ChangeOutcome as ChangeOutcome
from federator.client.plan_models import PlanPage as PlanPage
from federator.client.plan_models import PlanSummary as PlanSummary
from federator.client.plan_models import PlanView as PlanView
from federator.client.plan_models import Request as Request
from federator.client.plan_models import WaitingChange as WaitingChange


class Source(Model):
    """A source with the counts of its last crawl."""

    name: str
    impl: str
    configured: bool
    schedule: str | None
    namespaces: int
    tables: int
    failed_namespaces: int
    carried_namespaces: int
    full_at: datetime | None
    freshness: Freshness


class SourcePage(Model):
    sources: list[Source]
    next: str | None


class AttentionItem(Model):
    """Something that a person should look at: a failed source, a held plan, drift."""

    key: str
    kind: str
    state: str
    severity: str
    subject: str
    target: str | None
    count: int
    detail: str | None
    by_source: dict[str, int]
    since: datetime | None
    digest: str
    snoozed_until: datetime | None


class JobView(Model):
    """A scheduled job, and when it is due next."""

    name: str
    schedule: str
    paused: bool
    last_run_id: str | None
    last_started_at: datetime | None
    next_at: datetime | None


class SourceHealth(Source):
    """A source with its verification states, the time since which its crawl is overdue, and the job that crawls it."""

    states: dict[str, int]
    overdue_since: datetime | None
    job: JobView | None


class LiveState(Model):
    """Revisions of the sources, and digests of the overview, the newest runs and the newest plans: what differs has changed."""

    overview: str
    runs: str
    plans: str
    revisions: dict[str, int]


class Overview(Model):
    """Counts of tables by verification state and of drift by severity, and what needs attention."""

    tables: int
    datasets: int
    datasets_with_several_declarations: int
    states: dict[str, int]
    drift: dict[str, int]
    active_runs: int
    attention: list[AttentionItem]
    sources: list[SourceHealth]
    freshness: list[Freshness]
    live: LiveState


class Me(Model):
    """The principal of the client's token."""

    name: str
    role: str
    scopes: list[str]
    version: str


class StoredFacts(Model):
    """What verification found at a table's location."""

    rows: int | None
    size: int | None
    written_at: datetime | None
    checked_at: datetime


class Node(Model):
    """A source, namespace or table in the tree. Of ``children``, ``tables`` and ``declarations``, null is what was not requested."""

    id: str
    name: str
    kind: str
    location: str | None
    coverage: str | None
    verified: str | None
    message: str | None
    stored: StoredFacts | None
    freshness: Freshness | None
    tables: int | None
    declarations: int | None
    children: list[Node] | None
    next: str | None


class Tree(Model):
    """One page of the children of a path; ``next`` is the cursor of the next page."""

    path: str
    freshness: Freshness | None
    nodes: list[Node]
    next: str | None


class TableVerification(Model):
    """The stored result of inspecting the location of a table."""

    canonical: str
    state: str
    message: str | None
    version: int | None
    rows: int | None
    fragments: int | None
    checked_at: datetime
    checked_through: str | None
    stored_schema: Any = Field(alias="schema")


class MirrorLink(Model):
    """A mirror that declared the target because of the origin; both are object ids."""

    mirror: str
    origin: str
    target: str
    run_id: str
    updated_at: datetime


class Table(Model):
    """One declaration with the verification of its location. ``columns`` are those of the catalog."""

    id: str
    source: str
    path: list[str]
    kind: str
    location: str | None
    properties: dict[str, str]
    doc: str | None
    owner: str | None
    columns: list[dict[str, Any]] | None = Field(alias="schema")
    native_id: str | None
    problem: str | None
    digest: str
    since_revision: int
    also_declared: list[str]
    dataset: TableVerification | None
    unverifiable: str | None
    mirrored: list[MirrorLink]
    freshness: Freshness


class MatchedPart(Model):
    """A text that matches the query; ``ranges`` are pairs of offsets."""

    field: Literal["name", "namespace", "column", "property", "doc", "owner", "location"]
    text: str
    ranges: list[tuple[int, int]]
    key: str | None = None


class Match(Model):
    """Why a table is among the results."""

    kind: Literal["name", "word", "prefix", "typo"]
    parts: list[MatchedPart]


class Hit(Node):
    """A table that a search found."""

    match: Match


class Total(Model):
    """A number of results. Not exact: at least this many."""

    count: int
    exact: bool


class SearchResults(Model):
    """A page of search results, the best first."""

    nodes: list[Hit]
    next: str | None
    freshness: list[Freshness]
    total: Total | None
    did_you_mean: list[str]
    capped: bool = False


class DriftView(Model):
    """A persistent difference between catalogs, mirrors or storage."""

    kind: str
    severity: str
    source: str
    subject: str
    other: str
    detail: str
    first_seen: datetime
    last_seen: datetime
    resolved_at: datetime | None


class DriftPage(Model):
    drift: list[DriftView]
    next: str | None
    freshness: list[Freshness]


class ListingEvidence(Model):
    """What the last crawl proves about the namespace of an object."""

    namespace: str
    state: str
    reason: str
    proves: bool
    crawled_at: datetime | None


class MirrorRole(Model):
    """The part of an object in a mirror, and the next planned action."""

    mirror: str
    role: Literal["origin", "target"]
    other: str | None
    in_ledger: bool
    next: str
    reason: str | None
    plan: str | None
    plan_state: str | None
    misses: int


class ObjectEvent(Model):
    """One event in the history of an object."""

    at: datetime
    run_id: str
    what: str
    detail: str
    mirror: str | None


class VerifiedState(Model):
    """A verification state of a location, from its first inspection (`since`) to its last one (`checked_at`)."""

    state: str
    message: str | None
    since: datetime
    checked_at: datetime | None
    version: int | None
    rows: int | None


class Explanation(Model):
    """Why an object exists or is absent."""

    id: str
    source: str
    kind: str | None
    summary: str
    location: str | None
    verified: str | None
    verified_since: datetime | None
    last_valid: VerifiedState | None
    evidence: ListingEvidence
    parts: list[MirrorRole]
    history: list[ObjectEvent]
    freshness: Freshness


class Run(Model):
    """A run of the service."""

    id: str
    kind: str
    state: str
    trigger: str
    actor: str
    started_at: datetime
    finished_at: datetime | None
    progress: str | None
    summary: dict[str, Any] | None
    error: str | None


class ListedRun(Run):
    """A run of a list. ``subjects``: the sources, mirrors, storage roots or reports that it is about. ``problem``: why it did not
    succeed."""

    subjects: list[str]
    problem: str | None


class RunPage(Model):
    runs: list[ListedRun]
    next: str | None
    freshness: list[Freshness]


class RunSource(Model):
    """The result of a run for one source."""

    source: str
    revision: int | None
    state: str
    message: str | None
    tables: int
    namespaces: int
    added: int
    changed: int
    removed: int
    failed_namespaces: int
    carried: int
    full_because: str | None


class RunChange(Model):
    """A write of a run, from the journal."""

    op_id: str
    mirror: str
    plan: str
    action: str
    target_source: str
    target_path: str
    origin_path: str | None
    state: str
    code: str | None
    message: str | None
    intent_at: datetime
    outcome_at: datetime | None


class RunStage(Model):
    """A stage of a run for one subject: a source, a mirror or a storage root. ``calls`` and ``errors`` are null if not counted."""

    stage: str
    subject: str
    state: str
    detail: str | None
    started_at: datetime
    finished_at: datetime | None
    calls: int | None
    errors: int | None
    usual_seconds: float | None


class RunDetail(Run):
    """A run with its results by source, its stages and its first 1000 writes."""

    sources: list[RunSource]
    stages: list[RunStage]
    changes: list[RunChange]
    freshness: list[Freshness]


class ApplyRequested(Request):
    """A request to apply a plan. ``waiting`` lists the changes that are not applied until they are approved."""

    waiting: list[WaitingChange]


class Mirror(Model):
    """A mirror with its last plan and run."""

    name: str
    origin: str = Field(alias="from")
    target: str = Field(alias="to")
    schedule: str | None
    paused: bool
    state: str
    tables: int
    namespaces: int
    last_plan: PlanSummary | None
    last_run: Run | None
    held: list[PlanSummary]
    rule: dict[str, Any]
    toml: str
    digest: str
    freshness: list[Freshness]


class MirrorPage(Model):
    mirrors: list[Mirror]
    next: str | None
