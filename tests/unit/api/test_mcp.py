"""MCP over streamable HTTP: the SDK's own client gets what the API gives, and no more."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.shared.exceptions import MCPError

from federator.api.mcp.hints import translate_hint
from federator.api.mcp.server import build_server
from federator.api.shares import ThreadShares
from federator.data.spool import Spool
from federator.model.scopes import Scopes
from federator.settings import Settings, parse_settings
from federator.store import Index
from tests.unit.api.conftest import Api
from tests.unit.api.mcp_support import Caller, Running, run_service, run_world, text_of
from tests.unit.api.worlds import HIDDEN, RUN_BOTH, RUN_SEEN, SEEN

READS = {
    "search_tables", "browse_tree", "describe_table", "show_table_code", "explain_object", "list_drift", "list_changes",
    "list_sources", "list_plans", "describe_plan",
}  # fmt: skip
WRITES = {"request_plan", "approve_plan"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with run_world(tmp_path_factory.mktemp("mcp")) as service:
        yield service


@pytest.fixture(scope="module")
def everyone(running: Running) -> dict[str, Caller]:
    return {"all": running.caller("all"), "part": running.caller("part", scopes=SEEN)}


def test_tools_have_schemas_and_say_whether_they_write(everyone: dict[str, Caller]) -> None:
    tools = {tool.name: tool for tool in everyone["all"].run(lambda client: client.list_tools()).tools}
    assert tools.keys() == READS | WRITES
    for name, tool in tools.items():
        assert tool.description
        assert tool.output_schema
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.read_only_hint is (name in READS)
        for parameter, schema in tool.input_schema.get("properties", {}).items():
            assert schema.get("description"), (name, parameter)
            if parameter == "limit":
                assert schema["maximum"] == 100


def test_many_first_requests_build_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each build takes a thread and half a second: those of many requests kept the threads of all callers for a minute."""
    built = []

    def build(*arguments: Any) -> Any:
        built.append(arguments)
        return build_server(*arguments)

    monkeypatch.setattr("federator.api.mcp.server.build_server", build)
    with run_world(tmp_path) as service:
        caller = service.caller("first")

        async def list_tools() -> int:
            async with httpx.AsyncClient(headers=caller.headers, timeout=60) as client:
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                accepted = {"Accept": "application/json"}
                return (await client.post(f"{service.url}/mcp", json=message, headers=accepted)).status_code

        async def list_at_once() -> list[int]:
            return await asyncio.gather(*(list_tools() for _ in range(10)))

        assert asyncio.run(list_at_once()) == [200] * 10
    assert len(built) == 1


def digest_of(caller: Caller) -> str:
    return caller.json("/api/v1/plans")["plans"][0]["digest"]


READ_CASES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("search_tables", {"query": "orders", "facets": True}, "/api/v1/search", {"q": "orders", "facets": "true", "limit": 25}),
    ("search_tables", {"query": "orders", "limit": 1}, "/api/v1/search", {"q": "orders", "limit": 1}),
    ("browse_tree", {}, "/api/v1/tree", {"limit": 25}),
    ("browse_tree", {"path": "lake$sales", "depth": 2}, "/api/v1/tree", {"path": "lake$sales", "depth": 2, "limit": 25}),
    ("describe_table", {"id": "lake$sales$orders"}, "/api/v1/tables/lake$sales$orders", {}),
    ("show_table_code", {"id": "lake$sales$orders"}, "/api/v1/snippets/lake$sales$orders", {}),
    ("explain_object", {"id": "copy$s$orders"}, "/api/v1/explain/copy$s$orders", {}),
    ("explain_object", {"id": "copy$s$none"}, "/api/v1/explain/copy$s$none", {}),
    ("list_drift", {}, "/api/v1/drift", {"limit": 25}),
    ("list_drift", {"kind": "name_clash", "about": "lake$sales$Twin"}, "/api/v1/drift",
     {"kind": "name_clash", "about": "lake$sales$Twin", "limit": 25}),
    ("list_changes", {"since": RUN_SEEN, "until": RUN_BOTH}, "/api/v1/diff", {"from": RUN_SEEN, "to": RUN_BOTH, "limit": 25}),
    ("list_sources", {}, "/api/v1/sources", {"limit": 100}),
    ("list_plans", {"state": "held"}, "/api/v1/plans", {"state": "held"}),
]  # fmt: skip


