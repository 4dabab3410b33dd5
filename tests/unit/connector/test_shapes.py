"""Shapes of responses, page tokens, and exceptions of connectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from federator.connector import Catalog, Internal, Observation, Shard, TableNotFound
from federator.connector.opened_catalog import OpenedCatalog
from federator.connector.page_tokens import MAX_IDLE_PAGES, PageTokens
from federator.connector.shapes import NAME, TEXTS, maybe, mismatch
from federator.model import Coverage, NamespaceRecord, Path, Record, TableRecord

_LIST = {"tables": [{"name": NAME, "properties": maybe(TEXTS), "count": maybe(int)}], "next": maybe(str)}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"tables": []}, None),
        ({"tables": [{"name": "a", "properties": None, "more": 1}], "next": None}, None),
        ({"tables": [{"name": "a", "properties": {"k": "v"}, "count": 3}]}, None),
        ({}, "'tables' is missing"),
        ([], "it is not an object"),
        ("<html>", "it is not an object"),
        ({"tables": None}, "'tables' is not a list"),
        ({"tables": {}}, "'tables' is not a list"),
        ({"tables": [{"name": "a"}, {}]}, "'tables[1].name' is missing"),
        ({"tables": [{"name": ""}]}, "'tables[0].name' is not a name"),
        ({"tables": ["a"]}, "'tables[0]' is not an object"),
        ({"tables": [{"name": "a", "properties": {"k": 1}}]}, "'tables[0].properties' is not an object of texts"),
        ({"tables": [{"name": "a", "count": True}]}, "'tables[0].count' is not a number"),
        ({"tables": [], "next": 7}, "'next' is not a text"),
    ],
)
def test_a_response_is_held_against_its_shape(data: Any, problem: str | None) -> None:
    assert mismatch(data, _LIST) == problem


def test_page_tokens_end() -> None:
    tokens = PageTokens("lake: listing")
    assert [tokens.following(token, added=1) for token in ("a", "b")] == ["a", "b"]
    assert [tokens.following(token, added=1) for token in (None, "")] == [None, None]
    with pytest.raises(Internal, match="no end"):
        tokens.following("a", added=1)
    with pytest.raises(Internal, match="not a text"):
        tokens.following(["a"], added=1)


def test_pages_without_anything_new_end_though_each_token_is_another() -> None:
    tokens = PageTokens("lake: listing")
    for number in range(MAX_IDLE_PAGES - 1):
        assert tokens.following(str(number), added=0)
    with pytest.raises(Internal, match="no end"):
        tokens.following("last", added=0)
    patient = PageTokens("lake: listing")
    for number in range(3 * MAX_IDLE_PAGES):
        assert patient.following(str(number), added=number % 2)


class _Broken(Catalog):
    """A faulty connector: all calls except ``describe_table`` raise an exception that is not a FederatorError."""

    source = "lake"

    def list_namespaces(self, parent: Path) -> list[str]:
        raise KeyError("secret")

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        raise KeyError("secret")

    def list_tables(self, namespace: Path) -> list[str]:
        raise KeyError("secret")

    def describe_table(self, path: Path) -> TableRecord:
        raise TableNotFound("there is none")

    def observe(self, path: Path) -> Observation:
        raise KeyError("secret")

    def canonical_path(self, path: Path) -> Path:
        raise KeyError("secret")

    def default_location(self, path: Path) -> str | None:
        raise KeyError("secret")

    def plan_shards(self) -> Sequence[Shard]:
        raise KeyError("secret")

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        raise KeyError("secret")
        yield


def test_a_connectors_exception_becomes_a_federator_error() -> None:
    metered = OpenedCatalog(_Broken())
    for call in (
        lambda: metered.list_tables(("s",)),
        lambda: metered.observe(("s", "t")),
        lambda: metered.canonical_path(("s", "t")),
        lambda: metered.default_location(("s", "t")),
        lambda: list(metered.read_shard(Shard(((),)))),
    ):
        with pytest.raises(Internal, match="lake: the connector failed with KeyError") as caught:
            call()
        assert "secret" not in str(caught.value)
    with pytest.raises(TableNotFound):
        metered.describe_table(("s", "t"))
