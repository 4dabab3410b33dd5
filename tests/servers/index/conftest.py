"""Fixtures that several files of this folder share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from federator.store import Index
from tests.servers.index.search_support import fill_lake, make_indexes


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def make_index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Index]]:
    """Makes an empty index on either database."""
    with make_indexes(request, tmp_path_factory) as make:
        yield make


@pytest.fixture(scope="module")
def search_lake(make_index: Callable[[], Index]) -> Index:
    """The lake of the search's tests."""
    return fill_lake(make_index())
