"""Wrong input at every route, tool and option is refused in the federator's own words, none of them pydantic's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlencode

import httpx
import pytest
from fastapi.openapi.utils import get_openapi
from fastapi.routing import RouteContext, iter_route_contexts
from pydantic_core import core_schema

from federator.runtime.input_faults import describe_faults
from tests.unit.api.conftest import Api
from tests.unit.api.mcp_support import Caller, run_world

#: phrases of pydantic and of FastAPI's reading of JSON
FOREIGN = re.compile(
    r"(?i)input should|field required|(string|list|tuple|data|object|keys|url|date) should|should (have|be|match)|not permitted"
    r"|unable to|value error|assertion failed|validation error|pydantic|valid (string|integer|number|boolean|list|dictionary|date)"
    r"|\btype=|https?://|json decode|expecting|extra data|function-|\bNoneType"
)
WRONG: tuple[Any, ...] = ("x", -1, 1.5, [[1]], [None], {"a": {"b": 1}}, "ÿ" * 3000)
BODIES = (b"{", b'{"a":1,}', b"\xff", b"[]", b"3", b"null", b'"x"', b"{} {}")


class ShownRoute(RouteContext):
    include_in_schema = True


def document(api: Api) -> dict[str, Any]:
    """The OpenAPI document of all routes, also of those of the Lance protocol, which the service's own document leaves out."""
    contexts = iter_route_contexts(api.app.routes)
    # The page's routes are in the document, too, but have neither parameters nor bodies.
    return get_openapi(
        title="all", version="1", routes=[ShownRoute(context.route, context._route_context) for context in contexts]
    )  # type: ignore[arg-type]


def properties_of(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    for option in (schema, *schema.get("anyOf", ())):
        option = schemas[option["$ref"].rpartition("/")[2]] if "$ref" in option else option
        if "properties" in option:
            return dict(option["properties"])
    return {}


def wrong_requests(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One fault a request, in each parameter of the query and each field of the body."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            for value in ("x", "-1", "9" * 30, "x" * 3000):
                yield {"params": urlencode({parameter["name"]: value})}
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return
    for raw in BODIES:
        yield {"content": raw, "headers": {"Content-Type": "application/json"}}
    yield {"json": {}}
    yield {"json": {"unknown": 1}}
    fields = properties_of(content["application/json"]["schema"], schemas)
    for name in fields:
        for value in WRONG:
            yield {"json": {name: value}}


def send_all(api: Api, described: dict[str, Any]) -> list[tuple[str, Any, httpx.Response]]:
    """The responses to all wrong requests, with the operation and the request."""
    schemas = described["components"]["schemas"]

    async def send() -> list[tuple[str, Any, httpx.Response]]:
        transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=api.base) as client:
            return [
                (
                    f"{method.upper()} {path}",
                    request,
                    await client.request(method, re.sub(r"{\w+(:path)?}", "lake", path), **request),
                )
                for path, operations in described["paths"].items()
                # A stream lasts as long as its query says.
                if path != "/api/v1/events"
                for method, operation in operations.items()
                for request in wrong_requests(operation, schemas)
            ]

    return asyncio.run(send())


def test_no_route_shows_the_words_of_another_library(api: Api) -> None:
    described = document(api)
    refused, foreign = set(), []
    for where, request, response in send_all(api, described):
        assert response.status_code != 500, (where, request, response.text)
        if response.status_code == 400:
            refused.add(where)
            body = response.json()
            if FOREIGN.search(text := body["detail"] if "title" in body else body["error"]):
                foreign.append((where, request, text))
    assert foreign == []
    with_body = {
        f"{method.upper()} {path}"
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert with_body - refused == set()
    assert len(refused) > 60


def test_no_tool_shows_the_words_of_another_library(tmp_path: Path) -> None:
    with run_world(tmp_path) as running:
        caller: Caller = running.caller("all", role="admin")

        async def ask(client: Any) -> dict[str, list[str]]:
            texts: dict[str, list[str]] = {}
            for tool in (await client.list_tools()).tools:
                for name in tool.input_schema.get("properties", {}):
                    for value in WRONG:
                        result = await client.call_tool(tool.name, {name: value})
                        if result.is_error:
                            texts.setdefault(f"{tool.name} {name}", []).append(result.content[0].text)
            return texts

        refused = caller.run(ask)
    assert [(where, text) for where, texts in refused.items() for text in texts if FOREIGN.search(text)] == []
    assert len(refused) > 20


CONTEXT = {
    "gt": 1, "ge": 1, "lt": 1, "le": 1, "multiple_of": 2, "min_length": 1, "max_length": 2, "expected": "'a' or 'b'", "pattern": "p",
    "class": "C", "class_name": "C", "field_type": "Tuple", "actual_length": 3, "tag": "t", "expected_tags": "'x'",
    "discriminator": "d", "tz_expected": 1, "tz_actual": 2, "encoding": "e", "encoding_error": "e", "expected_schemes": "s",
    "max_digits": 1, "decimal_places": 1, "whole_digits": 1, "expected_version": 4, "method_name": "m", "attribute": "a",
    "name": "n", "error": "an error",
}  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in get_args(core_schema.ErrorType) if not kind.endswith("_error")])
def test_every_fault_that_pydantic_can_find_has_words(kind: Any) -> None:
    text = describe_faults([{"type": kind, "loc": ("a", 0), "ctx": CONTEXT, "msg": "Input should be another"}])
    assert FOREIGN.search(text) is None
    assert re.match(r"(a\.0|body): (must be|is|has) ", text), text
