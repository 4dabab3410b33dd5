"""Credentials that are revoked, or lose rights, while the body of a request arrives."""

from __future__ import annotations

import io
import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path as FilePath

import httpx
import lance
import pyarrow as pa
import pytest
from sqlalchemy import update
from starlette.types import Receive, Scope

from federator.api import server_sent_events
from federator.api.authentication import CACHE_SECONDS
from federator.api.security_middleware import SecurityMiddleware
from federator.model.scopes import EVERYTHING
from federator.store import tables as t
from federator.store import tokens
from tests.unit.api.lance.conftest import Service, served

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over one table, with its own authentication."""
    directory = tmp_path_factory.mktemp("guarded")
    sources = {"open": {"impl": "dir", "root": str(directory / "open")}}
    lance.write_dataset(ROWS, _table(directory))
    with served(directory, sources, serve={"auth": "required"}) as service:
        service.crawl("open")
        yield service


def _table(directory: FilePath) -> str:
    return str(directory / "open" / "t.lance")


def _rows() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return sink.getvalue()


REQUESTS = {
    "rows": ("/v1/table/open%24t/insert", _rows(), "application/vnd.apache.arrow.stream"),
    "delete": ("/v1/table/open%24t/delete", json.dumps({"predicate": "true"}).encode(), "application/json"),
    "token": ("/api/v1/tokens", json.dumps({"name": "next", "role": "admin", "scopes": ["*"]}).encode(), "application/json"),
}


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("lost", ["token", "role"])
def test_what_is_lost_while_a_body_arrives_is_lost_to_the_request(
    guarded: Service, monkeypatch: pytest.MonkeyPatch, lost: str, request_name: str
) -> None:
    admitted, honest = threading.Event(), SecurityMiddleware._admitting_body

    def report(middleware: SecurityMiddleware, scope: Scope, receive: Receive) -> Receive:
        admitted.set()
        return honest(middleware, scope, receive)

    monkeypatch.setattr(SecurityMiddleware, "_admitting_body", report)
    name = f"{lost}-{request_name}"
    secret, _ = tokens.create_token(guarded.index, name, role="admin", scopes=EVERYTHING, lifetime=3600, actor="tests")
    path, content, media_type = REQUESTS[request_name]

    def lose() -> None:
        if lost == "token":
            tokens.revoke_token(guarded.index, name, actor="tests")
            return
        with guarded.index.write() as connection:
            connection.execute(update(t.token).where(t.token.c.name == name).values(role="viewer"))

    def body() -> Iterator[bytes]:
        yield content[:-1]
        assert admitted.wait(60)
        lose()
        time.sleep(CACHE_SECONDS + 0.1)
        yield content[-1:]

    response = httpx.post(
        guarded.url + path, content=body(), headers={"x-api-key": secret, "Content-Type": media_type}, timeout=60
    )
    assert (response.status_code, response.json()["code"]) == (401, 16), response.text
    assert ("was revoked" if lost == "token" else "rights of this credential changed") in response.text
    assert lance.dataset(_table(guarded.root.parent)).count_rows() == ROWS.num_rows
    assert "next" not in [token.name for token in tokens.list_tokens(guarded.index)]


def test_a_response_breaks_off_with_its_credential(guarded: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent_events, "KEEP_ALIVE_SECONDS", 0.0)
    secret, _ = tokens.create_token(guarded.index, "reader", role="viewer", scopes=EVERYTHING, lifetime=3600, actor="tests")
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.stream("GET", f"{guarded.url}/api/v1/events", headers=headers, timeout=30) as response:
        lines = response.iter_lines()
        next(lines)
        tokens.revoke_token(guarded.index, "reader", actor="tests")
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            deque(lines, maxlen=0)
