"""The error tree. Every failure that crosses a module of this project is one of these.

::

    FederatorError
    ├── ConfigError                     a mistake in configuration or on the command line (exit code 64)
    ├── StateError                      the index, a lease, a plan or a journal is not as the operation needs it
    └── CatalogError                    a catalog's answer, with the Lance spec's error code
        ├── soft: try again later       ServiceUnavailable 17, Throttled 21
        ├── IdentityChanged 17          another catalog answers than before; not retryable
        └── hard                        Unsupported 0, NamespaceNotFound 1, NamespaceAlreadyExists 2, NamespaceNotEmpty 3,
                                        TableNotFound 4, TableAlreadyExists 5, InvalidInput 13, ConcurrentModification 14,
                                        PermissionDenied 15, Unauthenticated 16, Internal 18; about a table's data:
                                        TableIndexNotFound 6, TableIndexAlreadyExists 7, TableTagNotFound 8,
                                        TableTagAlreadyExists 9, TableVersionNotFound 11, TableColumnNotFound 12,
                                        InvalidTableState 19, TableSchemaValidation 20, TableBranchNotFound 22,
                                        TableBranchAlreadyExists 23

The codes are those of the Lance Namespace spec (``lance_namespace.errors.ErrorCode``), restated here because importing that
package costs 0.7 s; a test holds the two together.
"""

from __future__ import annotations

from typing import ClassVar

from federator.connector.secrets import unsaid
from federator.model import Record


class FederatorError(Exception):
    """The root. The text says what, where and, on a line of its own, what to do. It never holds a secret."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.hint))


def _rebuild(cls: type[FederatorError], message: str, hint: str | None) -> FederatorError:
    return cls(message, hint=hint)


class ConfigError(FederatorError):
    """A value that a person must change: names file, key and what is allowed."""


class StateError(FederatorError):
    """What is stored does not allow the operation (an outdated plan, a lost lease, a schema that wants migrating)."""


class CatalogError(FederatorError):
    """A catalog refused or failed. ``dropped``: what one operation had removed before it failed."""

    code: ClassVar[int] = 18
    retryable: ClassVar[bool] = False
    dropped: tuple[Record, ...] = ()
    #: seconds that the catalog asked to be left alone, where it said so
    retry_after: float | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(unsaid(message), hint=hint)


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


class UnfinishedDeclaration(InvalidInput):
    """An entry that ``declare_table`` has created and not finished; ``op_id`` is the operation that created it."""

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
    """Another catalog answers at the source's address, so nothing was asked of it. A pool does not lend its connection again."""

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
