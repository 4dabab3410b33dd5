"""Responses about audit events."""

from __future__ import annotations

from pydantic import Field

from federator.api.models.base import ResponseModel
from federator.store.audit_log import AuditEvent


class AuditEventPage(ResponseModel):
    """A page of audit events, newest first."""

    events: list[AuditEvent]
    next: str | None = Field(description="cursor of the next page; null: last page")
