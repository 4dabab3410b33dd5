"""The ASGI factory: ``uvicorn --factory federator.api.app:create_app``."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from starlette.middleware.gzip import GZipMiddleware

import federator
from federator import web
from federator.api import guard, problems, wire
from federator.api.docs import add_examples, render
from federator.api.lance import serving as lance
from federator.api.routes import (
    audit,
    datasets,
    declarations,
    events,
    explain,
    health,
    history,
    jobs,
    metrics,
    mirrors,
    notifications,
    plans,
    reports,
    runs,
    search,
    sources,
    tree,
)
from federator.connector.options import resolve
from federator.index import open_index
from federator.settings import DEFAULT_FILE, Settings, load

CONFIG = "FEDERATOR_CONFIG"


def create_app(settings: Settings | None = None) -> FastAPI:
    """The API over a configuration (default: the file that FEDERATOR_CONFIG names, else ./federator.toml).

    Raises ConfigError, also where the configured host is not loopback and no token is set.
    """
    settings = settings or load(Path(os.environ.get(CONFIG) or DEFAULT_FILE))
    token = guard.token_of(settings)
    index = open_index(resolve(settings.index.url, where=f"{settings.path}: [index] url"), base=settings.base)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        lance.close(app)
        index.close()

    app = FastAPI(
        title="Lance Federator", version=federator.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        redirect_slashes=False, max_body_size=1_000_000,
        description="Every Lance table of a company in one tree. Errors are problem documents (RFC 9457); times are UTC.",
    )  # fmt: skip
    app.state.index, app.state.settings = index, settings
    problems.install(app)
    for module in (
        tree,
        search,
        datasets,
        history,
        explain,
        sources,
        runs,
        events,
        plans,
        declarations,
        mirrors,
        jobs,
        audit,
        reports,
        notifications,
        metrics,
        health,
    ):
        app.include_router(module.router)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend the document
    page = web.page()
    docs = render(app.openapi())

    @app.get("/", include_in_schema=False)
    def home() -> HTMLResponse:
        return HTMLResponse(page)

    @app.get("/docs", include_in_schema=False)
    def documentation() -> HTMLResponse:
        return HTMLResponse(docs)

    lance.install(app, index, settings)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    guard.install(app, settings, index, token)
    wire.install(app, inline=_inline(page + docs))
    return app


def _inline(html: str) -> list[str]:
    """What the policy allows of inline code: exactly the scripts and styles of our own pages, by digest."""
    blocks = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", html, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in blocks}
    return [f"sha256-{digest}" for digest in sorted(digests)]


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document["components"]["schemas"]
        schemas["Problem"] = problems.Problem.model_json_schema()
        for path in document["paths"].values():
            for operation in path.values():
                # Invalid input is a problem with status 400 here, as the Lance spec has it.
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        add_examples(document)
        app.openapi_schema = document
    return app.openapi_schema
