"""The service as its clients meet it: the real app behind uvicorn, over a directory of Lance tables and a catalog in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import pytest
import requests
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from federator.api.app import create_app
from federator.api.principals import Principal, Role
from federator.model import Coverage
from federator.model.scopes import Scopes
from federator.registry import open_catalog
from federator.settings import Settings, parse_settings
from federator.store import Index
from federator.testing import MemoryStore, get_memory_store
from federator.testing.contract import unique_name
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill
from tests.fixtures.rest import reference_server
from tests.fixtures.serving import serve_app
from tests.unit.api.lance.table_clients import Client, Tables
from tests.unit.api.lance.writing_world import World

#: the test's own way to be somebody else: ``role path,path``; who may sign in how is tested elsewhere
CALLER = "X-Test-Caller"


@dataclass
class Service:
    """A running service and what it stands on."""

    url: str
    app: FastAPI
    index: Index
    settings: Settings
    root: FilePath
    store: MemoryStore

    def ask(self, method: str, path: str, body: Any = None, *, caller: str | None = None, **options: Any) -> requests.Response:
        headers = {CALLER: caller} if caller is not None else {}
        if body is not None:
            options["json"] = body
        return requests.request(method, self.url + path, headers=headers, timeout=60, **options)

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> requests.Response:
        return self.ask("POST", path, {} if body is None else body, **options)

    def crawl(self, source: str) -> None:
        """Reads a source into the index as a crawl does, without Spark."""
        with open_catalog(self.settings.source(source).spec) as catalog:
            result = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
        fill(self.index, source, *(item for item in result if not isinstance(item, Coverage)))

    def namespace(self) -> tuple[str, str]:
        """A new namespace of the memory source, made through the service."""
        path = ("mem", unique_name("ns"))
        assert self.post(f"/v1/namespace/{path[0]}%24{path[1]}/create").status_code == 200
        return path


@contextmanager
def served(
    directory: FilePath, sources: Mapping[str, Mapping[str, Any]], *, bare: bool = False, **more: Any
) -> Iterator[Service]:
    """A service over ``sources``, beside a ``lake`` of Lance tables and ``mem`` unless ``bare``; each was crawled once and is empty."""
    root, store = directory / "lake", unique_name("served")
    root.mkdir()
    own = {"lake": {"impl": "dir", "root": str(root)}, "mem": {"impl": "federator.testing:CONNECTOR", "store": store}}
    settings = parse_settings({"sources": {**({} if bare else own), **sources}, **more}, directory / "federator.toml")
    index = new_index(directory)
    for name in settings.sources:
        fill(index, name)
    app = create_app(settings)
    # The innermost one, behind authentication.
    app.user_middleware.append(Middleware(_TestCallers))
    try:
        with serve_app(app) as url:
            yield Service(url, app, index, settings, root, get_memory_store(store))
    finally:
        index.close()


class _TestCallers:
    """Requests with the header are those of a principal with this role and these scopes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = Headers(scope=scope).get(CALLER) if scope["type"] == "http" else None
        if caller is not None:
            role, _, paths = caller.partition(" ")
            scope["principal"] = Principal("somebody", Role.parse(role), Scopes.parse(filter(None, paths.split(","))))
        await self._app(scope, receive, send)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Shared by the session: make a namespace of your own in it."""
    sources: dict[str, dict[str, Any]] = {
        "open": {"impl": "dir", "root": str(tmp_path_factory.mktemp("open")), "allow_drop": True},
        "shut": {"impl": "dir", "root": str(tmp_path_factory.mktemp("shut")), "data_operations": False},
        "plain": {"impl": "federator.testing:PLAIN", "store": unique_name("plain")},
    }
    with served(tmp_path_factory.mktemp("service"), sources) as running:
        yield running


@pytest.fixture(scope="module")
def tables(service: Service) -> Tables:
    return Tables(service)


@pytest.fixture(scope="module")
def service_client(service: Service) -> Client:
    return Client(service.url, ("lake",))


@pytest.fixture(scope="module")
def reference_client(service: Service) -> Iterator[Client]:
    with reference_server(service.root) as server:
        yield Client(server.url, ())


@pytest.fixture
def own_service(tmp_path: FilePath) -> Iterator[Service]:
    """A service of the test's own."""
    with served(tmp_path, {}) as running:
        yield running


@pytest.fixture
def world(tmp_path: FilePath) -> Any:
    created = World(tmp_path)
    yield created
    created.writer.close()
    created.index.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, tmp_path: FilePath) -> Any:
    """A world on each of the two databases."""
    index = request.getfixturevalue("postgres_index")() if request.param == "postgresql" else None
    created = World(tmp_path, index)
    yield created
    created.writer.close()
    created.index.close()
