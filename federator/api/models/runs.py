"""Responses about runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.store.run_stages import RunStage
from federator.store.runs import Run, RunChange, RunSource
from federator.views.runs import ListedRun

Stages = Annotated[list[RunStage], Field(description="the stages of visible sources and mirrors, in the order of their starts")]


class RunPage(ResponseModel):
    """A page of runs."""

    runs: list[ListedRun]
    next: str | None
    freshness: FreshnessList


@dataclass(frozen=True, slots=True)
class RunDetail(Run):
    """A run with its sources and its writes."""

    sources: list[RunSource]
    stages: Stages
    changes: list[RunChange]
    freshness: FreshnessList


@dataclass(frozen=True, slots=True)
class RunProgress(Run):
    """The current state of a run: the data of one event."""

    sources: list[RunSource]
    stages: Stages
    writes: Annotated[dict[str, int], Field(examples=[{"done": 12, "failed": 1}], description="number of writes by state")]
    freshness: FreshnessList
