"""The ``__manifest`` of a directory: the Lance table in which pylance's directory namespace keeps child namespaces.

A row is a namespace or a table: ``object_id`` (its path joined by ``$``), ``object_type``, ``location`` (a path below the directory,
not encoded) and ``metadata`` (its properties as JSON). Reading takes one snapshot of all rows, so that a listing is complete or an
error. Writing is left to pylance, whose commits other writers understand. Seen with pylance 14.0.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    ConfigError,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.model import Path

NAME = "__manifest"
DELIMITER = "$"
# How pylance names the directories of tables that only the manifest knows: eight digits of a hash, then the table's id.
_HASHED = re.compile(r"[0-9a-f]{8}_")


@dataclass(frozen=True)
class Row:
    """A table of the manifest; ``location`` is relative to the directory."""

    location: str
    properties: Mapping[str, str]


@dataclass(frozen=True)
class Snapshot:
    """Every row of one version of the manifest. An empty one stands for a directory without."""

    namespaces: dict[Path, Mapping[str, str]] = field(default_factory=dict)
    tables: dict[Path, Row] = field(default_factory=dict)

    def reaches(self, namespace: Path) -> bool:
        """Whether the namespace is there, with every one above it."""
        return all(namespace[:depth] in self.namespaces for depth in range(1, len(namespace) + 1))

    def children(self, parent: Path) -> list[str]:
        return sorted(path[-1] for path in self.namespaces if path[:-1] == parent)

    def tables_in(self, namespace: Path) -> dict[str, Row]:
        return {path[-1]: row for path, row in self.tables.items() if path[:-1] == namespace}

    def holds(self, directory: str) -> bool:
        """Whether a subdirectory without the suffix ``.lance`` belongs to the manifest and is no table of its own."""
        return _HASHED.match(directory) is not None or directory in self._first_steps

    @property
    def _first_steps(self) -> set[str]:
        return {first for first, slash, _ in (row.location.partition("/") for row in self.tables.values()) if slash}

    @property
    def orphans(self) -> list[Path]:
        """Tables and namespaces whose namespace is not there, which pylance makes without asking; nobody can list them."""
        return sorted(path for path in (*self.tables, *self.namespaces) if not self.reaches(path[:-1]))


class Manifest:
    """The manifest of the directory at ``root``. Thread-safe. Raises CatalogError and ConfigError only."""

    def __init__(self, root: str, location: str, storage: Mapping[str, str]) -> None:
        self._root = root
        self._location = location
        self._storage = dict(storage)
        self._writer: Any = None

    def snapshot(self) -> Snapshot:
        lance = _pylance()
        with_options = {"storage_options": self._storage} if self._storage else {}
        try:
            columns = ["object_id", "object_type", "location", "metadata"]
            rows = lance.dataset(self._location, **with_options).to_table(columns=columns).to_pylist()
        except (OSError, ValueError, RuntimeError) as error:
            raise _unreadable(self._location, error) from error
        found = Snapshot()
        for row in rows:
            self._take(found, row)
        return found

    def identity(self) -> str:
        """Read the id of the transaction that made the manifest; empty once its first version was cleaned up."""
        lance = _pylance()
        with_options = {"storage_options": self._storage} if self._storage else {}
        try:
            dataset = lance.dataset(self._location, **with_options)
            oldest = min(version["version"] for version in dataset.versions())
            return str(dataset.read_transaction(1).uuid) if oldest == 1 else ""
        except (OSError, ValueError, RuntimeError) as error:
            raise _unreadable(self._location, error) from error

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        """Makes the manifest, too, if there is none yet."""
        self._call("create_namespace", "CreateNamespaceRequest", id=_id(path), properties=dict(properties))

    def drop_namespace(self, path: Path) -> None:
        self._call("drop_namespace", "DropNamespaceRequest", id=_id(path))

    def declare(self, path: Path, properties: Mapping[str, str]) -> None:
        """pylance chooses the place."""
        self._call("declare_table", "DeclareTableRequest", id=_id(path), properties=dict(properties))

    def register(self, path: Path, location: str, properties: Mapping[str, str]) -> None:
        """``location`` is relative to the directory."""
        self._call("register_table", "RegisterTableRequest", id=_id(path), location=location, properties=dict(properties))

    def deregister(self, path: Path) -> None:
        self._call("deregister_table", "DeregisterTableRequest", id=_id(path))

    def _take(self, found: Snapshot, row: Mapping[str, Any]) -> None:
        path = tuple(str(row["object_id"]).split(DELIMITER))
        properties = self._properties(row)
        if row["object_type"] == "namespace":
            found.namespaces[path] = properties
        elif row["object_type"] == "table" and row["location"]:
            found.tables[path] = Row(str(row["location"]), properties)

    def _properties(self, row: Mapping[str, Any]) -> dict[str, str]:
        if not row["metadata"]:
            return {}
        try:
            found = json.loads(row["metadata"])
            return {str(key): str(value) for key, value in found.items()}
        except (ValueError, AttributeError):
            raise Internal(f"{self._location}: the metadata of {row['object_id']} is no JSON object") from None

    def _call(self, operation: str, model: str, **fields: Any) -> None:
        import lance_namespace

        try:
            getattr(self._pylances_own(), operation)(getattr(lance_namespace, model)(**fields))
        except lance_namespace.LanceNamespaceError as error:
            kind = _BY_CODE.get(int(error.code), Internal)
            raise kind(f"{self._location}: {error}") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise Internal(f"{self._location}: {operation} failed: {_first_line(error)}") from error

    def _pylances_own(self) -> Any:
        if self._writer is None:
            _pylance()
            import lance.namespace

            own: Any = lance.namespace.DirectoryNamespace
            storage = {f"storage.{key}": value for key, value in self._storage.items()}
            self._writer = own(root=self._root, manifest_enabled="true", **storage)
        return self._writer


_BY_CODE: dict[int, type[CatalogError]] = {
    kind.code: kind
    for kind in (
        Unsupported, NamespaceNotFound, NamespaceAlreadyExists, NamespaceNotEmpty, TableNotFound, TableAlreadyExists, InvalidInput,
        ConcurrentModification, PermissionDenied, ServiceUnavailable,
    )
}  # fmt: skip


def _pylance() -> Any:
    try:
        import lance
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"reading a directory's {NAME} needs the module {error.name!r}",
            hint="pip install 'lance-federator[spark]', or set dir.manifest_enabled = false to leave it out",
        ) from error
    return lance


def _unreadable(location: str, error: Exception) -> CatalogError:
    text = _first_line(error)
    denied = any(word in text for word in ("Permission denied", "PermissionDenied", "AccessDenied", "403 Forbidden"))
    return (PermissionDenied if denied else ServiceUnavailable)(f"{location}: the manifest cannot be read: {text}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _id(path: Path) -> list[str]:
    for name in path:
        if DELIMITER in name:
            raise InvalidInput(f"{name!r}: a directory's manifest takes no name with {DELIMITER}")
    return list(path)
