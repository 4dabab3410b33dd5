"""The service behind uvicorn, and the SDK's own client, for the tests of MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ElicitResult

from federator.api.app import create_app
from federator.api.http_limits import build_limited_protocol
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import Settings, parse_settings
from federator.store import Index, tokens
from tests.fixtures.index import new_index
from tests.fixtures.serving import serve_app
from tests.unit.api import worlds


@dataclass
class Running:
    """A service that listens on loopback."""

    url: str
    index: Index

    def caller(self, name: str, role: str = "viewer", scopes: Scopes = EVERYTHING) -> Caller:
        """A principal with a new token."""
        secret, _ = tokens.create_token(self.index, name, role=role, scopes=scopes, lifetime=3600, actor="tests")
        return Caller(self.url, {"Authorization": f"Bearer {secret}"})


@dataclass
class Caller:
    """Asks the service over MCP and over the API, with the same credential."""

    url: str
    headers: dict[str, str]

    def json(self, path: str, /, **query: Any) -> Any:
        response = self.get(path, **query)
        assert response.status_code == 200, response.text
        return response.json()

    def get(self, path: str, /, **query: Any) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", headers=self.headers, params=query, timeout=60)

    def run(self, conversation: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
        """Run a conversation with a client of its own."""

        async def talk() -> Any:
            async with (
                httpx2.AsyncClient(headers=self.headers, timeout=60) as transport,
                Client(streamable_http_client(f"{self.url}/mcp", http_client=transport), **options) as client,
            ):
                return await conversation(client)

        return asyncio.run(talk())

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> CallToolResult:
        return self.run(lambda client: client.call_tool(tool, arguments or {}), **options)

    def view(self, tool: str, /, **arguments: Any) -> Any:
        result = self.call(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    def error(self, tool: str, /, **arguments: Any) -> str:
        result = self.call(tool, arguments)
        assert result.is_error
        return text_of(result)


@dataclass
class Person:
    """Answers the questions of the service at the client."""

    action: str
    content: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.questions: list[str] = []

    async def __call__(self, _context: Any, question: Any) -> ElicitResult:
        self.questions.append(question.message)
        return ElicitResult(action=self.action, content=self.content)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    return block.text


@contextmanager
def run_service(index: Index, settings: Settings) -> Iterator[Running]:
    """The real app behind uvicorn, with the service's own limits."""
    with serve_app(create_app(settings), http=build_limited_protocol(settings.serve), ws="none") as url:
        yield Running(url, index)


@contextmanager
def run_world(folder: Path) -> Iterator[Running]:
    """The service over the index of ``worlds.build``."""
    index = new_index(folder)
    worlds.build(index)
    settings = worlds.settings(lambda **raw: parse_settings({"instance": {"id": "t"}, **raw}, folder / "f.toml"))
    with run_service(index, settings) as running:
        yield running
    index.close()
