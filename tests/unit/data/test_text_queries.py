"""Structured full-text queries: each kind becomes pylance's, and an unknown kind is an error."""

from __future__ import annotations

from typing import Any

import pytest
from lance import query as fts

from federator.connector import InvalidInput
from federator.data.query import _build_structured_query

MATCH = {"match": {"terms": "word", "column": "name"}}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (MATCH, fts.MatchQuery),
        ({"phrase": {"terms": "two words", "column": "name", "slop": 1}}, fts.PhraseQuery),
        ({"boost": {"positive": MATCH, "negative": MATCH, "negative_boost": 0.5}}, fts.BoostQuery),
        ({"multi_match": {"match_queries": [MATCH["match"], {"terms": "word", "column": "doc"}]}}, fts.MultiMatchQuery),
        ({"boolean": {"must": [MATCH], "should": [], "must_not": [MATCH]}, "match": None}, fts.BooleanQuery),
    ],
    ids=["match", "phrase", "boost", "multi_match", "boolean"],
)
def test_each_kind_of_query(query: dict[str, Any], kind: type) -> None:
    assert isinstance(_build_structured_query(query), kind)


@pytest.mark.parametrize("query", [{}, {"match": None}, {**MATCH, "boolean": {"must": [MATCH]}}])
def test_a_query_has_exactly_one_kind(query: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="exactly one of match, phrase, boost, multi_match, boolean"):
        _build_structured_query(query)


@pytest.mark.parametrize("query", [{"fuzzy": {"must": [MATCH]}}, {"boolean": {"must": [{"fuzzy": {"terms": "word"}}]}}])
def test_an_unknown_kind_is_no_boolean_query(query: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="fuzzy"):
        _build_structured_query(query)
