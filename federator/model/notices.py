"""Notices: what happened that somebody may want to be told of, by a fixed list of events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How urgent: ``critical`` stops the service, ``error`` needs a person, ``warning`` will, ``info`` is good to know."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Event(StrEnum):
    """What can happen; docs/notifications.md explains each."""

    RUN_FAILED = "run_failed"
    RUN_PARTIAL = "run_partial"
    RUN_INTERRUPTED = "run_interrupted"
    SOURCE_FAILED = "source_failed"
    SOURCE_PARTIAL = "source_partial"
    SOURCE_RECOVERED = "source_recovered"
    MIRROR_FAILED = "mirror_failed"
    WRITE_FAILED = "write_failed"
    PLAN_HELD = "plan_held"
    PLAN_DECIDED = "plan_decided"
    DRIFT_FOUND = "drift_found"
    DRIFT_RESOLVED = "drift_resolved"
    AUDIT_UNSEALED = "audit_unsealed"
    LEASE_LOST = "lease_lost"
    TEST = "test"

    @property
    def severity(self) -> Severity:
        return _SEVERITY[self]


_SEVERITY = {
    Event.RUN_FAILED: Severity.ERROR,
    Event.RUN_PARTIAL: Severity.WARNING,
    Event.RUN_INTERRUPTED: Severity.WARNING,
    Event.SOURCE_FAILED: Severity.ERROR,
    Event.SOURCE_PARTIAL: Severity.WARNING,
    Event.SOURCE_RECOVERED: Severity.INFO,
    Event.MIRROR_FAILED: Severity.ERROR,
    Event.WRITE_FAILED: Severity.ERROR,
    Event.PLAN_HELD: Severity.WARNING,
    Event.PLAN_DECIDED: Severity.INFO,
    Event.DRIFT_FOUND: Severity.WARNING,
    Event.DRIFT_RESOLVED: Severity.INFO,
    Event.AUDIT_UNSEALED: Severity.CRITICAL,
    Event.LEASE_LOST: Severity.ERROR,
    Event.TEST: Severity.INFO,
}


@dataclass(frozen=True, slots=True)
class Notice:
    """One event. ``subject`` is what it happened to, as people name it; ``severity`` None: that of the event.

    ``message`` is a text of ours: it never holds a secret.
    """

    event: Event
    subject: str
    message: str
    source: str | None = None
    mirror: str | None = None
    run_id: str | None = None
    severity: Severity | None = None

    @property
    def grade(self) -> Severity:
        """The severity that counts."""
        return self.severity or self.event.severity
