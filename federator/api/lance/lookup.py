"""Lookup of protocol paths in the index: records, source settings and storage options.

An object outside the principal's scopes raises the same error as an absent one. No function calls a catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from federator.api.lance.foreign_access import may_read_locations
from federator.connector import (
    TABLE_TYPE_KEY,
    Capabilities,
    Internal,
    InvalidInput,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    Unauthenticated,
)
from federator.connector.options import plain_storage_keys, resolve_reference
from federator.connector.storage_options import is_plain_option, plain_options
from federator.lance.facade_mapping import namespace_to_properties, storage_options_for
from federator.lance.foreign_locations import MayRead, may_read_nothing
from federator.model import Kind, NamespaceRecord, Path, TableRecord, path_key
from federator.model.scopes import Scopes
from federator.registry import get_connector, parse_connector_settings
from federator.runtime.redaction import is_secret_key, mask_value
from federator.settings import Settings, SourceSettings
from federator.store import Connection, Index, pending_publications, records
from federator.views import listing


@dataclass(frozen=True, slots=True)
class VisibleTable:
    """A table that the principal can see, from the index. ``path`` starts at the tree root, ``record.path`` at the source's root."""

    path: Path
    source: SourceSettings
    record: TableRecord
    #: decides whether the principal may read locations outside the table that its files refer to (``lance.foreign_locations``)
    may_read: MayRead = field(default=may_read_nothing, repr=False, compare=False)

    @property
    def location(self) -> str:
        """The location of the data. Raise TableNotFound if the catalog has none."""
        if not self.record.location:
            raise TableNotFound(f"the table {path_key(self.path)} has no location in its catalog")
        return self.record.location

    def storage_options(self, *, with_secrets: bool) -> dict[str, str]:
        """Return the storage options for a response: all of them, or the plain ones that every reader may see.

        Raise ConfigError if a reference cannot be resolved.
        """
        if with_secrets:
            return storage_options_for(parse_connector_settings(self.source.spec).storage, self.record)
        storage, plain = _public_storage_options(self.source)
        options = storage_options_for(storage, self.record, plain=plain, vend_credentials=False)
        return {key: text if key in storage else mask_value(text) for key, text in options.items()}

    def source_options(self) -> dict[str, str]:
        """Return the source's plain storage options for the location, without the table's parameters. Raise ConfigError."""
        storage, plain = _public_storage_options(self.source)
        return plain_options(storage, plain, self.record.location)


@dataclass(frozen=True, slots=True)
class VisibleNamespace:
    """A namespace that the principal can see. ``path`` starts at the tree root; its first level is the source.

    ``covered`` says whether a scope covers it. If not, it is above a scope, and only its name may be shown.
    """

    path: Path
    source: SourceSettings
    record: NamespaceRecord
    covered: bool

    @property
    def properties(self) -> dict[str, str]:
        """The properties for a response."""
        return namespace_properties(self.source, self.record)


def namespace_properties(source: SourceSettings, record: NamespaceRecord) -> dict[str, str]:
    """Return the properties of a source's namespace for a response."""
    return shown_properties(namespace_to_properties(record, get_connector(source.impl).native_property_names))


def public_properties(record: TableRecord) -> dict[str, str]:
    """Return a table's properties without secrets, and without the one that marks it as Lance."""
    return shown_properties({key: value for key, value in record.properties.items() if key != TABLE_TYPE_KEY})


def shown_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """Return properties for a response: without those whose key names a secret, and with known secrets in values masked."""
    return {key: mask_value(text) for key, text in (properties or {}).items() if not is_secret_key(key)}


def resolve_source(settings: Settings, scopes: Scopes, path: Path) -> SourceSettings:
    """Return the configured source of a path. Raise NamespaceNotFound if it does not exist or is not visible."""
    if not path or path[0] not in settings.sources or not scopes.is_visible(path[:1]):
        raise NamespaceNotFound(f"there is no namespace {path_key(path[:1])}")
    return settings.sources[path[0]]


def canonicalize_path(source: SourceSettings, path: Path) -> Path:
    """Return a path with the names as the source's catalog writes them (``Orders`` becomes ``orders`` in Hive)."""
    names = capabilities(source).names
    return (path[0], *(names.canonicalize(name) for name in path[1:]))


def capabilities(source: SourceSettings) -> Capabilities:
    """Return the capabilities of the source's connector. No setting of the source is resolved."""
    return get_connector(source.impl).capabilities


def require_table_levels(source: SourceSettings, path: Path) -> None:
    """Raise InvalidInput (13) if a path from the tree root has too few levels for a table of its source."""
    least = get_connector(source.impl).min_depth(source.spec.properties) + 2
    if len(path) < least:
        raise InvalidInput(
            f"the id of a table of {source.name} has at least {least} levels, {path_key(path)!r} has {len(path)}"
        )


