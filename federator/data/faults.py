"""pylance's exceptions as errors of the one tree; the one place that reads their texts.

pylance raises ValueError, OSError and RuntimeError for nearly everything. Callers look first at what they can ask (is there a tag of
that name?); here is what only the failure itself tells, by the beginning of its text, which Lance's error type sets.
"""

from __future__ import annotations

import re

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.connector.errors import (
    InvalidTableState,
    TableColumnNotFound,
    TableIndexAlreadyExists,
    TableIndexNotFound,
    TableSchemaValidation,
    TableTagAlreadyExists,
    TableTagNotFound,
    TableVersionNotFound,
)
from federator.connector.looking import state_of

#: what pylance raises
FAULTS = (ValueError, OSError, RuntimeError, TypeError, KeyError, NotImplementedError)

# In this order: the more exact first.
_TEXTS: tuple[tuple[re.Pattern[str], type[CatalogError]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"no field named|column .* does not exist|column .* not found|not found in schema|is not in the dataset|^field '.*' not found",
         TableColumnNotFound),
        (r"index name .* already exists", TableIndexAlreadyExists),
        (r"lance index not found|^index .* not found", TableIndexNotFound),
        (r"ref conflict error: tag", TableTagAlreadyExists),
        (r"ref not found error: tag", TableTagNotFound),
        (r"version not found|_versions/.*manifest was not found", TableVersionNotFound),
        (r"^dataset already exists", TableAlreadyExists),
        (r"^dataset at path .* was not found", TableNotFound),
        (r"commit conflict|concurrent writers|incompatible transaction", ConcurrentModification),
        (r"different schema|lanceerror\(schema\)|^schema error|cannot be cast|contains null values", TableSchemaValidation),
        (r"^not supported", Unsupported),
        (r"invalid user input|ref is invalid|lanceerror\(arrow\)|arrow.*invalid|parser error", InvalidInput),
    )
)  # fmt: skip
_BY_STATE: dict[str, type[CatalogError]] = {"denied": PermissionDenied, "unreachable": ServiceUnavailable}
# Where in Lance's own sources it was raised helps nobody who asks.
_SOURCE = re.compile(r",? ?(location: )?/[\w./-]+\.rs:\d+(:\d+)?")
_LONGEST = 500


def as_ours(error: Exception) -> CatalogError:
    """The error of ours for one of pylance's (``FAULTS``)."""
    if isinstance(error, CatalogError):
        return error
    text = _told(error)
    for pattern, kind in _TEXTS:
        if pattern.search(text):
            return kind(text)
    if isinstance(error, KeyError | TypeError | NotImplementedError):
        return InvalidInput(text)
    # What the store said, by its codes; a text without one is a reason of Lance's own.
    state = state_of(error, text, "")
    if state in _BY_STATE:
        return _BY_STATE[state](text)
    if state == "missing" and isinstance(error, OSError):
        return InvalidTableState(f"a file of the table is gone: {text}")
    return InvalidInput(text) if isinstance(error, ValueError) else Internal(text)


def _told(error: Exception) -> str:
    written = (
        ", ".join(str(part) for part in error.args) if isinstance(error, KeyError | TypeError | RuntimeError) else str(error)
    )
    first = next(iter(written.splitlines()), type(error).__name__)
    return _SOURCE.sub("", first).strip()[:_LONGEST] or type(error).__name__
