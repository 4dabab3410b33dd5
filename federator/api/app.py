"""The ASGI factory: ``uvicorn --factory federator.api.app:create_app``."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.routing import BaseRoute

import federator
from federator.api import http_middleware, problems, security_middleware
from federator.api.bodies import MAX_BODY_BYTES
from federator.api.cursor_seal import CursorSeal
from federator.api.dependencies import HOLD_SHARE
from federator.api.docs_page import STYLE_DIGEST, add_examples, render_docs
from federator.api.interrupted_runs import ending_interrupted_runs
from federator.api.lance import serving as lance
from federator.api.large_plans import SPOOL_BYTES
from federator.api.live_states import LiveStates
from federator.api.mcp.http import install_mcp
from federator.api.page import install_page
from federator.api.route_paths import route_paths
from federator.api.routes import (
    audit,
    datasets,
    declarations,
    events,
    explain,
    health,
    history,
    jobs,
    live,
    me,
    metrics,
    mirrors,
    notifications,
    overview,
    plans,
    reports,
    runs,
    search,
    sign_in,
    sources,
    table_details,
    tokens,
    tree,
)
from federator.api.run_streams import RunStreams
from federator.api.shares import ThreadShares
from federator.data.spool import Spool
from federator.runtime.config_file import CONFIG_VARIABLE, DEFAULT_FILE
from federator.settings import Settings, load_settings
from federator.store import open_index
from federator.views.table_counts import TableCounts

#: group in the OpenAPI document and on ``/docs`` → modules of routes
_ROUTES_BY_GROUP = {
    "Overview and search": (overview, search),
    "Tree and tables": (tree, table_details, datasets, history, explain),
    "Sources": (sources,),
    "Runs and live status": (runs, events, live),
    "Mirrors, plans and declarations": (mirrors, plans, declarations),
    "Jobs": (jobs,),
    "Reports": (reports,),
    "Audit log and notifications": (audit, notifications),
    "Access": (me, tokens),
    "Health and metrics": (health, metrics),
}


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the API for a configuration (default: the file that FEDERATOR_CONFIG names, else ./federator.toml).

    Raise ConfigError for an invalid configuration, or if the host is not loopback and no authentication is configured.
    """
    settings = settings or load_settings(Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_FILE))
    token = security_middleware.configured_token(settings)
    index = open_index(settings.resolve_index_url(), base=settings.base)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with ending_interrupted_runs(index):
            yield
        lance.close_lance_routes(app)
        app.state.spool.close()
        index.close()

    app = FastAPI(
        title="Lance Federator", version=federator.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        redirect_slashes=False, max_body_size=1_000_000, dependencies=[HOLD_SHARE],
        description="All Lance tables of a company in one tree. Errors are problem documents (RFC 9457); times are UTC.",
    )  # fmt: skip
    app.state.index, app.state.settings, app.state.run_streams = index, settings, RunStreams(index)
    app.state.thread_shares, app.state.spool = ThreadShares(), Spool(SPOOL_BYTES)
    app.state.cursor_seal, app.state.live_states, app.state.table_counts = CursorSeal(index), LiveStates(index), TableCounts()
    problems.install_problem_handlers(app)
    app.router.routes.extend(_shared_routes())
    sessions = sign_in.install_sign_in(app, settings, index)
    install_page(app, sign_in=sign_in.LOGIN_PATH if sessions is not None else None)
    documented = list(app.routes)
    # FastAPI's documented way to extend the document. It takes longer than the rest of the start, so its first reader builds it.
    app.openapi = lambda: _build_openapi(app, documented)  # type: ignore[method-assign]

    # FastAPI caches facts of each endpoint for good: one that refers to its app keeps the app and its index open.
    app.add_api_route("/docs", _documentation, include_in_schema=False)
    lance.install_lance_routes(app, index, settings)
    install_mcp(app, index, settings, loopback=security_middleware.is_loopback(settings.serve.host))
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    open_paths = route_paths(health.router)
    security_middleware.install_security(app, settings, index, token, open_paths=open_paths, sessions=sessions)
    http_middleware.install_http_middleware(app, inline_style=STYLE_DIGEST)
    return app


@cache
def _shared_routes() -> Sequence[BaseRoute]:
    """Return the routes of the service's own API. None refers to an app, so all apps of a process share what FastAPI derives from them
    at the first request: 0.1 s of models and dependencies."""
    router = APIRouter(dependencies=[HOLD_SHARE], max_body_size=MAX_BODY_BYTES)
    for group, modules in _ROUTES_BY_GROUP.items():
        for module in modules:
            router.include_router(module.router, tags=[group])
    return router.routes


def _documentation(request: Request) -> HTMLResponse:
    state = request.app.state
    if not hasattr(state, "documentation"):
        # To render it takes half a second, in which other callers wait for the interpreter.
        state.documentation = render_docs(request.app.openapi())
    return HTMLResponse(state.documentation)


def _build_openapi(app: FastAPI, documented: Sequence[BaseRoute]) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=documented)
        schemas = document["components"]["schemas"]
        schemas["Problem"] = problems.Problem.model_json_schema()
        for path in document["paths"].values():
            for operation in path.values():
                # The API reports invalid input as a problem with status 400, as the Lance spec does.
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        add_examples(document)
        app.openapi_schema = document
    return app.openapi_schema
