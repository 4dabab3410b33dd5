"""One catalog of a Unity server, opened: the operations on single objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from federator.connector import (
    LANCE_MARKER,
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
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.altering import check_namespace, check_table
from federator.model import ROOT, Coverage, Identity, Kind, NamespaceRecord, Path, Record, TableRecord, path_key
from federator_connectors._unity import crawl, records
from federator_connectors._unity.api import Native, UnityApi
from federator_connectors._unity.comment import marks_of
from federator_connectors._unity.errors import CatalogNotFound, FailedPrecondition, PropertyRefused
from federator_connectors._unity.settings import UnitySettings


class UnityCatalog(Catalog):
    """Paths are ``(catalog,)``, ``(catalog, schema)`` and ``(catalog, schema, table)``; the catalog is always the configured one.

    Thread-safe.
    """

    def __init__(self, source: str, settings: UnitySettings) -> None:
        self.source = source
        self._catalog = settings.catalog
        self._root = settings.root
        self._api = UnityApi(source, settings)
        # Learned from the first refusal, so that not every table is declared twice.
        self._marks_in_comment = False

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity:  # noqa: ARG002 - there is one catalog
        """The metastore's id where the server has the call, and the catalog's own id and creation time."""
        native = self._api.catalog(self._catalog)
        catalog = ", ".join(f"{key} {native[key]}" for key in ("id", "created_at") if native.get(key))
        metastore = self._api.metastore()
        return Identity.of(f"metastore {metastore}" if metastore else "", {path_key((self._catalog,)): catalog})

    # Namespaces

    def list_namespaces(self, parent: Path) -> list[str]:
        if parent == ROOT:
            self._api.catalog(self._catalog)
            return [self._catalog]
        self._ours(parent)
        if len(parent) == 2:
            self._api.schema(parent)
            return []
        return sorted(records.name_of(self.source, schema) for schema in self._api.schemas(self._catalog))

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        self._ours(path)
        if len(path) == 1:
            return records.catalog_record(self.source, self._api.catalog(self._catalog))
        return records.schema_record(self.source, self._catalog, self._api.schema(path))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        """Creates a schema. Raises InvalidInput for one in another catalog (the spec's code 13)."""
        if len(record.path) != 2:
            raise Unsupported(f"{self.source}: schemas are created here, and {record.key!r} is none")
        if record.path[0] != self._catalog:
            raise InvalidInput(f"{self.source}: {record.key} is not in the catalog {self._catalog} that is configured")
        self._api.create_schema(records.new_schema(record))
        return self.describe_namespace(record.path)

    def drop_namespace(self, path: Path) -> None:
        """The server itself refuses to drop a schema that holds anything: tables, volumes, functions or models."""
        if len(path) < 2:
            raise Unsupported(f"{self.source}: schemas are dropped here, and {path_key(path)!r} is none")
        self._ours(path)
        try:
            self._api.drop_schema(path)
        except FailedPrecondition as error:
            raise NamespaceNotEmpty(error.message) from None

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        """Of a schema. The server compares nothing: between our look and our write lies a moment."""
        path = before.path
        if len(path) != 2:
            raise Unsupported(f"{self.source}: schemas are altered here, and {path_key(path)!r} is none")
        check_namespace(self.describe_namespace(path), before, after)
        self._api.alter_schema(path, records.changed_schema(before, after))
        return self.describe_namespace(path)

    # Tables

    def list_tables(self, namespace: Path) -> list[str]:
        if len(namespace) < 2:
            self.describe_namespace(namespace)
            return []
        self._ours(namespace)
        tables = self._api.tables(namespace)
        return sorted(records.name_of(self.source, table) for table in tables if records.kind_of(table) is Kind.TABLE)

    def foreign_objects(self, namespace: Path) -> list[str]:
        """The names of the tables of a schema that are not external Lance tables: a listing shows those as well."""
        if len(namespace) < 2:
            return []
        self._ours(namespace)
        tables = self._api.tables(namespace)
        return sorted(records.name_of(self.source, table) for table in tables if records.kind_of(table) is not Kind.TABLE)

    def describe_table(self, path: Path) -> TableRecord:
        """A missing schema or catalog is a missing table here, as the spec has it."""
        table = self._table(path)
        kind = records.kind_of(table)
        if kind is Kind.TABLE:
            return records.table_record(self.source, path[:-1], table)
        is_what = f"marked lance, but {table.get('table_type')}" if kind else "not a Lance table"
        raise InvalidInput(f"{self.source}: {path_key(path)} is {is_what}")

    def native(self, path: Path) -> dict[str, Any]:
        """The table as the server has it, and under ``grants`` those on the table itself.

        Raises Unsupported to a principal who may not see the grants, since they go with the table.
        """
        table = self._table(path)
        try:
            return {**table, "grants": self._api.grants(path)}
        except PermissionDenied as error:
            raise Unsupported(f"{error.message}; they would be lost if the table were declared anew", hint=error.hint) from None

    def lost_by_recreation(self, native: Mapping[str, Any]) -> str | None:
        held = sorted(f"{' and '.join(grant['privileges'])} of {grant['principal']}" for grant in native["grants"])
        return f"grants on the table: {', '.join(held)}" if held else None

    def _table(self, path: Path) -> Native:
        """A table, Lance or not, as the server has it, with all its fields. Raises TableNotFound."""
        try:
            self._ours(path)
            return self._api.table(path)
        except NamespaceNotFound as error:
            raise TableNotFound(error.message) from error

    def observe(self, path: Path) -> Observation:
        """Raises Internal where the configured catalog itself is missing: a server that lost it proves no table absent."""
        try:
            return Observation(self.describe_table(path))
        except TableNotFound as error:
            if isinstance(error.__cause__, CatalogNotFound):
                raise Internal(f"{error.message}; that says nothing of the tables in it", hint="check unity.catalog") from None
            return Observation()
        except InvalidInput as error:
            return Observation(foreign=error.message)

    def json_schema(self, record: TableRecord) -> Mapping[str, Any] | None:
        """The table's columns in Lance's form; None without any, and for columns that have a type without like in Arrow."""
        if record.schema is None:
            return None
        # pyarrow takes a tenth of a second to import.
        from federator_connectors._arrow import lance, schemas

        try:
            return lance.json_schema(schemas.arrow_schema(record.schema))
        except InvalidInput:
            return None

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Declares an external table. Where the server takes no property of ours, the ownership mark goes into the comment.

        Raises Unsupported where it takes no ``table_type`` either, since nobody would know the table as Lance then.
        """
        self._ours(record.path)
        wanted = replace(record, location=record.location or self.default_location(record.path))
        try:
            self._create(wanted, marks_in_comment=self._marks_in_comment)
        except PropertyRefused as refusal:
            if LANCE_MARKER in refusal.keys:
                raise Unsupported(
                    f"{refusal.message}; without the property {LANCE_MARKER} it could not be known as a Lance table, and nothing "
                    "was declared",
                    hint="Databricks reserves this property: declare into another catalog, or an open-source Unity server",
                ) from None
            if self._marks_in_comment or not marks_of(record.properties):
                raise
            self._create(wanted, marks_in_comment=True)
            self._marks_in_comment = True
        return self._read_back(record.path)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Unity compares nothing itself: what changes between our look and our call goes with it."""
        found = self.describe_table(expected.path)
        check_table(found, expected, confirm)
        self._api.drop_table(expected.path)
        # The response says nothing: "200 OK" here, an empty object on Databricks.
        with suppress(TableNotFound):
            if self._table(expected.path).get("table_id") == found.native_id:
                raise Internal(f"{self.source}: the server reported {found.key} as removed and still has it")

    def default_location(self, path: Path) -> str:
        """Below the source's root. A schema's own location is for the tables that the server manages."""
        self._ours(path)
        return "/".join([(self._root or FilePath.cwd().as_uri()).rstrip("/"), *path[:-1], f"{path[-1]}.lance"])

    # The crawl

    def shards(self) -> Sequence[Shard]:
        return crawl.shards(self.source, self._catalog, self._api)

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        return crawl.read(self.source, shard, self._api)

    def ping(self) -> str:
        self._api.catalog(self._catalog)
        return ""

    def close(self) -> None:
        self._api.close()

    # What they share

    def _ours(self, path: Path) -> None:
        """Raises NamespaceNotFound unless a path is in the configured catalog."""
        if path[:1] != (self._catalog,):
            raise NamespaceNotFound(f"{self.source}: {path_key(path)} is not in the catalog {self._catalog} that is configured")

    def _create(self, record: TableRecord, *, marks_in_comment: bool) -> None:
        """Raises PropertyRefused where the server refuses properties, or takes the table and loses some of them."""
        body = records.new_table(record, marks_in_comment=marks_in_comment)
        try:
            made = self._api.create_table(body)
        except InvalidInput as error:
            named = tuple(key for key in (LANCE_MARKER, *marks_of(body["properties"])) if _names(error.message, key))
            if named or "propert" in error.message.lower():
                raise PropertyRefused.of(error.message, named) from None
            raise
        stored = made.get("properties") or {}
        lost = tuple(key for key, value in body["properties"].items() if stored.get(key) != value)
        if lost:
            said = f"{self.source}: the server stored {record.key} without the properties {', '.join(lost)}"
            self._undo(record.path, made, said)
            raise PropertyRefused.of(said, lost)

    def _undo(self, path: Path, made: Native, said: str) -> None:
        """Removes what we declared just now, if it still is that, and external, so that its data stays."""
        try:
            found = self._api.table(path)
            if found.get("table_id") == made.get("table_id") and found.get("table_type") == records.EXTERNAL:
                self._api.drop_table(path)
                return
            problem = "it is another table now"
        except TableNotFound:
            return
        except CatalogError as error:
            problem = error.message
        raise Internal(f"{said}, and it could not be removed again: {problem}", hint="look at it, and remove it by hand")

    def _read_back(self, path: Path) -> TableRecord:
        try:
            return self.describe_table(path)
        except (InvalidInput, TableNotFound) as error:
            raise Internal(f"{self.source}: {path_key(path)} was declared and reads back otherwise: {error.message}") from None


def _names(message: str, key: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.]*\w)", message) is not None
