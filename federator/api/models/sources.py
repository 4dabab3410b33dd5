"""Responses about sources and the coverage of their crawls."""

from __future__ import annotations

from pydantic import Field

from federator.api.models.base import ResponseModel
from federator.store.field_types import OptionalTimestamp
from federator.views.freshness import Freshness


class Source(ResponseModel):
    """A source with its configuration and the counts of its last crawl."""

    name: str = Field(examples=["lake_hive"])
    impl: str = Field(examples=["hive3"])
    configured: bool
    schedule: str | None = Field(examples=["*/15 * * * *"])
    namespaces: int
    tables: int
    failed_namespaces: int
    carried_namespaces: int = Field(
        description="namespaces that the last crawl did not read, because the change feed did not name them"
    )
    full_at: OptionalTimestamp = Field(description="time of the last full crawl")
    freshness: Freshness


class SourcePage(ResponseModel):
    sources: list[Source]
    next: str | None = Field(description="cursor of the next page; null: last page")


class NamespaceCoverage(ResponseModel):
    """The coverage of one namespace: the evidence of the last crawl."""

    namespace: str = Field(examples=["lake_hive$sales"], description="object id")
    presence: str = Field(examples=["failed"], description="evidence of the listing: complete, carried, failed or skipped")
    presence_reason: str = Field(examples=["denied"])
    presence_code: int | None = Field(examples=[15], description="error code of the Lance Namespace spec, for a failure")
    detail: str = Field(examples=["failed"], description="evidence of the children's content, with the same values")
    detail_reason: str
    detail_code: int | None
    records: int = Field(examples=[12], description="number of children that were read")
    carried_from: int | None = Field(examples=[None], description="for carried evidence, the revision in which it was read")


class SourceCoverage(ResponseModel):
    """A page of the coverage of a source's last crawl, by namespace."""

    freshness: Freshness
    namespaces: list[NamespaceCoverage]
    next: str | None
