"""A table in storage: opened at a version and branch, with failures as catalog errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from federator.connector import (
    CatalogError,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
)
from federator.connector.errors import InvalidTableState, TableBranchNotFound, TableVersionNotFound
from federator.data.lance_errors import LANCE_ERRORS, to_catalog_error
from federator.lance.foreign_locations import MayRead, may_read_nothing, require_own_bases, require_own_files
from federator.lance.inspection import Inspection, inspect_location
from federator.lance.pinned_directory import PinnedDirectory
from federator.model import is_location, local_path, to_lance_uri

MAIN = "main"
# Lance takes a version as a number of 64 bits without a sign, and JSON's numbers are longer.
_MAX_VERSION = (1 << 63) - 1
_NOT_READABLE: dict[str, type[CatalogError]] = {
    "declared_only": TableNotFound, "empty": TableNotFound, "missing": TableNotFound, "denied": PermissionDenied,
    "unreachable": ServiceUnavailable, "not_lance": InvalidTableState, "corrupt": InvalidTableState,
}  # fmt: skip


@dataclass(frozen=True)
class TableHandle:
    """A location with its storage options. ``storage`` contains secrets, and is excluded from ``repr``.

    A table may refer to locations outside it: to those below ``allowed_bases``, the prefixes in the configuration, and to those that
    ``may_read`` permits. Only the service's own process can call ``may_read``; the child process that opens the table gets the
    permitted locations in ``permitted``, with their symbolic links resolved. ``mounts`` are roots of sources: symbolic links at or
    above them are the operator's, and do not lead outside. ``pinned`` is the directory of a local table in the process that opens it.
    """

    location: str
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed_bases: tuple[str, ...] = ()
    may_read: MayRead = field(default=may_read_nothing, repr=False, compare=False)
    mounts: tuple[str, ...] = ()
    permitted: tuple[str, ...] = ()
    pinned: PinnedDirectory | None = field(default=None, repr=False, compare=False)

    @property
    def uri(self) -> str:
        """What pylance opens: the pinned directory, or the location. Raise InvalidInput if it is not a location."""
        return self.pinned.path if self.pinned is not None else self.written_uri

    @property
    def written_uri(self) -> str:
        """The location in pylance's spelling. Raise InvalidInput if it is not a location."""
        if local_path(self.location) is None and not is_location(self.location):
            raise InvalidInput(f"{self.location[:200]!r} is not a location")
        return to_lance_uri(self.location)

    @property
    def storage_options(self) -> dict[str, str] | None:
        return dict(self.storage) or None

    @property
    def store_path(self) -> str:
        """The path in its store, as used in manifest paths: without scheme, bucket and leading slash."""
        path = local_path(self.location)
        return (path if path is not None else self.location.partition("://")[2].partition("/")[2]).strip("/")

    def inspect(self, *, allow_outside: bool = False) -> Inspection:
        """Inspect the location now.

        ``allow_outside``: read also a table that refers to locations outside it. Such a result must not be stored.
        """
        allowed = None if allow_outside else self.allowed_bases
        return inspect_location(self.location, dict(self.storage), allowed=allowed, mounts=self.mounts)

    def open_dataset(self, version: int | None = None, branch: str | None = None) -> Any:
        """Open the ``LanceDataset``. Raise ForeignLocationsFound if it refers to other locations.

        Raise TableNotFound if nothing was written, TableVersionNotFound, TableBranchNotFound, InvalidTableState for an unreadable
        table, and PermissionDenied or ServiceUnavailable for an error of the store.
        """
        require_possible_version(version)
        on_main = is_main(branch)
        self.require_own_files()
        dataset = self.open_unchecked(version if on_main else None)
        self.require_own_bases(dataset)
        if not on_main:
            dataset = _checkout_branch(dataset, str(branch), version)
            self.require_own_bases(dataset)
        return dataset

    def require_own_files(self) -> None:
        """Raise ForeignLocationsFound if symbolic links of the table lead outside (``lance.foreign_locations.require_own_files``)."""
        require_own_files(self.location, self.allowed_bases, self.mounts, self.pinned, self.permitted)

    def require_own_bases(self, dataset: Any) -> None:
        """Raise ForeignLocationsFound if base paths of the table are outside (``lance.foreign_locations.require_own_bases``)."""
        require_own_bases(self.location, dataset, self.allowed_bases, self.pinned, self.permitted)

    def open_unchecked(self, version: int | None = None) -> Any:
        """Open the ``LanceDataset``, whatever it refers to: its rows must not be read before it is checked.

        Raise the errors of ``open_dataset``, except ForeignLocationsFound.
        """
        import lance

        try:
            return lance.dataset(self.uri, version=version, storage_options=self.storage_options)
        except LANCE_ERRORS:
            raise self._explain_failure(version) from None

    @contextmanager
    def opened_dataset(self, version: int | None = None, branch: str | None = None) -> Iterator[Any]:
        """Open the dataset for a block whose failures become catalog errors."""
        dataset = self.open_dataset(version, branch)
        try:
            yield dataset
        except LANCE_ERRORS as error:
            raise to_catalog_error(error) from None

    def _explain_failure(self, version: int | None) -> CatalogError:
        """Inspect the location after it could not be opened, and return the error."""
        inspection = self.inspect(allow_outside=True)
        if inspection.state != "valid":
            return _NOT_READABLE[inspection.state](f"no table can be read at {self.location}: {inspection.message}")
        if version is not None:
            return TableVersionNotFound(f"the table has no version {version}; its newest is {inspection.version}")
        return ServiceUnavailable(f"{self.location} could be read only at the second attempt", hint="try again")


def require_possible_version(version: int | None) -> None:
    """Raise InvalidInput for a version that Lance cannot hold: it would end the process."""
    if version is not None and not 0 <= version <= _MAX_VERSION:
        raise InvalidInput(f"version: must be from 0 to {_MAX_VERSION:,}")


def branch_path(branch: str | None) -> str:
    """Return the path of a branch's files below the table's location."""
    return "" if is_main(branch) else f"tree/{branch}/"


def is_main(branch: str | None) -> bool:
    """Tell whether a request is about the main branch, which None and an empty name stand for, too."""
    return branch in (None, "", MAIN)


def _checkout_branch(dataset: Any, branch: str, version: int | None) -> Any:
    if branch not in dataset.branches.list():
        raise TableBranchNotFound(f"the table has no branch {branch!r}")
    newest = dataset.checkout_version((branch, None))
    if version is None:
        return newest
    try:
        return dataset.checkout_version((branch, version))
    except LANCE_ERRORS as error:
        if version in {ref["version"] for ref in newest.version_refs()}:
            raise to_catalog_error(error) from None
        raise TableVersionNotFound(f"the branch {branch!r} has no version {version}; its newest is {newest.version}") from None
