"""What the API answers. Times are ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from federator.connector.options import MASKED


def moment(value: object) -> object:
    """Seconds since the epoch as a UTC time."""
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value


Moment = Annotated[datetime, BeforeValidator(moment)]
Maybe = Moment | None


class Answer(BaseModel):
    """The base of every answer: made from our own views by attribute."""

    model_config = ConfigDict(from_attributes=True)


class Freshness(Answer):
    """How fresh the index's knowledge of a source is."""

    source: str = Field(examples=["lake_hive"])
    revision: int = Field(examples=[12])
    state: str = Field(examples=["ok"], description="ok, partial, failed, or never (crawled)")
    message: str | None
    crawled_at: Maybe
    published_at: Maybe


Told = Annotated[list[Freshness], Field(description="of every source that the answer speaks of, by name")]


class Node(Answer):
    """One entry of the tree."""

    id: str = Field(examples=["lake_hive$sales$orders"], description="its path in text form, from the root")
    name: str = Field(examples=["orders"])
    kind: str = Field(examples=["table"], description="source, namespace, table, managed_table or undescribed")
    location: str | None = Field(examples=["s3://lake/sales/orders.lance"])
    coverage: str | None = Field(examples=[None], description="what a namespace's last listing proved")
    verified: str | None = Field(examples=["valid"], description="what opening a table's location found")
    message: str | None
    freshness: Freshness | None = Field(None, description="of a source")
    children: list[Node] | None = Field(None, description="with depth > 1; null where they were not asked for")
    next: str | None = Field(None, description="the cursor of the next page of children")


class Tree(Answer):
    """The entries below a path."""

    path: str = Field(examples=["lake_hive$sales"])
    freshness: Freshness | None = Field(description="of the path's source; null at the root, where each source has its own")
    nodes: list[Node]
    next: str | None = Field(description="the cursor of the next page; null: that was all")
    as_of: Maybe = Field(default=None, description="the moment that was asked for; null: now")


class Home(Answer):
    """Where an entry of the merged view is."""

    id: str = Field(examples=["lake_hive$hive$sales$orders"], description="its path from the root of the sources")
    source: str = Field(examples=["lake_hive"])
    kind: str = Field(examples=["table"])
    location: str | None = Field(examples=["s3://lake/sales/orders.lance"])
    verified: str | None = Field(examples=["valid"])


class MergedNode(Answer):
    """What sources call the same."""

    id: str = Field(examples=["sales$orders"], description="its path in the merged view")
    name: str = Field(examples=["orders"])
    kind: str = Field(examples=["table"])
    homes: list[Home] = Field(description="every declaration behind it, the default first")
    default: str = Field(
        examples=["lake_hive$hive$sales$orders"], description="the home that is meant where one must be chosen"
    )
    conflict: bool = Field(examples=[False], description="its tables lie at different places")
    children: list[MergedNode] | None = Field(None, description="with depth > 1; null where they were not asked for")
    next: str | None = Field(None, description="the cursor of the next page of children")


class MergedTree(Answer):
    """The entries below a path of the merged view."""

    path: str = Field(examples=["sales"])
    freshness: Told
    nodes: list[MergedNode]
    next: str | None = Field(description="the cursor of the next page; null: that was all")
    as_of: Maybe = Field(
        default=None, description="the moment that was asked for; null: now, and freshness says how fresh that is"
    )


class FacetValue(Answer):
    """How many matches have one value."""

    value: str = Field(examples=["lake_hive"])
    count: int = Field(examples=[42])


class Facets(Answer):
    """How the matches are spread: the most frequent values first, up to 20 of each."""

    counted: int = Field(examples=[42], description="matches that were counted")
    exact: bool = Field(examples=[True], description="false: there are more matches, and each count is a lower bound")
    source: list[FacetValue]
    namespace: list[FacetValue] = Field(description="by path from the root")
    state: list[FacetValue] = Field(description="what opening the tables' locations found; `unverified`: never opened")
    owner: list[FacetValue]


