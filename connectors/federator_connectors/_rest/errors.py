"""Mapping of the errors of Lance REST servers to ``CatalogError``.

The protocol ``lance`` sends the body ``{error, code, detail, instance}``: the code decides, except that "not found" together with a
status of another kind is no evidence of absence. The protocol ``general`` sends a body of RFC 7807: the status decides.
With any other body, too, the status decides. But a 404 then means that the route does not exist, never that an object is absent.
"""

from __future__ import annotations

from collections.abc import Callable

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator_connectors._http.response import HttpResponse, build_error, contradicts_absence, error_for_status

_BY_CODE: dict[int, type[CatalogError]] = {
    kind.code: kind
    for kind in (
        Unsupported, NamespaceNotFound, NamespaceAlreadyExists, NamespaceNotEmpty, TableNotFound, TableAlreadyExists, InvalidInput,
        ConcurrentModification, PermissionDenied, Unauthenticated, ServiceUnavailable, Internal, Throttled,
    )
}  # fmt: skip
# The reference server sends this text with the code of Internal and status 500.
_NOT_SUPPORTED = "Not supported:"


def error_for_lance_response(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for a response of the official protocol."""
    fields = response.lenient_object
    code, message = fields.get("code"), _first_text(fields, "error", "detail")
    if not isinstance(code, int) or isinstance(code, bool):
        return _error_without_body(response)
    if code not in _BY_CODE and response.status in (401, 403):
        # Gravitino's check of credentials sends the status in place of a code.
        return error_for_status(response, message)
    kind = _BY_CODE.get(code, Internal)
    if contradicts_absence(response, kind):
        return error_for_status(response, message)
    if kind is Internal and message and message.startswith(_NOT_SUPPORTED):
        kind = Unsupported
    return build_error(kind, response, message)


def general_error_mapper(
    *, missing: type[CatalogError] = Internal, existing: type[CatalogError] = Internal
) -> Callable[[HttpResponse], CatalogError]:
    """Return the error mapping of one operation of the general spec. ``missing`` is the error for 404, ``existing`` for 409."""

    def map_error(response: HttpResponse) -> CatalogError:
        fields = response.lenient_object
        if response.status == 404 and not any(key in fields for key in ("type", "title", "status")):
            return _error_without_body(response)
        return error_for_status(response, _first_text(fields, "detail", "title"), missing=missing, existing=existing)

    return map_error


def _error_without_body(response: HttpResponse) -> CatalogError:
    """Return the error for a response whose body is of neither protocol."""
    if response.status == 404:
        error = build_error(Unsupported, response, f"the server does not have this route: {response.excerpt}")
        error.hint = "check rest.uri and rest.protocol"
        return error
    return error_for_status(response)


def _first_text(fields: dict[str, object], *keys: str) -> str | None:
    texts = [text for text in (fields.get(key) for key in keys) if isinstance(text, str) and text]
    return texts[0] if texts else None
