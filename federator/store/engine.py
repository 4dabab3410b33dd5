"""The opened index: read and write transactions on SQLite or PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from federator.connector import ConfigError
from federator.runtime.private_files import make_private
from federator.runtime.redaction import plain_location, register_secret
from federator.store.failures import describe_failure
from federator.store.fulltext import has_lexemes

# Long enough for the chunk of another writer, short enough to fail with a clear error.
_BUSY_SECONDS = 60
_ENGINE: dict[str, Any] = {
    "poolclass": QueuePool,
    # Connections stay open: a new one has no prepared statements and no cached pages. Those beyond 15 serve other principals while
    # slow requests hold these.
    "pool_size": 15,
    "max_overflow": 15,
    # Values of a statement are of any source, and some are secrets that a catalog stores: errors, which logs have, are without them.
    "hide_parameters": True,
}
# Page cache of one SQLite connection in KiB. Many readers share the memory; a single writer may write a million rows.
_READ_CACHE, _WRITE_CACHE = 8_192, 65_536


@dataclass(frozen=True)
class Index:
    """The open index. ``read`` and ``write`` return a connection inside a transaction. Safe to use from several threads."""

    engine: Engine

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @property
    def address(self) -> str:
        """Return the URL without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """Return the database file. None on PostgreSQL."""
        return Path(str(self.engine.url.database)) if self.is_sqlite else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read transaction. SQLite shows one state of the database; PostgreSQL shows each statement the state committed by then."""
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def read_consistently(self) -> Iterator[Connection]:
        """Read transaction in which all statements read one state of the database."""
        with self.read() as connection:
            if not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Write transaction, committed durably at the end and rolled back on an exception."""
        with self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        self.engine.dispose()


def parse_url(url: str) -> URL:
    """Parse the URL of an index. Raise ConfigError if it is invalid or names an unsupported database."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Without a user, which errors mask like a password.
        hint = "write sqlite:///federator.db, or postgresql+psycopg://host/database"
        raise ConfigError("[index] url: not a database URL", hint=hint) from None
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(f"[index] url: {parsed.get_backend_name()!r} is not supported", hint="sqlite or postgresql+psycopg")
    return parsed


def open_index(url: str, *, base: Path | None = None) -> Index:
    """Open the index without creating or migrating it. The path of a SQLite file is relative to ``base``.

    Raise ConfigError like ``parse_url``, and if the directory or the driver is missing.
    """
    parsed = parse_url(url)
    if parsed.password:
        register_secret(str(parsed.password))
    if parsed.get_backend_name() == "sqlite":
        return Index(_create_sqlite_engine(parsed.database or "federator.db", base or Path.cwd()))
    try:
        return Index(_create_postgresql_engine(url))
    except (NoSuchModuleError, ModuleNotFoundError):
        raise ConfigError(
            "[index] url: the PostgreSQL driver is missing", hint="pip install 'lance-federator[postgres]'"
        ) from None


def _create_sqlite_engine(database: str, base: Path) -> Engine:
    if database == ":memory:":
        raise ConfigError("[index] url: an index in memory cannot be shared with Spark", hint="sqlite:///federator.db")
    path = (base / database).absolute()
    if not path.parent.is_dir():
        raise ConfigError(f"[index] url: the directory {path.parent} does not exist")
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": _BUSY_SECONDS}, **_ENGINE)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: Any) -> None:
        # The listener ``begin`` starts transactions. The driver starts them DEFERRED, and a read that becomes a write fails as locked.
        connection.isolation_level = None
        _enable_wal(connection)
        # The connection has created a missing file, still without content. SQLite gives later files beside it the same mode.
        for suffix in ("", "-wal", "-shm"):
            make_private(path.with_name(path.name + suffix))
        for pragma in ("synchronous=FULL", "foreign_keys=ON", f"cache_size=-{_READ_CACHE}"):
            connection.execute(f"PRAGMA {pragma}")
        # The built-in lower() of SQLite handles ASCII only.
        connection.create_function("unicode_lower", 1, lambda text: text and text.lower(), deterministic=True)
        # Its result depends on the known secrets, so it is not deterministic.
        connection.create_function("plain_location", 1, lambda text: text and plain_location(text))
        connection.create_function("has_lexemes", 2, has_lexemes, deterministic=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        if writes:
            connection.info["wrote"] = True
            connection.exec_driver_sql(f"PRAGMA cache_size=-{_WRITE_CACHE}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @event.listens_for(engine, "checkin")
    def give_back(connection: sqlite3.Connection | None, record: ConnectionPoolEntry) -> None:
        # The pool reuses its connections, so without this each of them would end with the large cache of a writer.
        if connection is not None and record.info.pop("wrote", False):
            connection.execute(f"PRAGMA cache_size=-{_READ_CACHE}")

    return engine


def _enable_wal(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        return
    except sqlite3.OperationalError as error:
        if not _is_locked(error):
            raise
    # The first connections of a new file compete to change the mode. SQLite fails the losers at once, regardless of the timeout.
    import stamina

    retries = stamina.retry_context(on=_is_locked, attempts=20, wait_initial=0.05, wait_max=0.5, timeout=_BUSY_SECONDS)
    for attempt in retries:
        with attempt:
            connection.execute("PRAGMA journal_mode=WAL")


def _is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _create_postgresql_engine(url: str) -> Engine:
    engine = create_engine(url, pool_pre_ping=True, **_ENGINE)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = on")
        connection.commit()

    return engine


def check_reachable(index: Index) -> None:
    """Raise StateError with the cause if the database does not answer."""
    try:
        with index.read() as connection:
            connection.exec_driver_sql("SELECT 1")
    except DBAPIError as error:
        raise describe_failure(error, f"the index {index.address}") from None


def check_writable(index: Index) -> None:
    """Raise StateError if the database user may not write to the index's tables. Change nothing."""
    try:
        with index.write() as connection:
            connection.exec_driver_sql("UPDATE lease SET token = token WHERE 1 = 0")
    except DBAPIError as error:
        raise describe_failure(error, f"the index {index.address}") from None
