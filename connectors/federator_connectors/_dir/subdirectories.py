"""The subdirectories of a directory as tables: one table per subdirectory.

``x.lance/`` is the table ``x``; without it ``x/`` is. Directories whose names start with ``_`` or ``.`` are not tables. The file
``.lance-reserved`` marks a declared table, and ``.lance-deregistered`` hides a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from federator.connector import CatalogError, InvalidInput, NameRules, TableAlreadyExists
from federator.model import ROOT, CoverageState, Evidence, path_key
from federator_connectors._dir.manifest import NAME, ManifestSnapshot
from federator_connectors._dir.storage import Directory

SUFFIX = ".lance"
_RESERVED = ".lance-reserved"
_DEREGISTERED = ".lance-deregistered"
_NON_TABLE_PREFIXES = ("_", ".")
#: maximum length of a directory's name in bytes on common file systems
_MAX_NAME_BYTES = 255
#: number of directories or tables that one Coverage names
_MAX_SHOWN = 10

NAMES = NameRules(pattern=r"[^/_.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*", max_length=_MAX_NAME_BYTES - len(SUFFIX))


@dataclass(frozen=True)
class Listing:
    """Directories of tables by table name, the manifest, and directories that are not shown as tables."""

    tables: dict[str, str]
    manifest: ManifestSnapshot
    #: directories that are hidden by a ``.lance`` directory of the same name
    shadowed: list[str]
    #: number of directories whose names are not UTF-8
    unnamed: int
    #: names of tables whose directories may not be read, with the reason
    unreadable: dict[str, CatalogError]

    def detail_evidence(self) -> Evidence:
        """Return complete evidence. Its text lists directories and rows that are not shown, but may be tables."""
        rows = self.manifest.tables_in(ROOT)
        conflicting = sorted(name for name, row in rows.items() if self.tables.get(name, row.location) != row.location)
        notes = [
            (f"hidden by a {SUFFIX} directory of the same name", [f"{name}/" for name in self.shadowed]),
            (
                "in the manifest, in a namespace that does not exist",
                [path_key(path) for path in self.manifest.unreachable_objects],
            ),
            ("hidden by a table of the manifest at another location", conflicting),
        ]
        texts = [f"{what}: {_format_names(names)}" for what, names in notes if names]
        if self.unnamed:
            texts.append(f"directories whose names are not UTF-8: {self.unnamed}")
        return Evidence(CoverageState.COMPLETE, "; ".join(texts))


class Subdirectories:
    """The subdirectories of one directory as tables. All methods raise CatalogError only."""

    def __init__(self, source: str, directory: Directory) -> None:
        self._source = source
        self._directory = directory

    def list_tables(self, read_manifest: Callable[[], ManifestSnapshot]) -> Listing:
        """List the tables. If a manifest exists, ``read_manifest`` is called, because some subdirectories belong to it."""
        subdirectories = self._directory.list_subdirectories()
        if NAME in subdirectories.unknown:
            raise subdirectories.unknown[NAME]
        manifest = read_manifest() if NAME in subdirectories.names else ManifestSnapshot()
        names = [
            name
            for name in (*subdirectories.names, *subdirectories.unknown)
            if not name.startswith(_NON_TABLE_PREFIXES) and not _is_manifest_directory(manifest, name)
        ]
        chosen: dict[str, str] = {}
        # Directories with the suffix come last, because they take precedence.
        for directory in sorted(names, key=lambda name: (name.endswith(SUFFIX), name)):
            chosen[directory.removesuffix(SUFFIX)] = directory
        shadowed = sorted(set(names).difference(chosen.values()))
        known = [directory for directory in chosen.values() if directory not in subdirectories.unknown]
        is_hidden = {**subdirectories.unknown, **self._directory.check_containing(known, _DEREGISTERED)}
        tables = {name: directory for name, directory in chosen.items() if is_hidden[directory] is False}
        errors = ((name, is_hidden[directory]) for name, directory in chosen.items())
        unreadable = {name: error for name, error in errors if isinstance(error, CatalogError)}
        return Listing(tables, manifest, shadowed, subdirectories.unnamed, unreadable)

    def find_table(self, name: str, manifest: ManifestSnapshot) -> str | None:
        """Return the directory of a table; None if the table is absent or deregistered."""
        directory = self.find_directory(name, manifest)
        if directory is None or self._directory.filter_containing([directory], _DEREGISTERED):
            return None
        return directory

    def find_directory(self, name: str, manifest: ManifestSnapshot) -> str | None:
        """Return the directory that a table's name stands for, deregistered or not; None if there is none."""
        if not name or name.startswith(_NON_TABLE_PREFIXES) or "/" in name or "\0" in name:
            return None
        # "x.lance/" is the table "x" and never the table "x.lance".
        candidates = [name + SUFFIX] + ([] if name.endswith(SUFFIX) or _is_manifest_directory(manifest, name) else [name])
        possible = [candidate for candidate in candidates if _byte_length(candidate) <= _MAX_NAME_BYTES]
        return next(iter(self._directory.filter_existing(possible)), None)

    def create_table(self, name: str, directory: str | None) -> str:
        """Create the table's directory, or show the deregistered ``directory`` again. Raise TableAlreadyExists."""
        table_directory = directory or name + SUFFIX
        if directory is None:
            if not self._directory.create(table_directory):
                raise TableAlreadyExists(f"{self._source}: the table {name!r} exists")
            self._directory.create_marker(table_directory, _RESERVED)
        elif self._directory.filter_containing([table_directory], _DEREGISTERED):
            self._directory.remove_marker(table_directory, _DEREGISTERED)
        else:
            raise TableAlreadyExists(f"{self._source}: the table {name!r} exists")
        return table_directory

    def deregister_table(self, directory: str) -> None:
        """Deregister a table; its data stays. Raise PermissionDenied if its directory is a symbolic link."""
        self._directory.create_marker(directory, _DEREGISTERED)

    def check_new(self, name: str) -> None:
        """Raise InvalidInput for a name that cannot be the name of a table's directory."""
        if not NAMES.allows(name):
            raise InvalidInput(
                f"{self._source}: {name!r} cannot be the name of a directory",
                hint="use a name without /, control characters, or a leading _ or .",
            )
        if _byte_length(name + SUFFIX) > _MAX_NAME_BYTES:
            raise InvalidInput(f"{self._source}: {name!r} is too long for the name of a directory")


def _is_manifest_directory(manifest: ManifestSnapshot, directory: str) -> bool:
    return (
        bool(manifest.namespaces or manifest.tables) and not directory.endswith(SUFFIX) and manifest.owns_directory(directory)
    )


def _format_names(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(names[:_MAX_SHOWN]) + more


def _byte_length(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))
