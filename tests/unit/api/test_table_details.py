"""The graph of declarations and the comparison of columns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from federator.api.app import create_app
from federator.model.scopes import Scopes
from federator.settings import Settings
from federator.store import Index, ledger, verifications
from federator.views.declaration_graph import MAX_TABLES
from tests.fixtures.index_content import fill, owned, table
from tests.unit.api.conftest import Api
from tests.unit.api.worlds import as_caller

_ORDERS = "s3://lake/sales/orders.lance"


def _columns(**types: str) -> str:
    return json.dumps([{"name": name, "type": kind} for name, kind in types.items()])


@pytest.fixture
def chain(index: Index, settings_of: Callable[..., Settings]) -> Iterator[Api]:
    """lake$sales$orders, its copy, the copy of the copy, and a second declaration of the location."""
    stored = _columns(ID="int64", price="string", vector="fixed_size_list<float, 2>")
    declared = _columns(id="bigint", price="double", label="string")
    fill(index, "lake", table("lake", "sales", "orders", schema=declared), table("lake", "sales", "twin", location=_ORDERS))
    fill(index, "copy", table("copy", "sales", "orders", location=_ORDERS))
    fill(index, "far", table("far", "sales", "orders", location="s3://far/orders.lance"))
    with index.write() as connection:
        for mirror, origin, target in (("m", "lake", "copy"), ("n", "copy", "far"), ("n", "copy", "lost")):
            name = "sales$orders" if target != "lost" else "sales$lost"
            ledger.upsert_entry(
                connection,
                owned(
                    origin, "sales$orders", target if target != "lost" else "far", name, mirror=mirror, updated_at=time.time()
                ),
            )
        verified = {
            "canonical": _ORDERS, "location": _ORDERS, "state": "valid", "message": None, "version": 7, "rows": 1, "fragments": 1,
            "schema": stored, "checked_at": time.time(), "checked_through": "lake", "access": "",
        }  # fmt: skip
        verifications.save_verifications(connection, [verified])
    api = Api(create_app(settings_of()))
    yield api
    api.app.state.index.close()


def _edges(graph: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["origin"], each["mirror"], each["target"]) for each in graph["mirrored"]]


def test_the_graph_is_the_same_from_each_of_its_tables(chain: Api) -> None:
    graphs = [chain.json(f"/api/v1/graph/{name}") for name in ("lake$sales$orders", "copy$sales$orders", "lake$sales$twin")]
    for graph in graphs:
        assert [(each["id"], each["level"], each["state"], each["is_declared"]) for each in graph["tables"]] == [
            ("lake$sales$orders", 0, "valid", True), ("lake$sales$twin", 0, "valid", True), ("copy$sales$orders", 1, "valid", True),
            ("far$sales$lost", 2, None, False), ("far$sales$orders", 2, "unverified", True),
        ]  # fmt: skip
        assert _edges(graph) == [
            ("copy$sales$orders", "n", "far$sales$lost"), ("copy$sales$orders", "n", "far$sales$orders"),
            ("lake$sales$orders", "m", "copy$sales$orders"),
        ]  # fmt: skip
        assert graph["is_complete"]
        assert [each["source"] for each in graph["freshness"]] == ["copy", "far", "lake"]
    # The twin declares the location of the others, and not that of the copy in far.
    assert "lake$sales$twin" not in [each["id"] for each in chain.json("/api/v1/graph/far$sales$orders")["tables"]]


def test_the_graph_ends_where_the_scopes_end(chain: Api, index: Index) -> None:
    ends = as_caller(chain.app, index, "viewer", Scopes.parse(["lake$sales$orders", "far"]), "ends")
    graph = ends.json("/api/v1/graph/lake$sales$orders")
    # far is reached only through copy, which is hidden.
    assert ([each["id"] for each in graph["tables"]], graph["mirrored"]) == (["lake$sales$orders"], [])
    assert [each["id"] for each in ends.json("/api/v1/graph/far$sales$orders")["tables"]] == ["far$sales$orders"]
    middle = as_caller(chain.app, index, "viewer", Scopes.parse(["copy", "far$sales$lost"]), "middle")
    graph = middle.json("/api/v1/graph/copy$sales$orders")
    assert _edges(graph) == [("copy$sales$orders", "n", "far$sales$lost")]
    assert middle.get("/api/v1/graph/lake$sales$orders").status_code == 404
    assert "lake$" not in middle.get("/api/v1/graph/copy$sales$orders").text


def test_a_ring_of_mirrors_ends(chain: Api, index: Index) -> None:
    with index.write() as connection:
        ledger.upsert_entry(connection, owned("far", "sales$orders", "lake", mirror="back", updated_at=time.time()))
    graph = chain.json("/api/v1/graph/lake$sales$orders")
    assert len(graph["tables"]) == 5
    assert ("far$sales$orders", "back", "lake$sales$orders") in _edges(graph)


def test_a_large_graph_says_that_it_is_not_complete(chain: Api, index: Index) -> None:
    with index.write() as connection:
        for number in range(MAX_TABLES):
            entry = owned("lake", "sales$orders", "copy", f"many$t{number:03}", mirror="many", updated_at=time.time())
            ledger.upsert_entry(connection, entry)
    graph = chain.json("/api/v1/graph/lake$sales$orders")
    assert not graph["is_complete"]
    assert len(graph["tables"]) == MAX_TABLES
    shown = {each["id"] for each in graph["tables"]}
    assert all({origin, target} <= shown for origin, _, target in _edges(graph))


def test_columns_are_paired_without_case_and_types_by_their_group(chain: Api) -> None:
    body = chain.json("/api/v1/schema/lake$sales$orders")
    assert [(each["name"], each["declared"], each["stored"], each["difference"]) for each in body["columns"]] == [
        ("id", "bigint", "int64", None), ("price", "double", "string", "other_type"), ("label", "string", None, "not_stored"),
        ("vector", None, "fixed_size_list<float, 2>", "not_declared"),
    ]  # fmt: skip
    assert (body["version"], body["declares_columns"], body["is_stored_known"], body["is_reordered"]) == (
        7,
        True,
        True,
        False,
    )


def test_columns_that_copies_lack_are_named_over_all_mirrors(chain: Api, index: Index) -> None:
    assert chain.json("/api/v1/schema/lake$sales$orders")["copies"] == []
    fill(index, "copy", table("copy", "sales", "orders", location=_ORDERS, schema=_columns(ID="bigint", price="double")))
    fill(index, "far", table("far", "sales", "orders", location="s3://far/orders.lance", schema=_columns(id="bigint")))
    body = chain.json("/api/v1/schema/lake$sales$orders")
    assert body["copies"] == ["copy$sales$orders", "far$sales$orders"]
    assert {each["name"]: each["missing_in"] for each in body["columns"]} == {
        "id": [], "price": ["far$sales$orders"], "label": ["copy$sales$orders", "far$sales$orders"],
        "vector": ["copy$sales$orders", "far$sales$orders"],
    }  # fmt: skip
    copy = chain.json("/api/v1/schema/copy$sales$orders")
    assert (copy["copies"], [each["missing_in"] for each in copy["columns"][:2]]) == (
        ["far$sales$orders"],
        [[], ["far$sales$orders"]],
    )


def test_nothing_differs_if_one_side_is_unknown(chain: Api) -> None:
    stored = chain.json("/api/v1/schema/copy$sales$orders")
    assert (stored["declares_columns"], stored["is_stored_known"]) == (False, True)
    assert [(each["name"], each["difference"]) for each in stored["columns"]] == [
        ("ID", None),
        ("price", None),
        ("vector", None),
    ]
    neither = chain.json("/api/v1/schema/far$sales$orders")
    assert (neither["columns"], neither["version"]) == ([], None)


def test_the_same_columns_in_another_order_are_named(chain: Api, index: Index) -> None:
    fill(index, "lake", table("lake", "sales", "orders", schema=_columns(vector="array<float>", price="string", id="bigint")))
    body = chain.json("/api/v1/schema/lake$sales$orders")
    assert body["is_reordered"]
    assert {each["difference"] for each in body["columns"]} == {None}


@pytest.mark.parametrize("view", ["graph", "schema", "snippets"])
def test_only_tables_have_them(chain: Api, view: str) -> None:
    assert chain.get(f"/api/v1/{view}/lake$sales").status_code == 404
    assert chain.get(f"/api/v1/{view}/lake").status_code == 404
    assert chain.get(f"/api/v1/{view}/nowhere$x").status_code == 404


@pytest.mark.parametrize("name", ["a\nb", "orders\n", "\norders", "orders\r\n", "\u2028"])
@pytest.mark.parametrize("view", ["tables", "graph", "schema", "snippets", "explain"])
def test_a_name_with_line_breaks_is_that_of_one_table(chain: Api, index: Index, view: str, name: str) -> None:
    path = f"/api/v1/{view}/{quote(f'lake$sales${name}', safe='')}"
    if view != "explain":
        assert chain.get(path).status_code == 404
    fill(index, "lake", table("lake", "sales", "orders"), table("lake", "sales", name))
    assert chain.json(path)["id"] == f"lake$sales${name}"
