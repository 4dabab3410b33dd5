"""Errors of the client. Every one of them is a ``ClientError``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    import httpx

_MAX_TEXT = 300


class Problem(BaseModel):
    """The body of an error of the service (RFC 9457)."""

    title: str
    status: int
    detail: str
    code: int | None = None
    hint: str | None = None


class ClientError(Exception):
    """A request has no usable response."""


class ServiceUnreachable(ClientError):
    """The service did not respond. A request that changes something may have been accepted."""

    @classmethod
    def at(cls, url: str, error: Exception) -> Self:
        """Return the error for a service at ``url``. The errors of some timeouts have no text."""
        return cls(f"{url} did not respond: {str(error) or 'the time for it has passed'}")


class ApiError(ClientError):
    """The service refused a request. ``code`` is the error code of the Lance Namespace spec, or None."""

    def __init__(self, problem: Problem) -> None:
        hint = f" ({problem.hint})" if problem.hint else ""
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}{hint}")
        self.status = problem.status
        self.title = problem.title
        self.detail = problem.detail
        self.code = problem.code
        self.hint = problem.hint


class RunNotStarted(ClientError):
    """A queued request ended without a run: it was cancelled, or the worker refused it."""


class WaitTimeout(ClientError):
    """The caller's limit has passed before the run or request ended. The service continues it."""


def error_for_response(response: httpx.Response) -> ClientError:
    """Return the error of an unsuccessful response: ApiError if the body is a problem of the service.

    Otherwise another server responded, for example a proxy: return a ClientError with the first line of its text, but not of HTML.
    """
    try:
        return ApiError(Problem.model_validate_json(response.content))
    except ValidationError:
        kind = response.headers.get("content-type", "no content type")
        first_line = (response.text.strip().splitlines() or [""])[0] if "html" not in kind else ""
        return ClientError(
            f"{response.status_code} from {response.url.host}, not from the service ({kind}) {first_line[:_MAX_TEXT]}".rstrip()
        )
