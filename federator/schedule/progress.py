"""The steps of the run in hand, for those who watch its row."""

from __future__ import annotations

import threading

from federator import logs
from federator.sync import Step

_log = logs.get(__name__)
# The newest steps are what a watcher wants; the journal holds every change.
_SHOWN = 40


class Progress:
    """Steps come from many threads; one thread takes them, so that a run never waits for its own progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: dict[tuple[str, str], str] = {}
        self._changed = False

    def note(self, step: Step) -> None:
        """Takes a step and logs it; steps of one stage and subject replace each other."""
        said = f"{step.stage} {step.subject}: {step.state or 'running'}{', ' if step.detail else ''}{step.detail}"
        with self._lock:
            self._steps.pop((step.stage, step.subject), None)
            self._steps[step.stage, step.subject] = said
            while len(self._steps) > _SHOWN:
                del self._steps[next(iter(self._steps))]
            self._changed = True
        level = _log.error if step.state == "failed" else _log.info if step.state else _log.debug
        level(step.stage, subject=step.subject, state=step.state, detail=step.detail, seconds=round(step.seconds, 2))

    def clear(self) -> None:
        """Forgets the steps of a run that ended."""
        with self._lock:
            self._steps.clear()
            self._changed = False

    def take(self) -> str | None:
        """The steps as text, a line each; None where nothing is new since the last time."""
        with self._lock:
            if not self._changed:
                return None
            self._changed = False
            return "\n".join(self._steps.values())
