"""The port: what a connector implements.

A ``Connector`` is a stateless description that opens a ``Catalog``: one connection (or pool) with the operations on single
objects and the bulk crawl. The three faces stand on it: ``connector.namespace`` (the official Lance interface), the pipeline's
data source (``shards``/``read``) and the executor (``observe``/``declare_table``/``update_table``/``deregister_table``).
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

from federator.connector.capabilities import Capabilities
from federator.connector.errors import InvalidInput, NamespaceNotFound, TableNotFound, UnfinishedDeclaration, Unsupported
from federator.connector.options import Settings
from federator.model import Coverage, Identity, Kind, NamespaceRecord, Path, Record, TableRecord

LANCE_MARKER = "table_type"
LANCE = "lance"
#: Called once by a write, after its own last read and immediately before the request that changes the catalog. What it raises aborts
#: the write, with nothing changed.
Confirm = Callable[[], None]


def unconditional() -> None:
    """The ``Confirm`` of a write that depends on nothing but its own object."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One independent piece of a crawl: some namespaces, and whatever the connector needs to read them again. Picklable."""

    namespaces: tuple[Path, ...]
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What a direct look at one table found: a record, nothing, or an object of that name that is not a Lance table.

    ``record`` is None and ``foreign`` says what is there instead; both empty mean proven absence.
    """

    record: TableRecord | None = None
    foreign: str | None = None
    #: where the foreign object is an unfinished declaration: the id of the operation that created it
    unfinished: str | None = None

    @property
    def absent(self) -> bool:
        return self.record is None and self.foreign is None


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change feed says has happened since a cursor. It names objects to read again and never says what they are now.

    ``namespaces`` were made, altered or dropped: their records are to be read again, and their listings. ``tables`` are to be looked
    at, alone or with all that lies beside them. ``cursor`` is where to go on. ``full_crawl`` says why only a full crawl can tell; both
    sets are empty then, and ``cursor`` was taken before that crawl.
    """

    cursor: str
    namespaces: frozenset[Path] = frozenset()
    tables: frozenset[Path] = frozenset()
    full_crawl: str | None = None
    #: the feed's past is not the one that the cursor saw: a restored or another catalog
    went_back: bool = False


