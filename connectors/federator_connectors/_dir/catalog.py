"""One directory as a catalog: what its subdirectories show, and what its manifest says where it has one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from urllib.parse import unquote

from federator.connector import (
    Catalog,
    CatalogError,
    Confirm,
    NamespaceNotFound,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.altering import check_table
from federator.connector.answers import namespace_properties, namespace_record
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
    failed,
    fold_digest,
    path_key,
)
from federator_connectors._dir.manifest import NAME, Manifest, Row, Snapshot
from federator_connectors._dir.plain import SUFFIX, Listing, Plain
from federator_connectors._dir.settings import OFF, ON, DirSettings
from federator_connectors._dir.storage import Directory


class DirCatalog(Catalog):
    """The tables of one directory. Holds no connection; safe for threads."""

    def __init__(self, source: str, settings: DirSettings) -> None:
        self.source = source
        self._directory = Directory(settings.directory, settings.storage)
        self._plain = Plain(source, self._directory)
        self._manifest = Manifest(self._directory.location(), self._directory.location(NAME), settings.storage)
        self._mode = settings.manifest_enabled

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:  # noqa: ARG002 - one manifest has all
        """The manifest's own id; a plain directory has none."""
        made = self._manifest.identity() if self._has_manifest() else ""
        return Identity.of(f"manifest {made}") if made else None

    def list_namespaces(self, parent: Path) -> list[str]:
        known = self._known()
        self._check(parent, known)
        return known.children(parent)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        known = self._known()
        self._check(path, known)
        return self._namespace(path, known)

    def list_tables(self, namespace: Path) -> list[str]:
        if namespace == ROOT:
            listing = self._plain.listing(self._snapshot)
            return sorted({*listing.tables, *listing.known.tables_in(ROOT)})
        known = self._known()
        self._check(namespace, known)
        return sorted(known.tables_in(namespace))

    def describe_table(self, path: Path) -> TableRecord:
        _, directory, row = self._found(path)
        return self._table(path, directory, row)

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Needs a manifest. Raises Unsupported where the settings do not ask for one."""
        if self._mode != ON:
            raise Unsupported(f"{self.source}: this directory has no namespaces inside", hint="dir.manifest_enabled = true")
        # Also since pylance would make a directory that is not there, such as one that is not mounted.
        self._check(record.path[:-1], self._known())
        self._manifest.create_namespace(record.path, namespace_properties(record))
        return self.describe_namespace(record.path)

    def drop_namespace(self, path: Path) -> None:
        self._check(path, self._known())
        self._manifest.drop_namespace(path)

    def declare_table(self, record: TableRecord) -> TableRecord:
        """In the directory itself makes ``x.lance/`` with the marker of a declared table, or shows a deregistered one again; in a
        namespace of the manifest registers a place below the directory, or lets pylance choose one.

        A directory has no place to note a location elsewhere: Unsupported.
        """
        known = self._known()
        self._check(record.path[:-1], known)
        if len(record.path) > 1:
            self._register(record)
        else:
            self._make(record, known)
        return self.describe_table(record.path)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """pylance reads the manifest once more by itself, as a part of its write."""
        known, directory, row = self._found(expected.path)
        check_table(self._table(expected.path, directory, row), expected, confirm)
        if expected.path in known.tables:
            self._manifest.deregister(expected.path)
        if directory is not None:
            self._plain.hide(directory)

    def default_location(self, path: Path) -> str | None:
        """The place of a new table; a deregistered one of that name keeps the place that it has. In a namespace pylance chooses."""
        if len(path) > 1:
            return None
        return self._directory.location(self._plain.claimed(path[-1], self._known()) or path[-1] + SUFFIX)

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        """In a namespace of the manifest pylance chooses a place that nothing has; in the directory itself the name is the place."""
        if len(path) == 1:
            self._plain.check_new(path[-1])
        default = self.default_location(path)
        if default is not None and not is_unused(default):
            raise TableAlreadyExists(
                f"{self.source}: {default} is the location of any table {path[-1]!r}, and holds one already, or cannot be listed",
                hint="RegisterTable shows a deregistered table again; else choose another name",
            )
        return default

    def only_declared(self, record: TableRecord) -> bool:
        """Whether nothing has been written to the table yet. Raises TableNotFound."""
        current = self.describe_table(record.path)
        return not self._directory.holding([self._below(str(current.location)) or ""], "_versions")

    def shards(self) -> Sequence[Shard]:
        try:
            known = self._known()
        except CatalogError:
            # Reading the shard says so again, in its Coverage.
            known = Snapshot()
        return [Shard((ROOT, *sorted(path for path in known.namespaces if known.reaches(path))))]

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        try:
            listing = self._plain.listing(self._snapshot)
        except CatalogError as error:
            evidence = failed(error.code, error.message)
            yield from (Coverage(self.source, namespace, evidence, evidence) for namespace in shard.namespaces)
            return
        for namespace in shard.namespaces:
            yield from self._one(namespace, listing)

    def ping(self) -> str:
        self._directory.subdirectories()
        return ""

    def _one(self, namespace: Path, listing: Listing) -> Iterator[Record | Coverage]:
        known = listing.known
        if not known.reaches(namespace):
            evidence = failed(NamespaceNotFound.code, f"{self.source}: there is no namespace {path_key(namespace)!r}")
            yield Coverage(self.source, namespace, evidence, evidence, found=False)
            return
        records: list[Record] = [self._namespace((*namespace, name), known) for name in known.children(namespace)]
        directories = listing.tables if namespace == ROOT else {}
        for name in sorted({*directories, *known.tables_in(namespace)}):
            path = (*namespace, name)
            records.append(self._table(path, directories.get(name), known.tables.get(path)))
        yield from records
        detail = listing.detail() if namespace == ROOT else COMPLETE
        digest = fold_digest(record.digest for record in records)
        yield Coverage(self.source, namespace, detail=detail, records=len(records), digest=digest)

    def _known(self) -> Snapshot:
        return self._snapshot() if self._directory.among([NAME]) else Snapshot()

    def _snapshot(self) -> Snapshot:
        return self._manifest.snapshot() if self._has_manifest() else Snapshot()

    def _has_manifest(self) -> bool:
        # A directory of that name with nothing of Lance in it is none; one that has lost its versions is an error, not an empty one.
        parts = ("_versions", "_transactions", "data")
        return self._mode != OFF and any(self._directory.holding([NAME], part) for part in parts)

    def _found(self, path: Path) -> tuple[Snapshot, str | None, Row | None]:
        """The manifest, and a table's directory and row in it, of which it has at least one. Raises TableNotFound."""
        known = self._known()
        self._check(path[:-1], known)
        directory = self._plain.find(path[-1], known) if len(path) == 1 else None
        row = known.tables.get(path)
        if directory is None and row is None:
            raise TableNotFound(f"{self.source}: there is no table {path_key(path)!r}")
        return known, directory, row

    def _check(self, namespace: Path, known: Snapshot) -> None:
        if not known.reaches(namespace):
            raise NamespaceNotFound(f"{self.source}: there is no namespace {path_key(namespace)!r}")

    def _namespace(self, path: Path, known: Snapshot) -> NamespaceRecord:
        record = namespace_record(self.source, path, known.namespaces.get(path))
        return replace(record, location=self._directory.location()) if path == ROOT else record

    def _table(self, path: Path, directory: str | None, row: Row | None) -> TableRecord:
        """A table that a subdirectory shows, a row of the manifest names, or both: then the directory says where."""
        place = directory if directory is not None or row is None else row.location
        properties = row.properties if row is not None and row.location == place else {}
        return TableRecord(self.source, path, self._directory.location(str(place)), dict(properties))

    def _register(self, record: TableRecord) -> None:
        if not record.location:
            self._manifest.declare(record.path, record.properties)
            return
        below = self._below(record.location)
        if below is None:
            where = self._directory.location()
            raise Unsupported(f"{self.source}: a directory cannot point at {record.location}", hint=f"tables lie below {where}")
        self._manifest.register(record.path, below, record.properties)

    def _make(self, record: TableRecord, known: Snapshot) -> None:
        name = record.path[-1]
        self._plain.check_new(name)
        if record.path in known.tables:
            raise TableAlreadyExists(f"{self.source}: the table {name!r} exists")
        directory = self._plain.claimed(name, known)
        wanted = self._directory.location(directory or name + SUFFIX)
        if record.location and canonical_location(record.location) != canonical_location(wanted):
            raise Unsupported(f"{self.source}: a directory cannot point at {record.location}", hint=f"{name!r} is at {wanted}")
        self._plain.make(name, directory)

    def _below(self, location: str) -> str | None:
        """The path of a location below the directory, as its names are; None for one elsewhere."""
        place, here = canonical_location(location), canonical_location(self._directory.location())
        return unquote(place.removeprefix(f"{here}/")) if place.startswith(f"{here}/") else None
