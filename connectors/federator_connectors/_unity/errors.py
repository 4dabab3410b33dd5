"""The one place where the server's errors become ours.

Unity names its errors in ``error_code``; the open-source server says ``*_NOT_FOUND`` and Databricks ``*_DOES_NOT_EXIST``. Older
servers say ``NOT_FOUND`` and ``ALREADY_EXISTS`` of anything, and of what only in the text. An answer without such a name, from a
proxy perhaps, counts by its status alone: a bare 404 does not prove that an object is missing.
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
from federator_connectors._http.answer import Answer
from federator_connectors._http.statuses import error, error_of_status


class CatalogNotFound(NamespaceNotFound):
    """The configured catalog itself is missing."""


class FailedPrecondition(InvalidInput):
    """The server's FAILED_PRECONDITION: for the drop of a namespace it means that something is inside."""


class PropertyRefused(InvalidInput):
    """A declaration was refused, or would have been stored without some of its properties: ``keys``, as far as they are known."""

    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, message: str, keys: tuple[str, ...]) -> PropertyRefused:
        made = cls(message)
        made.keys = keys
        return made


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
_OF_WHAT = re.compile(r"(Catalog|Schema|Table) (?:not found|already exists)")


_OPTIONAL = ContextVar("optional call", default=False)


@contextmanager
def about_an_optional_call() -> Iterator[None]:
    """Inside, a 404 means that the server does not have the call: Unsupported."""
    token = _OPTIONAL.set(True)
    try:
        yield
    finally:
        _OPTIONAL.reset(token)


def error_of(answer: Answer) -> CatalogError:
    """Our error for an answer that is no success."""
    fields = answer.error_fields
    code, message = str(fields.get("error_code") or ""), str(fields.get("message") or "")
    said = f"{code}: {message}" if code and message else message or code or None
    what = _OF_WHAT.match(message) if code in ("NOT_FOUND", "ALREADY_EXISTS") else None
    if answer.status == 404 and _OPTIONAL.get():
        return error(Unsupported, answer, said)
    kind = _BY_CODE.get(f"{what[1].upper()}_{code}" if what else code)
    return error(kind, answer, said) if kind else error_of_status(answer, said)
