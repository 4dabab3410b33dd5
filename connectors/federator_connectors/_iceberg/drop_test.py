"""The drop test: evidence that a server keeps the files of a table that it drops without purging it.

The evidence is an Iceberg table of the federator's own, ``federator_drop_test``, which is created and dropped beside the table that is
to be deregistered. The journal does not have it, because it is no change of the catalog's content. A process that dies in between
leaves it. The next test in its namespace removes it, and so does the drop of the namespace.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Self

from federator.connector import PermissionDenied, TableAlreadyExists, TableNotFound, Unsupported
from federator.connector.storage_use import StoreListing
from federator.lance.opening import opening_options
from federator.model import Path, TableRecord, canonical_location
from federator_connectors._iceberg import records
from federator_connectors._iceberg.client import IcebergClient
from federator_connectors._iceberg.settings import IcebergSettings

# Without a listing in this time, a table is not deregistered, so the start of the child process has more time than elsewhere.
_FIRST_LISTING_SECONDS = 60.0
#: whether a server keeps the files of dropped tables, by endpoint and warehouse; only what this process has evidence of
_KEEPS_FILES: dict[tuple[str, str], bool] = {}


class DropTest:
    """What one deregistration proves about the files of its table. A context manager, whose end closes the listing of the store."""

    def __init__(self, source: str, client: IcebergClient, settings: IcebergSettings) -> None:
        self._source = source
        self._client = client
        self._settings = settings
        self._listing = StoreListing(first_seconds=_FIRST_LISTING_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listing.close()

    def find_data(self, table: TableRecord) -> bool | None:
        """Return whether anything is at the location of a table. None if it cannot be listed."""
        location = table.location or ""
        try:
            storage = opening_options(self._settings, location, table.properties)
        except PermissionDenied:
            return None
        return self._listing.find_data(location, storage)

    def require_kept_files(self, table: TableRecord) -> None:
        """Raise Unsupported unless the server keeps the files of dropped tables, by its settings or a test beside ``table``.

        The test is made once for each process and warehouse. Raise CatalogError if it cannot be made.
        """
        server = self._server(table)
        keeps = _KEEPS_FILES.get(server, self._settings.keeps_files)
        if keeps is None:
            keeps = _KEEPS_FILES[server] = self._test(table)
        if not keeps:
            raise Unsupported(f"{self._source}: {table.key} stays, because this server deletes the files of dropped tables")

    def record_loss(self, table: TableRecord) -> None:
        """Record that the server deleted the data of a table."""
        _KEEPS_FILES[self._server(table)] = False

    def remove_leftover(self, namespace: Path) -> bool:
        """Drop the table that an interrupted test left in a namespace. Return False if there is none. No other table is dropped."""
        path = (*namespace, records.DROP_TEST)
        try:
            if not records.is_drop_test(self._client.get_table(path)):
                return False
        except TableNotFound:
            return False
        self._drop(path)
        return True

    def _test(self, table: TableRecord) -> bool:
        """Return whether the metadata that the server writes for a new table is still there after the table was dropped."""
        path = (*table.path[:-1], records.DROP_TEST)
        directory = records.metadata_directory(table.location or "").rpartition("/")[0]
        test = TableRecord(self._source, path, f"{directory}/{records.DROP_TEST}_{secrets.token_hex(8)}")
        # Nothing is at a new location. A listing that does not show that would not show a deletion either.
        if self.find_data(test) is not False:
            raise self._untested(table, f"{directory} cannot be listed")
        location = self._create(test)
        try:
            is_as_requested = canonical_location(location) == test.canonical
            had_files = is_as_requested and self.find_data(test)
        finally:
            self._drop(path)
        has_files = self.find_data(test) if had_files else None
        if has_files is None:
            raise self._untested(table, f"the files of a new table at {test.location} cannot be listed")
        return has_files

    def _create(self, test: TableRecord) -> str:
        """Create the table of the test and return its location. A leftover of its name is removed first."""
        request = records.build_test_request(test.path[-1], test.location or "")
        try:
            table = self._client.create_table(test.path, request)
        except TableAlreadyExists:
            if not self.remove_leftover(test.path[:-1]):
                raise
            table = self._client.create_table(test.path, request)
        location: str = table.metadata["location"]
        return location

    def _drop(self, path: Path) -> None:
        # The test of another process may have removed the table. It was asked to keep the files, too.
        with suppress(TableNotFound):
            self._client.drop_table(path)

    def _untested(self, table: TableRecord, reason: str) -> Unsupported:
        return Unsupported(
            f"{self._source}: {table.key} stays, because whether this server keeps the files of dropped tables is unknown: {reason}",
            hint="set storage.*, or iceberg.keeps_files = true if the server's documentation says that it keeps them",
        )

    def _server(self, table: TableRecord) -> tuple[str, str]:
        return self._settings.endpoint, table.path[0]
