"""From a path of the protocol to what the index knows: the table's record, its source's settings, how to open it.

What a caller may not see does not exist here, with the same answer as for what is not there. Nothing here asks a catalog.
"""

from __future__ import annotations

from dataclasses import dataclass

from federator.api.access import Caller, may_have_secrets
from federator.connector import (
    Capabilities,
    Internal,
    InvalidInput,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    Unauthenticated,
    is_secret_key,
)
from federator.connector.answers import storage_options
from federator.connector.options import resolve
from federator.index import Connection, Index, late, listing, records
from federator.model import Kind, NamespaceRecord, Path, TableRecord, path_key
from federator.model.rows import namespace_record, table_record
from federator.model.scopes import Scopes
from federator.registry import connector
from federator.settings import Settings, SourceSettings


@dataclass(frozen=True, slots=True)
class Table:
    """A table that the caller may see, as the index knows it. ``path`` is from the tree's root, ``record.path`` from the source's."""

    path: Path
    source: SourceSettings
    record: TableRecord

    @property
    def location(self) -> str:
        """Where the data lies. Raises TableNotFound where the catalog names no place."""
        if not self.record.location:
            raise TableNotFound(f"the table {path_key(self.path)} has no location in its catalog")
        return self.record.location

    def storage_options(self) -> dict[str, str]:
        """How this service itself opens the table, with the source's credentials: never shown to anybody. Raises ConfigError."""
        spec = self.source.spec
        settings = connector(spec.impl).configure(spec.properties, where=f"[sources.{spec.name}] ")
        return storage_options(settings.storage, self.record)

    def shown_options(self, caller: Caller, *, vend_credentials: bool | None) -> dict[str, str]:
        """What a caller is told of how to open the table: plain options always, secret ones only when asked for and allowed."""
        if vend_credentials and may_have_secrets(caller, self.source, self.path):
            return self.storage_options()
        return storage_options(_plain_storage(self.source), self.record, vend_credentials=False)


def shown_properties(record: TableRecord) -> dict[str, str]:
    """A table's properties without those whose names say that they are secrets."""
    return {key: value for key, value in record.properties.items() if not is_secret_key(key)}


def resolve_source(settings: Settings, scopes: Scopes, path: Path) -> SourceSettings:
    """The configured source of a path. Raises NamespaceNotFound for one that is not there, or that no scope shows."""
    if not path or path[0] not in settings.sources or not scopes.shows(path[:1]):
        raise NamespaceNotFound(f"there is no namespace {path_key(path[:1])}")
    return settings.sources[path[0]]


def canonical(source: SourceSettings, path: Path) -> Path:
    """A path from the tree's root with its names as the source's catalog writes them (``Orders`` → ``orders`` in Hive)."""
    names = capabilities(source).names
    return (path[0], *(names.canonical(name) for name in path[1:]))


def capabilities(source: SourceSettings) -> Capabilities:
    """What the source's impl can do, without resolving any of its settings."""
    return connector(source.impl).capabilities


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace that the caller may see, of one level or more; the first level is the source. ``path`` is from the tree's root."""

    path: Path
    source: SourceSettings
    record: NamespaceRecord


def resolve_namespace(index: Index, settings: Settings, scopes: Scopes, path: Path) -> Namespace:
    """The namespace at a path of one level or more. Raises NamespaceNotFound (1).

    A namespace on the way to a scope is shown without its properties, which nobody said the caller may see.
    """
    missing = NamespaceNotFound(f"there is no namespace {path_key(path)}")
    source = resolve_source(settings, scopes, path)
    path = canonical(source, path)
    if not scopes.shows(path):
        raise missing
    found = NamespaceRecord(source.name, ()) if len(path) == 1 else _namespace(index, source.name, path[1:])
    if found is None:
        raise missing
    return Namespace(path, source, found if scopes.covers(path) else NamespaceRecord(source.name, path[1:]))


def children_known(connection: Connection, namespace: Namespace) -> None:
    """Raises where an empty listing would say more than is known: a source that was never crawled (ServiceUnavailable), or a namespace
    that could not be listed (PermissionDenied, or ServiceUnavailable)."""
    source, text = namespace.source.name, path_key(namespace.path)
    if not listing.crawled(connection, source):
        raise ServiceUnavailable(f"{source} has not been crawled yet", hint=f"federator crawl {source}")
    failure = listing.unread(connection, source, namespace.path[1:])
    if failure is not None:
        denied = failure.code in (PermissionDenied.code, Unauthenticated.code)
        raise (PermissionDenied if denied else ServiceUnavailable)(f"{text} could not be listed: {failure.reason}")


def resolve_table(index: Index, settings: Settings, scopes: Scopes, path: Path) -> Table:
    """The Lance table at a path of two levels or more.

    Raises TableNotFound (4) for one that is not there or not the caller's to see, InvalidInput (13) for one that its catalog manages,
    Internal (18) for one that the crawl saw and could not describe.
    """
    table = known_table(index, settings, scopes, path)
    record = table.record
    if record.kind is Kind.MANAGED_TABLE:
        raise InvalidInput(f"{path_key(table.path)} is managed by its catalog, not an external Lance table")
    if record.kind is not Kind.TABLE:
        raise Internal(f"{path_key(table.path)} could not be described by the last crawl: {record.problem}")
    return table


def known_table(index: Index, settings: Settings, scopes: Scopes, path: Path) -> Table:
    """The table at a path, whatever kind it is of. Raises TableNotFound (4), also for what no scope covers."""
    missing = TableNotFound(f"there is no table {path_key(path)}")
    if len(path) < 2 or path[0] not in settings.sources:
        raise missing
    source = settings.sources[path[0]]
    path = canonical(source, path)
    if not scopes.covers(path):
        raise missing
    record = _record(index, source.name, path[1:])
    if record is None:
        raise missing
    return Table(path, source, record)


def _record(index: Index, source: str, path: Path) -> TableRecord | None:
    seen = late.get(index, source, path, is_table=True)
    if seen is not None:
        return seen.record if isinstance(seen.record, TableRecord) else None
    with index.read() as connection:
        row = records.get(connection, source, path, is_table=True)
    return table_record(source, dict(row)) if row is not None else None


def _namespace(index: Index, source: str, path: Path) -> NamespaceRecord | None:
    seen = late.get(index, source, path, is_table=False)
    if seen is not None:
        return seen.record if isinstance(seen.record, NamespaceRecord) else None
    with index.read() as connection:
        row = records.get(connection, source, path, is_table=False)
    return namespace_record(source, dict(row)) if row is not None else None


def _plain_storage(source: SourceSettings) -> dict[str, str]:
    """The source's own ``storage.*`` without what sounds secret, which is not even resolved."""
    bare = {key.removeprefix(f"{source.impl}."): text for key, text in source.properties.items()}
    plain = {key.removeprefix("storage."): text for key, text in bare.items() if key.startswith("storage.")}
    return {
        key: resolve(text, where=f"[sources.{source.name}] storage.{key}")
        for key, text in plain.items()
        if not is_secret_key(key)
    }
