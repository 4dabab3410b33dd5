"""The target of a conformance run: a configured catalog, and the namespace or directory in it that the run makes and removes."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from federator.connector import Capabilities, Catalog, CatalogError, ConfigError, Connector, ConnectorSettings, Unsupported
from federator.connector.options import resolve_reference
from federator.connector.storage import is_local_root, open_storage, translate_storage_errors
from federator.model import ROOT, NamespaceRecord, Path, TableRecord, path_key
from federator.testing.conformance.scope import Scope, ScopedConnector, attempts_of, empty_namespace, remove_namespaces

SOURCE = "contract"
_CLOSED = "127.0.0.1:9"
#: settings with the address of a server
_ADDRESSES = frozenset({"uri", "endpoint", "sts_endpoint"})
#: the most tables on a page that a run declares to see two pages
_MAX_NATIVE_PAGE = 50


@dataclass
class Target:
    """What a run tests. ``parent`` is an existing namespace; None: the only one there is. ``location`` is the prefix of locations.

    ``server_only``: the server is tested, not the connector. Checks that send no request to it then have no verdict. ``depth`` is the
    number of namespace levels above each table, if the server has a fixed number and the connector cannot know it.
    """

    connector: Connector[Any]
    properties: Mapping[str, str]
    parent: Path | None = None
    location: str | None = None
    crawls_everything: bool = False
    races_for_names: bool = False
    server_only: bool = False
    depth: int | None = None
    scope: Scope = field(init=False)
    #: the namespace of the run; the root of the directory that the run made, if there is one
    namespace: Path = field(init=False, default=ROOT)
    #: whether the server has the change feed that the connector can read
    keeps_feed: bool = field(init=False, default=True)
    _chosen_prefix: str = field(init=False, default="")

    def __post_init__(self) -> None:
        """Raise ConfigError for wrong properties, or for a catalog in which the run cannot have a namespace of its own."""
        # A secret in the arguments of a process is visible to others.
        self.connector.settings_type.check_references(self.connector.impl, self.properties, where="")
        self.properties = {key.removeprefix(f"{self.connector.impl}."): value for key, value in self.properties.items()}
        if self._is_directory and self._root_key not in self.properties:
            raise ConfigError(
                f"{self.connector.impl}: the run needs the directory in which it may make one of its own",
                hint="add root=DIRECTORY",
            )
        name = f"conformance_{secrets.token_hex(4)}"
        self.scope = Scope(name, everything=self._is_directory)
        if not self._is_directory and self._depth not in self.capabilities.creates_namespaces_at:
            raise ConfigError(
                f"{self.connector.impl}: the run needs a namespace of its own, and this catalog cannot create one",
                hint="a setting of the connector may allow it: see docs/reference/connectors.md",
            )
        if self.capabilities.drop_cascades and not self.settings.drops_confirmed:
            raise ConfigError(
                f"{self.connector.impl}: this catalog drops namespaces with all their objects, so drops must be confirmed",
                hint="add drop_cascades=confirmed; the run drops only namespaces that it made itself",
            )

    @cached_property
    def settings(self) -> ConnectorSettings:
        settings = self.connector.parse_settings(self.properties)
        assert isinstance(settings, ConnectorSettings)
        return settings

    @cached_property
    def capabilities(self) -> Capabilities:
        capabilities = self.connector.capabilities_for(self.settings)
        if self.depth is None:
            return capabilities
        return dataclasses.replace(
            capabilities,
            levels=("namespace",) * self.depth,
            min_depth=self.depth,
            max_depth=self.depth,
            creates_namespaces_at=capabilities.creates_namespaces_at & frozenset(range(1, self.depth + 1)),
        )

    @cached_property
    def scoped_connector(self) -> ScopedConnector:
        return ScopedConnector(self.connector, self.capabilities, self.scope)

    @property
    def unreachable(self) -> dict[str, str] | None:
        """Properties of a server that does not respond; None if the connector has no address to change."""
        keys = {option.metadata["key"] for option in dataclasses.fields(self.connector.settings_type)}
        closed = {}
        for key in keys & _ADDRESSES:
            scheme, separator, _ = resolve_reference(self.properties.get(key, ""), where=key).partition("://")
            closed[key] = f"{scheme if separator else 'http'}://{_CLOSED}"
        if self._is_directory and is_local_root(self._root):
            closed[self._root_key] = f"{self._own_root}/absent"
        return closed or None

    @property
    def native_page(self) -> int:
        """The number of tables on a page of the catalog's listing, if a property makes it small; else 0."""
        size = self.properties.get("page_size", "0")
        return int(size) if int(size) <= _MAX_NATIVE_PAGE else 0

    @property
    def nests(self) -> bool:
        """Whether the run's namespace can contain others."""
        return self.capabilities.nested is None and len(self.namespace) + 1 in self.capabilities.creates_namespaces_at

    def describe(self) -> list[str]:
        """Return what the run will do, as lines."""
        name = self.scope.name
        if self._is_directory:
            own = f"the directory {self._own_root}"
        elif self.capabilities.nested is None and self._depth + 1 in self.capabilities.creates_namespaces_at:
            own = f"the namespace {name}, and others inside it"
        else:
            own = f"the namespace {name}, and others beside it whose names begin with {name}_"
        where = f"below {self.location}" if self.location else "that the catalog itself would choose, or beside them"
        reads = (
            "the complete catalog, several times"
            if self.crawls_everything
            else "listings; the complete catalog with --crawl only"
        )
        return [
            f"creates   {own}",
            f"declares  tables in them, at locations {where}; no data is written there",
            f"reads     {reads}",
            *(["races     for one name, which leaves an unusable table in some servers"] if self.races_for_names else []),
            "removes   all of that at the end, also after Ctrl-C or a failure",
            "leaves    what the catalog itself may make in its storage: empty directories, markers, metadata files",
            "changes   nothing else" if self._is_directory else f"changes   nothing whose path has no name that begins with {name}",
        ]  # fmt: skip

    @contextmanager
    def prepared(self) -> Iterator[Catalog]:
        """Make the run's namespace or directory, and yield a catalog that is confined to it. Raise CatalogError or ConfigError."""
        if self._is_directory:
            self._make_directory()
        with self.open(self.test_properties("setup")) as catalog:
            if self.capabilities.creates_namespaces_at:
                parent = self._find_parent(catalog)
                self.namespace = (*parent, self.scope.name)
                catalog.create_namespace(self._namespace_record(self.namespace))
            self.keeps_feed = self._has_feed(catalog)
            if catalog.find_declaration_obstacle() is not None:
                self.capabilities = dataclasses.replace(self.capabilities, writes_tables=False)
                vars(self.scoped_connector).update(capabilities=self.capabilities)
            yield catalog

    def remove(self) -> list[str]:
        """Remove what the run made. Return what remains, with the reasons."""
        if self._is_directory:
            return self._remove_directory()
        if not attempts_of(self.scope).namespaces:
            return []
        try:
            with self.open(self.properties) as catalog:
                return remove_namespaces(catalog, self.scope, self.namespace[:-1])
        except CatalogError as error:
            return [f"{path_key(self.namespace) or self.scope.name}: {error.message}"]

    def open(self, properties: Mapping[str, str]) -> Catalog:
        return self.scoped_connector.open_catalog(SOURCE, self.connector.parse_settings(properties))

    def test_properties(self, test: str) -> dict[str, str]:
        """Return the properties for one test: those of the run, or those of a directory of the test's own."""
        if not self._is_directory:
            return dict(self.properties)
        root = f"{self._own_root}/{test}"
        self._make(root)
        return {**self.properties, self._root_key: root}

    @contextmanager
    def test_namespace(self, catalog: Catalog, name: str) -> Iterator[Path]:
        """An empty namespace for one test: one inside the run's namespace, or that namespace itself, emptied afterwards."""
        if not self.capabilities.creates_namespaces_at:
            yield ROOT
            return
        path = (*self.namespace, name) if self.nests else self.namespace
        if self._is_directory or catalog.find_namespace(path) is None:
            self._ensure(catalog, path)
        yield path
        if not self.nests and catalog.find_namespace(path) is not None:
            empty_namespace(catalog, self.scope, path)

    def location_prefix(self, catalog: Catalog, namespace: Path) -> str:
        """Return the prefix of the locations of a test's tables: the given one, else beside a location that the catalog chooses."""
        if self.location:
            return f"{self.location.rstrip('/')}/{self.scope.name}"
        if self._chosen_prefix and not self._is_directory:
            return self._chosen_prefix
        probe = (*namespace, f"{self.scope.name}_probe")
        try:
            location = catalog.default_location(probe)
        except Unsupported:
            location = None
        if location is not None:
            return location.rpartition("/")[0]
        created = catalog.declare_table(TableRecord(SOURCE, probe))
        catalog.deregister_table(created)
        # The parent directory may contain tables of others: a directory of the run's own inside it.
        self._chosen_prefix = f"{str(created.location).rpartition('/')[0]}/{self.scope.name}"
        return self._chosen_prefix

    @property
    def _depth(self) -> int:
        """The number of names in the path of the run's namespace."""
        return len(self.capabilities.levels) or max(self.capabilities.min_depth, 1)

    @property
    def _is_directory(self) -> bool:
        """Whether the catalog is a directory that needs no namespace: the run then makes a directory of its own inside it."""
        return self.capabilities.min_depth == 0 and self.capabilities.makes_location

    @property
    def _root_key(self) -> str:
        return "path" if "path" in self.properties else "root"

    @property
    def _root(self) -> str:
        return self.properties[self._root_key].rstrip("/") or "/"

    @property
    def _own_root(self) -> str:
        return f"{self._root.rstrip('/')}/{self.scope.name}"

    def _make_directory(self) -> None:
        with translate_storage_errors(self._root):
            # A missing root would be created with the directory: that one may be a mount that is missing.
            directory = open_storage(self._root, self.settings.storage)
            if directory.has_empty_directories and directory.filesystem.get_file_info(directory.path).type.name != "Directory":
                raise FileNotFoundError(self._root)
        self._make(self._own_root)

    def _make(self, root: str) -> None:
        with translate_storage_errors(root):
            directory = open_storage(root, self.settings.storage)
            directory.filesystem.create_dir(directory.path)

    def _remove_directory(self) -> list[str]:
        try:
            with translate_storage_errors(self._own_root):
                directory = open_storage(self._own_root, self.settings.storage)
                if directory.filesystem.get_file_info(directory.path).type.name != "NotFound":
                    directory.filesystem.delete_dir(directory.path)
        except CatalogError as error:
            return [f"{self._own_root}: {error.message}"]
        return []

    def _find_parent(self, catalog: Catalog) -> Path:
        """Return the namespace in which the run's own is made. Raise ConfigError if there are several, and none was given."""
        if self.parent is not None:
            return self.parent
        path: Path = ROOT
        while len(path) < self._depth - 1:
            names = catalog.list_namespaces(path)
            if len(names) != 1:
                choice = ", ".join(path_key((*path, name)) for name in sorted(names)[:5]) or "none"
                raise ConfigError(
                    f"{self.connector.impl}: the run's namespace needs a parent, and there is not exactly one: {choice}",
                    hint="choose one with --parent",
                )
            path = (*path, names[0])
        return path

    def _ensure(self, catalog: Catalog, path: Path) -> None:
        for depth in range(max(len(self.namespace), 1), len(path) + 1):
            if catalog.find_namespace(path[:depth]) is None:
                catalog.create_namespace(self._namespace_record(path[:depth]))

    def _namespace_record(self, path: Path) -> NamespaceRecord:
        location = f"{self.location.rstrip('/')}/{self.scope.name}/{path[-1]}" if self.location else None
        return NamespaceRecord(SOURCE, path, location=location if self.capabilities.keeps_comment else None)

    def _has_feed(self, catalog: Catalog) -> bool:
        """Return whether the server has the change feed that the connector can read, if the connector can read one."""
        if not self.capabilities.change_feed:
            return True
        try:
            catalog.current_feed_cursor()
        except Unsupported:
            return False
        return True
