"""Errors as problem documents (RFC 9457), for every failure of every route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from federator import logs
from federator.api.lance import errors as lance
from federator.connector import (
    CatalogError,
    ConfigError,
    FederatorError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    StateError,
    Throttled,
    Unauthenticated,
)
from federator.runtime.input_faults import describe_faults
from federator.runtime.text import first_line
from federator.store import DatabaseError
from federator.store.failures import describe_failure

MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:lance-federator:problem:"
# Titles and types of problems are stable. Classes that got another name keep the title of their first name.
_FIXED_TITLES = {
    "CircuitOpen": "Paused",
    "HistoryExpired": "Beyond horizon",
    "ProcessTimeout": "No answer",
    "RecreateInterrupted": "Halfway",
    "UnknownId": "State error",
}
_RETRY_SECONDS = 10
_log = logs.get_logger(__name__)


class NotFound(StateError):
    """A run, request, plan or job that does not exist."""


class RequestRejected(FederatorError):
    """A request that is rejected before routing, with the HTTP status and the headers of the response."""

    def __init__(
        self, status: int, title: str, message: str, *, hint: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.title = title
        self.headers = dict(headers or {})

    @property
    def code(self) -> int | None:
        """The error code of the Lance Namespace spec; None if the spec has none for the status."""
        kind = {401: Unauthenticated, 403: PermissionDenied, 429: Throttled, 503: ServiceUnavailable}.get(self.status)
        return kind.code if kind is not None else None


class Problem(BaseModel):
    """An error. ``type`` is stable. ``code`` is the error code of the Lance Namespace spec, or null."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": _TYPE + "table-not-found", "title": "Table not found", "status": 404,
                "detail": "there is no table lake$sales$orders", "instance": "/api/v1/tables/lake%24sales%24orders",
                "code": 4, "hint": "federator search orders",
            }
        }
    )  # fmt: skip

    type: str
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    instance: str
    code: int | None = None
    hint: str | None = None


def problem_docs(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI ``responses`` of a route for these statuses and for those that every route can have."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": _STATUS_TEXT[status], "content": content} for status in sorted({401, 421, 429, 503, *statuses})
    }


_STATUS_TEXT = {
    400: "The request is not valid", 401: "The token is missing or wrong",
    403: "The role or the scopes do not allow it, or a page of another origin sent it",
    404: "It does not exist", 409: "The current state does not allow it", 412: "If-Match names another version",
    428: "If-Match is missing", 421: "The Host header names another service", 429: "The principal exceeds the rate limit",
    503: "The index is unavailable",
}  # fmt: skip


def install_problem_handlers(app: FastAPI) -> None:
    """Install the handlers that turn every error of an app into a problem document."""
    app.add_exception_handler(FederatorError, _handle_federator_error)
    app.add_exception_handler(RequestValidationError, _handle_invalid_request)
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(DatabaseError, _handle_database_error)
    app.add_exception_handler(Exception, _handle_unexpected_error)


def problem_response(
    path: str,
    status: int,
    title: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
    *,
    code: int | None = None,
    hint: str | None = None,
) -> JSONResponse:
    """Return a problem document as a response; below ``/v1``, the error document of the Lance protocol."""
    if lance.is_lance_path(path):
        return lance.error_response(_encodable(path), status, _encodable(detail), code=code, detail=hint, headers=headers)
    kind = title.lower().replace(" ", "-")
    texts = {"type": _TYPE + kind, "title": title, "detail": _encodable(detail), "instance": _encodable(path)}
    extra = {name: value for name, value in (("code", code), ("hint", hint)) if value is not None}
    return JSONResponse({**texts, "status": status, **extra}, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def error_response(path: str, error: FederatorError, *, may_prompt: bool = True) -> JSONResponse:
    """Return the problem document of a FederatorError. With ``may_prompt``, a browser may ask its user for a missing credential."""
    if isinstance(error, RequestRejected):
        basic = ', Basic realm="Lance Federator, the token is the password"' if may_prompt else ""
        challenge = {"WWW-Authenticate": f"Bearer{basic}"}
        headers = (challenge if error.status == 401 else {}) | error.headers
        return problem_response(path, error.status, error.title, error.message, headers, code=error.code, hint=error.hint)
    status, code = _status_and_code(error)
    headers = {"Retry-After": str(_RETRY_SECONDS)} if status == 429 else {}
    return problem_response(path, status, _title(error), error.message, headers, code=code, hint=error.hint)


def _status_and_code(error: FederatorError) -> tuple[int, int | None]:
    """Return the HTTP status and the error code of the Lance Namespace spec, if it has one."""
    if isinstance(error, CatalogError):
        return lance.STATUS.get(error.code, 500), error.code
    if isinstance(error, NotFound):
        return 404, None
    if isinstance(error, StateError):
        return 409, None
    return (400, InvalidInput.code) if isinstance(error, ConfigError) else (500, Internal.code)


def _title(error: FederatorError) -> str:
    name = type(error).__name__
    if name in _FIXED_TITLES:
        return _FIXED_TITLES[name]
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))


async def _handle_federator_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FederatorError)
    return error_response(_raw_path(request), error)


async def _handle_invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return problem_response(
        _raw_path(request), 400, "Invalid input", describe_faults(error.errors(), skip=1), code=InvalidInput.code
    )


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # FastAPI reports an error while it reads a body as status 400, with the error as the cause.
    if isinstance(error.__cause__, FederatorError):
        return await _handle_federator_error(request, error.__cause__)
    if isinstance(error.__cause__, DatabaseError):
        return await _handle_database_error(request, error.__cause__)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_allowed_methods(request))
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=headers)
    title = {404: "Not found", 405: "Method not allowed", 413: "Content too large"}.get(error.status_code, "Request refused")
    return problem_response(_raw_path(request), error.status_code, title, str(error.detail), headers)


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods that any route has for the request's path. The framework only names those of the first route."""
    routes = request.app.router.routes
    asgi_scopes = ((method, {**request.scope, "method": method}) for method in ("GET", "POST", "PUT", "DELETE"))
    methods = [method for method, scope in asgi_scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)]
    return [*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS"]


async def _handle_database_error(request: Request, error: Exception) -> JSONResponse:
    return database_error_response(_raw_path(request), error)


def database_error_response(path: str, error: Exception) -> JSONResponse:
    """Return the problem document of an index failure. The error's text goes only to the log: it may contain SQL and values."""
    _log.error("index error", path=path, error=first_line(error))
    hint = describe_failure(error).hint if isinstance(error, DatabaseError) else None
    return problem_response(path, 503, "Index unavailable", "the index is unreachable or not migrated", hint=hint)


async def _handle_unexpected_error(request: Request, error: Exception) -> JSONResponse:
    _log.error("request failed", path=request.url.path, error=repr(error))
    return problem_response(_raw_path(request), 500, "Internal error", "internal error; see the log", code=Internal.code)


def _raw_path(request: Request) -> str:
    """Return the path as it was requested, with its percent encoding."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("ascii", "replace")


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
