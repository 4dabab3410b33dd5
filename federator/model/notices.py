"""Notices: events that may be worth a notification, from a fixed list."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Urgency: ``critical`` stops the service, ``error`` needs a person now, ``warning`` may need one later, ``info`` needs nobody."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class NoticeEvent(StrEnum):
    """The kinds of events. docs/how-to/notifications.md explains each."""

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
    NoticeEvent.RUN_FAILED: Severity.ERROR,
    NoticeEvent.RUN_PARTIAL: Severity.WARNING,
    NoticeEvent.RUN_INTERRUPTED: Severity.WARNING,
    NoticeEvent.SOURCE_FAILED: Severity.ERROR,
    NoticeEvent.SOURCE_PARTIAL: Severity.WARNING,
    NoticeEvent.SOURCE_RECOVERED: Severity.INFO,
    NoticeEvent.MIRROR_FAILED: Severity.ERROR,
    NoticeEvent.WRITE_FAILED: Severity.ERROR,
    NoticeEvent.PLAN_HELD: Severity.WARNING,
    NoticeEvent.PLAN_DECIDED: Severity.INFO,
    NoticeEvent.DRIFT_FOUND: Severity.WARNING,
    NoticeEvent.DRIFT_RESOLVED: Severity.INFO,
    NoticeEvent.AUDIT_UNSEALED: Severity.CRITICAL,
    NoticeEvent.LEASE_LOST: Severity.ERROR,
    NoticeEvent.TEST: Severity.INFO,
}


@dataclass(frozen=True, slots=True)
class Notice:
    """One event. ``subject`` names the affected object for people. ``severity`` None means the severity of the event.

    ``message`` must not contain a secret.
    """

    event: NoticeEvent
    subject: str
    message: str
    source: str | None = None
    mirror: str | None = None
    run_id: str | None = None
    severity: Severity | None = None

    @property
    def effective_severity(self) -> Severity:
        """Return the notice's own severity, else that of the event."""
        return self.severity or self.event.severity
