"""Server processes of the demo and the tests. They run until they are stopped, also after their parent has ended, unless
``OWNER_VARIABLE`` names the process with which they end.

A server module is run as ``python -m <module> RUN_DIR [ARGS]``. When it is ready, it calls ``announce``, which writes
``RUN_DIR/server.json``. ``start`` waits for this file, and ``stop`` ends the process with the id in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from federator.connector import StateError

#: environment variable with a process id: when that process has ended, however it ended, servers kill their process groups
OWNER_VARIABLE = "FEDERATOR_SERVERS_OWNER"
_ANNOUNCEMENT = "server.json"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its name, its URI on loopback and its process group."""

    name: str
    uri: str
    pid: int
    run_dir: str

    def is_alive(self) -> bool:
        """Whether its process runs."""
        return _alive(self.pid)

    def stop(self, timeout: float = 10) -> None:
        """End the whole process group: SIGTERM, then SIGKILL after ``timeout`` seconds. A second call does nothing."""
        for sign, grace_seconds in ((signal.SIGTERM, timeout), (signal.SIGKILL, 5.0)):
            try:
                os.killpg(self.pid, sign)
            except ProcessLookupError:
                break
            end = time.monotonic() + grace_seconds
            while time.monotonic() < end and _alive(self.pid):
                time.sleep(0.05)
        (Path(self.run_dir) / _ANNOUNCEMENT).unlink(missing_ok=True)


def start(module: str, run_dir: Path, *args: str, timeout: float = 120, env: dict[str, str] | None = None) -> Server:
    """Start a server module and wait for its announcement. Raise StateError with the end of its log if there is none."""
    run_dir.mkdir(parents=True, exist_ok=True)
    announcement = run_dir / _ANNOUNCEMENT
    announcement.unlink(missing_ok=True)
    log = run_dir / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(run_dir), *args],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env={**os.environ, **(env or {})},
        )  # fmt: skip
    end = time.monotonic() + timeout
    while not announcement.exists():
        if process.poll() is not None or time.monotonic() > end:
            failure = f"did not start within {timeout:.0f} s" if process.returncode is None else "ended before it was ready"
            Server(module, "", process.pid, str(run_dir)).stop()
            tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise StateError(f"{module} {failure}", hint=f"its log, {log}, ends with:\n{tail}")
        time.sleep(0.02)
    return get_server(run_dir)


def get_server(run_dir: Path) -> Server:
    """Return the server that announced itself in ``run_dir``. Raise StateError if there is none."""
    try:
        return Server(**json.loads((run_dir / _ANNOUNCEMENT).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise StateError(f"no server runs in {run_dir}") from None


def announce(name: str, uri: str, run_dir: Path) -> None:
    """Announce this process as a ready server. The file is written atomically."""
    draft = run_dir / f"{_ANNOUNCEMENT}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(Server(name, uri, os.getpid(), str(run_dir)))), encoding="utf-8")
    draft.replace(run_dir / _ANNOUNCEMENT)
    if owner := os.environ.get(OWNER_VARIABLE):
        threading.Thread(target=_end_with, args=(int(owner),), name="owner", daemon=True).start()


def _end_with(owner: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        ended = select.poll()
        ended.register(os.pidfd_open(owner), select.POLLIN)
        ended.poll()
    os.killpg(0, signal.SIGKILL)


def _alive(pid: int) -> bool:
    try:
        # A child that has ended still has its process id until it is reaped.
        reaped, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return reaped == 0
