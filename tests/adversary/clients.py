"""Other people's clients of real catalogs: they create, drop, rename, move and unmark tables, past the product.

A table that is not there any more raises ``Vanished``: the product, or another client, was faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from federator.connector import TableAlreadyExists, TableNotFound
from federator.model import NamespaceRecord, TableRecord
from federator_connectors._hive import records
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

_MARK = "federator."


class Vanished(Exception):
    """The table is not there, or another one has its name."""


class Client(ABC):
    """Tables of one database of a catalog, by name."""

    @abstractmethod
    def create_database(self) -> None: ...

    @abstractmethod
    def create(self, name: str, location: str) -> None: ...

    @abstractmethod
    def drop(self, name: str) -> None: ...

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """The location stays."""

    @abstractmethod
    def move(self, name: str, location: str) -> None:
        """The name stays, and with it every property."""

    @abstractmethod
    def unmark(self, name: str) -> None:
        """Removes the ownership marker."""

    @abstractmethod
    def tables(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Location and properties of each table."""


@dataclass
class HiveClient(Client):
    metastore: Metastore
    database: str
    _calls: Any = field(init=False)

    def __post_init__(self) -> None:
        self._calls = self.metastore.calls()

    def create_database(self) -> None:
        with self.metastore.open() as catalog:
            path = (*self.metastore.above, self.database)
            catalog.create_namespace(NamespaceRecord("people", path, location=self.metastore.location(self.database)))

    def create(self, name: str, location: str) -> None:
        above = self.metastore.above[0] if self.metastore.above else None
        with _vanishing():
            self._calls.create_table(
                self._path(name), records.build_table(TableRecord("people", self._path(name), location), above)
            )

    def drop(self, name: str) -> None:
        with _vanishing():
            self._calls.drop_table(self._path(name))

    def rename(self, name: str, new: str) -> None:
        self._alter(name, lambda table: setattr(table, "tableName", new))

    def move(self, name: str, location: str) -> None:
        self._alter(name, lambda table: setattr(table.sd, "location", location))

    def unmark(self, name: str) -> None:
        self._alter(name, lambda table: setattr(table, "parameters", _unmarked(table.parameters)))

    def tables(self) -> dict[str, tuple[str, dict[str, str]]]:
        path = (*self.metastore.above, self.database)
        names = self._calls.list_marked_tables(path).names
        return {table.tableName: (table.sd.location, table.parameters) for table in self._calls.get_tables(path, names)}

    def _alter(self, name: str, change: Any) -> None:
        with _vanishing():
            table = self._calls.get_table(self._path(name))
            change(table)
            self._calls.alter_table(self._path(name), table)

    def _path(self, name: str) -> tuple[str, ...]:
        return (*self.metastore.above, self.database, name)


@dataclass
class GlueClient(Client):
    account: GlueAccount
    database: str
    _client: Any = field(init=False)

    def __post_init__(self) -> None:
        self._client = self.account.client()

    def create_database(self) -> None:
        self._client.create_database(DatabaseInput={"Name": self.database})

    def create(self, name: str, location: str) -> None:
        self._create({
            "Name": name, "TableType": "EXTERNAL_TABLE", "StorageDescriptor": {"Location": location},
            "Parameters": {"table_type": "lance"},
        })  # fmt: skip

    def drop(self, name: str) -> None:
        with self._vanishing():
            self._client.delete_table(DatabaseName=self.database, Name=name)

    def rename(self, name: str, new: str) -> None:
        """Glue cannot: the table is dropped, and created under the new name."""
        table = self._table(name)
        self.drop(name)
        self._create({**table, "Name": new})

    def move(self, name: str, location: str) -> None:
        table = self._table(name)
        self._update({**table, "StorageDescriptor": {**table["StorageDescriptor"], "Location": location}})

    def unmark(self, name: str) -> None:
        table = self._table(name)
        self._update({**table, "Parameters": _unmarked(table["Parameters"])})

    def tables(self) -> dict[str, tuple[str, dict[str, str]]]:
        pages = self._client.get_paginator("get_tables").paginate(DatabaseName=self.database)
        rows = [row for page in pages for row in page["TableList"]]
        return {row["Name"]: (row["StorageDescriptor"]["Location"], row["Parameters"]) for row in rows}

    def _table(self, name: str) -> dict[str, Any]:
        with self._vanishing():
            row = self._client.get_table(DatabaseName=self.database, Name=name)["Table"]
            kept = ("Name", "Description", "Owner", "StorageDescriptor", "TableType", "Parameters")
            return {key: value for key, value in row.items() if key in kept}
        raise AssertionError

    def _create(self, table: dict[str, Any]) -> None:
        with self._vanishing():
            self._client.create_table(DatabaseName=self.database, TableInput=table)

    def _update(self, table: dict[str, Any]) -> None:
        with self._vanishing():
            self._client.update_table(DatabaseName=self.database, TableInput=table)

    @contextmanager
    def _vanishing(self) -> Iterator[None]:
        known = self._client.exceptions
        try:
            yield
        except (known.EntityNotFoundException, known.AlreadyExistsException) as error:
            raise Vanished from error


@contextmanager
def _vanishing() -> Iterator[None]:
    try:
        yield
    except (TableNotFound, TableAlreadyExists) as error:
        raise Vanished from error


def _unmarked(properties: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if not key.startswith(_MARK)}
