"""Paths and their keys: one text per path, one path per text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from federator.model import ROOT, iter_ancestors, parent_path, parse_path_key, path_key

NAMES = st.text(min_size=1)
PATHS = st.lists(NAMES, max_size=5).map(tuple)
# What people type and what an attacker would: delimiters, percent signs, and things that look encoded.
TRICKY = st.lists(st.text(alphabet="$%245abC", min_size=1), max_size=5).map(tuple)


@given(PATHS | TRICKY)
def test_a_path_comes_back_from_its_key(path: tuple[str, ...]) -> None:
    assert parse_path_key(path_key(path)) == path


@given(PATHS | TRICKY, PATHS | TRICKY)
def test_two_paths_never_share_a_key(first: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (path_key(first) == path_key(other)) == (first == other)


@given(PATHS | TRICKY)
def test_a_key_is_a_path_of_as_many_levels(path: tuple[str, ...]) -> None:
    key = path_key(path)
    assert (key.count("$") + 1 if key else 0) == len(path)


@given(PATHS)
def test_the_ancestors_end_with_the_root(path: tuple[str, ...]) -> None:
    above = list(iter_ancestors(path))
    assert len(above) == len(path)
    assert above[:1] == ([parent_path(path)] if path else [])
    assert above[-1:] == ([ROOT] if path else [])
