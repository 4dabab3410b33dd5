"""The error tree: the classes of all failures that cross a module of this project.

::

    FederatorError
    ├── ConfigError                     a mistake in configuration or on the command line (exit code 64)
    ├── StateError                      the index, a lease, a plan or a journal is not as the operation needs it
    └── CatalogError                    a failure of a catalog, with the Lance spec's error code
        ├── soft: try again later       ServiceUnavailable 17, Throttled 21
        ├── IdentityChanged 17          the address belongs to another catalog than before; not retryable
        └── hard                        Unsupported 0, NamespaceNotFound 1, NamespaceAlreadyExists 2, NamespaceNotEmpty 3,
                                        TableNotFound 4, TableAlreadyExists 5, InvalidInput 13, ConcurrentModification 14,
                                        PermissionDenied 15, Unauthenticated 16, Internal 18; about a table's data:
                                        TableIndexNotFound 6, TableIndexAlreadyExists 7, TableTagNotFound 8,
                                        TableTagAlreadyExists 9, TableVersionNotFound 11, TableColumnNotFound 12,
                                        InvalidTableState 19, TableSchemaValidation 20, TableBranchNotFound 22,
                                        TableBranchAlreadyExists 23

The codes are those of the Lance Namespace spec (``lance_namespace.errors.ErrorCode``). They are repeated here because importing that
package takes 0.7 s; a test compares them.
"""

from __future__ import annotations

from typing import ClassVar

from federator.model import Record
from federator.runtime.redaction import mask_url_secrets, redact_known_secrets

#: between message and hint in the text of an error
_HINT = "\n  hint: "


class FederatorError(Exception):
    """The base class. Its text has the failure and its location and, on a separate line, the remedy. It never contains a secret."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = mask_url_secrets(message)
        super().__init__(self.message)
        self.hint = mask_url_secrets(hint) if hint else hint

    def __str__(self) -> str:
        return f"{self.message}{_HINT}{self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_unpickle_error, (type(self), self.message, self.hint))


def split_hint(text: str) -> tuple[str, str | None]:
    """Split the text of an error into message and hint."""
    message, _, hint = text.partition(_HINT)
    return message, hint or None


def _unpickle_error(cls: type[FederatorError], message: str, hint: str | None) -> FederatorError:
    return cls(message, hint=hint)


class ConfigError(FederatorError):
    """A wrong value in the configuration. The message names the file, the key and the allowed values."""


class StateError(FederatorError):
    """The stored state does not allow the operation: an outdated plan, a lost lease, tables that need a migration."""


class CatalogError(FederatorError):
    """A catalog refused a call or failed. ``dropped`` are the objects that the operation removed before it failed."""

    code: ClassVar[int] = 18
    retryable: ClassVar[bool] = False
    dropped: tuple[Record, ...] = ()
    #: seconds to wait before the next call, if the catalog requested it
    retry_after: float | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(redact_known_secrets(message), hint=hint)


class Unsupported(CatalogError):
    code = 0


class NamespaceNotFound(CatalogError):
    code = 1


class NamespaceAlreadyExists(CatalogError):
    code = 2


class NamespaceNotEmpty(CatalogError):
    code = 3


class TableNotFound(CatalogError):
    code = 4


class TableAlreadyExists(CatalogError):
    code = 5


class TableIndexNotFound(CatalogError):
    code = 6


class TableIndexAlreadyExists(CatalogError):
    code = 7


class TableTagNotFound(CatalogError):
    code = 8


class TableTagAlreadyExists(CatalogError):
    code = 9


class TableVersionNotFound(CatalogError):
    code = 11


class TableColumnNotFound(CatalogError):
    code = 12


class InvalidInput(CatalogError):
    code = 13


class NameNotAllowed(InvalidInput):
    """The server does not allow the name of a new object. Plans learn its rule from it (``NameRules.refusing``)."""


class UnfinishedDeclaration(InvalidInput):
    """A table entry that ``declare_table`` has created but not finished. ``op_id`` is the operation that created it."""

    op_id: str = ""


class ConcurrentModification(CatalogError):
    code = 14


class PermissionDenied(CatalogError):
    code = 15


class Unauthenticated(CatalogError):
    code = 16


class ServiceUnavailable(CatalogError):
    code = 17
    retryable = True


class IdentityChanged(ServiceUnavailable):
    """The source's address now belongs to another catalog, so the call was not made. A pool does not lend the connection again."""

    retryable = False


class Internal(CatalogError):
    code = 18


class InvalidTableState(CatalogError):
    code = 19


class TableSchemaValidation(CatalogError):
    code = 20


class Throttled(CatalogError):
    code = 21
    retryable = True


class TableBranchNotFound(CatalogError):
    code = 22


class TableBranchAlreadyExists(CatalogError):
    code = 23
