"""Requests for reports, and a page of them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from federator.api.models.base import ResponseModel
from federator.store.reports import StoredReport


class Reports(ResponseModel):
    """A page of reports, newest first."""

    reports: list[StoredReport]
    next: str | None = Field(description="cursor of the next page; null: last page")


class ReportRequest(BaseModel):
    """A request for a report: the name of a configured report, or a kind."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"report": "inventory"}})

    report: str = Field(max_length=64)
