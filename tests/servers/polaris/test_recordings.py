"""The stub answers as Polaris 1.4.1 did, line by line, and what it answers is what Polaris's own client reads.

Against a server in Docker, or one at ``POLARIS_URL`` that has no catalog ``pc``, the same lines are asked for. Times and tokens of
pages are masked; the same token stays the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from apache_polaris.sdk.catalog import models
from apache_polaris.sdk.management import models as management

from tests.fixtures.polaris import PolarisServer, polaris_container, polaris_kind
from tests.recordings.polaris.probe import Probe
from tests.stubs.polaris import PolarisStub

RECORDINGS = Path(__file__).parents[2] / "recordings" / "polaris"
PLAIN, PAGED = "polaris-1.4.1.txt", "polaris-1.4.1-LIST_PAGINATION_ENABLED.txt"
#: how many tables each recording's last part made
BULK = {PLAIN: 500, PAGED: 100}

_MASKS = [
    (re.compile(r'(?<=Timestamp":)[1-9]\d{12}'), "<time>"),
    (re.compile(r"(?<='access_token': ')[^']*"), "<token>"),
    (re.compile(r"\b\d+\.\d+ ?(s|ms)\b"), r"<time> \1"),
    (re.compile(r"(?<=<time> s )\d+/s"), "<rate>"),
]
_PAGE_TOKEN = re.compile(r'(?:next-page-token":"|pageToken\': \')(OikK[^"\']*)')
_LINE = re.compile(r"(?P<method>[A-Z]+) (?P<path>/\S+) .*? -> (?P<status>\d{3}) (?P<text>.*)")


def masked(lines: list[str]) -> list[str]:
    """The lines without what differs from run to run; page tokens are numbered in the order in which they appear."""
    known: dict[str, str] = {}
    kept_lines: list[str] = []
    for each in lines:
        line = each
        for pattern, mask in _MASKS:
            line = pattern.sub(mask, line)
        for token in _PAGE_TOKEN.findall(line):
            line = line.replace(token, known.setdefault(token, f"<page {len(known) + 1}>"))
        kept_lines.append(line)
    return kept_lines


def recorded(name: str) -> list[str]:
    return [line for line in (RECORDINGS / name).read_text(encoding="utf-8").split("\n") if line]


@pytest.fixture(params=[PLAIN, PAGED])
def recording(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[polaris_kind()], ids=lambda kind: f"polaris-{kind}")
def server(request: pytest.FixtureRequest, recording: str) -> Iterator[PolarisServer]:
    """A fresh server that pages as the recorded one did; one at a URL serves for the recording that it pages like."""
    paging = recording == PAGED
    with ExitStack() as stack:
        if request.param == "stub":
            stub = stack.enter_context(PolarisStub(paging=paging))
            yield PolarisServer(stub.url, stub=stub)
        elif request.param == "docker":
            features = {"LIST_PAGINATION_ENABLED": "true"} if paging else {}
            yield PolarisServer(stack.enter_context(polaris_container(**features)))
        else:
            given: PolarisServer = request.getfixturevalue("polaris_server")
            yield given
            listed = given.call("GET", "/api/management/v1/catalogs").json()["catalogs"]
            if any(catalog["name"] == "pc" for catalog in listed):
                given.drop_catalog("pc")


def test_every_line_is_as_recorded(server: PolarisServer, recording: str) -> None:
    observed = Probe(server.url, server.client).run(BULK[recording])
    if polaris_kind() == "url" and ("OikK" in "".join(observed)) is not (recording == PAGED):
        pytest.skip(f"the server at POLARIS_URL does not page as that of {recording}")
    assert masked(observed) == masked(recorded(recording))


def test_a_difference_is_seen(recording: str) -> None:
    lines = recorded(recording)
    for number, line in enumerate(lines):
        changed = [
            *lines[:number],
            line.replace("200", "201").replace("404", "400").replace("pages=1", "pages=2"),
            *lines[number + 1 :],
        ]
        if changed != lines:
            assert masked(changed) != masked(lines), line


_TABLES = r"/namespaces/[^/]+/generic-tables"
#: the model of what is answered, by method, address and status
_MODELS: list[tuple[str, str, int, Any]] = [
    ("GET", r"/api/catalog/v1/config", 200, models.CatalogConfig),
    ("POST", r"/api/management/v1/catalogs", 201, management.PolarisCatalog),
    ("GET", r"/api/management/v1/catalogs", 200, management.Catalogs),
    ("POST", r"/api/catalog/v1/pc/namespaces", 200, models.CreateNamespaceResponse),
    ("GET", r"/api/catalog/v1/pc/namespaces", 200, models.ListNamespacesResponse),
    ("GET", r"/api/catalog/v1/pc/namespaces/[^/]+", 200, models.GetNamespaceResponse),
    ("POST", r"/api/catalog/v1/pc/namespaces/[^/]+/properties", 200, models.UpdateNamespacePropertiesResponse),
    ("GET", r"/api/catalog/v1/pc/namespaces/[^/]+/tables", 200, models.ListTablesResponse),
    ("POST", rf"/api/catalog/polaris/v1/pc{_TABLES}", 200, models.LoadGenericTableResponse),
    ("GET", rf"/api/catalog/polaris/v1/pc{_TABLES}/[^/]+", 200, models.LoadGenericTableResponse),
    ("GET", rf"/api/catalog/polaris/v1/pc{_TABLES}", 200, models.ListGenericTablesResponse),
]


def _model(method: str, path: str, status: int) -> Any:
    if status >= 400:
        return models.IcebergErrorResponse
    fitting = [model for m, pattern, s, model in _MODELS if (m, s) == (method, status) and re.fullmatch(pattern, path)]
    assert len(fitting) == 1, f"no model for {method} {path} -> {status}"
    return fitting[0]


def test_answers_are_read_by_the_models_of_polaris(server: PolarisServer) -> None:
    """Wholly: what a model writes again is what was answered."""
    read: set[str] = set()
    for line in Probe(server.url, server.client).run():
        match = _LINE.fullmatch(line.replace("\n", " "))
        if match is None or not match["text"]:
            continue
        model = _model(match["method"], match["path"], int(match["status"]))
        parsed = model.from_json(match["text"])
        assert _without_nulls(json.loads(parsed.to_json())) == _without_nulls(json.loads(match["text"])), line
        read.add(model.__name__)
    assert read == {model.__name__ for *_, model in _MODELS} | {"IcebergErrorResponse"}


def test_tokens_are_read_by_the_models_of_polaris(server: PolarisServer) -> None:
    probe = Probe(server.url, server.client)
    granted, refused = probe._sign_in(server.client[1]), probe._sign_in("wrong")
    assert models.OAuthTokenResponse.from_json(granted.text).expires_in > 0
    assert models.OAuthError.from_json(refused.text).error == "unauthorized_client"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
