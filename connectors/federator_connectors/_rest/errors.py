"""The one place where a server's answer becomes an error of ours.

``lance``: the body ``{error, code, detail, instance}`` of the official protocol, by its code. ``general``: RFC 7807 and the status.
Where the body is neither, the status alone speaks, and a 404 then says that the route is missing, never that an object is.
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
from federator_connectors._http.answer import Answer
from federator_connectors._http.statuses import error, error_of_status

_BY_CODE: dict[int, type[CatalogError]] = {
    kind.code: kind
    for kind in (
        Unsupported, NamespaceNotFound, NamespaceAlreadyExists, NamespaceNotEmpty, TableNotFound, TableAlreadyExists, InvalidInput,
        ConcurrentModification, PermissionDenied, Unauthenticated, ServiceUnavailable, Internal, Throttled,
    )
}  # fmt: skip
# The reference server says so with the code 18 and the status 500.
_NOT_SUPPORTED = "Not supported:"


def lance_error(answer: Answer) -> CatalogError:
    """An error of the official protocol."""
    fields = answer.error_fields
    code, said = fields.get("code"), _text(fields, "error", "detail")
    if not isinstance(code, int) or isinstance(code, bool):
        return _without_body(answer)
    kind = _BY_CODE.get(code, Internal)
    if kind is Internal and said and said.startswith(_NOT_SUPPORTED):
        kind = Unsupported
    return error(kind, answer, said)


def general_error(
    *, missing: type[CatalogError] = Internal, taken: type[CatalogError] = Internal
) -> Callable[[Answer], CatalogError]:
    """The errors of one operation of the general spec: what 404 and 409 mean depends on what was asked."""

    def problem(answer: Answer) -> CatalogError:
        fields = answer.error_fields
        if answer.status == 404 and not any(key in fields for key in ("type", "title", "status")):
            return _without_body(answer)
        return error_of_status(answer, _text(fields, "detail", "title"), missing=missing, taken=taken)

    return problem


def _without_body(answer: Answer) -> CatalogError:
    if answer.status == 404:
        made = error(Unsupported, answer, f"the server does not know this route: {answer.excerpt}")
        made.hint = "check rest.uri and rest.protocol"
        return made
    return error_of_status(answer)


def _text(fields: dict[str, object], *keys: str) -> str | None:
    said = [text for text in (fields.get(key) for key in keys) if isinstance(text, str) and text]
    return said[0] if said else None
