"""A table in storage: opened at a version and branch, with what went wrong as errors of the one tree."""

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
from federator.connector.looking import look
from federator.data.faults import FAULTS, as_ours
from federator.model import is_location, lance_uri, local_path

MAIN = "main"
_NOT_READABLE: dict[str, type[CatalogError]] = {
    "declared_only": TableNotFound, "empty": TableNotFound, "missing": TableNotFound, "denied": PermissionDenied,
    "unreachable": ServiceUnavailable, "not_lance": InvalidTableState, "corrupt": InvalidTableState,
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A location and how to open it; ``storage`` holds secrets, and is in no ``repr``."""

    location: str
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def uri(self) -> str:
        """The location as pylance takes it. Raises InvalidInput for what is none."""
        if local_path(self.location) is None and not is_location(self.location):
            raise InvalidInput(f"{self.location[:200]!r} is no location")
        return lance_uri(self.location)

    @property
    def options(self) -> dict[str, str] | None:
        return dict(self.storage) or None

    @property
    def key(self) -> str:
        """The path within its store, as manifests are named by: without scheme, bucket and leading slash."""
        path = local_path(self.location)
        return (path if path is not None else self.location.partition("://")[2].partition("/")[2]).strip("/")

    def look(self) -> dict[str, Any]:
        """What is there now: a row of verification (``looking.look``)."""
        return look(self.location, dict(self.storage))

    def open(self, version: int | None = None, branch: str | None = None) -> Any:
        """The ``LanceDataset``. Raises TableNotFound where nothing has been written, TableVersionNotFound, TableBranchNotFound,
        InvalidTableState for what is no readable table, PermissionDenied and ServiceUnavailable of the store."""
        import lance

        on_main = branch in (None, "", MAIN)
        try:
            dataset = lance.dataset(self.uri, version=version if on_main else None, storage_options=self.options)
        except FAULTS:
            raise self._not_opened(version if on_main else None) from None
        return dataset if on_main else _branch(dataset, str(branch), version)

    @contextmanager
    def opened(self, version: int | None = None, branch: str | None = None) -> Iterator[Any]:
        """``open``, for work whose failures become errors of the one tree."""
        dataset = self.open(version, branch)
        try:
            yield dataset
        except FAULTS as error:
            raise as_ours(error) from None

    def _not_opened(self, version: int | None) -> CatalogError:
        found = self.look()
        if found["state"] != "valid":
            return _NOT_READABLE[found["state"]](f"no table can be read at {self.location}: {found['message']}")
        if version is not None:
            return TableVersionNotFound(f"the table has no version {version}; its newest is {found['version']}")
        return ServiceUnavailable(f"{self.location} could be read only at the second attempt", hint="ask again")


def branch_path(branch: str | None) -> str:
    """Where a branch's own files are, below the table's."""
    return "" if branch in (None, "", MAIN) else f"tree/{branch}/"


def _branch(dataset: Any, branch: str, version: int | None) -> Any:
    if branch not in dataset.branches.list():
        raise TableBranchNotFound(f"the table has no branch {branch!r}")
    newest = dataset.checkout_version((branch, None))
    if version is None:
        return newest
    try:
        return dataset.checkout_version((branch, version))
    except FAULTS as error:
        if version in {found["version"] for found in newest.version_refs()}:
            raise as_ours(error) from None
        raise TableVersionNotFound(f"the branch {branch!r} has no version {version}; its newest is {newest.version}") from None
