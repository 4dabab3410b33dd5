"""The ``__manifest`` of a directory: the Lance table in which pylance stores child namespaces.

A row is a namespace or a table: ``object_id`` (its path joined with ``$``), ``object_type``, ``location`` (a path below the directory,
not encoded) and ``metadata`` (its properties as JSON). The properties of the directory itself are the metadata of the Lance table.
Reading returns one snapshot of all rows, so a listing is complete or an error. Writes are delegated to pylance, so that other writers
can read its commits. A manifest with columns of an extension is not written: pylance would remove them. Tested with pylance 14.0.2.
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
from federator.connector.operation import require_permission
from federator.model import Path
from federator.runtime.text import first_line

NAME = "__manifest"
DELIMITER = "$"
_READ_COLUMNS = ("object_id", "object_type", "location", "metadata")
# pylance's names for directories of tables that exist only in the manifest: eight digits of a hash, then the table's id.
_HASHED = re.compile(r"[0-9a-f]{8}_")
#: characters of an error text in a message
_MAX_MESSAGE_LENGTH = 300


@dataclass(frozen=True)
class ManifestRow:
    """A table of the manifest; ``location`` is relative to the directory."""

    location: str
    properties: Mapping[str, str]


@dataclass(frozen=True)
class ManifestSnapshot:
    """All rows of one version of the manifest. An empty snapshot stands for a directory without a manifest."""

    namespaces: dict[Path, Mapping[str, str]] = field(default_factory=dict)
    tables: dict[Path, ManifestRow] = field(default_factory=dict)
    #: those of the directory itself
    properties: Mapping[str, str] = field(default_factory=dict)

    def has_namespace(self, namespace: Path) -> bool:
        """Return whether the namespace and all its parents exist."""
        return all(namespace[:depth] in self.namespaces for depth in range(1, len(namespace) + 1))

    def children(self, parent: Path) -> list[str]:
        return sorted(path[-1] for path in self.namespaces if path[:-1] == parent)

    def tables_in(self, namespace: Path) -> dict[str, ManifestRow]:
        return {path[-1]: row for path, row in self.tables.items() if path[:-1] == namespace}

    def owns_directory(self, directory: str) -> bool:
        """Return whether a subdirectory without the suffix ``.lance`` belongs to the manifest and is not a table itself."""
        return _HASHED.match(directory) is not None or directory in self._first_levels

    @property
    def _first_levels(self) -> set[str]:
        return {first for first, slash, _ in (row.location.partition("/") for row in self.tables.values()) if slash}

    @property
    def unreachable_objects(self) -> list[Path]:
        """Tables and namespaces without an existing parent. pylance creates them without a check; they cannot be listed."""
        return sorted(path for path in (*self.tables, *self.namespaces) if not self.has_namespace(path[:-1]))


class Manifest:
    """The manifest of the directory at ``root``. Thread-safe. All methods raise CatalogError and ConfigError only."""

    def __init__(self, root: str, location: str, storage: Mapping[str, str]) -> None:
        self._root = root
        self._location = location
        self._storage = dict(storage)
        self._writer: Any = None

    def read_snapshot(self) -> ManifestSnapshot:
        """Read all rows of the newest version."""
        lance = _import_pylance()
        try:
            dataset = self._open_dataset(lance)
            rows = dataset.to_table(columns=list(_READ_COLUMNS)).to_pylist()
            snapshot = ManifestSnapshot(properties=dict(dataset.metadata))
        except (OSError, ValueError, RuntimeError) as error:
            raise _read_error(self._location, error) from error
        for row in rows:
            self._add_row(snapshot, row)
        return snapshot

    def identity(self) -> str:
        """Return the id of the transaction that created the manifest; empty if its first version was cleaned up."""
        lance = _import_pylance()
        try:
            dataset = self._open_dataset(lance)
            oldest = min(version["version"] for version in dataset.versions())
            return str(dataset.read_transaction(1).uuid) if oldest == 1 else ""
        except (OSError, ValueError, RuntimeError) as error:
            raise _read_error(self._location, error) from error

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        """Create a namespace, and the manifest if it does not exist."""
        self._call("create_namespace", "CreateNamespaceRequest", id=_id(path), properties=dict(properties))

    def drop_namespace(self, path: Path) -> None:
        self._call("drop_namespace", "DropNamespaceRequest", id=_id(path))

    def declare(self, path: Path, properties: Mapping[str, str]) -> None:
        """Declare a table at a location that pylance chooses."""
        self._call("declare_table", "DeclareTableRequest", id=_id(path), properties=dict(properties))

    def register(self, path: Path, location: str, properties: Mapping[str, str]) -> None:
        """Register a table. ``location`` is relative to the directory."""
        self._call("register_table", "RegisterTableRequest", id=_id(path), location=location, properties=dict(properties))

    def deregister(self, path: Path) -> None:
        self._call("deregister_table", "DeregisterTableRequest", id=_id(path))

    def _add_row(self, snapshot: ManifestSnapshot, row: Mapping[str, Any]) -> None:
        path = tuple(str(row["object_id"]).split(DELIMITER))
        properties = self._properties(row)
        if row["object_type"] == "namespace":
            snapshot.namespaces[path] = properties
        elif row["object_type"] == "table" and row["location"]:
            snapshot.tables[path] = ManifestRow(str(row["location"]), properties)

    def _properties(self, row: Mapping[str, Any]) -> dict[str, str]:
        if not row["metadata"]:
            return {}
        try:
            properties = json.loads(row["metadata"])
            return {str(key): str(value) for key, value in properties.items()}
        except (ValueError, AttributeError):
            raise Internal(f"{self._location}: the metadata of {row['object_id']} is not a JSON object") from None

    def _check_columns(self) -> None:
        """Raise Unsupported if the manifest has columns that pylance does not know: its next write would remove them."""
        lance = _import_pylance()
        try:
            unknown = sorted({*self._open_dataset(lance).schema.names} - {*_READ_COLUMNS, "base_objects"})
        except (OSError, ValueError, RuntimeError):
            # There is no manifest yet, or pylance reports why it cannot be read.
            return
        if unknown:
            raise Unsupported(
                f"{self._location}: pylance would remove the columns {', '.join(unknown)} of an extension",
                hint="change this directory with the client that wrote these columns",
            )

    def _open_dataset(self, lance: Any) -> Any:
        return lance.dataset(self._location, storage_options=self._storage or None)

    def _call(self, operation: str, model: str, **fields: Any) -> None:
        """Call a method of pylance's namespace with a request of the class ``model``."""
        import lance_namespace

        self._check_columns()
        require_permission()
        try:
            getattr(self._open_namespace(), operation)(getattr(lance_namespace, model)(**fields))
        except lance_namespace.LanceNamespaceError as error:
            kind = _BY_CODE.get(int(error.code), Internal)
            raise kind(f"{self._location}: {error}") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise Internal(f"{self._location}: {operation} failed: {first_line(error, _MAX_MESSAGE_LENGTH)}") from error

    def _open_namespace(self) -> Any:
        if self._writer is None:
            _import_pylance()
            import lance.namespace

            namespace_class: Any = lance.namespace.DirectoryNamespace
            storage = {f"storage.{key}": value for key, value in self._storage.items()}
            self._writer = namespace_class(root=self._root, manifest_enabled="true", **storage)
        return self._writer


_BY_CODE: dict[int, type[CatalogError]] = {
    kind.code: kind
    for kind in (
        Unsupported, NamespaceNotFound, NamespaceAlreadyExists, NamespaceNotEmpty, TableNotFound, TableAlreadyExists, InvalidInput,
        ConcurrentModification, PermissionDenied, ServiceUnavailable,
    )
}  # fmt: skip


def _import_pylance() -> Any:
    try:
        import lance
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"reading a directory's {NAME} needs the module {error.name!r}",
            hint="pip install 'lance-federator[spark]', or set dir.manifest_enabled = false to ignore the manifest",
        ) from error
    return lance


def _read_error(location: str, error: Exception) -> CatalogError:
    text = first_line(error, _MAX_MESSAGE_LENGTH)
    denied = any(word in text for word in ("Permission denied", "PermissionDenied", "AccessDenied", "403 Forbidden"))
    return (PermissionDenied if denied else ServiceUnavailable)(f"{location}: the manifest cannot be read: {text}")


def _id(path: Path) -> list[str]:
    for name in path:
        if DELIMITER in name:
            raise InvalidInput(f"{name!r}: a name in a directory's manifest cannot contain {DELIMITER}")
    return list(path)
