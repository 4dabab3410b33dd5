"""What an HTTP status means where the server's own error type does not say more (the design's table of codes)."""

from __future__ import annotations

from federator.connector import (
    CatalogError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator_connectors._http.answer import Answer

_BY_STATUS: dict[int, type[CatalogError]] = {
    400: InvalidInput, 401: Unauthenticated, 403: PermissionDenied, 405: Unsupported, 406: Unsupported, 413: InvalidInput,
    415: InvalidInput, 422: InvalidInput, 429: Throttled, 501: Unsupported, 502: ServiceUnavailable, 503: ServiceUnavailable,
    504: ServiceUnavailable,
}  # fmt: skip
_HINTS: dict[type[CatalogError], str] = {
    Unauthenticated: "the source's credentials are missing, wrong or expired",
    PermissionDenied: "the source's principal lacks a grant for this",
}


def error_of_status(
    answer: Answer, said: str | None = None, *, missing: type[CatalogError] = Internal, taken: type[CatalogError] = Internal
) -> CatalogError:
    """The error of a status: 404 is ``missing``, 409 ``taken``. ``said`` is the server's own message, if it was found in the body."""
    kind = {404: missing, 409: taken}.get(answer.status) or _BY_STATUS.get(answer.status, Internal)
    return error(kind, answer, said)


def error(kind: type[CatalogError], answer: Answer, said: str | None = None) -> CatalogError:
    """An error of a kind, with what was asked, the status and what the server said; soft ones carry its Retry-After."""
    made = kind(f"{answer.about}: {said or answer.excerpt} (HTTP {answer.status})", hint=_HINTS.get(kind))
    made.retry_after = answer.retry_after
    return made
