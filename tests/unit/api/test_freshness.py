"""Each response about catalogs has their freshness, in one form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from federator.settings import parse_settings
from tests.fixtures.index import new_index
from tests.unit.api import worlds
from tests.unit.api.conftest import Api

#: answers about no catalog
NONE = {
    "/api/v1/jobs", "/api/v1/me", "/api/v1/me/sessions", "/api/v1/requests/{id}", "/api/v1/audit", "/api/v1/audit/state",
    "/api/v1/reports", "/api/v1/reports/{id}", "/api/v1/notifications", "/api/v1/tokens", "/api/v1/snapshots", "/healthz", "/readyz",
}  # fmt: skip
#: answers whose parts each have their own
INSIDE = {"/api/v1/sources": "sources", "/api/v1/mirrors": "mirrors"}
#: what is told of the past names its moment and revision instead
PAST = {"PastTable", "PastDataset", "PastDatasetPage"}


def test_every_response_has_a_field_for_freshness(api: Api) -> None:
    document = api.json("/openapi.json")
    schemas = document["components"]["schemas"]
    checked = 0
    for path, methods in document["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {}).get("application/json")
        if content is None or path in NONE or not content["schema"]:
            continue
        values = content["schema"]
        names = [item["$ref"].rpartition("/")[2] for item in values.get("anyOf", [values])]
        for name in set(names) - PAST:
            shown = schemas[name]["properties"]
            if path in INSIDE:
                inner = shown[INSIDE[path]]["items"]["$ref"].rpartition("/")[2]
                shown = schemas[inner]["properties"]
            assert "#/components/schemas/Freshness" in str(shown.get("freshness")), (
                f"{path}: {name} has no field freshness; name the route in INSIDE (its items have one) or NONE (no catalog)"
            )
            checked += 1
    assert checked > 15


@pytest.mark.parametrize(
    ("url", "sources"),
    [
        ("/api/v1/datasets", ["copy", "lake", "spare"]), ("/api/v1/datasets?declared_in=spare", ["spare"]),
        (f"/api/v1/datasets/{quote(worlds.ORDERS, safe='')}", ["copy", "lake"]), ("/api/v1/drift", ["copy", "lake", "spare"]),
        ("/api/v1/drift?kind=name_clash", ["lake"]), ("/api/v1/runs", ["copy", "spare"]),
        (f"/api/v1/runs/{worlds.RUN_SEEN}", ["copy", "spare"]), ("/api/v1/plans", ["copy", "lake", "spare"]),
        ("/api/v1/mirrors/open", ["copy", "spare"]), ("/api/v1/search?q=items", ["lake"]),
        ("/api/v1/tree?view=merged&path=s", ["copy", "spare"]),
        ("/api/v1/diff?from=1970-01-02&to=1970-01-03", ["copy", "lake", "spare"]),
    ],
)  # fmt: skip
def test_it_is_of_the_sources_that_an_answer_speaks_of(scoped_api: Api, url: str, sources: list[str]) -> None:
    body = scoped_api.json(url)
    assert [fresh["source"] for fresh in body["freshness"]] == sources
    assert all(fresh["crawled_at"] == "1970-01-01T00:00:10Z" and fresh["revision"] >= 1 for fresh in body["freshness"])


def test_the_freshness_of_an_invisible_source_is_not_shown(scoped_api: Api) -> None:
    for url in ("/api/v1/datasets", "/api/v1/drift", "/api/v1/runs", "/api/v1/plans"):
        assert "vault" not in scoped_api.get(url).text


@pytest.mark.parametrize(
    ("method", "url", "sources"),
    [
        ("POST", "/v1/table/lake%24sales%24orders/describe", ["lake"]), ("GET", "/v1/namespace/lake/list", ["lake"]),
        ("POST", "/v1/table/copy.s.orders/describe?delimiter=.", ["copy"]), ("GET", "/v1/table", ["copy", "lake", "spare"]),
        ("GET", "/v1/namespace/%24/list", ["copy", "lake", "spare"]), ("POST", "/ListNamespaces", ["copy", "lake", "spare"]),
        ("POST", "/v1/table/lake%24sales%24none/describe", ["lake"]), ("POST", "/v1/table/vault%24s%24orders/describe", []),
        ("POST", "/v1/table/nope%24s%24orders/describe", []),
    ],
)  # fmt: skip
def test_the_protocols_tell_it_in_a_header(scoped_api: Api, method: str, url: str, sources: list[str]) -> None:
    header = scoped_api.ask(method, url, json={} if method == "POST" else None).headers.get("federator-freshness", "")
    assert [part.partition(";")[0] for part in header.split(", ") if part] == sources
    for part in filter(None, header.split(", ")):
        assert re.fullmatch(r"\w+; revision=[1-9]\d*; state=ok; crawled=1970-01-01T00:00:10Z", part)


@pytest.fixture(scope="module")
def scoped_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The richer world, asked by who may see a part of it."""
    folder = tmp_path_factory.mktemp("fresh")
    index = new_index(folder)
    worlds.build(index)
    settings = worlds.settings(lambda **raw: parse_settings({"instance": {"id": "test"}, **raw}, folder / "federator.toml"))
    api = worlds.api(index, settings)
    yield api
    api.app.state.index.close()
    index.close()
