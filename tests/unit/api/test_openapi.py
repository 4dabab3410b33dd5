"""Each response of the API follows its OpenAPI document, for arbitrary requests."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from federator.api import app
from federator.api.docs_page import render_docs
from tests.unit.api.conftest import Api

_CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]


def test_every_operation_has_a_summary_a_description_and_problems(api: Api) -> None:
    document = api.json("/openapi.json")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert operation["description"], (method, path)
            assert "422" not in operation["responses"]
            assert "application/problem+json" in operation["responses"]["503"]["content"]
    assert {"Problem", "Tree", "Table", "Run"} <= document["components"]["schemas"].keys()


def test_every_answer_of_our_own_api_has_an_example_that_conforms(api: Api) -> None:
    document = api.json("/openapi.json")
    observed = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items() if path.startswith("/api/v1") else ():
            for status, response in operation["responses"].items():
                content = response.get("content", {}).get("application/json")
                if status.startswith("2") and content and content.get("schema"):
                    schema = {**content["schema"], "components": document["components"]}
                    problems = [error.message for error in Draft202012Validator(schema).iter_errors(content["example"])]
                    assert problems == [], (method, path)
                    observed += 1
    assert observed > 25


def test_every_parameter_is_described_and_every_list_is_paged(api: Api) -> None:
    document = api.json("/openapi.json")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parameters = {item["name"]: item for item in operation.get("parameters", ())}
            assert not [name for name, item in parameters.items() if not item.get("description")], (method, path)
            content = operation["responses"].get("200", {}).get("content", {}).get("application/json")
            for item in content["schema"].get("anyOf", [content["schema"]]) if content and path.startswith("/api") else ():
                shown = document["components"]["schemas"][item["$ref"].rpartition("/")[2]]["properties"]
                assert ("next" in shown) == ({"limit", "cursor"} <= parameters.keys()), (path, item)


def test_every_get_has_a_tag(api: Api) -> None:
    # What is a stream, a file, or a probe has none; neither has what is counted at each request.
    without = {"/api/v1/events", "/api/v1/runs/{id}/events", "/api/v1/reports/{id}/{name}", "/metrics", "/healthz", "/readyz"}
    for path, methods in api.json("/openapi.json")["paths"].items():
        if "get" in methods and path not in without:
            assert "304" in methods["get"]["responses"], path


def test_names_come_in_pages_too(api: Api) -> None:
    for url, key in (("/api/v1/sources", "sources"), ("/api/v1/jobs", "jobs"), ("/api/v1/mirrors", "mirrors")):
        whole, result, cursor = [item["name"] for item in api.json(url)[key]], [], ""
        while cursor is not None:
            page = api.json(f"{url}?limit=1{f'&cursor={cursor}' if cursor else ''}")
            assert len(page[key]) <= 1
            result += [item["name"] for item in page[key]]
            cursor = page["next"]
        assert result == whole != []


def test_the_documentation_shows_every_operation(api: Api) -> None:
    page = api.get("/docs").text
    for path, methods in api.json("/openapi.json")["paths"].items():
        assert path in page
        for operation in methods.values():
            assert f'<a href="#{operation["operationId"]}">' in page
            assert f'<article id="{operation["operationId"]}">' in page


def test_the_documentation_is_in_groups(api: Api) -> None:
    operations = [item for methods in api.json("/openapi.json")["paths"].values() for item in methods.values()]
    groups = {tag for operation in operations for tag in operation["tags"]}
    assert len(groups) == 10
    page = api.get("/docs").text
    assert all(page.count(f"<h2>{escape(group)}</h2>") == 2 for group in groups)


def test_the_documentation_has_no_raw_markdown_and_shows_html_as_text(api: Api) -> None:
    page = re.sub(r"<pre>.*?</pre>|<style>.*?</style>", "", api.get("/docs").text, flags=re.DOTALL)
    assert "`" not in page
    assert "**" not in page
    document = api.json("/openapi.json")
    document["info"]["description"] = "a `word`, <script>alert(1)</script>"
    assert "<p>a <code>word</code>, &lt;script&gt;" in render_docs(document)


def test_the_page_is_rendered_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    monkeypatch.setattr(app, "render_docs", lambda _: rendered.append("a page") or rendered[-1])
    assert [api.get("/docs").text for _ in range(3)] == ["a page"] * 3
    assert len(rendered) == 1


@pytest.mark.timeout(120)
def test_answers_are_as_documented(api: Api) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", api.app, headers={"Host": "localhost"})
    failures: list[tuple[str, str]] = []
    tried = 0

    def check(case: Any) -> None:
        nonlocal tried
        tried += 1
        case.call_and_validate(headers={"Host": "localhost"}, checks=_CHECKS)

    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.label == "GET /api/v1/events":
            continue  # it lasts for as long as its query says; tests/unit/api/test_live.py reads it
        run = settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
        try:
            run(given(case=operation.as_strategy())(check))()
        except BaseException as error:  # noqa: BLE001 - shown together with those of the other operations
            failures.append((operation.label, str(error)[:1500]))
    assert failures == []
    assert tried > 100
