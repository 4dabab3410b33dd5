"""Progress of the current run, for observers of its row."""

from __future__ import annotations

import threading

from federator import logs
from federator.stages.result import ProgressEvent

_log = logs.get_logger(__name__)
# Observers need only the newest events; the journal contains every change.
_MAX_EVENTS = 40


class RunProgress:
    """Collects progress events of many threads. One thread stores them, so that a run never waits for its own progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[tuple[str, str], str] = {}
        self._changed = False

    def record(self, event: ProgressEvent) -> None:
        """Record and log a progress event. Events of one stage and subject replace each other."""
        line = f"{event.stage} {event.subject}: {event.state or 'running'}{', ' if event.detail else ''}{event.detail}"
        with self._lock:
            self._lines.pop((event.stage, event.subject), None)
            self._lines[event.stage, event.subject] = line
            while len(self._lines) > _MAX_EVENTS:
                del self._lines[next(iter(self._lines))]
            self._changed = True
        level = _log.error if event.state == "failed" else _log.info if event.state else _log.debug
        level(event.stage, subject=event.subject, state=event.state, detail=event.detail, seconds=round(event.seconds, 2))

    def clear(self) -> None:
        """Discard the events of a run that has ended."""
        with self._lock:
            self._lines.clear()
            self._changed = False

    def take_text(self) -> str | None:
        """Return the events as text, one per line. None if nothing changed since the last call."""
        with self._lock:
            if not self._changed:
                return None
            self._changed = False
            return "\n".join(self._lines.values())
