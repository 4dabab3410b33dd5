"""Why a notification was not sent."""

from __future__ import annotations

from federator.connector import StateError


class Unsent(StateError):
    """It may work later; ``retry_after`` are the seconds that the receiver asked for."""

    def __init__(self, message: str, *, hint: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class Refused(StateError):
    """Trying again will not help."""
