"""``Catalog`` of a Unity server: the operations on single objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from federator.connector import (
    TABLE_TYPE_KEY,
    Catalog,
    CatalogError,
    Confirm,
    Internal,
    InvalidInput,
    NamespaceNotEmpty,
    NamespaceNotFound,
    Observation,
    PermissionDenied,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    TemporaryCredentials,
    Unsupported,
    unconditional,
)
from federator.connector.preconditions import check_namespace_update, check_table
from federator.lance.arrow_json import schema_to_json
from federator.model import (
    ROOT,
    Coverage,
    Identity,
    Kind,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    canonical_location,
    parent_locations,
    path_key,
)  # fmt: skip
from federator_connectors._locations import require_location
from federator_connectors._unity import crawl, credentials, records
from federator_connectors._unity.client import Native, UnityClient
from federator_connectors._unity.errors import CatalogNotFound, FailedPrecondition, PropertyRefused
from federator_connectors._unity.records import marker_properties
from federator_connectors._unity.settings import UnitySettings


class UnityCatalog(Catalog):
    """The catalogs of a Unity server, or the configured one. Thread-safe.

    Paths are ``(catalog,)``, ``(catalog, schema)`` and ``(catalog, schema, table)``.
    """

    thread_safe = True

    def __init__(self, source: str, settings: UnitySettings) -> None:
        self.source = source
        self._catalog = settings.catalog
        self._root = settings.root_uri
        self._api = UnityClient(source, settings)
        self._authorized = settings.has_token
        # Set after the first refusal of the properties, so that later tables are not declared twice.
        self._marker_in_comment = False

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity:  # noqa: ARG002 - one response has all catalogs
        """Return the metastore's id if the server has the call, and each catalog's id and creation time."""
        catalogs = {
            path_key((native["name"],)): ", ".join(f"{key} {native[key]}" for key in ("id", "created_at") if native.get(key))
            for native in self._list_catalogs()
        }
        metastore = self._api.get_metastore_id()
        return Identity.of(f"metastore {metastore}" if metastore else "", catalogs)

    # Namespaces

    def list_namespaces(self, parent: Path) -> list[str]:
        if parent == ROOT:
            return sorted(records.require_name(self.source, native) for native in self._list_catalogs())
        self._require_configured_catalog(parent)
        if len(parent) == 2:
            self._api.get_schema(parent)
            return []
        return sorted(records.require_name(self.source, schema) for schema in self._api.iter_schemas(parent[0]))

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        self._require_configured_catalog(path)
        if len(path) == 1:
            return records.catalog_record(self.source, self._api.get_catalog(path[0]))
        return records.schema_record(self.source, path[0], self._api.get_schema(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Create a schema, and transfer it to the record's owner.

        Raise InvalidInput for a schema in another catalog (the spec's code 13). Raise Unsupported if the server does not keep the
        owner, as the open-source server: then no schema is left.
        """
        if len(record.path) != 2:
            raise Unsupported(f"{self.source}: only schemas can be created, and {record.key!r} is not a schema")
        if self._catalog not in (None, record.path[0]):
            raise InvalidInput(f"{self.source}: {record.key} is not in the configured catalog {self._catalog}")
        self._api.create_schema(records.build_schema(record))
        created = self.describe_namespace(record.path)
        return created if record.owner in (None, created.owner) else self._transfer(created, record.owner)

    def _transfer(self, created: NamespaceRecord, owner: str) -> NamespaceRecord:
        """Set the owner of a schema that was just created. Drop it again and raise Unsupported if that fails."""
        problem = "the server ignored it"
        try:
            self._api.alter_schema(created.path, {"owner": owner})
            transferred = self.describe_namespace(created.path)
            if transferred.owner == owner:
                return transferred
        except (InvalidInput, PermissionDenied, Unsupported) as error:
            problem = error.message
        if self.describe_namespace(created.path).native_id == created.native_id:
            # Without force, the server refuses to drop a schema in which something was created meanwhile.
            self._api.drop_schema(created.path)
        raise Unsupported(
            f"{self.source}: {created.key} cannot have the owner {owner!r}: {problem}; nothing was created",
            hint="create it without database.owner",
        )

    def drop_namespace(self, path: Path) -> None:
        """Drop a schema. The server refuses to drop one that contains tables, volumes, functions or models."""
        if len(path) < 2:
            raise Unsupported(f"{self.source}: only schemas can be dropped, and {path_key(path)!r} is not a schema")
        self._require_configured_catalog(path)
        try:
            self._api.drop_schema(path)
        except FailedPrecondition as error:
            raise NamespaceNotEmpty(error.message) from None

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Update the properties and the doc of a schema.

        The server does not compare: a change between this method's read and its write is overwritten.
        """
        path = before.path
        if len(path) != 2:
            raise Unsupported(f"{self.source}: only schemas can be altered, and {path_key(path)!r} is not a schema")
        check_namespace_update(self.describe_namespace(path), before, after)
        self._api.alter_schema(path, records.build_schema_update(before, after))
        return self.describe_namespace(path)

    # Tables

    def list_tables(self, namespace: Path) -> list[str]:
        """Return the names of a schema's Lance tables. Raise InvalidInput for the root and for a catalog, as the spec requires."""
        if len(namespace) < 2:
            raise InvalidInput(f"{self.source}: only schemas have tables, and {path_key(namespace)!r} is not a schema")
        self._require_configured_catalog(namespace)
        tables = self._api.iter_tables(namespace)
        return sorted(records.require_name(self.source, table) for table in tables if records.table_kind(table) is Kind.TABLE)

    def list_foreign_objects(self, namespace: Path) -> list[str]:
        """Return the names of the tables of a schema that are not external Lance tables."""
        if len(namespace) < 2:
            return []
        self._require_configured_catalog(namespace)
        tables = self._api.iter_tables(namespace)
        return sorted(
            records.require_name(self.source, table) for table in tables if records.table_kind(table) is not Kind.TABLE
        )

    def describe_table(self, path: Path) -> TableRecord:
        """Return the record of a table. Raise TableNotFound also for a missing schema or catalog, as the spec requires."""
        table = self._get_table(path)
        kind = records.table_kind(table)
        if kind is Kind.TABLE:
            return records.table_record(self.source, path[:-1], table)
        description = f"marked as Lance, but {table.get('table_type')}" if kind else "not a Lance table"
        raise InvalidInput(f"{self.source}: {path_key(path)} is {description}")

    def read_native(self, path: Path) -> dict[str, Any]:
        """Return the server's table with all fields, and the grants on it under ``grants``.

        Raise Unsupported if the source's principal may not read the grants, because they are lost with the table.
        """
        table = self._get_table(path)
        try:
            return {**table, "grants": self._api.list_grants(path)}
        except PermissionDenied as error:
            raise Unsupported(
                f"{error.message}; the grants would be lost if the table were recreated", hint=error.hint
            ) from None

    def describe_recreate_loss(self, native: Mapping[str, Any]) -> str | None:
        grants = sorted(f"{' and '.join(grant['privileges'])} of {grant['principal']}" for grant in native["grants"])
        return f"grants on the table: {', '.join(grants)}" if grants else None

    def _get_table(self, path: Path) -> Native:
        """Return the server's table with all fields, Lance or not. Raise TableNotFound."""
        try:
            self._require_configured_catalog(path)
            return self._api.get_table(path)
        except NamespaceNotFound as error:
            raise TableNotFound(error.message) from error

    def observe(self, path: Path) -> Observation:
        """Observe one table. Raise Internal if the configured catalog itself is missing: that does not prove the table absent."""
        try:
            return Observation(self.describe_table(path))
        except TableNotFound as error:
            if self._catalog is not None and isinstance(error.__cause__, CatalogNotFound):
                raise Internal(f"{error.message}; this does not prove its tables absent", hint="check unity.catalog") from None
            return Observation()
        except InvalidInput as error:
            return Observation(foreign=error.message)

    def json_schema(self, record: TableRecord) -> Mapping[str, Any] | None:
        """Return the table's columns as a Lance JSON schema; None without columns, or if a column type has no Arrow equivalent."""
        if record.schema is None:
            return None
        # Imported only here: pyarrow takes a tenth of a second to import.
        from federator_connectors._arrow.arrow_types import record_to_arrow_schema

        try:
            return schema_to_json(record_to_arrow_schema(record.schema))
        except InvalidInput:
            return None

    def issue_credentials(self, record: TableRecord, *, writes: bool) -> TemporaryCredentials:
        """Return the server's temporary credentials for a table.

        Raise PermissionDenied if it refuses them to the source's principal.
        """
        if record.native_id is None:
            raise Unsupported(f"{self.source}: the server gave {record.key} no id, so it issues no credentials for it")
        operation = credentials.READ_WRITE if writes else credentials.READ
        return credentials.parse_credentials(self._api.issue_credentials(record.path, record.native_id, operation), record)

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declare an external table. If the server refuses the marker's properties, the ownership marker goes into the comment.

        Raise Unsupported if the server also refuses ``table_type``: no reader would recognise the table as a Lance table.
        """
        self._require_configured_catalog(record.path)
        with self._api.lock_for(record.path):
            return self._declare(record)

    def _declare(self, record: TableRecord) -> TableRecord:
        desired = replace(record, location=record.location or self.default_location(record.path))
        try:
            self._create(desired, marker_in_comment=self._marker_in_comment)
        except PropertyRefused as refusal:
            if TABLE_TYPE_KEY in refusal.keys:
                raise Unsupported(
                    f"{refusal.message}; nothing was declared, because without the property {TABLE_TYPE_KEY} no reader would "
                    "recognise a Lance table",
                    hint="Databricks reserves this property: declare into another catalog, or an open-source Unity server",
                ) from None
            if self._marker_in_comment or not marker_properties(record.properties):
                raise
            self._create(desired, marker_in_comment=True)
            self._marker_in_comment = True
        return require_location(self._read_back(record.path), desired)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Remove a table that is unchanged since ``expected``.

        Unity does not compare: a change between this method's read and its call is removed with the table.
        """
        current = self.describe_table(expected.path)
        check_table(current, expected, confirm)
        self._api.drop_table(expected.path)
        # The response proves nothing: it is "200 OK", or an empty object on Databricks.
        with suppress(TableNotFound):
            if self._get_table(expected.path).get("table_id") == current.native_id:
                raise Internal(f"{self.source}: the server reported {current.key} as removed and still has it")

    def find_recreate_obstacle(self, before: TableRecord, after: TableRecord) -> str | None:
        """Return which table's location overlaps with the new one: a server with authorization would deny the new declaration."""
        if not self._authorized or before.canonical == after.canonical or after.location is None:
            return None
        for table in self._iter_visible_tables():
            path, location = (table["catalog_name"], table["schema_name"], table["name"]), table.get("storage_location")
            if path != before.path and location and _overlap(location, after.location):
                return f"{path_key(path)} at {location} overlaps with {after.location}: {_NO_OVERLAP}"
        return None

    def default_location(self, path: Path) -> str:
        """Return a location below the source's ``root``. A schema's own location is for tables that the server manages."""
        self._require_configured_catalog(path)
        return "/".join([self._root, *path[:-1], f"{path[-1]}.lance"])

    # Crawl

    def plan_shards(self) -> Sequence[Shard]:
        return crawl.plan_shards(self.source, self._list_catalogs(), self._api, configured=self._catalog is not None)

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        return crawl.read_shard(self.source, shard, self._api, configured=self._catalog is not None)

    def ping(self) -> str:
        self._list_catalogs()
        return ""

    def close(self) -> None:
        self._api.close()

    # Helpers

    def _list_catalogs(self) -> list[Native]:
        """Return the configured catalog, else all of the server. Raise CatalogNotFound if the configured one does not exist."""
        return [self._api.get_catalog(self._catalog)] if self._catalog else list(self._api.iter_catalogs())

    def _iter_visible_tables(self) -> Iterator[Native]:
        """Yield the tables of the metastore that the source's principal may see, in any catalog."""
        for catalog in self._api.iter_catalogs():
            with suppress(NamespaceNotFound, PermissionDenied):
                for schema in self._api.iter_schemas(catalog["name"]):
                    with suppress(NamespaceNotFound, PermissionDenied):
                        yield from self._api.iter_tables((catalog["name"], schema["name"]))

    def _require_configured_catalog(self, path: Path) -> None:
        """Raise NamespaceNotFound for a path outside the configured catalog, if there is one."""
        if self._catalog is not None and path[:1] != (self._catalog,):
            raise NamespaceNotFound(f"{self.source}: {path_key(path)} is not in the configured catalog {self._catalog}")

    def _create(self, record: TableRecord, *, marker_in_comment: bool) -> None:
        """Create a table. Raise PropertyRefused if the server refuses properties, or does not store some of them."""
        body = records.build_table(record, marker_in_comment=marker_in_comment)
        try:
            created = self._api.create_table(body)
        except InvalidInput as error:
            refused = tuple(
                key for key in (TABLE_TYPE_KEY, *marker_properties(body["properties"])) if _mentions_key(error.message, key)
            )
            if refused or "propert" in error.message.lower():
                raise PropertyRefused.for_keys(error.message, refused) from None
            raise
        except PermissionDenied as error:
            raise self._explain_denial(record.path, error) from None
        stored = created.get("properties") or {}
        lost = tuple(key for key, value in body["properties"].items() if stored.get(key) != value)
        if lost:
            message = f"{self.source}: the server stored {record.key} without the properties {', '.join(lost)}"
            self._remove_created(record.path, created, message)
            raise PropertyRefused.for_keys(message, lost)

    def _explain_denial(self, path: Path, denial: PermissionDenied) -> CatalogError:
        """Return the error of a denied declaration. A server with authorization denies names and locations that are taken, too."""
        with suppress(CatalogError):
            self._get_table(path)
            return TableAlreadyExists(f"{self.source}: {path_key(path)} exists already")
        return PermissionDenied(denial.message, hint=f"{denial.hint}; {_NO_OVERLAP}")

    def _remove_created(self, path: Path, created: Native, message: str) -> None:
        """Remove the table that was just declared. It must be the same external table, so that no data is deleted."""
        try:
            current = self._api.get_table(path)
            if current.get("table_id") == created.get("table_id") and current.get("table_type") == records.EXTERNAL:
                self._api.drop_table(path)
                return
            problem = "another table has its name now"
        except TableNotFound:
            return
        except CatalogError as error:
            problem = error.message
        raise Internal(
            f"{message}, and it could not be removed again: {problem}", hint="check the table, and remove it manually"
        )

    def _read_back(self, path: Path) -> TableRecord:
        try:
            return self.describe_table(path)
        except (InvalidInput, TableNotFound) as error:
            raise Internal(f"{self.source}: {path_key(path)} was declared and cannot be read back: {error.message}") from None


_NO_OVERLAP = "with authorization, no table's location may equal, contain or lie inside that of another table of the metastore"


def _overlap(first: str, second: str) -> bool:
    one, other = canonical_location(first), canonical_location(second)
    return one == other or one in parent_locations(second) or other in parent_locations(first)


def _mentions_key(message: str, key: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.]*\w)", message) is not None
