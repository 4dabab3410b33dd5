"""Fixtures for every level of the suite. Servers are real and live in ``tests/fixtures``, one module a catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = [
    "tests.fixtures.index", "tests.fixtures.postgres", "tests.fixtures.spark", "tests.fixtures.hive", "tests.fixtures.glue",
    "tests.fixtures.unity", "tests.fixtures.polaris", "tests.fixtures.rest",
]  # fmt: skip

# Real servers are a session's: tests of the same ones stay together where two processes share the suite (``-n 2 --dist loadgroup``).
_CATALOGS = ("contract", "integration")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0]
        item.add_marker(pytest.mark.xdist_group("catalogs" if folder in _CATALOGS else "product"))
