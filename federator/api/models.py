"""What the API answers. Times are ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from federator.connector.options import is_secret_key

MASKED = "(masked)"


def moment(value: object) -> object:
    """Seconds since the epoch as a UTC time."""
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value


def masked(value: Any) -> Any:
    """JSON data without the values whose names say that they are secrets."""
    if isinstance(value, dict):
        return {key: MASKED if is_secret_key(str(key)) and isinstance(v, str) else masked(v) for key, v in value.items()}
    return [masked(item) for item in value] if isinstance(value, list | tuple) else value


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


class Found(Answer):
    """Tables that match a search, with the freshness of their sources."""

    nodes: list[Node]
    next: str | None
    freshness: list[Freshness]


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
    checked_through: str
    schema_: Any = Field(alias="schema", description="the Lance schema")

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)


class Table(Answer):
    """Everything known about one declaration."""

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
    dataset: Dataset | None
    also_declared: list[str]
    mirrored: list[Mirrored]
    freshness: Freshness


class Source(Answer):
    """A source, as configured and as crawled."""

    name: str = Field(examples=["lake_hive"])
    impl: str = Field(examples=["hive3"])
    configured: bool
    schedule: str | None = Field(examples=["*/15 * * * *"])
    namespaces: int
    tables: int
    failed_namespaces: int
    freshness: Freshness


class Sources(Answer):
    sources: list[Source]


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
    runs: list[Run]
    next: str | None


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


Kind = Literal["crawl", "plan", "sync", "apply"]


class RunRequest(BaseModel):
    """What is to be run: ``sources`` with crawl, ``mirrors`` with plan and sync, ``plans`` (digests) with apply; none means all."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"kind": "crawl", "sources": ["lake_hive"]}})

    kind: Kind
    sources: list[str] = Field([], max_length=1000)
    mirrors: list[str] = Field([], max_length=1000)
    plans: list[str] = Field([], max_length=100)


class Requested(Answer):
    """A request to the worker. ``run_id`` is known once its run has begun."""

    id: int
    kind: str = Field(examples=["crawl"])
    state: str = Field(examples=["queued"], description="queued, running, done, failed or cancelled")
    actor: str
    run_id: str | None
    created_at: Moment


class PlanView(Answer):
    """A plan with what became of it."""

    digest: str
    mirror: str
    run_id: str
    state: str = Field(examples=["held"], description="ready, held, approved, rejected, applied or outdated")
    created_at: Moment
    decided_at: Maybe
    decided_by: str | None
    plan: dict[str, Any]


class Job(Answer):
    """A scheduled job."""

    name: str = Field(examples=["crawl:lake_hive"])
    schedule: str = Field(examples=["@every 15m"])
    paused: bool
    last_run_id: str | None
    last_started_at: Maybe


class Jobs(Answer):
    jobs: list[Job]


class Health(Answer):
    status: Literal["ok"] = "ok"
