"""``Catalog`` of one Iceberg REST server: the operations on single objects.

The companion of a Lance table is the Iceberg table that declares it: it has the same location, and no rows of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Confirm,
    Internal,
    InvalidInput,
    NameNotAllowed,
    NamespaceNotEmpty,
    NamespaceNotFound,
    Observation,
    TableNotFound,
    Unsupported,
    unconditional,
)
from federator.connector.preconditions import check_table
from federator.model import ROOT, Identity, NamespaceRecord, Path, TableRecord, canonical_location, path_key
from federator_connectors._iceberg import records
from federator_connectors._iceberg.base_catalog import NamespaceCatalog
from federator_connectors._iceberg.client import IcebergClient, IcebergTable
from federator_connectors._iceberg.server_check import ServerCheck
from federator_connectors._iceberg.settings import REFUSED_NAMES, IcebergSettings
from federator_connectors._locations import require_location

_FOREIGN_TABLE = "an Iceberg table, not a Lance table"
_OTHER_CATALOG = "choose a catalog that stores locations"
_NESSIE_OBSTACLE = "is Nessie, which assigns the locations of tables and keeps its metadata inside them"


class IcebergCatalog(NamespaceCatalog):
    """An Iceberg REST server. Paths are ``(warehouse, namespace, ..., table)``. Thread-safe."""

    def __init__(self, source: str, settings: IcebergSettings) -> None:
        self._settings = settings
        self._client = IcebergClient(source, settings)
        super().__init__(source, self._client, catalogs=settings.warehouses, threads=settings.threads, root=settings.root_uri)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:  # noqa: ARG002 - the warehouses are few
        """Return the prefix of each configured warehouse; some servers use the warehouse's id. None if none has a prefix."""
        prefixes = {name: self._client.read_warehouse(name).prefix for name in self._settings.warehouses or ()}
        if not any(prefixes.values()):
            return None
        return Identity.of("", {path_key((name,)): f"prefix {prefix}" if prefix else "" for name, prefix in prefixes.items()})

    def list_namespaces(self, parent: Path) -> list[str]:
        if parent == ROOT and self._settings.warehouses:
            return [name for name in sorted(self._settings.warehouses) if self.find_namespace((name,))]
        return super().list_namespaces(parent)

    def list_catalogs(self) -> list[NamespaceRecord]:
        raise Unsupported(
            f"{self.source}: Iceberg REST servers do not list their warehouses", hint="name them in iceberg.warehouses"
        )

    def describe_catalog(self, name: str) -> NamespaceRecord:
        """Return a warehouse, without the properties of ``/v1/config``: they are options for clients and may contain secrets."""
        self._client.read_warehouse(name)
        return NamespaceRecord(self.source, (name,))

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        if len(record.path) > 2:
            # Iceberg's own server creates a namespace without its parents.
            self.describe_namespace(record.path[:-1])
        if len(record.path) > 1:
            self._check_name(record.path, self.describe_namespace)
        super().create_namespace(record)
        # Nessie's response lacks the location that it assigns.
        return self.describe_namespace(record.path)

    def drop_namespace(self, path: Path) -> None:
        """Drop an empty namespace. If it contains only the table of an interrupted test, drop this table first."""
        try:
            super().drop_namespace(path)
        except NamespaceNotEmpty:
            if not self._open_server_check().remove_leftover(path):
                raise
            # On Iceberg's own server, a namespace that nobody created exists as long as it has a table.
            with suppress(NamespaceNotFound):
                super().drop_namespace(path)

    def list_all_tables(self, namespace: Path) -> list[str]:
        return self._client.list_tables(namespace)

    def read_table(self, path: Path) -> TableRecord | None:
        table = self._client.get_table(path)
        return records.table_record(self.source, path, table) if records.is_lance(table) else None

    def describe_table(self, path: Path) -> TableRecord:
        return records.table_record(self.source, path, self._require_lance(path))

    def observe(self, path: Path) -> Observation:
        """Observe one table. A view or another table is foreign. Other errors are raised: they prove nothing about the name."""
        try:
            table = self._client.get_table(path)
        except TableNotFound:
            return Observation(foreign=self._describe_foreign(path, "a view")) if self._client.has_view(path) else Observation()
        if not records.is_lance(table):
            return Observation(foreign=self._describe_foreign(path, _FOREIGN_TABLE))
        return Observation(records.table_record(self.source, path, table))

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Create the companion of a table. Raise Unsupported for a server that puts it or its metadata elsewhere than requested.

        Such a server is found by a test before. If it put only this companion elsewhere, the companion is removed.
        """
        desired = replace(record, location=record.location or self.default_location(record.path))
        request = records.build_create_request(desired)
        if self._client.is_nessie(record.path[0]):
            raise Unsupported(
                f"{self.source}: {record.key} was not declared, because the server {_NESSIE_OBSTACLE}", hint=_OTHER_CATALOG
            )
        # Iceberg's own server creates a table in a namespace that does not exist.
        self.describe_namespace(record.path[:-1])
        self._check_name(record.path, self._client.get_table)
        with self._open_server_check() as check:
            if problem := check.find_misplacement(desired):
                raise Unsupported(f"{self.source}: {record.key} was not declared, because the server {problem}")
        table = self._client.create_table(record.path, request)
        created = records.table_record(self.source, record.path, table)
        if problem := _find_misplacement(desired, created, table):
            self._remove_misplaced(desired, created, problem)
            raise Unsupported(f"{self.source}: {record.key} was not declared, because the server {problem}")
        return require_location(self.describe_table(record.path), desired)

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        """Change location, properties and doc with one commit.

        The server compares only the table's UUID, so a change between the last read and the commit is overwritten.
        """
        if before.canonical != after.canonical and self._client.is_nessie(before.path[0]):
            raise Unsupported(
                f"{self.source}: {before.key} keeps its location, because the server {_NESSIE_OBSTACLE}", hint=_OTHER_CATALOG
            )
        table = self._require_lance(before.path)
        current = records.table_record(self.source, before.path, table)
        updates = records.build_updates(table, current, after)
        check_table(current, before, confirm)
        self._client.commit(before.path, current.native_id or "", updates)
        return require_location(self.describe_table(before.path), after)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        """Remove the companion of a table that is unchanged since ``expected``, and check that the data is still there.

        The request has no precondition, so a change between the last read and the request is removed with the companion. Raise
        Unsupported for a server that deletes the files of dropped tables, and for a companion with rows of its own. Raise Internal if
        the server deleted the data.
        """
        current = self.describe_table(expected.path)
        check_table(current, expected, unconditional)
        with self._open_server_check() as check:
            has_data = check.find_data(current)
            if has_data is not False:
                check.require_kept_files(current)
            # Listing a store takes seconds, so the table is read again.
            table = self._require_lance(expected.path)
            if records.has_rows(table):
                raise Unsupported(
                    f"{self.source}: {expected.key} stays, because an Iceberg client has written rows to its companion",
                    hint="move these rows to another Iceberg table, then drop the companion without purging it",
                )
            current = records.table_record(self.source, expected.path, table)
            check_table(current, expected, confirm)
            self._client.drop_table(expected.path)
            if has_data and check.find_data(current) is False:
                check.record_loss(current)
                raise Internal(
                    f"{self.source}: the server deleted the data of {expected.key} at {current.location}, although it was asked to "
                    "keep it",
                    hint="restore the data; this process deregisters no further table of this server",
                )

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        """Rename a companion within its warehouse.

        The request has no precondition: a table that replaced the companion after the last read is renamed instead. Raise
        ConcurrentModification if that happened.
        """
        if before.path[:1] != new_path[:1]:
            raise Unsupported(f"{self.source}: a table cannot be moved from one warehouse to another")
        self.describe_namespace(new_path[:-1])
        self._check_name(new_path, self._client.get_table)
        check_table(self.describe_table(before.path), before, unconditional)
        self._client.rename_table(before.path, new_path)
        renamed = self.describe_table(new_path)
        if before.native_id and renamed.native_id != before.native_id:
            raise ConcurrentModification(
                f"{self.source}: another table was created at {before.key} meanwhile, and has the name {renamed.key} now"
            )
        return renamed

    def find_declaration_obstacle(self) -> str | None:
        """Read the first configured warehouse. None if none is configured: then ``declare_table`` refuses."""
        warehouses = self._settings.warehouses or ()
        return f"the server {_NESSIE_OBSTACLE}: {_OTHER_CATALOG}" if any(map(self._client.is_nessie, warehouses[:1])) else None

    def ping(self) -> str:
        """Read the configured warehouses. Raise NamespaceNotFound for one that does not exist, Unsupported if none is configured."""
        if not self._settings.warehouses:
            # Raises Unsupported with the hint to configure them.
            self.list_catalogs()
        for name in self._settings.warehouses or ():
            self._client.read_warehouse(name)
        return ""

    def _remove_misplaced(self, desired: TableRecord, created: TableRecord, problem: str) -> None:
        """Remove a companion that was just created. ``problem`` is the result of ``_find_misplacement``.

        It stays if a server that deletes the files of dropped tables could delete those of a written Lance table. Then raise
        Unsupported.
        """
        contains_lance_table = f"{desired.canonical}/".startswith(f"{created.canonical}/")
        if contains_lance_table:
            try:
                with self._open_server_check() as check:
                    if check.find_data(desired) is not False:
                        check.require_kept_files(desired)
            except CatalogError as error:
                raise Unsupported(
                    f"{self.source}: the server {problem}; the companion was created and {error.message}",
                    hint="remove it with a client that deletes no files",
                ) from None
        with suppress(TableNotFound):
            # Another client's table may have the name now.
            if self._client.get_table(desired.path).metadata.get("table-uuid") == created.native_id:
                self._client.drop_table(desired.path)

    def _open_server_check(self) -> ServerCheck:
        return ServerCheck(self.source, self._client, self._settings)

    def _check_name(self, path: Path, read: Callable[[Path], object]) -> None:
        """Raise NameNotAllowed for a new name that the server refuses in a URL.

        A request that creates an object has its name in the body. The server would accept it, and no later request could name the
        object. ``read`` makes a request with the name in its URL. Nessie refuses more names than other servers, such as ``..x``.
        """
        if not re.fullmatch(REFUSED_NAMES, path[-1]) and not self._client.is_nessie(path[0]):
            return
        try:
            read(path)
        except (NamespaceNotFound, TableNotFound):
            return
        except InvalidInput as error:
            raise NameNotAllowed(error.message, hint=error.hint) from None

    def _require_lance(self, path: Path) -> IcebergTable:
        """Return the companion of a Lance table. Raise InvalidInput for another table or a view, TableNotFound."""
        try:
            table = self._client.get_table(path)
        except TableNotFound:
            if self._client.has_view(path):
                raise InvalidInput(self._describe_foreign(path, "a view")) from None
            raise
        if not records.is_lance(table):
            raise InvalidInput(self._describe_foreign(path, _FOREIGN_TABLE))
        return table

    def _describe_foreign(self, path: Path, kind: str) -> str:
        return f"{self.source}: {path_key(path)} is {kind}"


def _find_misplacement(desired: TableRecord, created: TableRecord, table: IcebergTable) -> str | None:
    """Return what the server did instead of the request, as a predicate for "the server". None if the locations are as requested."""
    if created.canonical != desired.canonical:
        return f"assigned the location {created.location}"
    inside = f"{created.canonical}/"
    if table.metadata_location and canonical_location(table.metadata_location).startswith(inside):
        return f"keeps its metadata inside the Lance table, at {table.metadata_location}"
    return None
