"""Tests of a server: whether it writes metadata where it is asked to, and keeps the files of a table that it drops without purging it.

The evidence is an Iceberg table of the federator's own, ``federator_drop_test``, which is created and dropped beside the table that is
to be declared or deregistered. The journal does not have it, because it is no change of the catalog's content. A process that dies in
between leaves it, and so does a lost response. The next write in its namespace removes it, and so does the drop of the namespace.
"""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from typing import Self

from federator.connector import (
    CatalogError,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.connector.storage_use import StoreListing
from federator.lance.opening import opening_options
from federator.model import Path, TableRecord, canonical_location
from federator_connectors._iceberg import records
from federator_connectors._iceberg.client import IcebergClient, IcebergTable
from federator_connectors._iceberg.settings import IcebergSettings

# Without a listing in this time, a table is not deregistered, so the start of the child process has more time than elsewhere.
_FIRST_LISTING_SECONDS = 60.0
#: whether a server keeps the files of dropped tables, by endpoint and warehouse; only what this process has evidence of
_KEEPS_FILES: dict[tuple[str, str], bool] = {}
#: how a server misplaces new tables, by endpoint and warehouse, as a predicate for "the server"; None if it does not
_MISPLACES: dict[tuple[str, str], str | None] = {}
#: endpoints and namespaces in which this process has left no table of a test, and knows of none
_CLEAN: set[tuple[str, ...]] = set()
#: held during the test of a server, which uses one name in each namespace
_LOCKS: dict[tuple[str, str], threading.Lock] = {}


class ServerCheck:
    """What a declaration or a deregistration proves about its server. A context manager, whose end closes the listing of the store."""

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
        with _LOCKS.setdefault(server, threading.Lock()):
            self._clean_namespace(table.path[:-1])
            keeps = _KEEPS_FILES.get(server, self._settings.keeps_files)
            if keeps is None:
                keeps = _KEEPS_FILES[server] = self._test_drop(table)
        if not keeps:
            raise Unsupported(f"{self._source}: {table.key} stays, because this server deletes the files of dropped tables")

    def find_misplacement(self, table: TableRecord) -> str | None:
        """Return what the server does instead of a request for a location and a metadata directory. None if it does as requested.

        The test is made once for each process and warehouse, beside ``table``. Raise CatalogError if it cannot be made.
        """
        server = self._server(table)
        with _LOCKS.setdefault(server, threading.Lock()):
            self._clean_namespace(table.path[:-1])
            if server not in _MISPLACES:
                _MISPLACES[server] = self._test_placement(table)
            return _MISPLACES[server]

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

    def _clean_namespace(self, namespace: Path) -> None:
        """Remove what a test has left in a namespace: once for each process, and after a test that this process did not finish."""
        if self._namespace_key(namespace) in _CLEAN:
            return
        # What keeps the table there does not concern the write, and the next one tries again.
        with suppress(CatalogError):
            self.remove_leftover(namespace)
            _CLEAN.add(self._namespace_key(namespace))

    def _test_drop(self, table: TableRecord) -> bool:
        """Return whether the metadata that the server writes for a new table is still there after the table was dropped."""
        test, directory = self._build_test(table)
        # The location is new, so nothing is there. A listing that fails, or shows anything, would not show a deletion either.
        if self.find_data(test) is not False:
            raise self._build_untested_error(table, f"{directory} cannot be listed")
        created = self._create(test)
        try:
            is_at_location = canonical_location(created.metadata["location"]) == test.canonical
            had_files = is_at_location and self.find_data(test) is True
        finally:
            self._drop(test.path)
        has_files = self.find_data(test) if had_files else None
        if has_files is None:
            raise self._build_untested_error(table, f"the files of a new table at {test.location} cannot be listed")
        return has_files

    def _test_placement(self, table: TableRecord) -> str | None:
        """Return what ``find_misplacement`` does, from a test beside ``table``."""
        test, _ = self._build_test(table)
        metadata_path = f"{test.location}/path"
        created = self._create(test, metadata_path)
        location, file = created.metadata["location"], created.metadata_location
        written = [location, *([file] if file else [])]
        is_own = all(f"{canonical_location(file)}/".startswith(f"{test.canonical}/") for file in written)
        # Nothing but the metadata of this test is at its new location, so that it may be purged. Any other location may have data.
        self._drop(test.path, purge=is_own)
        if canonical_location(location) != test.canonical:
            return f"assigns locations of its own, such as {location}"
        if file and not canonical_location(file).startswith(f"{canonical_location(metadata_path)}/"):
            return f"would keep its metadata inside the Lance table: it ignores {records.METADATA_PATH}"
        return None

    def _build_test(self, table: TableRecord) -> tuple[TableRecord, str]:
        """Return the table of a test beside a table, at a location that nothing else has, and the directory of this location."""
        path = (*table.path[:-1], records.DROP_TEST)
        directory = records.metadata_directory(table.location or "").rpartition("/")[0]
        return TableRecord(self._source, path, f"{directory}/{records.DROP_TEST}_{secrets.token_hex(8)}"), directory

    def _create(self, test: TableRecord, metadata_path: str | None = None) -> IcebergTable:
        """Create the table of the test. A leftover of its name is removed first."""
        request = records.build_test_request(test.path[-1], test.location or "", metadata_path)
        _CLEAN.discard(self._namespace_key(test.path[:-1]))
        try:
            return self._client.create_table(test.path, request)
        except TableAlreadyExists:
            if not self.remove_leftover(test.path[:-1]):
                raise
            try:
                return self._client.create_table(test.path, request)
            except TableAlreadyExists as error:
                raise ServiceUnavailable(f"{self._source}: another process tests this server", hint="try again") from error

    def _drop(self, path: Path, *, purge: bool = False) -> None:
        # The test of another process may have removed the table.
        with suppress(TableNotFound):
            self._client.drop_table(path, purge=purge)
        _CLEAN.add(self._namespace_key(path[:-1]))

    def _build_untested_error(self, table: TableRecord, reason: str) -> Unsupported:
        return Unsupported(
            f"{self._source}: {table.key} stays, because whether this server keeps the files of dropped tables is unknown: {reason}",
            hint="set storage.*, or iceberg.keeps_files = true if the server's documentation says that it keeps them",
        )

    def _namespace_key(self, namespace: Path) -> tuple[str, ...]:
        return self._settings.endpoint, *namespace

    def _server(self, table: TableRecord) -> tuple[str, str]:
        return self._settings.endpoint, table.path[0]
