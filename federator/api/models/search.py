"""Responses of the search."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.api.models.tree import Node
from federator.views.search.facets import Total
from federator.views.search.matches import Match


class FacetValue(ResponseModel):
    """The number of matches with one value."""

    value: str = Field(examples=["lake_hive"])
    count: int = Field(examples=[42])


class Facets(ResponseModel):
    """Counts of the matches by value: up to 20 values of each facet, the most frequent first."""

    counted: int = Field(examples=[42], description="number of matches that were counted")
    exact: bool = Field(examples=[True], description="false: there are more matches, and each count is a lower bound")
    source: list[FacetValue]
    namespace: list[FacetValue] = Field(description="object ids of the namespaces")
    state: list[FacetValue] = Field(description="verification states of the tables' locations; `unverified`: not verified yet")
    owner: list[FacetValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Node):
    """A table that matches a search, and why."""

    match: Match


class Suggestions(ResponseModel):
    """Tables for a query that a user is typing."""

    nodes: list[Hit]
    freshness: FreshnessList


class SearchResults(ResponseModel):
    """Tables that match a search, with the freshness of their sources."""

    nodes: list[Hit]
    next: str | None
    freshness: FreshnessList
    total: Total | None = Field(description="number of matches; null: not counted, because there are more pages and no facets")
    did_you_mean: list[str] = Field(
        examples=[["orders owner:ann"]], description="queries that find more; only on a first page with fewer than 5 tables"
    )
    facets: Facets | None = Field(None, description="null without facets=true")
    capped: bool = Field(
        False, description="true: more than 1,000 tables match equally well. Only 1,000 are ordered, so this page may omit some"
    )
