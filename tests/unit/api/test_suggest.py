"""Suggestions while a user types, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from federator.store import Index
from federator.views.search.query import complete_query
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api.test_overview import api_over


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("ord", " name:ord*"), ("sales ord", "sales name:ord*"), ("sales$ord", " sales$ord*"), ("name:ord", "name:ord"),
        ("ord*", "ord*"), ('"ord', '"ord'), ("!!", "!!"),
    ],
)  # fmt: skip
def test_only_a_last_plain_word_is_completed(typed: str, query: str) -> None:
    assert complete_query(typed) == query


def test_tables_are_suggested_by_the_start_of_a_word_of_their_name(either_index: Index, tmp_path: Path) -> None:
    fill(
        either_index, "lake", namespace("lake", "sales"), namespace("lake", "hr"), table("lake", "sales", "orders"),
        table("lake", "sales", "open_orders"), table("lake", "hr", "people", doc="orders"), table("lake", "hr", "ordinals"),
    )  # fmt: skip
    api = api_over(either_index, tmp_path)

    def suggest(text: str, **more: int) -> list[str]:
        return [node["name"] for node in api.json("/api/v1/suggest", params={"q": text, **more})["nodes"]]

    assert suggest("ord") == ["ordinals", "open_orders", "orders"]
    assert suggest("sales ord") == suggest("sales$o") == ["open_orders", "orders"]
    assert suggest("ord", limit=1) == ["ordinals"]
    assert suggest("nothing") == []
    assert api.get("/api/v1/suggest?q=").status_code == 400