@pytest.mark.parametrize("who", ["all", "part"])
@pytest.mark.parametrize(("tool", "arguments", "path", "query"), READ_CASES)
def test_a_tool_returns_the_view_of_the_api(
    everyone: dict[str, Caller], who: str, tool: str, arguments: dict[str, Any], path: str, query: dict[str, Any]
) -> None:
    caller = everyone[who]
    result = caller.call(tool, arguments)
    shown = caller.json(path, **query)
    assert result.structured_content == shown
    assert json.loads(result.content[0].text) == shown
    if who == "part":
        assert not [name for name in HIDDEN if name in json.dumps(shown)]


def test_the_cases_have_content(everyone: dict[str, Caller]) -> None:
    caller = everyone["all"]
    assert caller.view("search_tables", query="orders")["total"]["count"] > 3
    assert caller.view("list_drift")["drift"]
    assert caller.view("describe_table", id="lake$sales$orders")["freshness"]["source"] == "lake"
    code = [snippet["code"] for snippet in caller.view("show_table_code", id="lake$sales$orders")["snippets"]]
    assert len(code) == 4
    assert all(caller.url in text and "FEDERATOR_TOKEN" in text for text in code)
    assert {source["name"] for source in caller.view("list_sources")["sources"]} == {"lake", "copy", "spare", "vault"}
    digest = digest_of(caller)
    assert caller.view("describe_plan", digest=digest) == caller.json(f"/api/v1/plans/{digest}")


