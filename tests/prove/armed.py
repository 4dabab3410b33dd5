"""Faults of a catalog that wait for their moment: at the next crawl, write or observation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from federator.connector import CatalogError, Internal, PermissionDenied, ServiceUnavailable, Throttled
from federator.model import TableRecord

#: seconds that a slow look takes
SLOW = 3.0


class Crash(BaseException):
    """The process dies here; nothing of it catches this."""


# Created for each strike: an exception that is raised again keeps every frame it has been through.
OBSERVATION_ERRORS: dict[str, Callable[[], CatalogError]] = {
    "look_failed": lambda: ServiceUnavailable("no answer"),
    "look_denied": lambda: PermissionDenied("denied"),
    "look_throttled": lambda: Throttled("too many requests"),
    "look_without_fields": lambda: Internal("the answer lacks what it always has"),
}


@dataclass
class Armed:
    """Faults that wait for their moment: at the next crawl, write or observation; each strikes once."""

    listing: tuple[str, int] | None = None
    write: str | None = None
    observation: str | None = None
    #: what users do just before the next write, or after this many observations
    race: Callable[[], None] | None = None
    race_after: int = 0
    #: nothing answers, until the application ends
    outage: bool = False
    #: what meets the second call of a recreation
    halfway: str | None = None
    #: a declaration that is refused, as often as it is tried
    refused: TableRecord | None = None
    #: how many of the next observations take longer than any mirror allows
    slow: int = 0

    def clear(self) -> None:
        self.listing = None
        self.calm()

    def calm(self) -> None:
        """What waits for an application does not outlast it."""
        self.write = self.observation = self.race = self.halfway = self.refused = None
        self.outage = False
        self.slow = 0
