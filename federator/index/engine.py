"""Opening the index: one ``Index`` for SQLite and PostgreSQL, with readers, writers and the rules of each database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stamina
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from federator.connector import ConfigError
from federator.connector.secrets import remember
from federator.index.failures import describe_failure

# Long enough for another writer's chunk, short enough to be a clear error.
_BUSY_SECONDS = 60
# Connections are kept once they are open: a new one has no statement prepared and no page in memory.
_POOL: dict[str, Any] = {"pool_size": 15, "max_overflow": 0}
# Of each SQLite connection, in KiB: all that read together must leave room, and a million rows are written by one.
_READ_CACHE, _WRITE_CACHE = 8_192, 65_536


@dataclass(frozen=True)
class Index:
    """The open index. ``read`` and ``write`` give a connection inside a transaction; safe to use from several threads."""

    engine: Engine

    @property
    def sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @property
    def address(self) -> str:
        """The URL without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The database file of SQLite."""
        return Path(str(self.engine.url.database)) if self.sqlite else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A reading transaction: sees one state of the database on SQLite, the committed state of each statement on PostgreSQL."""
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A writing transaction, committed durably at the end and rolled back on an exception."""
        with self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        self.engine.dispose()


def open_index(url: str, *, base: Path | None = None) -> Index:
    """Opens (does not create or migrate) the index. Relative SQLite files count from ``base``.

    Raises ConfigError for a URL that names no database we know.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigError(
            "[index] url: not a database URL", hint="sqlite:///federator.db or postgresql+psycopg://user@host/db"
        ) from None
    if parsed.password:
        remember(str(parsed.password))
    if parsed.get_backend_name() == "sqlite":
        return Index(_sqlite(parsed.database or "federator.db", base or Path.cwd()))
    if parsed.get_backend_name() != "postgresql":
        raise ConfigError(f"[index] url: {parsed.get_backend_name()!r} is not supported", hint="sqlite or postgresql+psycopg")
    try:
        return Index(_postgresql(url))
    except (NoSuchModuleError, ModuleNotFoundError):
        raise ConfigError(
            "[index] url: the PostgreSQL driver is missing", hint="pip install 'lance-federator[postgres]'"
        ) from None


def _sqlite(database: str, base: Path) -> Engine:
    if database == ":memory:":
        raise ConfigError("[index] url: an index in memory cannot be shared with Spark", hint="sqlite:///federator.db")
    path = (base / database).absolute()
    if not path.parent.is_dir():
        raise ConfigError(f"[index] url: the directory {path.parent} does not exist")
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": _BUSY_SECONDS}, poolclass=QueuePool, **_POOL)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: Any) -> None:
        # We begin transactions ourselves: the driver's own are DEFERRED, and a read that turns into a write fails as locked.
        connection.isolation_level = None
        _write_ahead(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", f"cache_size=-{_READ_CACHE}"):
            connection.execute(f"PRAGMA {pragma}")
        # SQLite's own lower() knows ASCII only.
        connection.create_function("unicode_lower", 1, lambda text: text and text.lower(), deterministic=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        if writes:
            connection.info["wrote"] = True
            connection.exec_driver_sql(f"PRAGMA cache_size=-{_WRITE_CACHE}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @event.listens_for(engine, "checkin")
    def give_back(connection: sqlite3.Connection | None, record: ConnectionPoolEntry) -> None:
        # The pool hands its connections round: each of them would end with a writer's cache.
        if connection is not None and record.info.pop("wrote", False):
            connection.execute(f"PRAGMA cache_size=-{_READ_CACHE}")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    # The first connections of a new file race for the change of mode, and SQLite fails the losers at once, whatever the timeout.
    retries = stamina.retry_context(on=_is_locked, attempts=20, wait_initial=0.05, wait_max=0.5, timeout=_BUSY_SECONDS)
    for attempt in retries:
        with attempt:
            connection.execute("PRAGMA journal_mode=WAL")


def _is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _postgresql(url: str) -> Engine:
    engine = create_engine(url, poolclass=QueuePool, pool_pre_ping=True, **_POOL)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = on")
        connection.commit()

    return engine


def check_reachable(index: Index) -> None:
    """Raises StateError that says why the database does not answer."""
    try:
        with index.read() as connection:
            connection.exec_driver_sql("SELECT 1")
    except DBAPIError as error:
        raise describe_failure(error, f"the index {index.address}") from None


def check_writable(index: Index) -> None:
    """Raises StateError unless we may write to the index's tables; changes nothing."""
    try:
        with index.write() as connection:
            connection.exec_driver_sql("UPDATE lease SET token = token WHERE 1 = 0")
    except DBAPIError as error:
        raise describe_failure(error, f"the index {index.address}") from None
