"""Responses about notifications."""

from __future__ import annotations

from pydantic import Field

from federator.api.models.base import ResponseModel
from federator.store.notifications import Notification


class NotificationPage(ResponseModel):
    """A page of notifications, newest first."""

    notifications: list[Notification]
    next: str | None = Field(description="cursor of the next page; null: last page")
