"""The comparison: a service with everything, and one that holds only what a principal may see, answer the same to the byte."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from sqlalchemy import delete, update

from federator.api.app import create_app
from federator.api.principals import ROLES
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import Settings, parse_settings
from federator.store import Index, migrations, open_index, tokens
from federator.store import tables as t
from tests.fuzz_access.asking import Probe, drawn, fixed
from tests.fuzz_access.tools import Tool, ask_for_tools, draw_calls, fixed_calls, list_tools
from tests.unit.api import worlds

SCOPES = {
    # Two see different parts of one plan, so that what is cached for one is not shown to the other.
    "nothing": Scopes(), "part": worlds.SEEN, "less": Scopes.parse(["lake$sales$eu", "copy"]),
    "one table": Scopes.parse(["lake$sales$orders"]),
    "one namespace": Scopes.parse(["lake$sales$eu"]), "one source": Scopes.parse(["lake"]), "other source": Scopes.parse(["vault"]),
    "two sources": Scopes.parse(["copy", "vault"]), "like others": Scopes.parse(["lake$Sales", "lake$sale", "lake$secret"]),
}  # fmt: skip
# Ids of new requests are times.
_CURSOR = re.compile(rb'(?P<quote>\\?")next(?P=quote): ?(?P=quote)[^"\\]+')
# The state of a question of MCP is sealed with random bits.
_STATE = re.compile(rb'"requestState":"[^"]+"')
# If-Match of a decided plan ends with a digest of the time of the decision.
_TIMES = re.compile(rb"\b1[0-9]{15}\b|20\d\d-\d\d-\d\dT[0-9:.]+Z?|(?<=[0-9a-f]{64})\.[0-9a-f]{16}\b")


@dataclass
class Compared:
    """The result for one role and scope."""

    requests: int = 0
    statuses: set[int] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)


class World:
    """An index with what some scopes cover, and the service over it."""

    def __init__(self, url: str, directory: Path, visible: Scopes) -> None:
        self.index: Index = open_index(url)
        migrations.upgrade_schema(self.index)
        # One place for all worlds, one after the other: their locations are the same.
        self.plans = worlds.build(self.index, visible=visible, disk=directory.parent / "disk")
        self.app: FastAPI = create_app(
            worlds.settings(_settings_in(directory, url), visible=visible, burst=10_000_000, requests_per_second=1e6)
        )

    def token(self, name: str, role: str, scopes: Scopes) -> dict[str, str]:
        secret, _ = tokens.create_token(self.index, name, role=role, scopes=scopes, lifetime=86_400, actor="fuzz")
        return {"Authorization": f"Bearer {secret}"}

    def forget_writes(self) -> None:
        with self.index.write() as connection:
            connection.execute(delete(t.request).where(t.request.c.id > 3))
            # Each service has its own time of a decision, and the live status has digests of such times.
            connection.execute(delete(t.approval))
            connection.execute(update(t.plan).values(state="held", decided_by=None, decided_at=None, decision_comment=None))

    def close(self) -> None:
        self.app.state.index.close()
        self.index.close()


def _settings_in(directory: Path, url: str) -> Callable[..., Settings]:
    directory.mkdir(parents=True, exist_ok=True)
    return lambda **raw: parse_settings(
        {"instance": {"id": "test"}, "index": {"url": url}, **raw}, directory / "federator.toml"
    )


@contextmanager
def opened(url: str, directory: Path, visible: Scopes = EVERYTHING) -> Iterator[World]:
    world = World(url, directory, visible)
    try:
        yield world
    finally:
        world.close()


def compare_scope(
    full: World, part: World, name: str, *, share: float, random_reads: int, seed: int, only: str = ""
) -> Mapping[str, Compared]:
    """Ask both services the same as every role.

    ``share``: the part of the fixed requests that is sent; ``only``: a text in their URLs.
    """
    scopes, rng = SCOPES[name], random.Random(f"{seed} {name}")
    results = {}
    for role in ROLES:
        caller = f"{role}-{name.replace(' ', '-')}-{seed}"
        headers = [world.token(caller, role, scopes) for world in (full, part)]
        everything = [*fixed(full.app, scopes, full.plans), *fixed_calls(full.plans)]
        probes = [request for request in everything if rng.random() < share and only in request.url]
        tools, cursors = asyncio.run(_tools_and_cursors(full, full.token(f"cursors-{caller}", "admin", EVERYTHING)))
        probes += [*drawn(full.app, random_reads, rng, cursors), *draw_calls(tools, random_reads // 10, rng, cursors)]
        probes.sort(key=lambda request: request.changes)
        results[role] = asyncio.run(_compare((full, part), headers, probes))
        full.forget_writes()
        part.forget_writes()
    return results


async def _compare(both: tuple[World, World], headers: list[dict[str, str]], probes: list[Probe]) -> Compared:
    result = Compared()
    clients = [_client(world, own) for world, own in zip(both, headers, strict=True)]
    async with clients[0], clients[1]:
        for request in probes:
            first, other = [await _ask(client, request) for client in clients]
            result.requests += 1
            result.statuses.add(first.status_code)
            # A tool of MCP that fails has the status 200.
            if (first.status_code >= 500 and first.status_code != 503) or b"internal error" in first.content:
                result.differences.append(f"{request}: {first.status_code}: {first.text[:300]}")
            elif (first_part := _comparable(first)) != (other_part := _comparable(other)):
                result.differences.append("\n    ".join([str(request), *_first_difference(str(first_part), str(other_part))]))
    return result


def _comparable(answer: httpx.Response) -> Any:
    """What counts of an answer: everything but times of now. An ETag, a cursor and the compressed length depend on such a time."""
    content = _TIMES.sub(b"T", _STATE.sub(b"S", answer.content))
    left_out = {"date", "etag", "content-length"} if content != answer.content else {"date"}
    content = _CURSOR.sub(b"C", content) if content != answer.content else content
    headers = {name: _TIMES.sub(b"T", text.encode()) for name, text in answer.headers.items() if name not in left_out}
    return answer.status_code, content, headers


def _first_difference(first: str, other: str) -> tuple[str, ...]:
    common = next((number for number, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), 0)
    return tuple(text[max(0, common - 150) : common + 250] for text in (first, other))


async def _ask(client: httpx.AsyncClient, request: Probe) -> httpx.Response:
    return await client.request(request.method, request.url, headers=dict(request.headers), json=request.body)


async def _tools_and_cursors(world: World, headers: dict[str, str]) -> tuple[list[Tool], list[str]]:
    """The tools of MCP, and cursors of a principal that sees everything."""
    urls = (
        "tree?path=lake&limit=1",
        "runs?limit=1",
        "datasets?limit=1",
        "search?q=orders&limit=1",
        "drift?limit=1",
        "plans?limit=1",
    )
    async with _client(world, headers) as client:
        pages = [(await client.get(f"/api/v1/{url}")).json() for url in urls]
        tools = list_tools((await _ask(client, ask_for_tools())).json()["result"]["tools"])
    return tools, [page["next"] for page in pages if page.get("next")]


def _client(world: World, headers: dict[str, str]) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(world.app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8042", headers=headers, timeout=60)