def test_a_cursor_continues_a_result(everyone: dict[str, Caller]) -> None:
    caller, seen, cursor = everyone["part"], [], None
    while True:
        page = caller.view("search_tables", query="orders", limit=1, **({"cursor": cursor} if cursor else {}))
        assert len(page["nodes"]) == 1
        seen += [node["id"] for node in page["nodes"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == [node["id"] for node in caller.json("/api/v1/search", q="orders")["nodes"]]
    assert len(seen) > 1
    first = everyone["all"].view("search_tables", query="orders", limit=1)["next"]
    assert "cursor belongs to another listing" in caller.error("search_tables", query="orders", limit=1, cursor=first)


@pytest.mark.parametrize(
    ("tool", "hidden", "absent"),
    [
        ("describe_table", {"id": "lake$payroll$salaries"}, {"id": "lake$parsnip$salaries"}),
        ("describe_table", {"id": "vault$s$orders"}, {"id": "valve$s$orders"}),
        ("show_table_code", {"id": "vault$s$orders"}, {"id": "valve$s$orders"}),
        ("explain_object", {"id": "vault$s$orders"}, {"id": "valve$s$orders"}),
        ("browse_tree", {"path": "vault$s"}, {"path": "valve$s"}),
        ("list_drift", {"source": "vault"}, {"source": "valve"}),
        ("describe_plan", {"digest": "HIDDEN"}, {"digest": "0" * 64}),
    ],
)
def test_a_hidden_name_is_like_an_absent_one(
    everyone: dict[str, Caller], tool: str, hidden: dict[str, str], absent: dict[str, str]
) -> None:
    caller = everyone["part"]
    if "digest" in hidden:
        hidden = {"digest": everyone["all"].json("/api/v1/plans", mirror="hidden")["plans"][0]["digest"]}
    (name, first), (_, other) = *hidden.items(), *absent.items()
    messages = caller.error(tool, **hidden), caller.error(tool, **absent)
    parts = ("vault", "valve"), ("payroll", "parsnip"), (first, other)
    for old, new in parts:
        messages = messages[0].replace(old, new), messages[1]
    assert messages[0] == messages[1] != "", name


def test_errors_are_those_of_the_api(everyone: dict[str, Caller]) -> None:
    caller = everyone["all"]
    problem = caller.get("/api/v1/tables/" + quote("lake$sales$ordres")).json()
    assert problem["hint"] == "federator search ordres"
    assert (
        caller.error("describe_table", id="lake$sales$ordres") == f"{problem['detail']}\nhint: search_tables with query ordres"
    )
    assert caller.error("list_plans", state="nonsense").startswith("'nonsense' is not a plan state\nhint: use one of ready")
    assert caller.error("search_tables", query="x", limit=101) == "limit: must be at most 100"
    assert caller.error("search_tables", query="x", limt=1) == (
        "search_tables has no parameter 'limt'\nhint: parameters: query, facets, limit, cursor"
    )
    assert caller.error("describe_plan", digest="0/approve").startswith("digest: must be a text that matches ")
    assert "NUL characters" in caller.error("search_tables", query="a\0b")
    assert caller.error("list_changes", since="2999-01-01").startswith("'2999-01-01' is in the future\nhint: ")
    assert "Unknown tool" in caller.error("nothing")
    for name in ("", "a/b", "s3://lake/sales", "%2F", "."):
        assert caller.error("request_plan", mirrors=[name]).startswith("mirrors.0: must be a text that matches ")


@pytest.mark.parametrize(
    ("hint", "translated"),
    [
        (
            "use source$namespace$table; federator search shows the ids",
            "use source$namespace$table; search_tables shows the ids",
        ),
        ("list the plans that wait: federator plans list --held", 'list the plans that wait: list_plans with state "held"'),
        ("create a new plan: federator plan", "create a new plan: request_plan"),
        ("federator ls 'lake$sales'", "browse_tree"),
        ("federator runs lists the runs; use 2026-11-20", "use 2026-11-20"),
        ("run federator crawl, which creates it", "for an operator of the service: run federator crawl, which creates it"),
        ("use one of ready, held", "use one of ready, held"),
        (None, None),
    ],
)
def test_hints_name_tools_and_not_commands(hint: str | None, translated: str | None) -> None:
    assert translate_hint(hint) == translated


def test_resources_are_views_too(everyone: dict[str, Caller]) -> None:
    caller = everyone["part"]

    def read(uri: str) -> Any:
        (content,) = caller.run(lambda client: client.read_resource(uri)).contents
        return json.loads(content.text)

    assert read("federator://table/lake$sales$orders") == caller.json("/api/v1/tables/lake$sales$orders")
    assert read("federator://namespace/lake$sales") == caller.json("/api/v1/tree", path="lake$sales", limit=100)

    async def read_hidden(client: Client) -> None:
        with pytest.raises(MCPError, match=r"^no source 'vault' is in the index\nhint: "):
            await client.read_resource("federator://table/vault$s$orders")

    caller.run(read_hidden)
    templates = caller.run(lambda client: client.list_resource_templates()).resource_templates
    assert {template.uri_template for template in templates} == {"federator://table/{id}", "federator://namespace/{id}"}


def post(running: Running, headers: dict[str, str] | None = None, content: bytes | None = None) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    common = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    content = json.dumps(body).encode() if content is None else content
    return httpx.post(f"{running.url}/mcp", headers={**common, **(headers or {})}, content=content, timeout=60)


def test_without_a_token_nothing_is_answered(running: Running) -> None:
    refused = post(running)
    assert (refused.status_code, refused.json()["title"]) == (401, "Unauthenticated")
    assert post(running, {"Authorization": "Bearer guess"}).status_code == 401
    with pytest.raises((MCPError, httpx2.HTTPStatusError, ExceptionGroup)):
        Caller(running.url, {}).run(lambda client: client.list_tools())


def test_the_limits_of_the_api_hold(running: Running, everyone: dict[str, Caller]) -> None:
    headers = everyone["all"].headers
    assert post(running, headers).json()["result"]["tools"]
    assert post(running, headers, b" " * 64_001).status_code == 413
    assert post(running, {**headers, "Host": "attacker.invalid"}).status_code == 421
    assert post(running, {**headers, "Origin": "http://attacker.invalid"}).status_code == 403
    assert post(running, {**headers, "Origin": running.url}).status_code == 200
    # There is no stream to open and no session to end.
    for method in ("GET", "DELETE"):
        assert httpx.request(method, f"{running.url}/mcp", headers=headers).status_code == 405


def test_on_loopback_without_tokens_the_caller_is_the_local_user(index: Index, settings_of: Any) -> None:
    settings: Settings = settings_of()
    with run_service(index, settings) as running:
        caller = Caller(running.url, {})
        assert caller.view("browse_tree", path="lake$odd") == caller.json("/api/v1/tree", path="lake$odd", limit=25)
        for node in caller.view("browse_tree", path="lake$odd")["nodes"]:
            assert caller.view("describe_table", id=node["id"])["doc"] == node["name"]
        assert "hunter2" not in json.dumps(caller.view("describe_table", id="lake$sales$orders"))


def test_a_caller_without_scopes_sees_nothing(running: Running) -> None:
    nobody = running.caller("nobody", "admin", Scopes())
    assert nobody.view("list_sources")["sources"] == []
    assert nobody.view("search_tables", query="orders")["nodes"] == []


def test_a_failure_of_the_service_shows_nothing_of_it(running: Running, tmp_path: Path) -> None:
    # In this process and without a request: a call that nobody has authenticated has no rights.
    server = build_server(running.index, parse_settings({}, tmp_path / "federator.toml"), ThreadShares(), Spool(0))

    async def call() -> Any:
        async with Client(server) as client:
            return await client.call_tool("list_sources", {})

    result = asyncio.run(call())
    assert (result.is_error, text_of(result)) == (True, "internal error; see the log")


def test_without_the_sdk_the_route_says_what_to_install(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "federator.api.mcp.server")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    refused = api.post("/mcp", json={})
    assert (refused.status_code, refused.json()["hint"]) == (404, "pip install 'lance-federator[mcp]'")
