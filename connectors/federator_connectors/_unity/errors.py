"""Mapping of Unity's errors to ``CatalogError``.

Unity names its errors in ``error_code``: the open-source server uses ``*_NOT_FOUND`` and Databricks ``*_DOES_NOT_EXIST``. Older
servers use ``NOT_FOUND`` and ``ALREADY_EXISTS`` for all objects, and only the text names the kind of object. A response without
``error_code``, for example from a proxy, is mapped by its status: a 404 alone does not prove that an object is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from federator.connector import (
    CatalogError,
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
from federator_connectors._http.response import (
    HttpResponse,
    build_error,
    contradicts_absence,
    error_for_status,
    error_for_token_status,
)


class CatalogNotFound(NamespaceNotFound):
    """The catalog itself is missing."""


class FailedPrecondition(InvalidInput):
    """The server's FAILED_PRECONDITION. For the drop of a namespace it means that the namespace is not empty."""


class PropertyRefused(InvalidInput):
    """The server refused some properties of a declaration, or did not store them. ``keys`` are their keys, as far as known."""

    keys: tuple[str, ...] = ()

    @classmethod
    def for_keys(cls, message: str, keys: tuple[str, ...]) -> PropertyRefused:
        error = cls(message)
        error.keys = keys
        return error


_BY_CODE: dict[str, type[CatalogError]] = {
    "CATALOG_NOT_FOUND": CatalogNotFound, "CATALOG_DOES_NOT_EXIST": CatalogNotFound,
    "SCHEMA_NOT_FOUND": NamespaceNotFound, "SCHEMA_DOES_NOT_EXIST": NamespaceNotFound,
    "TABLE_NOT_FOUND": TableNotFound, "TABLE_DOES_NOT_EXIST": TableNotFound,
    "CATALOG_ALREADY_EXISTS": NamespaceAlreadyExists, "SCHEMA_ALREADY_EXISTS": NamespaceAlreadyExists,
    "TABLE_ALREADY_EXISTS": TableAlreadyExists,
    "FAILED_PRECONDITION": FailedPrecondition, "SCHEMA_NOT_EMPTY": NamespaceNotEmpty,
    "INVALID_ARGUMENT": InvalidInput, "INVALID_PARAMETER_VALUE": InvalidInput,
    "UNAUTHENTICATED": Unauthenticated, "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_EXHAUSTED": Throttled, "REQUEST_LIMIT_EXCEEDED": Throttled,
    "TEMPORARILY_UNAVAILABLE": ServiceUnavailable, "UNAVAILABLE": ServiceUnavailable,
    "UNIMPLEMENTED": Unsupported,
}  # fmt: skip
_OBJECT_PATTERN = re.compile(r"(Catalog|Schema|Table) (?:not found|already exists)")


_OPTIONAL = ContextVar("optional call", default=False)


@contextmanager
def optional_call() -> Iterator[None]:
    """Inside the ``with`` block, a 404 that names no object means that the server does not have the call: Unsupported."""
    token = _OPTIONAL.set(True)
    try:
        yield
    finally:
        _OPTIONAL.reset(token)


def error_for_token_response(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for a refused token request."""
    return error_for_token_status(response, "check unity.client_id, client_secret, scope and token_url")


def error_for_response(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for a response without success."""
    fields = response.lenient_object
    code, message = str(fields.get("error_code") or ""), str(fields.get("message") or "")
    text = f"{code}: {message}" if code and message else message or code or None
    match = _OBJECT_PATTERN.match(message) if code in ("NOT_FOUND", "ALREADY_EXISTS") else None
    kind = _BY_CODE.get(f"{match[1].upper()}_{code}" if match else code)
    if kind and contradicts_absence(response, kind):
        kind = None
    if kind is None and response.status == 404 and _OPTIONAL.get():
        return build_error(Unsupported, response, text)
    return build_error(kind, response, text) if kind else error_for_status(response, text)
