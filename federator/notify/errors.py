"""Errors of a notification that was not sent."""

from __future__ import annotations

from federator.connector import StateError


class TemporaryDeliveryError(StateError):
    """A later attempt may succeed. ``retry_after`` are the seconds that the receiver requested."""

    def __init__(self, message: str, *, hint: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class PermanentDeliveryError(StateError):
    """A later attempt will not succeed."""
