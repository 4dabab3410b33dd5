"""Fixtures for every level of the suite. Servers are real and live in ``tests/fixtures``, one module a catalog."""

from __future__ import annotations

pytest_plugins = [
    "tests.fixtures.index", "tests.fixtures.postgres", "tests.fixtures.spark", "tests.fixtures.hive", "tests.fixtures.glue",
    "tests.fixtures.unity", "tests.fixtures.polaris", "tests.fixtures.rest",
]  # fmt: skip