def resolve_namespace(index: Index, settings: Settings, scopes: Scopes, path: Path) -> VisibleNamespace:
    """Return the namespace at a path of one level or more. Raise NamespaceNotFound (1).

    A namespace above a scope has no properties in the result, because the scope does not cover it.
    """
    missing = NamespaceNotFound(f"there is no namespace {path_key(path)}")
    source = resolve_source(settings, scopes, path)
    path = canonicalize_path(source, path)
    if not scopes.is_visible(path):
        raise missing
    record = NamespaceRecord(source.name, ()) if len(path) == 1 else _find_namespace_record(index, source.name, path[1:])
    if record is None:
        raise missing
    covered = scopes.covers(path)
    return VisibleNamespace(path, source, record if covered else NamespaceRecord(source.name, path[1:]), covered)


def require_listed(connection: Connection, namespace: VisibleNamespace) -> None:
    """Raise if an empty listing would be wrong: ServiceUnavailable if the source was never crawled; PermissionDenied or
    ServiceUnavailable if the namespace could not be listed."""
    source, text = namespace.source.name, path_key(namespace.path)
    if not listing.is_crawled(connection, source):
        raise ServiceUnavailable(f"{source} has not been crawled yet", hint=f"federator crawl {source}")
    failure = listing.find_listing_failure(connection, source, namespace.path[1:])
    if failure is not None:
        is_denied = failure.code in (PermissionDenied.code, Unauthenticated.code)
        reason = f": {failure.reason}" if namespace.covered else ""
        raise (PermissionDenied if is_denied else ServiceUnavailable)(f"{text} could not be listed{reason}")


def get_lance_table(index: Index, settings: Settings, scopes: Scopes, path: Path) -> VisibleTable:
    """Return the Lance table at a path.

    Raise TableNotFound (4) if it does not exist or is not visible, InvalidInput (13) if its catalog manages it or its path has too few
    levels, Internal (18) if the crawl could not describe it.
    """
    table = get_any_table(index, settings, scopes, path)
    record = table.record
    if record.kind is Kind.MANAGED_TABLE and not record.is_read_only:
        raise InvalidInput(f"{path_key(table.path)} is managed by its catalog, not an external Lance table")
    if record.kind is Kind.UNDESCRIBED:
        raise Internal(f"{path_key(table.path)} could not be described by the last crawl: {record.problem}")
    return table


def get_any_table(index: Index, settings: Settings, scopes: Scopes, path: Path) -> VisibleTable:
    """Return the table of any kind at a path. Raise TableNotFound (4) if it does not exist or is not visible.

    Raise InvalidInput (13) if the path has too few levels for a table of its source.
    """
    missing = TableNotFound(f"there is no table {path_key(path)}")
    if not path or path[0] not in settings.sources or not scopes.is_visible(path[:1]):
        raise missing
    source = settings.sources[path[0]]
    require_table_levels(source, path)
    path = canonicalize_path(source, path)
    if not scopes.covers(path):
        raise missing
    record = _find_table_record(index, source.name, path[1:])
    if record is None:
        raise missing
    return VisibleTable(path, source, record, partial(may_read_locations, index, settings, scopes, source, record.location))


def _find_table_record(index: Index, source: str, path: Path) -> TableRecord | None:
    with index.read() as connection:
        # A publication writes the record and then removes the pending observation. Reading in the opposite order finds one of them.
        pending = pending_publications.find_pending(connection, source, path, is_table=True)
        if pending is not None:
            return pending.record if isinstance(pending.record, TableRecord) else None
        return records.find_table(connection, source, path)


def _find_namespace_record(index: Index, source: str, path: Path) -> NamespaceRecord | None:
    with index.read() as connection:
        pending = pending_publications.find_pending(connection, source, path, is_table=False)
        if pending is not None:
            return pending.record if isinstance(pending.record, NamespaceRecord) else None
        return records.find_namespace(connection, source, path)


def _public_storage_options(source: SourceSettings) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the source's plain ``storage.*`` options, and those that it declares as plain. Other references are not resolved."""
    properties = {key.removeprefix(f"{source.impl}."): text for key, text in source.properties.items()}
    storage = {key.removeprefix("storage."): text for key, text in properties.items() if key.startswith("storage.")}
    plain = plain_storage_keys(source.impl, source.properties)
    resolved = {
        key: resolve_reference(text, where=f"[sources.{source.name}] storage.{key}")
        for key, text in storage.items()
        if is_plain_option(key, plain)
    }
    return resolved, plain