class Found(Answer):
    """Tables that match a search, with the freshness of their sources."""

    nodes: list[Node]
    next: str | None
    freshness: Told
    facets: Facets | None = Field(None, description="with facets=true")
    capped: bool = Field(
        False, description="more tables match equally well than the 1,000 that are put in order: this page may leave some out"
    )


class Mirrored(Answer):
    """One declaration that a mirror made from, or into, this table."""

    mirror: str
    origin: str
    target: str
    run_id: str
    updated_at: Moment


class Dataset(Answer):
    """What verification found at the table's location."""

    canonical: str
    state: str = Field(examples=["valid"])
    message: str | None
    version: int | None
    rows: int | None
    fragments: int | None
    checked_at: Moment
    checked_through: str | None = Field(description="the source whose settings it was opened with; null: one that is not shown")
    schema_: Any = Field(alias="schema", description="the Lance schema")

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)


class Declared(Answer):
    """One declaration, and who else declares its location."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    id: str = Field(examples=["lake_hive$sales$orders"])
    source: str
    path: list[str]
    kind: str
    location: str | None
    properties: dict[str, str] = Field(description=f"as the catalog has them; values that are secrets by name are {MASKED}")
    doc: str | None
    owner: str | None
    schema_: list[dict[str, Any]] | None = Field(alias="schema", description="the catalog's own column list")
    native_id: str | None
    problem: str | None
    digest: str
    since_revision: int
    also_declared: list[str]


class Table(Declared):
    """Everything known about one declaration."""

    dataset: Dataset | None
    mirrored: list[Mirrored]
    freshness: Freshness


class Declaration(Answer):
    """One catalog's word on a place."""

    id: str = Field(examples=["lake_hive$sales$orders"])
    kind: str = Field(examples=["table"], description="table, managed_table or undescribed")
    location: str = Field(examples=["s3a://lake/sales/orders.lance/"], description="as it is written there")


class Disagreement(Answer):
    """What declarations of one place say differently."""

    field: str = Field(examples=["schema"], description="schema, doc or property:<key>")
    sides: list[list[str]] = Field(description="the declarations, in groups that agree among themselves")


