"""Bodies with many wrong values, which took seconds from all other callers."""

from __future__ import annotations

from typing import Any

import pytest

from federator.api.bodies import BoundedRoute
from tests.unit.api.conftest import Api

MANY = 100_000


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/v1/table/lake$no$no/query", {"k": 1, "vector": {"single_vector": ["a"] * MANY}}),
        ("/v1/table/lake$no$no/query", {"k": 1, "vector": {"multi_vector": [0] * MANY}}),
        ("/v1/table/lake$no$no/query", {"k": 1, "vector": [], "columns": {"column_names": [0] * MANY}}),
        ("/v1/table/lake$no$no/explain_plan", {"query": {"k": 1, "vector": [[]] * MANY}}),
        ("/v1/table/lake$no$no/describe", {"id": [0] * MANY}),
        ("/v1/table/lake$no$no/count_rows", {"id": [[[] for _ in range(100)] for _ in range(MANY // 100)]}),
        ("/v1/namespace/lake$no/create", {"properties": {str(number): 0 for number in range(MANY)}}),
        ("/GetTable", {"name": "no", "namespace": [0] * MANY}),
    ],
)
def test_a_body_of_many_values_is_refused_before_its_faults_are_listed(api: Api, url: str, body: Any) -> None:
    response = api.post(url, json=body)
    assert response.status_code == 400, response.text
    text = f"body: must have at most {BoundedRoute.max_values} values, not counting the numbers of vectors"
    assert text in response.text


@pytest.mark.parametrize("path", ["query", "explain_plan"])
def test_a_deep_body_is_refused(api: Api, path: str) -> None:
    query: Any = "x"
    for _ in range(200):
        query = {"boolean": {"must": [query]}}
    body: dict[str, Any] = {"k": 1, "vector": {}, "full_text_query": {"query": query}}
    response = api.post(f"/v1/table/lake$no$no/{path}", json=body if path == "query" else {"query": body})
    assert (response.status_code, "at most 200 levels" in response.text) == (400, True), response.text


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", "/api/v1/runs", {"kind": "crawl", "sources": [0] * 3000}),
        ("POST", "/api/v1/runs", {"kind": "crawl", **{f"k{number}": 0 for number in range(3000)}}),
        ("POST", "/api/v1/declarations", {"places": [0] * MANY, "into": ["lake"]}),
        ("POST", "/api/v1/reports", {f"k{number}": 0 for number in range(3000)}),
        ("POST", "/api/v1/tokens", {"name": "n", "scopes": [[]] * 3000}),
        ("POST", "/api/v1/plans/d/approve", {f"k{number}": 0 for number in range(3000)}),
        ("PUT", "/api/v1/attention/k", {f"k{number}": 0 for number in range(3000)}),
    ],
)
def test_the_services_own_bodies_have_fewer_values(api: Api, method: str, url: str, body: Any) -> None:
    response = api.ask(method, url, json=body)
    assert (response.status_code, "at most 2500 values" in response.text) == (400, True), response.text
    assert api.ask(method, url, content=b" " * 256_001).status_code == (400 if "declarations" in url else 413)


@pytest.mark.parametrize(
    "vector",
    [
        [0.5] * MANY, [[1, 0.5] * 100 for _ in range(MANY // 200)],
        {"single_vector": [0.5] * MANY}, {"multi_vector": [[0.5] * 100 for _ in range(MANY // 100)]},
    ],
)  # fmt: skip
def test_numbers_of_vectors_do_not_count(api: Api, vector: Any) -> None:
    response = api.post("/v1/table/lake$no$no/query", json={"k": 1, "vector": vector})
    assert response.status_code == 404, response.text
