"""Mapping of Polaris's errors to ``CatalogError``.

Polaris names the Java exception in ``error.type`` (``IcebergExceptionMapper``), which is checked before the status: only a response
in Polaris's error format proves that an object is missing. Any other 404, of a proxy or a wrong URL, is Internal (18).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator_connectors._http.response import HttpResponse, build_error, error_for_status, error_for_token_status

_BY_TYPE: dict[tuple[int, str], type[CatalogError]] = {
    (404, "NoSuchNamespaceException"): NamespaceNotFound,
    (404, "NoSuchTableException"): TableNotFound,
    (409, "AlreadyExistsException"): NamespaceAlreadyExists,
    (409, "NamespaceNotEmptyException"): NamespaceNotEmpty,
    (409, "CommitFailedException"): ConcurrentModification,
    (409, "CommitConflictException"): ConcurrentModification,
}
# Polaris's TimeoutException: the request took Polaris itself too long and may be retried.
_REQUEST_TIMEOUT = 408
_NO_WAREHOUSE = "Unable to find warehouse"
_UNLISTED_GRANT = "Invalid entity sub type: GENERIC_TABLE"


def error_for_response(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for any response without success, except the token endpoint's.

    AlreadyExistsException becomes NamespaceAlreadyExists; see ``translate_table_errors``.
    """
    fields = response.lenient_object.get("error")
    fields = fields if isinstance(fields, dict) else {}
    error_type, message = str(fields.get("type", "")), str(fields.get("message", "")) or None
    kind = _BY_TYPE.get((response.status, error_type))
    if kind is None and response.status == 404 and (message or "").startswith(_NO_WAREHOUSE):
        kind = NamespaceNotFound
    if kind is None and response.status == _REQUEST_TIMEOUT:
        kind = ServiceUnavailable
    return build_error(kind, response, message) if kind else error_for_status(response, message)


@contextmanager
def translate_table_errors(*, missing: type[CatalogError]) -> Iterator[None]:
    """Re-raise the errors of a call on a table with the types that they mean there.

    Polaris has one error type for existing namespaces and tables, and may report a missing namespace as a missing table or the
    reverse. ``missing`` is the error for both: TableNotFound for a read or a removal, NamespaceNotFound for a declaration.
    """
    try:
        yield
    except NamespaceAlreadyExists as error:
        raise TableAlreadyExists(error.message) from None
    except (NamespaceNotFound, TableNotFound) as error:
        raise missing(error.message) from None


def error_for_grants(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for a refused listing of a role's grants. One grant on a generic table makes it a 500."""
    if response.status == 500 and _UNLISTED_GRANT in response.text:
        return Unsupported(
            f"{response.operation}: a grant on a generic table keeps Polaris from listing the grants of its catalog role (HTTP 500)"
        )
    return error_for_response(response)


def error_for_token_response(response: HttpResponse) -> CatalogError:
    """Return the CatalogError for a refused token request."""
    error = error_for_token_status(response, "check polaris.client_id, client_secret and scope")
    return name_realm(error, response)


def name_realm(error: CatalogError, response: HttpResponse) -> CatalogError:
    """Return the error, with a hint if it may be about an unknown realm: Polaris answers as to a path that it does not have."""
    if response.status == 404 and not isinstance(response.lenient_object.get("error"), dict):
        error.hint = (
            "check polaris.realm, polaris.endpoint and polaris.token_url: a 404 in this form also means an unknown realm"
        )
    return error