class Verified(Answer):
    """What opening a place found, from its newest manifest."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    message: str | None
    version: int | None
    rows: int | None
    size: int | None = Field(description="bytes of the data files")
    fragments: int | None
    indices: int | None
    format: str | None = Field(examples=["2.1"], description="the version of Lance's file format")
    fingerprint: str | None = Field(description="a digest of the schema")
    changed_at: Maybe = Field(description="when the newest version was written")
    checked_at: Moment
    checked_through: str | None = Field(description="the source whose settings it was opened with; null: one that is not shown")
    schema_: Any = Field(alias="schema", description="the Lance schema")


class PlaceOfTables(Answer):
    """A Dataset: what lies at one canonical location, however many catalogs declare it."""

    location: str = Field(examples=["s3://lake/sales/orders.lance"])
    state: str = Field(examples=["valid"], description="what opening it found; unverified: never opened")
    declarations: list[Declaration]
    disagreements: list[Disagreement]
    duplicates: list[str] = Field(description="declarations that one source has under more than one name")
    inside: list[str] = Field(description="declared places above this one, nearest first")
    holds: list[str] = Field(description="declared places below this one, the first 100; of one place only")
    verified: Verified | None


class OnePlace(PlaceOfTables):
    """A Dataset, and how fresh what is known of its declarations is."""

    freshness: Told


class Datasets(Answer):
    """A page of Datasets."""

    datasets: list[PlaceOfTables]
    next: str | None
    freshness: Told


class Drift(Answer):
    """Where catalogs, or a catalog and its storage, say different things."""

    kind: str = Field(examples=["location_differs"])
    severity: str = Field(examples=["high"], description="high, medium or low")
    source: str
    subject: str = Field(examples=["aws$sales$orders"], description="the table that it is about")
    other: str = Field(examples=["lake_hive$sales$orders"], description="the path or location that it differs from")
    detail: str
    first_seen: Moment
    last_seen: Moment
    resolved_at: Maybe


class Drifts(Answer):
    """A page of drift."""

    drift: list[Drift]
    next: str | None
    freshness: Told


class Source(Answer):
    """A source, as configured and as crawled."""

    name: str = Field(examples=["lake_hive"])
    impl: str = Field(examples=["hive3"])
    configured: bool
    schedule: str | None = Field(examples=["*/15 * * * *"])
    namespaces: int
    tables: int
    failed_namespaces: int
    carried_namespaces: int = Field(
        description="not read by the last crawl, since the catalog's feed of changes did not name them"
    )
    full_at: Maybe = Field(description="when everything was last read")
    freshness: Freshness


class Sources(Answer):
    sources: list[Source]
    next: str | None = Field(description="the cursor of the next page; null: that was all")


class Run(Answer):
    """One execution."""

    id: str
    kind: str = Field(examples=["crawl"])
    state: str = Field(examples=["ok"], description="running, ok, partial, failed, held or interrupted")
    trigger: str
    actor: str
    started_at: Moment
    finished_at: Maybe
    progress: str | None = Field(description="while it runs: a line a step")
    summary: dict[str, Any] | None
    error: str | None


class Runs(Answer):
    """A page of runs."""

    runs: list[Run]
    next: str | None
    freshness: Told


class RunSource(Answer):
    """What a run did with one source."""

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
    carried: int = Field(description="namespaces that were not read, since the catalog's feed of changes did not name them")
    full_because: str | None = Field(description="why all were read, where a feed of changes might have told")


class RunChange(Answer):
    """One external write of a run, as its journal has it."""

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
    intent_at: Moment
    outcome_at: Maybe


class RunDetail(Run):
    """One execution with its sources and its writes."""

    sources: list[RunSource]
    changes: list[RunChange]
    freshness: Told


Kind = Literal["crawl", "plan", "sync", "apply"]


class RunRequest(BaseModel):
    """What is to be run: ``sources`` with crawl, ``mirrors`` with plan and sync, ``plans`` (digests) with apply; none means all. A
    crawl that is ``full`` reads everything, also where a feed of changes names what is new."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"kind": "crawl", "sources": ["lake_hive"]}})

    kind: Kind
    sources: list[str] = Field([], max_length=1000)
    mirrors: list[str] = Field([], max_length=1000)
    plans: list[str] = Field([], max_length=100)
    full: bool = False


