"""Mapping of an Iceberg REST server's errors to ``CatalogError``.

Polaris answers in the same format, with the Java exception in ``error.type``: only such a response proves that an object is missing.
"""

from __future__ import annotations

import re

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    TableNotFound,
    Unauthenticated,
)
from federator_connectors._http.response import HttpResponse, build_error, error_for_status
from federator_connectors._polaris import errors as polaris

#: Nessie's conflicts have no type: what their messages contain. Any other one is that of a commit.
_UNTYPED_CONFLICTS = {"already exists": NamespaceAlreadyExists, "is not empty": NamespaceNotEmpty}
#: the message of Nessie for what its rules of authorization deny; the status is 500
_NESSIE_DENIED = re.compile(r"'[A-Z_]+' is not allowed for role ")


def error_for_response(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for any response without success, except those of the token endpoint and of ``/v1/config``.

    AlreadyExistsException becomes NamespaceAlreadyExists; see ``federator_connectors._polaris.errors.translate_table_errors``.
    """
    fields = _error_fields(response)
    if response.status == 404 and fields.get("type") == "NoSuchViewException":
        return build_error(TableNotFound, response, str(fields.get("message", "")))
    if response.status == 409 and fields.get("type") == "" and (message := str(fields.get("message", ""))):
        kinds = (kind for text, kind in _UNTYPED_CONFLICTS.items() if text in message)
        return build_error(next(kinds, ConcurrentModification), response, message)
    if response.status == 500 and _NESSIE_DENIED.match(message := str(fields.get("message", ""))):
        return build_error(PermissionDenied, response, message)
    return polaris.error_for_response(response)


def error_for_config(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for a refused ``/v1/config``. Servers have different types for a warehouse that does not exist."""
    fields = _error_fields(response)
    if response.status == 404 and fields.get("type") and fields.get("message"):
        return build_error(NamespaceNotFound, response, str(fields["message"]))
    error = error_for_response(response)
    # Nessie has 500 for a warehouse that does not exist. That is no evidence: a server that fails has it, too.
    if response.status in (400, 404, 500):
        error.hint = "check iceberg.endpoint, the URL before /v1, and iceberg.warehouses"
    return error


def error_for_token_response(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for a refused token request, in OAuth's format or in Iceberg's."""
    code, text = response.lenient_object.get("error"), response.lenient_object.get("error_description")
    if response.status in (400, 401, 403):
        reason = f"{code}: {text}" if isinstance(code, str) else _error_fields(response).get("message") or response.excerpt
        return Unauthenticated(
            f"{response.operation}: {reason} (HTTP {response.status})", hint="check iceberg.credential, scope and token_url"
        )
    return error_for_status(response)


def _error_fields(response: HttpResponse) -> dict[str, object]:
    fields = response.lenient_object.get("error")
    return fields if isinstance(fields, dict) else {}
