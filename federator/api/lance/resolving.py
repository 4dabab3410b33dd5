"""From a path of the protocol to what the index knows: the table's record, its source's settings, how to open it.

What a caller may not see does not exist here, with the same answer as for what is not there. Nothing here asks a catalog.
"""

from __future__ import annotations

from dataclasses import dataclass

from federator.api.access import Caller, Role
from federator.connector import (
    Capabilities,
    Internal,
    InvalidInput,
    NamespaceNotFound,
    TableNotFound,
)
from federator.connector.answers import storage_options
from federator.connector.options import is_secret_key, resolve
from federator.index import Connection, Index, records
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
        return options_shown(self.source, self.record, caller, vend_credentials=vend_credentials)


def options_shown(
    source: SourceSettings, record: TableRecord, caller: Caller, *, vend_credentials: bool | None
) -> dict[str, str]:
    """The storage options of a record as ``caller`` may see them."""
    if vend_credentials and may_vend(caller, source):
        spec = source.spec
        settings = connector(spec.impl).configure(spec.properties, where=f"[sources.{spec.name}] ")
        return storage_options(settings.storage, record, vend_credentials=True)
    return storage_options(_plain_storage(source), record, vend_credentials=False)


def may_vend(caller: Caller, source: SourceSettings) -> bool:
    """Whether a caller may have the source's secret storage options: a source that allows it, a role that writes."""
    return bool(getattr(source, "vend_credentials", False)) and caller.role >= Role.WRITER


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


def resolve_namespace(index: Index, settings: Settings, scopes: Scopes, path: Path) -> NamespaceRecord:
    """The namespace at a path of one level or more; a source is one, with nothing above. Raises NamespaceNotFound (1).

    A namespace on the way to a scope is shown without its properties, which nobody said the caller may see.
    """
    missing = NamespaceNotFound(f"there is no namespace {path_key(path)}")
    source = resolve_source(settings, scopes, path)
    path = canonical(source, path)
    if not scopes.shows(path):
        raise missing
    if len(path) == 1:
        record = NamespaceRecord(source.name, ())
    else:
        with index.read() as connection:
            row = records.get(connection, source.name, path[1:], is_table=False)
        if row is None:
            raise missing
        record = namespace_record(source.name, dict(row))
    return record if scopes.covers(path) else NamespaceRecord(source.name, path[1:])


def resolve_table(index: Index, settings: Settings, scopes: Scopes, path: Path) -> Table:
    """The Lance table at a path of two levels or more.

    Raises TableNotFound (4) for one that is not there or not the caller's to see, InvalidInput (13) for one that its catalog manages,
    Internal (18) for one that the crawl saw and could not describe.
    """
    missing = TableNotFound(f"there is no table {path_key(path)}")
    if len(path) < 2 or path[0] not in settings.sources:
        raise missing
    source = settings.sources[path[0]]
    path = canonical(source, path)
    if not scopes.covers(path):
        raise missing
    with index.read() as connection:
        record = _record(connection, source.name, path[1:])
    if record is None:
        raise missing
    if record.kind is Kind.MANAGED_TABLE:
        raise InvalidInput(f"{path_key(path)} is managed by its catalog, not an external Lance table")
    if record.kind is not Kind.TABLE:
        raise Internal(f"{path_key(path)} could not be described by the last crawl: {record.problem}")
    return Table(path, source, record)


def _record(connection: Connection, source: str, path: Path) -> TableRecord | None:
    row = records.get(connection, source, path, is_table=True)
    return table_record(source, dict(row)) if row is not None else None


def _plain_storage(source: SourceSettings) -> dict[str, str]:
    """The source's own ``storage.*`` without what sounds secret, which is not even resolved."""
    bare = {key.removeprefix(f"{source.impl}."): text for key, text in source.properties.items()}
    plain = {key.removeprefix("storage."): text for key, text in bare.items() if key.startswith("storage.")}
    return {
        key: resolve(text, where=f"[sources.{source.name}] storage.{key}")
        for key, text in plain.items()
        if not is_secret_key(key)
    }
