"""HTTP responses, their validation, and the errors for their statuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from federator.connector import (
    CatalogError,
    Internal,
    InvalidInput,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator.connector.shapes import Shape, mismatch

_MAX_EXCERPT_LENGTH = 300
#: fields of the errors of Iceberg, Unity and Lance, which no success has
_ERROR_FIELDS = ("error", "error_code", "code")


class _RepeatedKey(ValueError):
    """A key that one JSON object has twice. Which of the two values is meant is unknown."""


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its members, as ``json.loads`` calls it. Raise _RepeatedKey."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKey(repr(next(key for key in keys if keys.count(key) > 1)))
    return fields


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response. ``operation`` describes the request in error messages (``lake: listing the tables of a$b``)."""

    operation: str
    status: int
    text: str
    retry_after: float | None = None

    @property
    def json(self) -> Any:
        """The body as JSON data. Raise Internal if it is not JSON: such a response must not count as empty."""
        try:
            return json.loads(self.text, object_pairs_hook=_require_unique_keys)
        except _RepeatedKey as error:
            raise Internal(
                f"{self.operation}: an object in the server's response ({self.status}) has the key {error} twice"
            ) from None
        except (ValueError, RecursionError):
            raise Internal(f"{self.operation}: the server's response ({self.status}) is not JSON: {self.excerpt}") from None

    @property
    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object. Raise Internal if it is not a JSON object."""
        data = self.json
        if not isinstance(data, dict):
            raise Internal(f"{self.operation}: the server's response ({self.status}) is not a JSON object: {self.excerpt}")
        return data

    def require_shape(self, shape: Shape) -> dict[str, Any]:
        """Return the body as a JSON object of a shape.

        Raise Internal for a field that is missing or of another type, and for an error that has the status of a success.
        """
        fields = self.json_object
        problem = mismatch(fields, shape) or next(
            (f"it has an error in {key!r}" for key in _ERROR_FIELDS if fields.get(key) is not None), None
        )
        if problem:
            raise Internal(
                f"{self.operation}: the server's response ({self.status}) does not have the expected form: {problem}"
            )
        return fields

    def require_no_body(self) -> None:
        """Raise Internal for a success with a body, if the server never sends one: another server or a proxy has responded."""
        if self.text.strip():
            raise Internal(
                f"{self.operation}: the server's response ({self.status}) has a body, but must be empty: {self.excerpt}"
            )

    @property
    def lenient_object(self) -> dict[str, Any]:
        """The body as a JSON object; empty if it is anything else, such as the empty body that many servers send with a 401."""
        try:
            data = json.loads(self.text, object_pairs_hook=_require_unique_keys)
        except (ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}

    @property
    def excerpt(self) -> str:
        """The start of the body on one line, for messages."""
        line = " ".join(self.text.split())
        return f"{line[:_MAX_EXCERPT_LENGTH]}…" if len(line) > _MAX_EXCERPT_LENGTH else line or "(empty)"


#: maps a response without success to an error; each connector has its own function
ErrorOf = Callable[[HttpResponse], CatalogError]


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """Verification of the server, and the client certificate. ``ca`` is a file of certificates; None means the system's."""

    verify: bool = True
    ca: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)

    @property
    def requests_verify(self) -> bool | str:
        """The value of ``requests``' option ``verify``: whether to verify the server, or with which certificates."""
        return (self.ca or True) if self.verify else False

    @property
    def requests_certificate(self) -> str | tuple[str, str] | None:
        """The value of ``requests``' option ``cert``: a file with certificate and key, or one for each."""
        return (self.certificate, self.key) if self.certificate and self.key else self.certificate


#: refused credentials; by Iceberg's specification 419 is for those that have expired
STATUSES_OF_REFUSED_TOKENS = frozenset({401, 419})
_BY_STATUS: dict[int, type[CatalogError]] = {
    400: InvalidInput, 401: Unauthenticated, 403: PermissionDenied, 405: Unsupported, 406: Unsupported, 413: InvalidInput,
    415: InvalidInput, 419: Unauthenticated, 422: InvalidInput, 429: Throttled, 501: Unsupported,
    502: ServiceUnavailable, 503: ServiceUnavailable, 504: ServiceUnavailable,
}  # fmt: skip
#: statuses that servers have for an absent object
_STATUSES_OF_ABSENCE = frozenset({400, 404})
_HINTS: dict[type[CatalogError], str] = {
    Unauthenticated: "check the source's credentials: they are missing, wrong or expired",
    PermissionDenied: "grant the source's principal the permission for this operation",
}


def error_for_status(
    response: HttpResponse,
    message: str | None = None,
    *,
    missing: type[CatalogError] = Internal,
    existing: type[CatalogError] = Internal,
) -> CatalogError:
    """Return the error for a status: ``missing`` for 404, ``existing`` for 409.

    ``message`` is the server's own message if the body has one.
    """
    kind = {404: missing, 409: existing}.get(response.status) or _BY_STATUS.get(response.status, Internal)
    return build_error(kind, response, message)


def contradicts_absence(response: HttpResponse, kind: type[CatalogError]) -> bool:
    """Return whether a body says that an object is absent, but the status says something else: a denial, or a server that failed.

    Such a response proves nothing about the object: the error is that of its status.
    """
    return issubclass(kind, NamespaceNotFound | TableNotFound) and response.status not in _STATUSES_OF_ABSENCE


def error_for_token_status(response: HttpResponse, hint: str) -> CatalogError:
    """Return the error for a refused token request. OAuth's form is ``{"error": code, "error_description": text}``.

    ``hint`` names the settings of the credentials.
    """
    fields = response.lenient_object
    code, text = fields.get("error"), fields.get("error_description")
    if response.status in (400, 401, 403) and isinstance(code, str):
        return Unauthenticated(f"{response.operation}: {code}: {text} (HTTP {response.status})", hint=hint)
    return error_for_status(response)


def build_error(kind: type[CatalogError], response: HttpResponse, message: str | None = None) -> CatalogError:
    """Return an error of a kind. Its text has the operation, the status and ``message``; it also carries ``Retry-After``."""
    error = kind(f"{response.operation}: {message or response.excerpt} (HTTP {response.status})", hint=_HINTS.get(kind))
    error.retry_after = response.retry_after
    return error
