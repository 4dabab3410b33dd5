"""Processes of servers: with whom they end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from federator.demo.servers import process


def test_a_server_ends_with_its_owner_however_that_ends(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        server = process.start("tests.fixtures.idle_server", tmp_path, env={process.OWNER_VARIABLE: str(owner.pid)})
        try:
            assert server.is_alive()
            owner.kill()
            owner.wait()
            # Until the time-out of the test.
            while server.is_alive():
                time.sleep(0.02)
        finally:
            server.stop()


def test_a_server_whose_owner_is_gone_ends_at_once(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    server = process.start("tests.fixtures.idle_server", tmp_path, env={process.OWNER_VARIABLE: str(gone.pid)})
    while server.is_alive():
        time.sleep(0.02)
