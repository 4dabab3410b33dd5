"""``federator serve`` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.fixtures.signals import signal_other_thread

CONFIG = """
[serve]
port = 0
[verify]
enabled = false
[sources.lake]
impl = "federator.testing:CONNECTOR"
file = "{directory}/lake.json"
"""
ODD = "a/b%$😀"


class Process:
    """A service that was started, with what it said so far."""

    def __init__(self, directory: Path, role: str, **environment: str) -> None:
        command = [str(Path(sys.executable).with_name("federator")), "serve", "--role", role]
        self._process = subprocess.Popen(
            command, cwd=directory, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}, process_group=0
        )
        self.said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self.said += self._process.stderr

    @property
    def text(self) -> str:
        return "".join(self.said)

    def url(self) -> str:
        return self.await_line(r"federator listens on (http://\S+)")

    def await_line(self, pattern: str, seconds: float = 240) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._process.poll() is None:
            if match := re.search(pattern, self.text):
                return match[match.re.groups]
            time.sleep(0.05)
        raise AssertionError(f"it did not say {pattern}:\n{self.text}")

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def signal_other_thread(self, number: int) -> None:
        signal_other_thread(self._process.pid, number)

    def end(self, number: int = signal.SIGTERM) -> int:
        self._process.send_signal(number)
        return self.wait()

    def end_group(self, number: int) -> int:
        """Send a signal to all processes of its group, as a terminal does at Ctrl-C, and ``kill`` of a group."""
        os.killpg(self._process.pid, number)
        return self.wait()

    def wait(self) -> int:
        return self._process.wait(60)

    def memory(self) -> int:
        """Its resident memory in bytes."""
        return self._status("VmRSS") * 1024

    def forget_peak_memory(self) -> None:
        """Let ``peak_memory`` begin with the present resident memory."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5", encoding="ascii")

    def peak_memory(self) -> int:
        """Its largest resident memory in bytes since ``forget_peak_memory``."""
        return self._status("VmHWM") * 1024

    def threads(self) -> int:
        return self._status("Threads")

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(rf"^{name}:\s+(\d+)", status, re.MULTILINE)[0])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
