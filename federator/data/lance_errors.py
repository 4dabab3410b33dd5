"""Translation of pylance's exceptions into catalog errors. Only this module reads their texts.

pylance raises ValueError, OSError and RuntimeError for nearly everything. Callers first check what they can (whether a tag exists,
for example). This module classifies the remaining failures by their texts, which Lance's error types determine.
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
from federator.lance.inspection import state_from_error, strip_source_positions

#: the exceptions that pylance raises
LANCE_ERRORS = (ValueError, OSError, RuntimeError, TypeError, KeyError, NotImplementedError)

# Ordered: more specific patterns first.
_ERRORS_BY_PATTERN: tuple[tuple[re.Pattern[str], type[CatalogError]], ...] = tuple(
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
_ERRORS_BY_STATE: dict[str, type[CatalogError]] = {"denied": PermissionDenied, "unreachable": ServiceUnavailable}
_MAX_MESSAGE_LENGTH = 500


def to_catalog_error(error: Exception) -> CatalogError:
    """Return the catalog error for one of pylance's exceptions (``LANCE_ERRORS``)."""
    if isinstance(error, CatalogError):
        return error
    text = _clean_message(error)
    for pattern, kind in _ERRORS_BY_PATTERN:
        if pattern.search(text):
            return kind(text)
    if isinstance(error, KeyError | TypeError | NotImplementedError):
        return InvalidInput(text)
    # Classify the store's error by its codes. A text without a code is Lance's own error.
    state = state_from_error(error, text)
    if state in _ERRORS_BY_STATE:
        return _ERRORS_BY_STATE[state](text)
    if state == "missing" and isinstance(error, OSError):
        return InvalidTableState(f"a file of the table is missing: {text}")
    return InvalidInput(text) if isinstance(error, ValueError) else Internal(text)


def _clean_message(error: Exception) -> str:
    text = ", ".join(str(part) for part in error.args) if isinstance(error, KeyError | TypeError | RuntimeError) else str(error)
    first_line = next(iter(text.splitlines()), type(error).__name__)
    return strip_source_positions(first_line)[:_MAX_MESSAGE_LENGTH] or type(error).__name__
