"""Fixtures for every level of the suite. Servers are real and live in ``tests/fixtures``, one module a catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from federator.connector import secrets

pytest_plugins = [
    "tests.fixtures.index", "tests.fixtures.postgres", "tests.fixtures.spark", "tests.fixtures.hive", "tests.fixtures.glue",
    "tests.fixtures.unity", "tests.fixtures.polaris", "tests.fixtures.rest",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """The secrets that a module's tests resolve are no secrets to the next one's, which may say "test" and mean it."""
    before = {name: getattr(secrets, name) for name in ("_pattern", "_long")} | {"_known": set(secrets._known)}
    yield
    for name, value in before.items():
        setattr(secrets, name, value)
