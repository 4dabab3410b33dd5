"""Fixtures for every level of the suite. Servers are real and live in ``tests/fixtures``, one module a catalog."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

from federator.demo.servers.process import OWNER_VARIABLE
from federator.runtime import redaction

pytest_plugins = [
    "tests.fixtures.network", "tests.fixtures.quick", "tests.fixtures.index", "tests.fixtures.postgres", "tests.fixtures.spark",
    "tests.fixtures.hive", "tests.fixtures.glue", "tests.fixtures.unity", "tests.fixtures.polaris", "tests.fixtures.rest",
    "tests.fixtures.iceberg", "tests.fixtures.emulators", "tests.fixtures.nessie",
]  # fmt: skip


# The tests start hundreds of commands and Spark workers. Without cached byte code, each of them compiles its libraries again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Servers that tests start, also through commands, end with this process, even if it is killed.
os.environ[OWNER_VARIABLE] = str(os.getpid())


# SQLite and Derby flush each transaction to the disk. No test waits for that where memory has room for files, and executes them.
_MEMORY, _ROOM = Path("/dev/shm"), 8 << 30
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
    os.environ.setdefault("TMPDIR", str(_MEMORY))
    tempfile.tempdir = None

# The machines of a test run are shared, so that the time of one example says nothing.
settings.register_profile("federator", deadline=None)
settings.load_profile("federator")
# For the same reason, no service fails a test because it responds late. httpx has no public setting for its default of 5 s.
for _name in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _name, 60.0)


# Objects that a test may allocate before the youngest generation is collected; Python's default of 700 is for smaller processes.
_GC_THRESHOLD = 20_000


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """A full garbage collection takes half a second once all tests are imported, and tests cause hundreds of them. What was collected
    lives until the end, so no collection needs to look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """The secrets that a module's tests resolve are no secrets to the next one's, which may say "test" and mean it."""
    names = ("_known_parts", "_complete_secrets", "_long_complete_secrets")
    before = {name: getattr(redaction, name) for name in names}
    yield
    for name, value in before.items():
        setattr(redaction, name, value)
