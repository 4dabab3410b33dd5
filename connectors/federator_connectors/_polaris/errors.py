"""The one place where an answer of Polaris becomes an error of ours.

Polaris names the Java exception in ``error.type`` (``IcebergExceptionMapper``), which is looked at before the status: only an answer
in Polaris's own words says that something is not found. Any other 404, a proxy's or that of a wrong address, is Internal (18).
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
    Unauthenticated,
)
from federator_connectors._http.answer import Answer
from federator_connectors._http.statuses import error, error_of_status

_BY_TYPE: dict[tuple[int, str], type[CatalogError]] = {
    (404, "NoSuchNamespaceException"): NamespaceNotFound,
    (404, "NoSuchTableException"): TableNotFound,
    (409, "AlreadyExistsException"): NamespaceAlreadyExists,
    (409, "NamespaceNotEmptyException"): NamespaceNotEmpty,
    (409, "CommitFailedException"): ConcurrentModification,
}
# A request that took Polaris itself too long (its TimeoutException) may be tried again.
_TOO_LONG = 408
_NO_WAREHOUSE = "Unable to find warehouse"


def error_of(answer: Answer) -> CatalogError:
    """The error of any answer but a token's. What exists already is taken for a namespace; see ``about_a_table``."""
    told = answer.error_fields.get("error")
    told = told if isinstance(told, dict) else {}
    name, message = str(told.get("type", "")), str(told.get("message", "")) or None
    kind = _BY_TYPE.get((answer.status, name))
    if kind is None and answer.status == 404 and (message or "").startswith(_NO_WAREHOUSE):
        kind = NamespaceNotFound
    if kind is None and answer.status == _TOO_LONG:
        kind = ServiceUnavailable
    return error(kind, answer, message) if kind else error_of_status(answer, message)


@contextmanager
def about_a_table(*, missing: type[CatalogError]) -> Iterator[None]:
    """Polaris has one type for what exists already, and tells of a missing namespace by a missing table or the other way round.

    ``missing`` is what both mean for this call: TableNotFound where a table is read or removed, NamespaceNotFound where one is
    declared.
    """
    try:
        yield
    except NamespaceAlreadyExists as found:
        raise TableAlreadyExists(found.message) from None
    except (NamespaceNotFound, TableNotFound) as found:
        raise missing(found.message) from None


def error_of_token(answer: Answer) -> CatalogError:
    """The error of a token that was not given, told as OAuth does: ``{"error": code, "error_description": text}``."""
    told = answer.error_fields
    code, text = told.get("error"), told.get("error_description")
    if answer.status in (400, 401, 403) and isinstance(code, str):
        return Unauthenticated(
            f"{answer.about}: {code}: {text} (HTTP {answer.status})", hint="check polaris.client_id, client_secret and scope"
        )
    return error_of_status(answer)
