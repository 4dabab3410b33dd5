"""What keeps Changes from being begun: a request to stop, too many failures, a target that does not answer, a closed window."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from federator.apply.outcome import Outcome, State
from federator.planning.changes import Change
from federator.planning.reasons import Reason

# A target that fails this often in a row is not there; the rest of the plan waits for the next run.
_GIVE_UP_AFTER = 3
_FAILED = (State.FAILED, State.UNKNOWN, State.NEEDS_ADOPTION)


@dataclass
class Brake:
    """Asked before Changes that belong together, told of each Outcome. Thread-safe. ``max_failures`` None: any number; ``late`` says
    why a Change has to wait for another time."""

    stop: threading.Event
    max_failures: int | None = None
    late: Callable[[Change], str | None] = lambda _: None
    _failures: int = field(default=0, init=False)
    _unanswered: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def objection(self, changes: Iterable[Change]) -> tuple[str, str] | None:
        """Why none of these is begun, as code and message; None while all is well."""
        if self.stop.is_set():
            return "stopped", "the run was asked to stop"
        if self._unanswered >= _GIVE_UP_AFTER:
            return "unavailable", "the target did not answer the calls before"
        if self.max_failures is not None and self._failures >= self.max_failures:
            return "max_failures", f"{self._failures} changes had failed, and no more were begun"
        waits = next(filter(None, map(self.late, changes)), None)
        return (Reason.OUTSIDE_WINDOW, waits) if waits else None

    def count(self, outcome: Outcome) -> None:
        with self._lock:
            self._failures += outcome.state in _FAILED
            self._unanswered = self._unanswered + 1 if outcome.code in ("17", "21") else 0
