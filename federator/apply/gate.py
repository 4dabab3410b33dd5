"""Gate for changes: stops new changes on cancellation, repeated failures, an unavailable target or a closed change window."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from federator.apply.outcome import Outcome, OutcomeState
from federator.connector import ServiceUnavailable, Throttled
from federator.planning.changes import Change
from federator.planning.reasons import ApplyCode, OutcomeCode, Reason

#: codes of changes that the target did not serve
_UNAVAILABLE_CODES = (ServiceUnavailable.code, Throttled.code)
# A target that did not serve this many changes in a row counts as unavailable. The rest of the plan is left to the next run.
_MAX_CONSECUTIVE_UNAVAILABLE = 3
#: states of outcomes that count towards ``max_failures``
_COUNTED_STATES = (OutcomeState.FAILED, OutcomeState.UNKNOWN, OutcomeState.NEEDS_ADOPTION)


@dataclass
class ChangeGate:
    """Decides whether the next changes of a plan may start, and counts its failures. Thread-safe.

    ``stop`` is set when the run is cancelled. ``max_failures`` None means no limit. ``window_check`` returns a message if a change
    has to wait for its change window, else None.
    """

    stop: threading.Event
    max_failures: int | None = None
    window_check: Callable[[Change], str | None] = lambda _: None
    _failures: int = field(default=0, init=False)
    _consecutive_unavailable: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def find_skip_reason(self, changes: Iterable[Change]) -> tuple[OutcomeCode, str] | None:
        """Return the code and the message of skipped changes if these may not start. None if they may.

        All are skipped if one of them has to wait for its change window.
        """
        if self.stop.is_set():
            return ApplyCode.STOPPED, "a stop of the run was requested"
        if self._consecutive_unavailable >= _MAX_CONSECUTIVE_UNAVAILABLE:
            return ApplyCode.UNAVAILABLE, "the target did not serve the last calls"
        if self.max_failures is not None and self._failures >= self.max_failures:
            return ApplyCode.MAX_FAILURES, f"{self._failures} changes failed, so no more were started"
        window_reason = next(filter(None, map(self.window_check, changes)), None)
        return (Reason.OUTSIDE_WINDOW, window_reason) if window_reason else None

    def record_outcome(self, outcome: Outcome) -> None:
        """Count the outcome of a change."""
        unavailable = outcome.code in _UNAVAILABLE_CODES
        with self._lock:
            self._failures += outcome.state in _COUNTED_STATES
            self._consecutive_unavailable = self._consecutive_unavailable + 1 if unavailable else 0
