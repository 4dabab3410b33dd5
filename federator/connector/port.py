"""The port that a connector implements.

A ``Connector`` is a stateless description that opens a ``Catalog``: one connection (or pool) with operations on single objects and the
bulk crawl. The port has three users: the facade (``lance.facade``, the official Lance interface), the crawl (``plan_shards``,
``read_shard``) and the executor of plans (``observe``, ``declare_table``, ``update_table``, ``deregister_table``).
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

from federator.connector.capabilities import Capabilities
from federator.connector.errors import (
    ConfigError,
    InvalidInput,
    NamespaceNotFound,
    TableNotFound,
    UnfinishedDeclaration,
    Unsupported,
)
from federator.connector.options import ConnectorSettings
from federator.connector.temporary_credentials import TemporaryCredentials
from federator.model import Coverage, Identity, Kind, NamespaceRecord, Path, Record, TableRecord, encode_key, is_ambiguous

#: the property that marks a table as Lance's, and its value
TABLE_TYPE_KEY = "table_type"
LANCE = "lance"
#: the only column of a table that lance-namespace-impls declared without a schema
PLACEHOLDER_COLUMN = "__placeholder_id"
#: A last check of a write, for example of the origin of a mirrored table. The write calls it once: after its last read of the target,
#: and immediately before the request that changes the catalog. An exception aborts the write before anything is changed.
Confirm = Callable[[], None]


def unconditional() -> None:
    """Confirm every write. For a write that depends only on its own object."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One independent part of a crawl: some namespaces, and the connector's data for reading them. Picklable."""

    namespaces: tuple[Path, ...]
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of observing one path: the record of a table, or in ``foreign`` a description of another object for messages.

    If both are None, the path is proven absent.
    """

    record: TableRecord | None = None
    foreign: str | None = None
    #: the id of the operation that created the foreign object, if it is an unfinished declaration
    unfinished: str | None = None

    @property
    def is_absent(self) -> bool:
        return self.record is None and self.foreign is None


@dataclass(frozen=True, slots=True)
class CatalogChanges:
    """The objects that changed since a feed cursor. They are to be read again; their new content is not included.

    ``namespaces`` were created, altered or dropped: their records and listings must be read again. ``tables`` must be observed, alone
    or with their whole namespace. ``cursor`` is the next feed cursor. ``full_crawl`` is the reason why a full crawl is needed. Then
    both sets are empty, and ``cursor`` was taken before that crawl.
    """

    cursor: str
    namespaces: frozenset[Path] = frozenset()
    tables: frozenset[Path] = frozenset()
    full_crawl: str | None = None
    #: the feed's history does not contain the cursor's position: the catalog was restored or replaced
    went_back: bool = False


class Catalog(ABC):
    """One opened catalog. Not thread-safe unless ``thread_safe`` is set. Close it by ``close`` or as a context manager.

    Methods raise only subclasses of ``CatalogError``. Paths start below the source. No method deletes data.
    """

    source: str
    #: whether several threads may use one instance at once. A facade then shares one instance, and its settings limit the connections;
    #: otherwise each thread gets an instance of its own.
    thread_safe: ClassVar[bool] = False

    # Operations on single objects.

    @abstractmethod
    def list_namespaces(self, parent: Path) -> list[str]:
        """List the names of the child namespaces, completely or with an error. Raise NamespaceNotFound."""

    @abstractmethod
    def describe_namespace(self, path: Path) -> NamespaceRecord:
        """Return a namespace. The root, ``()``, always exists. Raise NamespaceNotFound."""

    def find_namespace(self, path: Path) -> NamespaceRecord | None:
        """Return a namespace. None if the catalog reports that it does not exist."""
        try:
            return self.describe_namespace(path)
        except NamespaceNotFound:
            return None

    @abstractmethod
    def list_tables(self, namespace: Path) -> list[str]:
        """List the names of the Lance tables, completely or with an error. Raise NamespaceNotFound."""

    def list_tables_after(self, namespace: Path, after: str, limit: int) -> list[str]:
        """List the first ``limit`` names of Lance tables after a name, by code point. Raise NamespaceNotFound.

        Override this if ``list_tables`` needs a call for each table.
        """
        return sorted(name for name in self.list_tables(namespace) if name > after)[:limit]

    @abstractmethod
    def describe_table(self, path: Path) -> TableRecord:
        """Return a table. Raise TableNotFound, NamespaceNotFound if the catalog reports it, or InvalidInput for a foreign object."""

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Create a namespace and return it. Raise NamespaceAlreadyExists, or NamespaceNotFound for its parent."""
        raise Unsupported(f"{self.source}: this catalog cannot create namespaces")

    def drop_namespace(self, path: Path) -> None:
        """Drop an empty namespace. Raise NamespaceNotFound or NamespaceNotEmpty."""
        raise Unsupported(f"{self.source}: this catalog cannot drop namespaces")

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Change properties and doc in place if the namespace still equals ``before``. Return it as read back.

        Raise NamespaceNotFound, ConcurrentModification, or Unsupported for a change of location or owner.
        """
        raise Unsupported(f"{self.source}: this catalog cannot alter namespaces")

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declare a table with all fields of the record, including its location. Return it as read back.

        Raise TableAlreadyExists or NamespaceNotFound. Data is never created or changed.
        """
        raise Unsupported(f"{self.source}: this catalog cannot declare tables")

    def find_declaration_obstacle(self) -> str | None:
        """Return why the server accepts no declaration at all, and what to do. None if no reason is known.

        Plans call this once. Override it if the settings do not show it (``Capabilities.writes_tables``).
        """
        return None

    def remove_unfinished(self, path: Path, op_id: str) -> bool:
        """Remove the entry that an interrupted ``declare_table`` of this operation left. Return False if there is none.

        Only for connectors that declare in several steps: see ``federator.connector.operation``. No other entry is removed.
        """
        return False

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        """Change location, properties and doc in place if the table still equals ``before``. Return it as read back.

        Parameters that the record does not contain (``table_type``, native fields) are kept. Raise ConcurrentModification, and any
        error of ``confirm`` (``connector.preconditions.check_table`` calls it).
        """
        raise Unsupported(f"{self.source}: this catalog cannot alter tables")

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Remove the declaration if it still equals ``expected``. The data stays.

        Raise TableNotFound, ConcurrentModification, and any error of ``confirm`` (``connector.preconditions.check_table`` calls it).
        """
        raise Unsupported(f"{self.source}: this catalog cannot deregister tables")

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        """Change the path of the declaration if it still equals ``before``. Location, properties and data stay.

        Raise TableNotFound, TableAlreadyExists, NamespaceNotFound (of the new path) or ConcurrentModification.
        """
        raise Unsupported(f"{self.source}: this catalog cannot rename tables")

    def read_native(self, path: Path) -> dict[str, Any]:
        """Return the native object of a table as JSON data. It is saved before the table is recreated.

        Raise TableNotFound or NamespaceNotFound.
        """
        raise Unsupported(f"{self.source}: this catalog cannot export a complete table, so tables cannot be recreated")

    def describe_recreate_loss(self, native: Mapping[str, Any]) -> str | None:
        """Return what a recreate of a saved table would lose, for example grants. None if it would lose nothing.

        A catalog that implements ``read_native`` must override this: the default never returns None, so that nothing is lost unseen.
        """
        return "this catalog does not report what a recreate would lose"

    def find_recreate_obstacle(self, before: TableRecord, after: TableRecord) -> str | None:
        """Return why the catalog would refuse to declare ``after`` once ``before`` is deregistered. None if no reason is known.

        A recreate calls this before it removes anything.
        """
        return None

    def default_location(self, path: Path) -> str | None:
        """Return the location of a table that is declared without one: ``<table>.lance`` below the location of its namespace.

        A namespace without a location is taken as a directory of its name below the source's ``root``. None if the catalog chooses the
        location: then ``declare_table`` gets a record without one.
        """
        raise Unsupported(f"{self.source}: this catalog has no default location")

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        """Return the location of a new table whose location was not requested. None if the catalog chooses it.

        This is the default location, or one with a random suffix if ``is_unused`` returns False for it: there is data, or another table
        is declared there. Raise TableAlreadyExists if it is used and the catalog finds a table of this name nowhere else.
        """
        default = self.default_location(path)
        if default is not None and is_ambiguous(default):
            # The namespace's location or the name has characters that Lance would decode.
            scheme, separator, rest = default.partition("://")
            default = f"{scheme}{separator}{encode_key(rest)}"
        if default is None or is_unused(default):
            return default
        return f"{default.removesuffix('.lance')}-{secrets.token_hex(4)}.lance"

    def list_foreign_objects(self, namespace: Path) -> list[str]:
        """List the names of the objects that are not external Lance tables. A CASCADE drop refuses a namespace with any.

        Override this if ``Capabilities.cascade`` is set and the catalog can contain such objects.
        """
        return []

    def is_only_declared(self, record: TableRecord) -> bool:
        """Return whether no data has been written to the table. Raise TableNotFound. See ``Capabilities.reports_unwritten``."""
        raise Unsupported(f"{self.source}: this catalog does not know which tables have been written")

    def json_schema(self, record: TableRecord) -> Mapping[str, Any] | None:
        """Return the columns that the catalog stores as a ``JsonArrowSchema`` of the Lance spec, without a call to the catalog.

        None if it stores none, or if a type has no Arrow equivalent.
        """
        return None

    def issue_credentials(self, record: TableRecord, *, writes: bool) -> TemporaryCredentials:
        """Return the catalog's own temporary credentials for reading the files of a table, or with ``writes`` for writing them, too.

        Raise Unsupported if the catalog does not issue temporary credentials for this table, and PermissionDenied or any other
        CatalogError if it refuses. Credentials that do not expire are never returned. See ``Capabilities.vends_credentials``.
        """
        raise Unsupported(f"{self.source}: this catalog issues no credentials for tables")

    def canonical_path(self, path: Path) -> Path:
        """Return the full path of an object. Differs from ``path`` if the catalog accepts a shorter one, too (Glue's root catalog)."""
        return path

    # The identity of the catalog.

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        """Return the identity of the catalog behind this connection. None if the catalog has no identity.

        An identity may have a part for each namespace. ``namespaces`` are those whose parts are needed, None for all; a catalog may
        return more. Any error means that the identity is unknown, so no result of this connection is evidence. Raise IdentityChanged if
        a later connection of the same ``Catalog`` reaches another catalog.
        """
        return None

    # The bulk crawl.

    @abstractmethod
    def plan_shards(self) -> Sequence[Shard]:
        """Split the crawl into independent shards by a cheap listing. A failure fails the crawl of the whole source."""

    @abstractmethod
    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        """Read one shard: yield for each namespace its child records, then its coverage.

        After a failure, a namespace gets ``failed`` coverage, and the next one is read. A namespace is complete only if it was found to
        exist and every page of its listing arrived. Together the shards cover the root and every namespace.
        """

    def plan_shards_for(self, namespaces: Sequence[Path]) -> Sequence[Shard]:
        """Split the crawl of some namespaces into shards, without a call to the catalog. The namespaces may be absent.

        A connector with a change feed overrides this if ``read_shard`` needs more than the namespace's path.
        """
        return [Shard((namespace,)) for namespace in namespaces]

    # The change feed, if ``Capabilities.change_feed`` is set.

    def current_feed_cursor(self) -> str:
        """Return the current feed cursor, an opaque text. It is taken *before* a full crawl and stored with its revision.

        Raise Unsupported, also if the server has no change feed.
        """
        raise Unsupported(f"{self.source}: this catalog has no change feed")

    def changes_since(self, cursor: str) -> CatalogChanges:
        """Return the objects to read again since ``cursor``, or the reason for a full crawl. Unchanged objects may be included."""
        raise Unsupported(f"{self.source}: this catalog has no change feed")

    def describe_tables(self, namespace: Path, names: Sequence[str]) -> Sequence[TableRecord]:
        """Return those of the named tables that a crawl of the namespace would return. The others are omitted.

        Raise CatalogError if the existence of any of them remains unknown. A connector with a change feed overrides this if it can
        read several tables in one request.
        """
        observations = (self.observe((*namespace, name)) for name in names)
        return [observation.record for observation in observations if observation.record is not None]

    def observe(self, path: Path) -> Observation:
        """Read one table directly. Only a response that the table is not found counts as absence; other errors are raised."""
        try:
            record = self.describe_table(path)
        except (TableNotFound, NamespaceNotFound):
            return Observation()
        except UnfinishedDeclaration as error:
            return Observation(foreign=error.message, unfinished=error.op_id)
        except InvalidInput as error:
            return Observation(foreign=error.message)
        return Observation(foreign="a managed table") if record.kind is Kind.MANAGED_TABLE else Observation(record)

    def ping(self) -> str:
        """Make one cheap call that tests the connection. Return the server's version, or an empty text. Raise CatalogError."""
        self.list_namespaces(())
        return ""

    def close(self) -> None:
        """Close the connections. A second call has no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


SettingsT = TypeVar("SettingsT", bound=ConnectorSettings)


class Connector(ABC, Generic[SettingsT]):
    """A connector: the name of its impl, its settings type and capabilities, and how to open a catalog. Stateless."""

    impl: ClassVar[str]
    settings_type: type[SettingsT]
    capabilities: ClassVar[Capabilities]
    #: the extra with the libraries: ``pip install lance-federator[<extra>]``
    extra: ClassVar[str | None] = None
    #: the catalog's own names of namespace properties, by those of the Lance specs. Such a property is returned by both names.
    native_property_names: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: Whether a source may be another deployment of this service. Before a crawl, such a source is asked for the deployments that it
    #: reads in turn: one of them may be this one.
    reads_deployments: ClassVar[bool] = False

    @abstractmethod
    def open(self, source: str, settings: SettingsT) -> Catalog:
        """Open the catalog; it may connect lazily. Raise CatalogError. Libraries are imported here, not with the connector."""

    def open_catalog(self, source: str, settings: SettingsT) -> Catalog:
        """Call ``open``. Raise ConfigError with the extra to install if a library is missing."""
        try:
            return self.open(source, settings)
        except ModuleNotFoundError as error:
            hint = f"pip install 'lance-federator[{self.extra}]'" if self.extra else None
            raise ConfigError(f"the connector {self.impl!r} needs the module {error.name!r}", hint=hint) from error

    def parse_settings(self, properties: Mapping[str, str], *, where: str = "") -> SettingsT:
        """Return typed settings from configuration, with references resolved. Raise ConfigError."""
        return self.settings_type.from_properties(self.impl, properties, where=where)

    def capabilities_for(self, settings: SettingsT) -> Capabilities:
        """Return the capabilities of one configured source. Override this if they depend on its settings."""
        return self.capabilities

    def preload_imports(self) -> None:
        """Import the modules for opening a catalog, before the process is forked: open no connections and start no threads."""

    def min_depth(self, properties: Mapping[str, str]) -> int:
        """Return the least number of levels above a table. Must not resolve the secret references of ``properties``."""
        return self.capabilities.min_depth

    def crawl_concurrency(self, properties: Mapping[str, str]) -> int:
        """Return how many shards of one crawl may be read at once. Must not resolve the secret references of ``properties``."""
        return 2


@dataclass(frozen=True)
class SourceSpec:
    """A configured source as it is sent to Spark workers, with secret references instead of secrets."""

    name: str
    impl: str
    properties: Mapping[str, str] = field(default_factory=dict)
