"""Many rows at once: in pieces of a size, and by the fastest way that a database takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, TableClause, func, select

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


def next_ids(connection: Connection, table: Table, count: int) -> Sequence[int]:
    """Ids for rows that the caller inserts in its writing transaction, ascending; nobody else is given the same."""
    if connection.dialect.name == "sqlite":
        last = connection.execute(select(func.max(table.c.id))).scalar() or 0
        return range(last + 1, last + 1 + count)
    sequence = func.nextval(func.pg_get_serial_sequence(table.name, "id"))
    return connection.execute(select(sequence).select_from(func.generate_series(1, count))).scalars().all()


def insert_rows(connection: Connection, table: TableClause, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Inserts rows whose values stand in the order of ``names``, in the caller's transaction.

    Raises StateError where the connection was lost.
    """
    columns = ", ".join(f'"{name}"' for name in names)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(names))
        insert = f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"  # noqa: S608 - our own names
        # An empty list would be one row without values to SQLAlchemy.
        if values := [tuple(row) for row in rows]:
            connection.exec_driver_sql(insert, values)
        return
    driver = connection.connection.driver_connection
    if driver is None:
        raise StateError(f"the database connection was lost while {table.name} was written")
    with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
