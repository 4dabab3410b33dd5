"""Many rows at once: in pieces of a size, and by the fastest way that a database takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Table

from federator.connector import StateError

T = TypeVar("T")

#: as many values as a statement's ``IN`` takes well
VALUES = 500
#: as many rows as a transaction of a bulk write holds
ROWS = 50_000


def chunks(items: Iterable[T], size: int = VALUES) -> Iterator[list[T]]:
    """The items in order, in lists of at most ``size``; none is empty."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def insert_rows(connection: Connection, table: Table, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Inserts rows whose values stand in the order of ``names``, in the caller's transaction.

    Raises StateError where the connection was lost.
    """
    columns = ", ".join(f'"{name}"' for name in names)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(names))
        insert = f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"  # noqa: S608 - our own names
        connection.exec_driver_sql(insert, [tuple(row) for row in rows])
        return
    driver = connection.connection.driver_connection
    if driver is None:
        raise StateError(f"the database connection was lost while {table.name} was written")
    with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
