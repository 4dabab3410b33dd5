"""Progress of a run on stderr: live lines on a terminal, plain lines elsewhere.

What has ended leaves one line; what goes on is shown while it does. A Change that was made is only counted: one that was not
made leaves a line that says why.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from federator.cli.output import lasted, shown, styled

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from federator.sync import Step

# Without a terminal a line says that a step still goes on: first after this long, then at growing distances.
_FIRST_SIGN = 2.0
_GROWTH = 3.0
_FRAMES = "|/-\\"


class Progress:
    """Receives each Step; safe for threads. ``stop`` is asked at the beginning of each step: a run ends between two of them."""

    def __init__(self, *, quiet: bool, stop: threading.Event | None = None) -> None:
        self._quiet = quiet
        self._stop = stop or threading.Event()
        self._lock = threading.RLock()
        self._going: dict[tuple[str, str], float] = {}
        self._next_sign: dict[tuple[str, str], float] = {}
        self._made = 0
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
            threading.Thread(target=self._signs, name="progress", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        if self._live is not None:
            self._live.stop()
        if self._stream is not sys.stderr:
            self._stream.close()

    def __call__(self, step: Step) -> None:
        if step.stage == "change":
            self._change(step)
        elif step.state is None:
            self._begin(step)
        else:
            with self._lock:
                self._going.pop((step.stage, step.subject), None)
            if self._live is not None:
                # Else the last frame stands until the next one is due, and data that is printed meanwhile runs into it.
                self._live.refresh()
            if self._stop.is_set() and step.state == "failed":
                # Its failure is our own doing.
                self.line(step.stage, step.subject, "stopped", "", step.seconds)
            else:
                self.line(step.stage, step.subject, step.state, step.detail, step.seconds)

    def _begin(self, step: Step) -> None:
        if self._stop.is_set():
            # What a run notes as interrupted; between two steps nothing is half done.
            raise KeyboardInterrupt
        key, now = (step.stage, step.subject), time.monotonic()
        with self._lock:
            self._going[key] = now
            self._next_sign[key] = now + _FIRST_SIGN
            self._made = 0

    def _change(self, step: Step) -> None:
        with self._lock:
            self._made += 1
        if step.state != "done":
            self.line("", step.subject, step.state or "", step.detail, 0.0)

    def line(self, stage: str, subject: str, state: str, detail: str, seconds: float) -> None:
        """A line that stays."""
        parts = [f"{stage:<7}", subject, styled(state), detail.replace("\n", " ")]
        self.say(parts, f"({lasted(seconds)})" if seconds >= 0.1 else "")

    def say(self, parts: list[object], end: str = "") -> None:
        """Prints the parts that are not empty, two spaces apart."""
        if self._quiet:
            return
        from rich.text import Text

        kept = [part for part in (*parts, end) if str(part)]
        text = Text("  ").join(part if isinstance(part, Text) else Text(shown(part)) for part in kept)
        with self._lock:
            if self._console is not None:
                self._console.print(text, soft_wrap=True)
            else:
                self._stream.write(text.plain + "\n")
                self._stream.flush()

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            going = sorted(self._going.items(), key=lambda item: item[1])
        now = time.monotonic()
        frame = _FRAMES[int(now * 8) % len(_FRAMES)]
        lines = [f"{self._sign(key, now - began)}  {frame}" for key, began in going]
        return Group(*(Text(line, overflow="ellipsis", no_wrap=True) for line in lines))

    def _sign(self, key: tuple[str, str], seconds: float) -> str:
        stage, subject = key
        made = f"  {self._made:,} made" if stage == "apply" and self._made else ""
        return f"{stage:<7}  {shown(subject)}{made}  {lasted(seconds) if seconds >= 1 else ''}".rstrip()

    def _signs(self) -> None:
        while not self._ended.wait(0.5):
            now = time.monotonic()
            with self._lock:
                due = [(key, now - began) for key, began in self._going.items() if now >= self._next_sign[key]]
                for key, seconds in due:
                    self._next_sign[key] = now + seconds * (_GROWTH - 1)
            for key, seconds in due:
                self.say([self._sign(key, seconds), "..."])


def _own_stderr() -> TextIO:
    """stderr on a descriptor of our own: while Spark starts, the process's own leads to a file."""
    try:
        number = os.dup(sys.stderr.fileno())
    except (OSError, AttributeError):
        # Not a file: a test's or a notebook's, which nobody redirects.
        return sys.stderr
    return os.fdopen(number, "w", encoding=sys.stderr.encoding, errors="backslashreplace")
