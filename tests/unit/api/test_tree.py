"""The tree, tables, search and sources over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from federator.model import path_key
from federator.store import Index
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api.conftest import ODD, Api


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
    answer = api.get("/api/v1/tree", params={"path": "lake", "cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


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
    answer = api.get(f"/api/v1/tables/{quote(key, safe='')}")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["id"], answer.json()["doc"], answer.json()["path"]) == (key, name, ["odd", name])


def test_a_table_says_everything_but_secrets(api: Api) -> None:
    answer = api.get("/api/v1/tables/lake$sales$orders")
    result = answer.json()
    assert result["properties"] == {"comment": "x", "aws.secret_access_key": "(masked)", "fs.s3a.token": "(masked)"}
    assert "hunter2" not in answer.text
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
    answer = api.get(url)
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
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
    answer = api.get(url)
    assert (answer.status_code, answer.json()["code"], answer.headers["content-type"]) == (400, 13, "application/problem+json")


def test_unknown_routes_and_methods_are_problems(api: Api) -> None:
    assert api.get("/nope").json()["status"] == 404
    answer = api.ask("DELETE", "/api/v1/tree")
    assert (answer.status_code, answer.headers["allow"], answer.json()["title"]) == (
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
    answer = api.get(f"/api/v1/{route}?q=table%20ownr%3Aana")
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert answer.json()["detail"] == "'ownr' is not a field of the search; did you mean 'owner'?"
    assert answer.json()["hint"].startswith("fields: name, namespace, column, property, owner, location, source, state; ")


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
    assert result["history"][0]["what"] == "appeared"
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
