"""Arbitrary requests: each response follows the protocol, and none is an internal error."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stubs.general_rest import OPERATIONS
from tests.unit.api.lance.conftest import Service, served
from tests.unit.api.lance.test_protocol_routes import ROUTES

_TEXT = st.text(max_size=20) | st.sampled_from(["$", "", "..", "/", "%", "\x00", "mem", "lake$t", "mem$\ud800"])
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    ["id", "properties", "mode", "behavior", "location", "version", "tag", "branch", "new_table_name", "new_namespace_id", "name",
     "parent", "namespace", "pageToken", "pageSize", "options", "updates", "removals", "schema", "vend_credentials", "predicate"]
)  # fmt: skip
_BODY = st.dictionaries(_KEYS, _VALUE, max_size=4) | _VALUE
_CALM = settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def test_the_protocol_answers_anything_in_its_own_form(service: Service) -> None:
    @_CALM
    @given(st.sampled_from(ROUTES), _TEXT, _BODY, st.dictionaries(st.sampled_from(["delimiter", "limit", "page_token"]), _TEXT))
    def ask(route: Any, identifier: str, body: Any, params: dict[str, str]) -> None:
        url = route.url(quote(identifier, safe="", errors="surrogatepass"))
        query = {key: text.encode("utf-8", "surrogatepass") for key, text in params.items()}
        response = service.ask(route.method, url, data=json.dumps(body).encode(), params=query)
        assert response.status_code < 500, (url, body, params, response.text)
        if response.status_code >= 400:
            assert set(response.json()) == {"error", "code", "detail", "instance"}, url

    ask()


def test_the_general_spec_answers_anything_with_a_problem(service: Service) -> None:
    @_CALM
    @given(st.sampled_from(OPERATIONS), _BODY)
    def ask(operation: str, body: Any) -> None:
        answer = service.ask("POST", f"/{operation}", data=json.dumps(body).encode())
        typed = service.ask("POST", f"/{operation}", body if body is not None else {})
        for response in (answer, typed):
            assert response.status_code < 500, (operation, body, response.text)
            if response.status_code >= 400:
                assert response.headers["content-type"] == "application/problem+json"

    ask()


def test_a_request_without_a_token_gets_an_error_in_the_protocols_form(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_TEST_TOKEN", "a-token-of-some-length")
    with served(tmp_path, {}, serve={"token": "${LANCE_TEST_TOKEN}"}) as service:
        refused = service.get("/v1/namespace/%24/list")
        assert (refused.status_code, refused.json()["code"]) == (401, 16)
        assert service.post("/ListNamespaces").headers["content-type"] == "application/problem+json"
