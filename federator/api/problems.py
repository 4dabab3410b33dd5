"""Errors as problem documents (RFC 9457): every failure of every route is one of these."""

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
from federator.connector import CatalogError, ConfigError, FederatorError, StateError
from federator.connector.errors import TableNotFound
from federator.index import DatabaseError
from federator.index.failures import describe_failure

MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:lance-federator:problem:"
STATUS = lance.STATUS
_log = logs.get(__name__)


class NotFound(StateError):
    """There is no such run, request, plan or job."""


class Refused(FederatorError):
    """A request that is refused before its route is looked at, with its HTTP status and the headers that go with it."""

    def __init__(self, status: int, title: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.title = title
        self.headers = dict(headers or {})

    @property
    def code(self) -> int | None:
        """The Lance Namespace spec's code, where it has one."""
        return {401: 16, 403: 15, 429: 21, 503: 17}.get(self.status)


class Problem(BaseModel):
    """What went wrong. ``type`` is stable; ``code`` is the Lance Namespace spec's, where it has one."""

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


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that may answer with these problems, besides those that any route may."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _MEANING[status], "content": content} for status in sorted({401, 421, 429, 503, *statuses})}


_MEANING = {
    400: "The request is not valid", 401: "The token is missing or wrong", 403: "The caller may not, or a page of another origin asked",
    404: "There is no such thing", 409: "What is stored does not allow it", 412: "If-Match names another version",
    428: "If-Match is missing", 421: "The Host header is not ours", 429: "The caller asks too often",
    503: "The index does not answer",
}  # fmt: skip


def install(app: FastAPI) -> None:
    """Answers every error of an app with a problem document."""
    app.add_exception_handler(FederatorError, _federator)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DatabaseError, _database)
    app.add_exception_handler(Exception, _unexpected)


def answer(
    path: str, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """A problem document as an HTTP answer; below ``/v1`` the error document of the Lance protocol."""
    if lance.is_lance(path):
        return lance.answer(
            _sendable(path), status, _sendable(detail), code=more.get("code"), detail=more.get("hint"), headers=headers
        )
    kind = title.lower().replace(" ", "-")
    texts = {"type": _TYPE + kind, "title": title, "detail": _sendable(detail), "instance": _sendable(path)}
    extra = {name: value for name, value in more.items() if value is not None}
    return JSONResponse({**texts, "status": status, **extra}, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def of_error(path: str, error: FederatorError) -> JSONResponse:
    """The problem document of one of our errors."""
    if isinstance(error, Refused):
        signing_in = {"WWW-Authenticate": 'Bearer, Basic realm="Lance Federator, the token is the password"'}
        headers = error.headers | (signing_in if error.status == 401 else {})
        return answer(path, error.status, error.title, error.message, headers, code=error.code)
    status, code = _status(error)
    return answer(path, status, _title(error), error.message, code=code, hint=error.hint)


def _status(error: FederatorError) -> tuple[int, int | None]:
    if isinstance(error, CatalogError):
        return STATUS.get(error.code, 500), error.code
    if isinstance(error, NotFound):
        return 404, None
    return (409, None) if isinstance(error, StateError) else (400, 13) if isinstance(error, ConfigError) else (500, 18)


def _title(error: FederatorError) -> str:
    name = type(error).__name__
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))


async def _federator(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FederatorError)
    return of_error(_instance(request), error)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Only where and what: the value itself may be anything, a secret too.
    found = [f"{'.'.join(str(part) for part in e['loc'][1:]) or 'body'}: {e['msg']}" for e in error.errors()]
    return answer(_instance(request), 400, "Invalid input", "; ".join(found), code=13)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=headers)
    title = {404: "Not found", 405: "Method not allowed", 413: "Content too large"}.get(error.status_code, "Request refused")
    return answer(_instance(request), error.status_code, title, str(error.detail), headers)


def _methods(request: Request) -> list[str]:
    """The methods that some route takes at a request's path; the framework names those of the first route alone."""
    routes = request.app.router.routes
    scopes = ((method, {**request.scope, "method": method}) for method in ("GET", "POST", "PUT", "DELETE"))
    found = [method for method, scope in scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)]
    return [*found, *(["HEAD"] if "GET" in found else []), "OPTIONS"]


async def _database(request: Request, error: Exception) -> JSONResponse:
    return of_database(_instance(request), error)


def of_database(path: str, error: Exception) -> JSONResponse:
    """The problem document of a failure of the index. Its text may hold SQL and values; that is for the log."""
    _log.error("index error", path=path, error=str(error).splitlines()[0])
    hint = describe_failure(error).hint if isinstance(error, DatabaseError) else None
    return answer(path, 503, "Index unavailable", "the index does not answer, or is not migrated", hint=hint)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    _log.error("request broke", path=request.url.path, error=repr(error))
    return answer(_instance(request), 500, "Internal error", "an error of ours; the log has it", code=18)


def _instance(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("ascii", "replace")


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


__all__ = ["MEDIA_TYPE", "NotFound", "Problem", "Refused", "TableNotFound", "answer", "documented", "install", "of_error"]
