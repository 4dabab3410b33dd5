"""Responses about runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.store.runs import Run, RunChange, RunSource


class RunPage(ResponseModel):
    """A page of runs."""

    runs: list[Run]
    next: str | None
    freshness: FreshnessList


@dataclass(frozen=True, slots=True)
class RunDetail(Run):
    """A run with its sources and its writes."""

    sources: list[RunSource]
    changes: list[RunChange]
    freshness: FreshnessList


@dataclass(frozen=True, slots=True)
class RunProgress(Run):
    """The current state of a run: the data of one event."""

    sources: list[RunSource]
    writes: Annotated[dict[str, int], Field(examples=[{"done": 12, "failed": 1}], description="number of writes by state")]
    freshness: FreshnessList