class DeclareRequest(BaseModel):
    """Which tables, by the places where they lie, are to be declared in which sources, and under what names."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"places": ["s3://lake/sales/orders.lance"], "into": ["lake_hive"], "name": "sales$orders"}
        },
    )

    places: list[str] = Field(min_length=1, max_length=1000, description="locations, in any spelling")
    into: list[str] = Field(min_length=1, max_length=100, description="sources")
    name: str | None = Field(
        None, max_length=4000,
        description="the path there, `sales$orders`, also with `{table}` and `{1}`, `{2}` for the directories above; null: as the "
        "directories are called",
    )  # fmt: skip


class Requested(Answer):
    """A request to the worker. ``run_id`` is known once its run has begun."""

    id: int
    kind: str = Field(examples=["crawl"])
    state: str = Field(examples=["queued"], description="queued, running, done, failed or cancelled")
    actor: str
    run_id: str | None
    created_at: Moment


class WaitingChange(Answer):
    """A change of a plan that does not go now."""

    change: int = Field(examples=[0], description="its position in the plan's `changes`, from 0")
    action: str = Field(examples=["deregister_table"])
    target: str = Field(examples=["aws$sales$orders"])
    reason: str = Field(examples=["held_by_guard"], description="held_by_guard, approval_required or outside_window")
    held_by: str = Field(examples=["max_delete_percent"], description="the guard that holds it, or a change that it depends on")
    detail: str = Field(examples=["5 of 9 tables removed or moved within 24 h, max_delete_percent is 20"])


class ApplyRequested(Requested):
    """A request to apply a plan. `waiting` are the changes that stay until they are approved; the others are made."""

    waiting: list[WaitingChange]


class PlanView(Answer):
    """A plan with what became of it."""

    digest: str
    mirror: str
    run_id: str
    state: str = Field(examples=["held"], description="ready, held, approved, rejected, applied or outdated")
    created_at: Moment
    decided_at: Maybe
    decided_by: str | None
    partial: bool = Field(
        examples=[False], description="the caller sees a part of it: its changes and refusals inside the scopes, without guards"
    )
    guarded: str | None = Field(None, description="the digest of the guarded set, which an approval or a rejection is of")
    waiting: list[WaitingChange] = Field(
        [], description="the changes that do not go now; the others may. Empty for a plan that is applied or outdated"
    )
    plan: dict[str, Any]
    freshness: Told


class PlanSummary(Answer):
    """A plan without its body."""

    digest: str = Field(examples=["9f2c" * 16])
    mirror: str = Field(examples=["hive-to-glue"])
    run_id: str
    state: str = Field(examples=["held"], description="ready, held, approved, rejected, applied or outdated")
    created_at: Moment
    decided_at: Maybe
    decided_by: str | None
    changes: dict[str, int] = Field(examples=[{"declare_table": 3}], description="how many changes it has, by action")
    refusals: dict[str, int] = Field(examples=[{"no_location": 1}], description="what it leaves as it is, by reason")
    partial: bool = Field(
        examples=[False], description="the caller sees a part of it, and the counts are of that part; deciding needs all of it"
    )


class Plans(Answer):
    """A page of plans."""

    plans: list[PlanSummary]
    next: str | None
    freshness: Told


class Mirror(Answer):
    """A mirror as configured, and how it stands."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True, populate_by_name=True)

    name: str = Field(examples=["hive-to-glue"])
    origin: str = Field(alias="from", examples=["lake_hive"])
    target: str = Field(alias="to", examples=["aws"])
    schedule: str | None = Field(examples=["@every 15m"])
    paused: bool
    state: str = Field(examples=["ok"], description="held: a plan waits for a decision; else how its last run went, or never")
    tables: int = Field(examples=[120], description="tables that it has declared and that are in its ledger")
    namespaces: int = Field(examples=[4], description="namespaces that it has made")
    last_plan: PlanSummary | None
    last_run: Run | None
    held: list[PlanSummary] = Field(description="plans that wait for a decision, the newest first, up to 10")
    rule: dict[str, Any] = Field(examples=[{"include": ["hive$sales$*"], "delete": "owned"}])
    digest: str = Field(description="of the rule: plans and ledger are bound to it")
    freshness: Told


class Mirrors(Answer):
    """Mirrors by name."""

    mirrors: list[Mirror]
    next: str | None = Field(description="the cursor of the next page; null: that was all")


class RunProgress(Run):
    """A run as it stands: the data of one event."""

    sources: list[RunSource]
    writes: dict[str, int] = Field(examples=[{"done": 12, "failed": 1}], description="its writes by state")
    freshness: Told


class Proof(Answer):
    """What one listing proved of one namespace."""

    namespace: str = Field(examples=["lake_hive$sales"], description="by path from the root")
    presence: str = Field(examples=["failed"], description="complete, carried, failed or skipped: which children there are")
    presence_reason: str = Field(examples=["denied"])
    presence_code: int | None = Field(examples=[15], description="of the Lance Namespace spec, of a failure")
    detail: str = Field(examples=["failed"], description="the same of what each child says of itself")
    detail_reason: str
    detail_code: int | None
    records: int = Field(examples=[12], description="children that were read")
    carried_from: int | None = Field(examples=[None], description="of what was carried, the revision in which it was read")


