"""Fixtures for every level of the suite. Servers are real and live in ``tests/fixtures``, one module a catalog."""

from __future__ import annotations

pytest_plugins = [
    "tests.fixtures.hive", "tests.fixtures.glue", "tests.fixtures.postgres", "tests.fixtures.spark", "tests.fixtures.unity",
    "tests.fixtures.polaris", "tests.fixtures.rest",
]  # fmt: skip