class Catalog(ABC):
    """One opened catalog. Not thread-safe unless the connector says so; closed by ``close`` or as a context manager.

    Every method raises ``CatalogError`` subclasses only. Paths are relative to the source's root. No method deletes data.
    """

    source: str

    # Single objects: what the eight operations need.

    @abstractmethod
    def list_namespaces(self, parent: Path) -> list[str]:
        """The children's own names, complete or an error. Raises NamespaceNotFound."""

    @abstractmethod
    def describe_namespace(self, path: Path) -> NamespaceRecord:
        """Raises NamespaceNotFound. The root, ``()``, always exists."""

    @abstractmethod
    def list_tables(self, namespace: Path) -> list[str]:
        """The names of the Lance tables, complete or an error. Raises NamespaceNotFound."""

    @abstractmethod
    def describe_table(self, path: Path) -> TableRecord:
        """Raises TableNotFound, NamespaceNotFound where the catalog tells, and InvalidInput for what is not a Lance table."""

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Raises NamespaceAlreadyExists, NamespaceNotFound (of the parent)."""
        raise Unsupported(f"{self.source}: this catalog cannot create namespaces")

    def drop_namespace(self, path: Path) -> None:
        """Drops an empty namespace. Raises NamespaceNotFound, NamespaceNotEmpty."""
        raise Unsupported(f"{self.source}: this catalog cannot drop namespaces")

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Changes properties and doc in place if the namespace still is as ``before``; returns it as read back.

        Raises NamespaceNotFound, ConcurrentModification, Unsupported for a change of location or owner.
        """
        raise Unsupported(f"{self.source}: this catalog cannot alter namespaces")

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declares the table as it is given, its location included, and returns it as read back.

        Raises TableAlreadyExists, NamespaceNotFound. Never creates or changes data.
        """
        raise Unsupported(f"{self.source}: this catalog cannot declare tables")

    def remove_unfinished(self, path: Path, op_id: str) -> bool:
        """Remove the entry that an interrupted ``declare_table`` of this operation left. Return False if there is none.

        Only for connectors that declare in several steps: see ``federator.connector.operation``. Never removes another entry.
        """
        return False

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        """Changes location, properties and doc in place if the table still is as ``before``.

        Parameters that the record does not show (``table_type``, native extras) survive. Raises ConcurrentModification, and what
        ``confirm`` raises (``altering.check_table`` calls it).
        """
        raise Unsupported(f"{self.source}: this catalog cannot alter tables")

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Removes the declaration if it still is ``expected``; the data stays. Raises TableNotFound, ConcurrentModification, and what
        ``confirm`` raises (``altering.check_table`` calls it)."""
        raise Unsupported(f"{self.source}: this catalog cannot deregister tables")

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        """Gives the declaration another path if it still is ``before``; its location and properties stay, and the data.

        Raises TableNotFound, TableAlreadyExists, NamespaceNotFound (of the new path), ConcurrentModification.
        """
        raise Unsupported(f"{self.source}: this catalog cannot rename tables")

    def native(self, path: Path) -> dict[str, Any]:
        """The table as the catalog itself has it, whole and as JSON data: what is saved before it is declared anew.

        Raises TableNotFound, NamespaceNotFound.
        """
        raise Unsupported(f"{self.source}: this catalog cannot save a table whole, so none is declared anew")

    def lost_by_recreation(self, native: Mapping[str, Any]) -> str | None:
        """What of a saved table would not come back if it were declared anew (grants, for one); None if all of it would.

        A catalog that can save a table must also say this: by default nothing is known to come back.
        """
        return "this catalog does not say what would come back"

    def default_location(self, path: Path) -> str | None:
        """Where a table declared without a location goes: ``<the namespace's location, else root/levels>/<table>.lance``.

        None where the catalog itself decides: ``declare_table`` then gets a record without location.
        """
        raise Unsupported(f"{self.source}: this catalog has no default location")

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        """Where a new table goes whose client gave no location: the default one, with a random suffix unless ``is_unused`` says yes.

        A deregistered table keeps its data, which must not become the new table's. Raises TableAlreadyExists where the name is the
        location.
        """
        default = self.default_location(path)
        if default is None or is_unused(default):
            return default
        return f"{default.removesuffix('.lance')}-{secrets.token_hex(4)}.lance"

    def canonical_path(self, path: Path) -> Path:
        """The one path of a table or namespace that the catalog also accepts under a shorter one (Glue's root catalog)."""
        return path

    # Which catalog this is.

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        """Read which catalog answers on this connection; None where the catalog has no identity.

        ``namespaces`` are those whose own parts are wanted, None for all; a catalog may return more. An error means that the identity
        is unknown now, so nothing that this connection returns proves anything. A later connection of the same ``Catalog`` that
        reaches another catalog raises IdentityChanged.
        """
        return None

    # The bulk crawl.

    @abstractmethod
    def shards(self) -> Sequence[Shard]:
        """The crawl cut into independent pieces, by a cheap listing. A failure here fails the crawl of the whole source."""

    @abstractmethod
    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        """Reads one shard: for each namespace its child records, then its Coverage.

        A namespace that fails ends with a ``failed`` Coverage and the next one is read. A namespace counts as complete only if it
        was seen to exist and every page of its listing arrived. Together the shards cover the root and every namespace.
        """

    def shards_of(self, namespaces: Sequence[Path]) -> Sequence[Shard]:
        """The crawl of these namespaces alone, cut likewise and without asking the catalog; they may be gone by now.

        To be overridden, beside a change feed, where ``read`` needs more than the namespace's path.
        """
        return [Shard((namespace,)) for namespace in namespaces]

    # The change feed, where ``Capabilities.change_feed`` says that there may be one.

    def change_cursor(self) -> str:
        """Where the feed is now, an opaque text; taken *before* a full crawl and kept with its revision.

        Raises Unsupported, also where the server keeps no feed.
        """
        raise Unsupported(f"{self.source}: this catalog has no feed of changes")

    def changes_since(self, cursor: str) -> Changes:
        """What to read again since ``cursor``, or why a full crawl is needed. An object may be named that has not changed."""
        raise Unsupported(f"{self.source}: this catalog has no feed of changes")

    def observe(self, path: Path) -> Observation:
        """A direct look at one table. Only an answer that names it as not found is absence; every other error is raised."""
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
        """One cheap call that proves the connection; returns the server's version or an empty text."""
        self.list_namespaces(())
        return ""

    def close(self) -> None:
        """Closes connections; harmless twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


S = TypeVar("S", bound=Settings)


class Connector(ABC, Generic[S]):
    """The adapter of one impl: its name, settings type and capabilities, and how to open it. Stateless."""

    impl: ClassVar[str]
    settings_type: type[S]
    capabilities: ClassVar[Capabilities]
    #: the extra that brings the libraries: ``pip install lance-federator[<extra>]``
    extra: ClassVar[str | None] = None

    @abstractmethod
    def open(self, source: str, settings: S) -> Catalog:
        """Opens the catalog; may connect lazily. Raises CatalogError."""

    def configure(self, properties: Mapping[str, str], *, where: str = "") -> S:
        """Typed settings from configuration, references resolved. Raises ConfigError."""
        return self.settings_type.from_properties(self.impl, properties, where=where)

    def capabilities_of(self, settings: S) -> Capabilities:
        """The capabilities of one configured source, where they depend on its settings; else those of the impl."""
        return self.capabilities

    def preload(self) -> None:
        """Imports what opening a catalog will need, for a process that many are forked from: no connection, no thread."""

    def concurrency(self, properties: Mapping[str, str]) -> int:
        """How many shards of one crawl may be read at once. Must not need secrets."""
        return 2


@dataclass(frozen=True)
class SourceSpec:
    """A configured source as it travels to Spark workers: secret references, never secrets."""

    name: str
    impl: str
    properties: Mapping[str, str] = field(default_factory=dict)
