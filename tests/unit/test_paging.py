"""Pages of listings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federator.connector import InvalidInput
from federator.connector.paging import page_of, page_token

NAMES = st.sets(st.text(max_size=8), max_size=30)


@settings(deadline=None)
@given(NAMES, st.integers(1, 7))
def test_pages_are_the_whole_listing(names: set[str], limit: int) -> None:
    seen: list[str] = []
    token: str | None = None
    while True:
        page, token = page_of(names, token, limit)
        assert len(page) <= limit
        seen += page
        if token is None:
            break
        assert page
    assert seen == sorted(names)


@settings(deadline=None)
@given(NAMES, NAMES, NAMES, st.integers(1, 7))
def test_what_stays_is_seen_once_whatever_else_changes(stays: set[str], goes: set[str], comes: set[str], limit: int) -> None:
    page, token = page_of(stays | goes, None, limit)
    seen = list(page)
    while token is not None:
        page, token = page_of(stays | comes, token, limit)
        seen += page
    assert seen == sorted(set(seen))
    assert set(seen) >= stays


def test_a_full_last_page_ends_the_listing() -> None:
    assert page_of(["a", "b"], None, 2) == (["a", "b"], None)
    assert page_of(["b", "a", "a"], "", None) == (["a", "b"], None)
    assert page_of([], page_token("z"), 5) == ([], None)


@pytest.mark.parametrize("token", ["x", "b", "bm90IG91cnM", "MTr_", "a b", "ü", page_token("a") + "!"])
def test_a_token_that_is_not_ours_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="page_token"):
        page_of(["a"], token, None)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        page_of(["a"], None, limit)
