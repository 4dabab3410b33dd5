"""Pages of listings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.connector import InvalidInput
from federator.lance.paging import encode_page_token, paginate

NAMES = st.sets(st.text(max_size=8), max_size=30)


@given(NAMES, st.integers(1, 7))
def test_pages_are_the_whole_listing(names: set[str], limit: int) -> None:
    seen: list[str] = []
    token: str | None = None
    while True:
        page, token = paginate(names, token, limit)
        assert len(page) <= limit
        seen += page
        if token is None:
            break
        assert page
    assert seen == sorted(names)


@given(NAMES, NAMES, NAMES, st.integers(1, 7))
def test_unchanged_names_are_listed_once_while_others_change(
    stays: set[str], goes: set[str], comes: set[str], limit: int
) -> None:
    page, token = paginate(stays | goes, None, limit)
    seen = list(page)
    while token is not None:
        page, token = paginate(stays | comes, token, limit)
        seen += page
    assert seen == sorted(set(seen))
    assert set(seen) >= stays


def test_a_full_last_page_ends_the_listing() -> None:
    assert paginate(["a", "b"], None, 2) == (["a", "b"], None)
    assert paginate(["b", "a", "a"], "", None) == (["a", "b"], None)
    assert paginate([], encode_page_token("z"), 5) == ([], None)


@pytest.mark.parametrize("token", ["x", "b", "bm90IG91cnM", "MTr_", "a b", "ü", encode_page_token("a") + "!"])
def test_a_foreign_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="page_token"):
        paginate(["a"], token, None)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        paginate(["a"], None, limit)
