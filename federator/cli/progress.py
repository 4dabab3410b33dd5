"""Progress of a run on stderr: live lines on a terminal, plain lines elsewhere.

A stage in progress is shown while it runs, and leaves one line when it ends. Changes that succeed are only counted; each other change
leaves a line with its reason.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from federator.cli.printer import escape_text, format_duration, style_state

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from federator.stages.result import ProgressEvent

# Without a terminal, lines show that a stage is still running: first after this time, then at growing intervals.
_FIRST_HEARTBEAT_SECONDS = 2.0
_HEARTBEAT_GROWTH = 3.0
_STAGE_WIDTH = 7
_FRAMES = "|/-\\"


class ProgressDisplay:
    """Receives all progress events. Thread-safe. If ``stop`` is set, the run is interrupted at the beginning of the next stage."""

    def __init__(self, *, quiet: bool, stop: threading.Event | None = None) -> None:
        self._quiet = quiet
        self._stop = stop or threading.Event()
        self._lock = threading.RLock()
        self._started_at: dict[tuple[str, str], float] = {}
        self._next_heartbeat_at: dict[tuple[str, str], float] = {}
        self._done_count = 0
        self._ended = threading.Event()
        self._live: Live | None = None
        self._console: Console | None = None
        self._stream: TextIO = sys.stderr

    def __enter__(self) -> Self:
        if self._quiet:
            return self
        self._stream = _own_stderr()
        if self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._console = Console(file=self._stream, markup=False, emoji=False, highlight=False)
            self._live = Live(
                console=self._console, get_renderable=self._render, refresh_per_second=8, transient=True,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._live.start()
        else:
            threading.Thread(target=self._print_heartbeats, name="progress", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        if self._live is not None:
            self._live.stop()
        if self._stream is not sys.stderr:
            self._stream.close()

    def __call__(self, event: ProgressEvent) -> None:
        if event.stage == "change":
            self._change(event)
        elif event.state is None:
            self._begin(event)
        else:
            with self._lock:
                self._started_at.pop((event.stage, event.subject), None)
            if self._live is not None:
                # Redraw now: otherwise data that is printed before the next frame would mix with the last frame.
                self._live.refresh()
            if self._stop.is_set() and event.state == "failed":
                # The stop request caused this failure.
                self.print_line(event.stage, event.subject, "stopped", "", event.seconds)
            else:
                self.print_line(event.stage, event.subject, event.state, event.detail, event.seconds)

    def _begin(self, event: ProgressEvent) -> None:
        if self._stop.is_set():
            # The run records the interruption. Between two stages no work is incomplete.
            raise KeyboardInterrupt
        key, now = (event.stage, event.subject), time.monotonic()
        with self._lock:
            self._started_at[key] = now
            self._next_heartbeat_at[key] = now + _FIRST_HEARTBEAT_SECONDS
            self._done_count = 0

    def _change(self, event: ProgressEvent) -> None:
        with self._lock:
            self._done_count += 1
        if event.state != "done":
            self.print_line("", event.subject, event.state or "", event.detail, 0.0)

    def print_line(self, stage: str, subject: str, state: str, detail: str, seconds: float) -> None:
        """Print a permanent line."""
        parts = [f"{stage:<{_STAGE_WIDTH}}", subject, style_state(state), detail.replace("\n", " ")]
        self.print_parts(parts, f"({format_duration(seconds)})" if seconds >= 0.1 else "")

    def print_parts(self, parts: list[object], end: str = "") -> None:
        """Print the non-empty parts, separated by two spaces."""
        if self._quiet:
            return
        from rich.text import Text

        non_empty = [part for part in (*parts, end) if str(part)]
        text = Text("  ").join(part if isinstance(part, Text) else Text(escape_text(part)) for part in non_empty)
        if self._console is not None:
            indent = " " * (_STAGE_WIDTH + 2)
            first, *others = text.wrap(self._console, max(self._console.width - len(indent), 40))
            # Without self._lock: rich holds its own lock while it prints and while it calls _render, which takes self._lock.
            self._console.print(first, *(Text(indent) + line for line in others), sep="\n", soft_wrap=True)
            return
        with self._lock:
            self._stream.write(text.plain + "\n")
            self._stream.flush()

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            running = sorted(self._started_at.items(), key=lambda item: item[1])
        now = time.monotonic()
        frame = _FRAMES[int(now * 8) % len(_FRAMES)]
        lines = [f"{self._format_stage(key, now - started_at)}  {frame}" for key, started_at in running]
        return Group(*(Text(line, overflow="ellipsis", no_wrap=True) for line in lines))

    def _format_stage(self, key: tuple[str, str], seconds: float) -> str:
        stage, subject = key
        count = f"  {self._done_count:,} done" if stage == "apply" and self._done_count else ""
        return f"{stage:<{_STAGE_WIDTH}}  {escape_text(subject)}{count}  {format_duration(seconds) if seconds >= 1 else ''}".rstrip()

    def _print_heartbeats(self) -> None:
        while not self._ended.wait(0.5):
            now = time.monotonic()
            with self._lock:
                due = [
                    (key, now - started_at)
                    for key, started_at in self._started_at.items()
                    if now >= self._next_heartbeat_at[key]
                ]
                for key, seconds in due:
                    self._next_heartbeat_at[key] = now + seconds * (_HEARTBEAT_GROWTH - 1)
            for key, seconds in due:
                self.print_parts([self._format_stage(key, seconds), "..."])


def _own_stderr() -> TextIO:
    """Return a private copy of stderr, because the process's stderr is redirected to a file while Spark starts."""
    try:
        number = os.dup(sys.stderr.fileno())
    except (OSError, AttributeError):
        # The stream of a test or a notebook is not a file, and Spark does not redirect it.
        return sys.stderr
    return os.fdopen(number, "w", encoding=sys.stderr.encoding, errors="backslashreplace")
