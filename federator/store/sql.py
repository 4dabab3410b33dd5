"""SQL helpers: cached statements, chunks of rows, and comparison in byte order.

SQLite compares bytes by default; PostgreSQL needs ``COLLATE "C"``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, Table, TableClause, and_, column, func, literal, select
from sqlalchemy.dialects import postgresql, sqlite

from federator.connector import StateError

T = TypeVar("T")

#: the most values in the ``IN`` of one statement
MAX_BIND_VALUES = 500
#: the most rows in one transaction of a bulk write, which are in memory, and may be wide
ROWS_PER_CHUNK = 10_000


def chunked(items: Iterable[T], size: int = MAX_BIND_VALUES) -> Iterator[list[T]]:
    """Yield the items in order, in non-empty lists of at most ``size``."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def allocate_ids(connection: Connection, table: Table, count: int) -> Sequence[int]:
    """Return ascending, unique ids for rows that the caller inserts in its write transaction."""
    if connection.dialect.name == "sqlite":
        last = connection.execute(select(func.max(table.c.id))).scalar() or 0
        return range(last + 1, last + 1 + count)
    sequence = func.nextval(func.pg_get_serial_sequence(table.name, "id"))
    return connection.execute(select(sequence).select_from(func.generate_series(1, count))).scalars().all()


def bulk_insert(connection: Connection, table: TableClause, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows in the caller's transaction. ``rows`` have their values in the order of ``names``.

    Raise StateError if the connection was lost.
    """
    columns = ", ".join(f'"{name}"' for name in names)
    if connection.dialect.name == "sqlite":
        parameters = ", ".join("?" * len(names))
        insert = f"INSERT INTO {table.name} ({columns}) VALUES ({parameters})"  # noqa: S608 - names of this package's tables
        # SQLAlchemy would take an empty list for one row without values.
        if values := [tuple(row) for row in rows]:
            connection.exec_driver_sql(insert, values)
        return
    driver = connection.connection.driver_connection
    if driver is None:
        raise StateError(f"the database connection was lost while {table.name} was written")
    with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def insert_or_update(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an ``INSERT`` with ``on_conflict_do_update``: two processes that add the same row do not fail."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def byte_ordered(connection: Connection, column: ColumnElement[str]) -> ColumnElement[str]:
    """Return the column for comparison and ordering by bytes."""
    return column if connection.dialect.name == "sqlite" else column.collate("C")


def unindexed(column: ColumnElement[int]) -> ColumnElement[int]:
    """Return a number for a comparison that planners must not look up in the column's index, because it holds for nearly every row."""
    return column + 0


def numbers_in(connection: Connection, numbers: Iterable[int]) -> ColumnElement[int]:
    """Return the numbers as the column of a table. Any number of them is one value of the statement."""
    if connection.dialect.name == "sqlite":
        return func.json_each(json.dumps(sorted(numbers))).table_valued(column("value", BigInteger)).c.value
    array = literal(sorted(numbers), postgresql.ARRAY(BigInteger))
    return func.unnest(array).table_valued(column("value", BigInteger)).render_derived().c.value


def has_prefix(connection: Connection, column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """Return the condition that a text starts with ``prefix`` and is longer. ``prefix`` must not be empty.

    An index on the column in byte order serves the condition.
    """
    by_bytes = byte_ordered(connection, column)
    return and_(by_bytes > prefix, by_bytes < prefix[:-1] + chr(ord(prefix[-1]) + 1))


# Statements vary with the scopes of the principals, and users may create any number of tokens.
_MAX_CACHED = 1000

P = ParamSpec("P")


def cache_statement(
    build: Callable[Concatenate[Connection, P], Select[Any]],
) -> Callable[Concatenate[Connection, P], Select[Any]]:
    """Decorator: cache the statement that a function builds, by dialect and arguments.

    The function may use only the dialect of its connection, and its arguments must be hashable. Values that differ between executions
    must be bind parameters.
    """
    cache: dict[Hashable, Select[Any]] = {}

    @wraps(build)
    def statement(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> Select[Any]:
        key = (connection.dialect.name, args, tuple(sorted(kwargs.items())))
        cached = cache.get(key)
        if cached is None:
            if len(cache) >= _MAX_CACHED:
                cache.clear()
            cached = cache[key] = build(connection, *args, **kwargs)
        return cached

    return statement
