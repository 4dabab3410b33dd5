"""The tree, tables, search and sources over HTTP."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from federator.model import LocationAliases, path_key
from federator.model.scopes import Scopes
from federator.store import Index, verifications
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api import worlds
from tests.unit.api.conftest import ODD, Api
from tests.unit.api.test_overview import api_over


def everything(api: Api, url: str, limit: int) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    cursor = None
    while True:
        more = {"limit": limit, **({"cursor": cursor} if cursor else {})}
        page = api.json(str(httpx.URL(url).copy_merge_params(more)))
        assert len(page["nodes"]) <= limit
        result += page["nodes"]
        cursor = page["next"]
        if cursor is None:
            return result


def test_the_roots_children_are_the_sources_with_their_freshness(api: Api) -> None:
    tree = api.json("/api/v1/tree")
    assert (tree["path"], tree["freshness"], tree["next"]) == ("", None, None)
    (lake,) = tree["nodes"]
    assert (lake["id"], lake["kind"], lake["children"]) == ("lake", "source", None)
    fresh = lake["freshness"]
    assert (fresh["state"], fresh["revision"], fresh["message"]) == ("partial", 2, "hr: denied")
    assert fresh["crawled_at"].endswith("Z")
    assert datetime.fromisoformat(fresh["crawled_at"]).utcoffset() is not None


def test_namespaces_show_the_evidence_of_their_listing(api: Api) -> None:
    nodes = {node["name"]: node for node in api.json("/api/v1/tree?path=lake")["nodes"]}
    assert list(nodes) == ["hr", "odd", "sales"]
    assert (nodes["hr"]["coverage"], nodes["hr"]["message"]) == ("failed", "denied")


def test_tables_say_whether_they_were_verified(api: Api) -> None:
    nodes = {node["name"]: node for node in api.json("/api/v1/tree?path=lake$sales&limit=1000")["nodes"]}
    assert len(nodes) == 27
    assert (nodes["orders"]["verified"], nodes["t00"]["verified"], nodes["managed"]["kind"]) == ("valid", None, "managed_table")


@pytest.mark.parametrize("limit", [1, 3, 27, 1000])
def test_pages_hold_everything_once(api: Api, limit: int) -> None:
    names = [node["name"] for node in everything(api, "/api/v1/tree?path=lake$sales", limit)]
    assert len(names) == len(set(names)) == 27


def test_pages_of_one_listing_show_one_revision(api: Api, index: Index) -> None:
    first = api.json("/api/v1/tree?path=lake$sales&limit=26")
    fill(index, "lake", table("lake", "sales", "zz"), gone=[("sales", "t24")], run="run-3")
    second = api.json("/api/v1/tree", params={"path": "lake$sales", "cursor": first["next"]})
    assert [node["name"] for node in second["nodes"]] == ["t24"]
    assert "zz" in [node["name"] for node in everything(api, "/api/v1/tree?path=lake$sales", 100)]


@pytest.mark.parametrize("cursor", ["nonsense", "!!", "W10", "WzEsMiwzXQ", "bnVsbA", "😀"])
def test_a_malformed_cursor_is_refused(api: Api, cursor: str) -> None:
    response = api.get("/api/v1/tree", params={"path": "lake", "cursor": cursor})
    assert (response.status_code, response.json()["code"]) == (400, 13)


def test_a_cursor_of_another_listing_or_of_the_future_is_refused(api: Api) -> None:
    from federator.api.paging import encode_cursor

    mine = api.json("/api/v1/tree?path=lake$sales&limit=1")["next"]
    for path, cursor in (
        ("lake$odd", mine),
        ("lake$sales", encode_cursor("lake$sales", "", 99)),
        ("lake$sales", encode_cursor("lake$sales", "", -1)),
    ):
        assert api.get("/api/v1/tree", params={"path": path, "cursor": cursor}).status_code == 400


def test_depth_brings_children_within_the_limit(api: Api) -> None:
    (lake,) = api.json("/api/v1/tree?depth=3&limit=1000")["nodes"]
    sales = next(node for node in lake["children"] if node["name"] == "sales")
    assert len(sales["children"]) == 27
    (lake,) = api.json("/api/v1/tree?depth=3&limit=5")["nodes"]
    shown = [node for child in lake["children"] for node in child["children"] or []]
    assert len(shown) + len(lake["children"]) <= 5
    odd = next(node for node in lake["children"] if node["name"] == "odd")
    rest = everything(api, f"/api/v1/tree?path=lake$odd&cursor={odd['next']}", 100)
    assert len(odd["children"]) + len(rest) == len(ODD)


@pytest.mark.parametrize("name", ODD)
def test_every_name_survives_the_url(api: Api, name: str) -> None:
    key = path_key(("lake", "odd", name))
    response = api.get(f"/api/v1/tables/{quote(key, safe='')}")
    assert response.status_code == 200, response.text
    assert (response.json()["id"], response.json()["doc"], response.json()["path"]) == (key, name, ["odd", name])


def test_a_table_says_everything_but_secrets(api: Api) -> None:
    response = api.get("/api/v1/tables/lake$sales$orders")
    result = response.json()
    assert result["properties"] == {"comment": "x", "aws.secret_access_key": "(masked)", "fs.s3a.token": "(masked)"}
    assert "hunter2" not in response.text
    assert result["schema"] == [{"name": "id", "type": "bigint"}]
    assert (result["dataset"]["rows"], result["dataset"]["checked_at"]) == (10, "1970-01-01T00:00:01.500000Z")
    assert result["freshness"]["revision"] == 2


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("/api/v1/tables/lake$sales$nope", 4), ("/api/v1/tables/nope$a$b", 1), ("/api/v1/tables/lake", 4),
        ("/api/v1/tree?path=nope", 1), ("/api/v1/tree?path=lake$nope", 1), ("/api/v1/sources/nope", 1),
    ],
)  # fmt: skip
def test_what_is_not_there_is_a_problem_404(api: Api, url: str, code: int) -> None:
    response = api.get(url)
    problem = response.json()
    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")
    assert (problem["status"], problem["code"], problem["instance"]) == (404, code, url.partition("?")[0])
    assert problem["type"].startswith("urn:lance-federator:problem:")
    assert problem["title"]
    assert problem["detail"]


@pytest.mark.parametrize(
    "url",
    [
        "/api/v1/tree?limit=0", "/api/v1/tree?limit=x", "/api/v1/tree?depth=9", "/api/v1/search", "/api/v1/search?q=",
        "/api/v1/tree?path=a%00b", "/api/v1/search?q=%00", "/api/v1/tables/a%00b",
    ],
)  # fmt: skip
def test_invalid_input_is_a_problem_400(api: Api, url: str) -> None:
    response = api.get(url)
    assert (response.status_code, response.json()["code"], response.headers["content-type"]) == (
        400,
        13,
        "application/problem+json",
    )


def test_unknown_routes_and_methods_are_problems(api: Api) -> None:
    assert api.get("/nope").json()["status"] == 404
    response = api.ask("DELETE", "/api/v1/tree")
    assert (response.status_code, response.headers["allow"], response.json()["title"]) == (
        405,
        "GET, HEAD, OPTIONS",
        "Method not allowed",
    )


def test_search_finds_pages_and_freshness(api: Api) -> None:
    result = api.json("/api/v1/search", params={"q": "TABLE NUMBER 1*", "facets": "true"})
    assert {node["name"] for node in result["nodes"]} == {"t01", *(f"t{i}" for i in range(10, 20))}
    assert result["facets"]["namespace"] == [{"value": "lake$sales", "count": 11}]
    assert (result["facets"]["counted"], result["facets"]["exact"], result["facets"]["state"][0]["value"]) == (
        11,
        True,
        "unverified",
    )
    assert api.json("/api/v1/search?q=t01")["facets"] is None
    assert [fresh["source"] for fresh in result["freshness"]] == ["lake"]
    assert len(everything(api, "/api/v1/search?q=table%20number", 4)) == 25
    assert api.json("/api/v1/search", params={"q": "😀"})["nodes"][0]["id"] == "lake$odd$😀"


@pytest.mark.parametrize("route", ["search", "suggest"])
def test_an_unknown_field_is_a_problem_that_lists_the_fields(api: Api, route: str) -> None:
    response = api.get(f"/api/v1/{route}?q=table%20ownr%3Aana")
    assert (response.status_code, response.json()["code"]) == (400, 13)
    assert response.json()["detail"] == "'ownr' is not a field of the search; did you mean 'owner'?"
    assert response.json()["hint"].startswith("fields: name, namespace, column, property, owner, location, source, state; ")


def test_sources_are_those_configured_and_those_known(api: Api) -> None:
    copy, lake = api.json("/api/v1/sources")["sources"]
    assert (lake["name"], lake["tables"], lake["namespaces"], lake["failed_namespaces"]) == ("lake", 40, 3, 1)
    assert (lake["schedule"], lake["configured"]) == ("*/15 * * * *", True)
    assert (copy["name"], copy["freshness"]["state"], copy["freshness"]["crawled_at"]) == ("copy", "never", None)
    assert api.json("/api/v1/sources/lake") == lake


@pytest.mark.parametrize(
    "url",
    [
        "/api/v1/tree",
        "/api/v1/tree?path=lake$sales&limit=2",
        "/api/v1/tables/lake$sales$orders",
        "/api/v1/sources",
        "/api/v1/runs",
    ],
)
def test_etags_hold_until_something_changes(api: Api, index: Index, url: str) -> None:
    tag = api.get(url).headers["etag"]
    for values in (tag, f'"other", {tag}', tag.removeprefix("W/")):
        again = api.get(url, headers={"If-None-Match": values})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    if url != "/api/v1/runs":
        fill(index, "lake", table("lake", "sales", "new"), run="run-3")
        changed = api.get(url, headers={"If-None-Match": tag})
        assert changed.status_code == 200
        assert changed.headers["etag"] != tag


def test_etags_of_two_pages_differ(api: Api) -> None:
    first = api.get("/api/v1/tree?path=lake$sales&limit=2")
    second = api.get("/api/v1/tree", params={"path": "lake$sales", "limit": 2, "cursor": first.json()["next"]})
    assert first.headers["etag"] != second.headers["etag"]
    assert first.headers["etag"].startswith('W/"r2-')


def test_large_responses_are_compressed_on_request(api: Api) -> None:
    url = "/api/v1/tree?path=lake$sales&limit=1000"
    assert api.get(url, headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in api.get(url, headers={"Accept-Encoding": "identity"}).headers


def test_explain_tells_the_story_of_what_is_there_and_of_what_is_not(api: Api) -> None:
    result = api.json("/api/v1/explain/lake%24sales%24orders")
    assert result["summary"] == "lake has it, and no mirror of this instance declared it"
    assert (result["kind"], result["evidence"]["proves"], result["freshness"]["source"]) == ("table", True, "lake")
    assert [event["what"] for event in result["history"]] == ["verified: valid", "appeared"]
    assert result["parts"][0]["next"] == "no plan of this mirror was made yet: federator plan m"
    unknown = api.json("/api/v1/explain/lake%24hr%24x")
    assert unknown["summary"] == "it is not known whether lake has it: the listing of hr is failed (denied)"
    assert api.get("/api/v1/explain/nowhere%24x").status_code == 404
    assert api.get("/api/v1/explain/lake").status_code == 400


def test_the_merged_view_is_one_tree_over_all_sources(api: Api, index: Index) -> None:
    fill(
        index,
        "copy",
        namespace("copy", "sales"),
        table("copy", "sales", "orders"),
        table("copy", "sales", "t00", location="s3://x/t"),
    )
    root = api.json("/api/v1/tree?view=merged")
    assert [node["id"] for node in root["nodes"]] == ["hr", "odd", "sales"]
    nodes = {node["name"]: node for node in everything(api, "/api/v1/tree?view=merged&path=sales", 5)}
    assert len(nodes) == 27
    assert ([home["id"] for home in nodes["orders"]["homes"]], nodes["orders"]["conflict"]) == (
        ["copy$sales$orders", "lake$sales$orders"], False,
    )  # fmt: skip
    assert (nodes["t00"]["conflict"], nodes["t00"]["default"]) == (True, "copy$sales$t00")
    page = api.json("/api/v1/tree?view=merged&path=sales&limit=2")
    assert [fresh["source"] for fresh in page["freshness"]] == ["copy", "lake"]
    assert api.get(f"/api/v1/tree?path=lake$sales&cursor={page['next']}").status_code == 400
    assert api.get("/api/v1/tree?view=merged&path=nope").status_code == 404
    deep = {node["name"]: node for node in api.json("/api/v1/tree?view=merged&depth=2")["nodes"]}
    assert sorted(node["name"] for node in deep["sales"]["children"]) == sorted(nodes)
    assert (deep["hr"]["children"], deep["hr"]["next"]) == ([], None)
    few = api.json("/api/v1/tree?view=merged&depth=2&limit=3")["nodes"]
    (part,) = [node for node in few if node["next"]]
    rest = everything(api, f"/api/v1/tree?view=merged&path={part['id']}&cursor={part['next']}", 50)
    assert [len(part["children"]), part["children"] + rest] == [
        3,
        [node | {"children": None} for node in deep[part["name"]]["children"]],
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
@pytest.mark.parametrize("sort", ["rows", "-rows", "size", "-size", "written", "-written", "state", "-state"])
def test_children_are_sorted_by_what_is_stored(api: Api, index: Index, sort: str, limit: int) -> None:
    """Pages hold everything once; a table without a value comes last in both directions."""
    facts: list[tuple[str, str, int | None, int | None, float | None]] = [
        ("t00", "valid", 5, 700, 30.0), ("t01", "valid", 5, 20, 10.5), ("t02", "missing", None, None, None),
        ("t03", "valid", 9, 0, 20.0),
    ]  # fmt: skip
    with index.write() as connection:
        for name, state, rows, size, written in facts:
            location = f"s3://lake/sales/{name}.lance"
            found = {
                "canonical": location, "location": location, "state": state, "message": None, "version": 1, "rows": rows,
                "fragments": 1, "schema": None, "checked_at": 5.0, "checked_through": "lake", "size": size, "changed_at": written,
                "access": "",
            }  # fmt: skip
            verifications.save_verifications(connection, [found])
    url = f"/api/v1/tree?path=lake$sales&with=verified&sort={sort}"
    nodes = everything(api, url, limit)
    names = [node["name"] for node in nodes]
    assert len(names) == len(set(names)) == 27
    field = {"written": "written_at", "state": "state"}.get(sort.removeprefix("-"), sort.removeprefix("-"))
    values = [node["verified"] if field == "state" else (node["stored"] or {}).get(field) for node in nodes]
    known = [value for value in values if value is not None]
    assert len(known) >= 3
    assert values == [*sorted(known, reverse=sort.startswith("-")), *[None] * (27 - len(known))]
    assert names == [node["name"] for node in everything(api, url, 1000)]


def test_what_is_stored_is_shown_on_request_only(api: Api) -> None:
    shown, bare = (
        {node["name"]: node["stored"] for node in api.json(f"/api/v1/tree?path=lake$sales&limit=1000{more}")["nodes"]}
        for more in ("&with=verified", "")
    )
    assert (shown["orders"]["rows"], shown["t00"], set(bare.values())) == (10, None, {None})


def test_tables_have_the_number_of_declarations_of_their_datasets(either_index: Index, tmp_path: Path) -> None:
    fill(either_index, "lake", namespace("lake", "s"), *(table("lake", "s", name, location="s3://b/x") for name in ("a", "b")))
    fill(either_index, "lake", table("lake", "s", "c"), table("lake", "s", "d", location=None))
    fill(either_index, "copy", table("copy", "s", "a", location="s3a://b/x/"))
    fill(either_index, "new", table("new", "s", "c", location="s3://other/s/c.lance"))
    with either_index.write() as connection:
        verifications.refresh_location_aliases(connection, LocationAliases.from_prefixes({"s3://other": "s3://lake"}))
    api = api_over(either_index, tmp_path)

    def count(caller: Api) -> list[int | None]:
        return [node["declarations"] for node in caller.json("/api/v1/tree?path=lake$s&with=verified")["nodes"]]

    assert count(api) == [3, 3, 2, None]
    assert count(worlds.as_caller(api.app, either_index, "viewer", Scopes.parse(["lake"]), "part")) == [2, 2, 1, None]
    assert {node["declarations"] for node in api.json("/api/v1/tree?path=lake$s")["nodes"]} == {None}


@pytest.mark.parametrize("more", ["view=merged", "as_of=now", "depth=2", "path="])
def test_sorting_is_for_one_level_as_it_is_now(api: Api, more: str) -> None:
    response = api.get(f"/api/v1/tree?path=lake$sales&sort=-rows&{more}")
    assert (response.status_code, response.json()["code"]) == (400, 13)


def test_a_position_of_another_order_is_refused(api: Api) -> None:
    cursor = api.json("/api/v1/tree?path=lake$sales&sort=-rows&limit=1")["next"]
    for sort in ("rows", "state"):
        response = api.get("/api/v1/tree", params={"path": "lake$sales", "sort": sort, "cursor": cursor})
        assert (response.status_code, response.json()["code"]) == (400, 13)


def test_namespaces_have_the_number_of_tables_below_them(either_index: Index, tmp_path: Path) -> None:
    """In byte order on both databases: `a-b` and `a$b` are beside `a` or in it, whatever the database's locale is."""
    paths = [("a", "x"), ("a", "b", "y"), ("a", "b", "z"), ("a-b", "x"), ("A", "x"), ("a b", "x"), ("x",)]
    fill(
        either_index,
        "lake",
        *(namespace("lake", *path) for path in (("a",), ("a", "b"), ("a-b",), ("A",), ("a b",), ("none",))),
    )
    fill(either_index, "lake", *(table("lake", *path) for path in paths))
    api = api_over(either_index, tmp_path)

    def count(caller: Api, path: str) -> dict[str, int | None]:
        nodes = caller.json("/api/v1/tree", params={"path": path, "counts": "true"})["nodes"]
        return {node["id"]: node["tables"] for node in nodes if node["kind"] == "namespace"}

    assert count(api, "lake") == {"lake$A": 1, "lake$a": 3, "lake$a b": 1, "lake$a-b": 1, "lake$none": 0}
    assert count(api, "lake$a") == {"lake$a$b": 2}
    fill(either_index, "lake", table("lake", "a", "x", doc="changed"), gone=[("a", "b", "y")], run="run-2")
    assert count(api, "lake")["lake$a"] == 2
    part = worlds.as_caller(api.app, either_index, "viewer", Scopes.parse(["lake$a$b"]), "part")
    assert (count(part, "lake"), count(part, "lake$a")) == ({"lake$a": None}, {"lake$a$b": 1})
    assert api.json("/api/v1/tree?path=lake")["nodes"][0]["tables"] is None