class SourceCoverage(Answer):
    """What the last crawl of a source proved, namespace by namespace."""

    freshness: Freshness
    namespaces: list[Proof]
    next: str | None


class Job(Answer):
    """A scheduled job."""

    name: str = Field(examples=["crawl:lake_hive"])
    schedule: str = Field(examples=["@every 15m"])
    paused: bool
    last_run_id: str | None
    last_started_at: Maybe


class Jobs(Answer):
    jobs: list[Job]
    next: str | None = Field(description="the cursor of the next page; null: that was all")


class Health(Answer):
    status: Literal["ok"] = "ok"


class Evidence(Answer):
    """The nearest listing that says whether an object exists."""

    namespace: str = Field(examples=["sales"])
    state: str = Field(examples=["complete"])
    reason: str
    proves: bool = Field(description="whether it says for certain that the object is there or not")
    crawled_at: Maybe


class Part(Answer):
    """The object's part in one mirror."""

    mirror: str = Field(examples=["hive-to-glue"])
    role: Literal["origin", "target"]
    other: str | None = Field(examples=["aws$sales$orders"], description="the object at the mirror's other end")
    in_ledger: bool
    next: str = Field(examples=["nothing: both ends are as the mirror wants them"])
    reason: str | None = Field(examples=[None], description="the reason code, where the mirror leaves it as it is")
    plan: str | None
    plan_state: str | None
    misses: int


class Event(Answer):
    """One thing that happened to the object: seen by a crawl, or written by a mirror."""

    at: Moment
    run_id: str
    what: str = Field(examples=["declare_table aws$sales$orders: done"])
    detail: str
    mirror: str | None


class Explanation(Answer):
    """Why an object is here or not, and what would happen to it next."""

    id: str = Field(examples=["aws$sales$orders"])
    source: str
    kind: str | None = Field(examples=["table"], description="null: nothing of that name is in the index")
    summary: str = Field(examples=["aws has it since mirror hive-to-glue declared it from lake_hive$sales$orders"])
    location: str | None
    verified: str | None
    evidence: Evidence
    parts: list[Part]
    history: list[Event]
    freshness: Freshness


class AuditEvent(Answer):
    """One sealed line of the append-only record."""

    seq: int = Field(examples=[812])
    at: Moment
    kind: str = Field(examples=["write"])
    actor: str
    run_id: str | None
    subject: str = Field(examples=["aws$sales$orders"])
    detail: dict[str, Any]
    previous: str = Field(description="the digest of the event before")
    digest: str = Field(description="SHA-256 over the number, the digest before and the event's text")


class AuditEvents(Answer):
    """A page of audit events, newest first."""

    events: list[AuditEvent]
    next: str | None = Field(description="the cursor of the next page; null: that was all")


class ToldNotice(Answer):
    """One of the notices that a notification tells of."""

    event: str = Field(examples=["source_failed"])
    severity: Literal["info", "warning", "error", "critical"]
    at: Moment
    subject: str
    message: str
    source: str | None
    mirror: str | None
    run: str | None


class Notification(Answer):
    """One message to one channel, about a group of notices."""

    id: str = Field(description="what a receiver tells twins by")
    channel: str = Field(examples=["ops"])
    state: Literal["queued", "sent", "dead"]
    severity: Literal["info", "warning", "error", "critical"]
    events: int = Field(description="how many notices it tells of")
    counts: dict[str, int] = Field(description="notices by event")
    group: dict[str, str] = Field(description="what its notices share")
    first: list[ToldNotice] = Field(description="the first of them")
    created_at: Moment
    due_at: Moment = Field(description="when it is tried next, while it is queued")
    attempts: int
    error: str | None = Field(description="why the last try failed")
    ended_at: Moment | None = Field(description="when it was sent, or given up")


class Notifications(Answer):
    """A page of notifications, newest first."""

    notifications: list[Notification]
    next: str | None = Field(description="the cursor of the next page; null: that was all")
