"""``Catalog`` of one directory: the tables of its subdirectories and of its manifest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from federator.connector import (
    Catalog,
    CatalogError,
    Confirm,
    NamespaceAlreadyExists,
    NamespaceNotFound,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.crawl import CoverageBuilder
from federator.connector.preconditions import check_table
from federator.lance.facade_mapping import namespace_from_properties, namespace_to_properties
from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    Identity,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    canonical_location,
    path_key,
    relative_location,
)
from federator_connectors._dir.manifest import NAME, Manifest, ManifestRow, ManifestSnapshot
from federator_connectors._dir.settings import OFF, ON, DirSettings
from federator_connectors._dir.storage import Directory
from federator_connectors._dir.subdirectories import SUFFIX, Listing, Subdirectories


class DirCatalog(Catalog):
    """The tables of one directory. It holds no connection. Thread-safe."""

    def __init__(self, source: str, settings: DirSettings) -> None:
        self.source = source
        self._directory = Directory(settings.directory, settings.storage)
        self._subdirectories = Subdirectories(source, self._directory)
        self._manifest = Manifest(self._directory.location_of(), self._directory.location_of(NAME), settings.storage)
        self._mode = settings.manifest_enabled

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:  # noqa: ARG002 - one id for the whole directory
        """Return the manifest's id. None without a manifest, or if the manifest's first version was cleaned up."""
        manifest_id = self._manifest.identity() if self._has_manifest() else ""
        return Identity.of(f"manifest {manifest_id}") if manifest_id else None

    def list_namespaces(self, parent: Path) -> list[str]:
        manifest = self._read_snapshot()
        self._check_namespace(parent, manifest)
        return manifest.children(parent)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        manifest = self._read_snapshot()
        self._check_namespace(path, manifest)
        return self._namespace_record(path, manifest)

    def list_tables(self, namespace: Path) -> list[str]:
        if namespace == ROOT:
            listing = self._subdirectories.list_tables(self._read_manifest)
            return sorted({*listing.tables, *listing.unreadable, *listing.manifest.tables_in(ROOT)})
        manifest = self._read_snapshot()
        self._check_namespace(namespace, manifest)
        return sorted(manifest.tables_in(namespace))

    def describe_table(self, path: Path) -> TableRecord:
        _, directory, row = self._find_table(path)
        return self._table_record(path, directory, row)

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Create a namespace in the manifest. Raise Unsupported unless the settings enable the manifest."""
        if self._mode != ON:
            raise Unsupported(f"{self.source}: this directory has no namespaces", hint="set dir.manifest_enabled = true")
        # The check also requires that the directory exists: pylance would create a missing one, such as one that is not mounted.
        manifest = self._read_snapshot()
        self._check_namespace(record.path[:-1], manifest)
        if manifest.has_namespace(record.path):
            raise NamespaceAlreadyExists(f"{self.source}: the namespace {path_key(record.path)!r} exists")
        self._manifest.create_namespace(record.path, namespace_to_properties(record))
        return self.describe_namespace(record.path)

    def drop_namespace(self, path: Path) -> None:
        self._check_namespace(path, self._read_snapshot())
        self._manifest.drop_namespace(path)

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declare a table.

        In the directory itself, create ``x.lance/`` with the marker of a declared table, or show a deregistered table again. In a
        namespace of the manifest, register a location below the directory; without a location pylance chooses one. Raise Unsupported
        for a location outside the directory, which the directory cannot store.
        """
        manifest = self._read_snapshot()
        self._check_namespace(record.path[:-1], manifest)
        if len(record.path) > 1:
            self._register(record)
        else:
            self._create_directory_table(record, manifest)
        return self.describe_table(record.path)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Deregister a table that is unchanged since ``expected``. pylance's write itself reads the manifest again."""
        manifest, directory, row = self._find_table(expected.path)
        check_table(self._table_record(expected.path, directory, row), expected, confirm)
        if expected.path in manifest.tables:
            self._manifest.deregister(expected.path)
        if directory is not None:
            self._subdirectories.deregister_table(directory)

    def default_location(self, path: Path) -> str | None:
        """Return the location of a new table: that of a deregistered table with the same name, else one with the suffix.

        None in a namespace of the manifest, where pylance chooses the location.
        """
        if len(path) > 1:
            return None
        return self._directory.location_of(
            self._subdirectories.find_directory(path[-1], self._read_snapshot()) or path[-1] + SUFFIX
        )

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        """Return the location of a new table. None in a namespace of the manifest, where pylance chooses an unused location.

        In the directory itself the location follows from the name. Raise TableAlreadyExists if it is used.
        """
        if len(path) == 1:
            self._subdirectories.check_new(path[-1])
        default = self.default_location(path)
        if default is not None and not is_unused(default):
            raise TableAlreadyExists(
                f"{self.source}: the location of {path[-1]!r} is {default}, which contains a table already, "
                "is declared under another name, or cannot be listed",
                hint="use RegisterTable to show a deregistered table again, or choose another name",
            )
        return default

    def is_only_declared(self, record: TableRecord) -> bool:
        """Return whether no data has been written to the table. Raise TableNotFound."""
        current = self.describe_table(record.path)
        relative_path = relative_location(self._directory.location_of(), str(current.location))
        return not self._directory.filter_containing([relative_path or ""], "_versions")

    def plan_shards(self) -> Sequence[Shard]:
        try:
            manifest = self._read_snapshot()
        except CatalogError:
            # Reading the shard fails, too, and its Coverage then records the error.
            manifest = ManifestSnapshot()
        return [Shard((ROOT, *sorted(path for path in manifest.namespaces if manifest.has_namespace(path))))]

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        try:
            listing = self._subdirectories.list_tables(self._read_manifest)
        except CatalogError as error:
            for namespace in shard.namespaces:
                coverage = CoverageBuilder(self.source, namespace)
                coverage.fail(error)
                yield coverage.build()
            return
        for namespace in shard.namespaces:
            coverage = CoverageBuilder(self.source, namespace)
            # The evidence of the directory itself names what is not shown in it, but may be a table.
            coverage.detail = listing.detail_evidence() if namespace == ROOT else COMPLETE
            yield from coverage.read(self._read_children(namespace, listing, coverage))

    def ping(self) -> str:
        self._directory.list_subdirectories()
        return ""

    def _read_children(self, namespace: Path, listing: Listing, coverage: CoverageBuilder) -> Iterator[Record]:
        manifest = listing.manifest
        self._check_namespace(namespace, manifest)
        yield from (self._namespace_record((*namespace, name), manifest) for name in manifest.children(namespace))
        directories, unreadable = (listing.tables, listing.unreadable) if namespace == ROOT else ({}, {})
        for name in sorted({*directories, *unreadable, *manifest.tables_in(namespace)}):
            path = (*namespace, name)
            row = manifest.tables.get(path)
            if row is None and name in unreadable:
                yield coverage.undescribed_table(path, unreadable[name])
            else:
                yield self._table_record(path, directories.get(name), row)

    def _read_snapshot(self) -> ManifestSnapshot:
        """Return the manifest's rows; empty without a manifest. Raise ServiceUnavailable if the directory is absent."""
        return self._read_manifest() if self._directory.filter_existing([NAME]) else ManifestSnapshot()

    def _read_manifest(self) -> ManifestSnapshot:
        return self._manifest.read_snapshot() if self._has_manifest() else ManifestSnapshot()

    def _has_manifest(self) -> bool:
        # A directory of that name without Lance files is not a manifest. A manifest without its versions is an error, not empty.
        parts = ("_versions", "_transactions", "data")
        return self._mode != OFF and any(self._directory.filter_containing([NAME], part) for part in parts)

    def _find_table(self, path: Path) -> tuple[ManifestSnapshot, str | None, ManifestRow | None]:
        """Return the manifest, and a table's directory and manifest row; at most one is None. Raise TableNotFound.

        A directory of that name is not the table's if the manifest names another one.
        """
        manifest = self._read_snapshot()
        self._check_namespace(path[:-1], manifest)
        directory = self._subdirectories.find_table(path[-1], manifest) if len(path) == 1 else None
        row = manifest.tables.get(path)
        if row is not None and row.location != directory:
            directory = None
        if directory is None and row is None:
            raise TableNotFound(f"{self.source}: there is no table {path_key(path)!r}")
        return manifest, directory, row

    def _check_namespace(self, namespace: Path, manifest: ManifestSnapshot) -> None:
        if not manifest.has_namespace(namespace):
            raise NamespaceNotFound(f"{self.source}: there is no namespace {path_key(namespace)!r}")

    def _namespace_record(self, path: Path, manifest: ManifestSnapshot) -> NamespaceRecord:
        record = namespace_from_properties(self.source, path, manifest.namespaces.get(path) if path else manifest.properties)
        return replace(record, location=self._directory.location_of()) if path == ROOT else record

    def _table_record(self, path: Path, directory: str | None, row: ManifestRow | None) -> TableRecord:
        """Return the record of a table with a subdirectory, a row in the manifest, or both. The row takes precedence."""
        relative_path, properties = (str(directory), {}) if row is None else (row.location, dict(row.properties))
        return TableRecord(self.source, path, self._directory.location_of(relative_path), properties)

    def _register(self, record: TableRecord) -> None:
        if not record.location:
            self._manifest.declare(record.path, record.properties)
            return
        root = self._directory.location_of()
        relative_path = relative_location(root, record.location)
        if relative_path is None:
            raise Unsupported(
                f"{self.source}: a directory cannot declare a table at {record.location}", hint=f"use a location below {root}"
            )
        self._manifest.register(record.path, relative_path, record.properties)

    def _create_directory_table(self, record: TableRecord, manifest: ManifestSnapshot) -> None:
        name = record.path[-1]
        self._subdirectories.check_new(name)
        if record.path in manifest.tables:
            raise TableAlreadyExists(f"{self.source}: the table {name!r} exists")
        directory = self._subdirectories.find_directory(name, manifest)
        location = self._directory.location_of(directory or name + SUFFIX)
        if record.location and canonical_location(record.location) != canonical_location(location):
            raise Unsupported(
                f"{self.source}: a directory cannot declare a table at {record.location}",
                hint=f"omit the location: {name!r} is at {location}",
            )
        self._subdirectories.create_table(name, directory)
