"""Other processes that hold a lease of an index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from federator.store import Index, leases


def url_of(index: Index) -> str:
    return index.engine.url.render_as_string(hide_password=False)


@contextmanager
def another(index: Index, script: str, *, lease: str = "source:x") -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a lease and runs a script under it; killed at the end."""
    head = f"""
import os, sys, time
from federator.store import leases, open_index
leases.LEASE_TTL_SECONDS, leases.CALL_DEADLINE_SECONDS = {leases.LEASE_TTL_SECONDS}, {leases.CALL_DEADLINE_SECONDS}
index = open_index({url_of(index)!r})
"""
    body = "\n".join(f"    {line}" for line in script.splitlines())
    source = f"{head}with leases.acquire_lease(index, {lease!r}) as lease:\n{body}\n"
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            yield process
        finally:
            process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
