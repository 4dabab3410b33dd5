"""``Catalog`` of a server whose namespaces have Iceberg's REST API: what Polaris and Iceberg REST catalogs have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from federator.connector import Catalog, CatalogError, InvalidInput, PermissionDenied, Shard, TableNotFound, Unsupported
from federator.connector.fan_out import FanOut
from federator.connector.preconditions import check_namespace_update
from federator.model import ROOT, Coverage, NamespaceRecord, Path, Record, TableRecord, path_key
from federator_connectors._iceberg.crawl import Crawl
from federator_connectors._iceberg.namespaces import NamespaceClient
from federator_connectors._locations import join_levels

_LOCATION = "location"
#: properties that Iceberg's engines use for values without a field in a namespace
_COMMENT, _OWNER = "comment", "owner"


class NamespaceCatalog(Catalog):
    """Namespaces, listings and the crawl of one server. Paths are ``(catalog, namespace, ..., table)``. Thread-safe.

    ``catalogs`` are those that the configuration names, ``threads`` the most concurrent requests of its listings and shards, ``root``
    the URI below which tables are if their namespace has no location.
    """

    thread_safe = True

    def __init__(
        self, source: str, client: NamespaceClient, *, catalogs: Sequence[str] | None, threads: int, root: str
    ) -> None:
        self.source = source
        self._namespaces = client
        self._catalogs = catalogs
        self._root = root
        self._fan = FanOut(threads, source)
        self._crawl = Crawl(source, self, self._fan, catalogs)

    @abstractmethod
    def list_catalogs(self) -> list[NamespaceRecord]:
        """Return the server's catalogs. It is not called if the configuration names them."""

    @abstractmethod
    def describe_catalog(self, name: str) -> NamespaceRecord:
        """Return a catalog. Raise NamespaceNotFound."""

    @abstractmethod
    def list_all_tables(self, namespace: Path) -> list[str]:
        """Return the names of all tables of a namespace, Lance or not. Raise NamespaceNotFound."""

    @abstractmethod
    def read_table(self, path: Path) -> TableRecord | None:
        """Return a Lance table, None for another table. Raise TableNotFound."""

    def list_namespaces(self, parent: Path) -> list[str]:
        if parent == ROOT:
            return sorted(self._catalogs or (record.path[0] for record in self.list_catalogs()))
        return sorted(self._namespaces.list_namespaces(parent))

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        if len(path) == 1:
            return self.describe_catalog(path[0])
        return namespace_record(self.source, path, self._namespaces.get_namespace(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        if len(record.path) < 2:
            raise Unsupported(
                f"{self.source}: only the server's administrators can create catalogs, together with their storage"
            )
        properties = self._namespaces.create_namespace(record.path, namespace_properties(record))
        return namespace_record(self.source, record.path, properties)

    def drop_namespace(self, path: Path) -> None:
        if len(path) < 2:
            raise Unsupported(f"{self.source}: only the server's administrators can drop catalogs")
        self._namespaces.drop_namespace(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Update the properties of a namespace; it has no doc.

        The server does not compare: a change between this method's read and its write is overwritten.
        """
        if len(before.path) < 2:
            raise Unsupported(f"{self.source}: only the server's administrators can alter catalogs")
        check_namespace_update(self.describe_namespace(before.path), before, after, doc=False)
        changed = {key: value for key, value in after.properties.items() if before.properties.get(key) != value}
        self._namespaces.alter_namespace(before.path, changed, sorted(set(before.properties) - set(after.properties)))
        return self.describe_namespace(before.path)

    def list_tables(self, namespace: Path) -> list[str]:
        """Return the names of the Lance tables. The server lists identifiers only, so each table is read.

        A table that the source's principal may not read is listed, because it exists; so is one whose name the server, or this API,
        refuses in a URL. A table that was dropped meanwhile is not listed. Any other error fails the whole listing.
        Raise InvalidInput for the root and for a catalog, as the Polaris spec requires.
        """
        if len(namespace) < 2:
            raise InvalidInput(
                f"{self.source}: a namespace with tables has 2 levels or more, {path_key(namespace)!r} has {len(namespace)}"
            )
        return self._select_lance(namespace, sorted(self.list_all_tables(namespace)))

    def list_tables_after(self, namespace: Path, after: str, limit: int) -> list[str]:
        """Return the names as ``list_tables``, but read no more tables than the page needs."""
        names = [name for name in sorted(self.list_all_tables(namespace)) if name > after]
        lance_names: list[str] = []
        while names and len(lance_names) < limit:
            missing = limit - len(lance_names)
            lance_names += self._select_lance(namespace, names[:missing])
            names = names[missing:]
        return lance_names

    def _select_lance(self, namespace: Path, names: Sequence[str]) -> list[str]:
        paths = [(*namespace, name) for name in names]
        return [path[-1] for path, result in self._fan.map_with_errors(self.read_table, paths) if _is_lance_or_unknown(result)]

    def default_location(self, path: Path) -> str:
        name = path[-1]
        if "/" in name:
            # The default location would be that of a table in a child namespace.
            raise InvalidInput(f"{self.source}: a table whose name has a slash needs a location", hint="set a location")
        parent = self.describe_namespace(path[:-1]).location
        if parent is None:
            return f"{join_levels(self._root, path)}.lance"
        return join_levels(parent.rstrip("/"), [f"{name}.lance"])

    def plan_shards(self) -> Sequence[Shard]:
        return self._crawl.plan_shards()

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        return self._crawl.read_shard(shard)

    def close(self) -> None:
        """Close the idle connections. The catalog stays usable, also for the threads that are using it."""
        self._namespaces.close()


def namespace_record(source: str, path: Path, properties: Mapping[str, str], location_key: str = _LOCATION) -> NamespaceRecord:
    """Return the record of a namespace, whose location is a property."""
    other_properties = dict(properties)
    location = other_properties.pop(location_key, None) or None
    return NamespaceRecord(source, path, other_properties, location)


def namespace_properties(record: NamespaceRecord) -> dict[str, str]:
    """Return the properties that create a namespace. If it has no location, the server may choose one."""
    fields = {_LOCATION: record.location, _COMMENT: record.doc, _OWNER: record.owner}
    return {**record.properties, **{key: value for key, value in fields.items() if value is not None}}


def _is_lance_or_unknown(result: TableRecord | CatalogError | None) -> bool:
    if isinstance(result, TableNotFound):
        return False
    if isinstance(result, PermissionDenied | InvalidInput):
        return True
    if isinstance(result, CatalogError):
        raise result
    return result is not None
