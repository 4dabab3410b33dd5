"""Bodies of requests to the worker."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["crawl", "plan", "sync", "apply", "verify"]


class RunRequest(BaseModel):
    """A request for a run. ``sources`` belongs to crawl, ``mirrors`` to plan and sync; an empty list means all. ``plans`` (digests)
    belongs to apply, and ``tables`` (object ids) to verify. With ``full``, a crawl reads everything and ignores change feeds."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"kind": "crawl", "sources": ["lake_hive"]}})

    kind: Kind
    sources: list[str] = Field([], max_length=1000)
    mirrors: list[str] = Field([], max_length=1000)
    plans: list[str] = Field([], max_length=100)
    tables: list[Annotated[str, Field(max_length=4000)]] = Field([], max_length=20)
    full: bool = False


class DecisionRequest(BaseModel):
    """The comment of a decision about a plan."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"comment": "the two tables moved to the archive"}})

    comment: str | None = Field(None, max_length=2000, description="for those who read the plan or the audit log")


class DeclareRequest(BaseModel):
    """A request to declare tables: their locations, the sources, and their names."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"places": ["s3://lake/sales/orders.lance"], "into": ["lake_hive"], "name": "sales$orders"}
        },
    )

    places: list[str] = Field(min_length=1, max_length=100, description="locations of the tables, in any spelling")
    into: list[str] = Field(min_length=1, max_length=100, description="sources to declare the tables in")
    name: str | None = Field(
        None, max_length=4000,
        description="path key in the source, such as `sales$orders`. `{table}` stands for the table's directory, `{1}`, `{2}` for the "
        "directories above it; null: use the names of the directories",
    )  # fmt: skip
