"""Responses about scheduled jobs."""

from __future__ import annotations

from pydantic import Field

from federator.api.models.base import ResponseModel
from federator.worker.jobs import JobView


class JobPage(ResponseModel):
    jobs: list[JobView]
    next: str | None = Field(description="cursor of the next page; null: last page")
