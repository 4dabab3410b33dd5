"""Database failures with their remedies, for example a full disk or an unreachable server."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from federator.connector import StateError

_ROLLED_BACK = "the transaction was rolled back, and the next run resolves what was in flight"


class UnknownId(StateError):
    """No row, or more than one, has the given id or prefix: a mistake of the caller on the command line."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """A kind of failure: prefixes of its codes in SQLite and PostgreSQL, a message and the remedy."""

    sqlite: tuple[str, ...]
    sqlstates: tuple[str, ...]
    message: str
    hint: str


_NO_ANSWER = _Failure((), ("53", "57", "08"), "the database does not answer", "check the server and its connection limit")
_CONNECTION_HINT = (
    "check host, port, user, password and database of [index] url, and that the server runs and has free connections"
)
# Codes: https://www.sqlite.org/rescode.html, https://www.postgresql.org/docs/current/errcodes-appendix.html. The first match counts.
_FAILURES = (
    _Failure(
        ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"), ("53100",), "its disk is full",
        f"free space where the index is, then run it again: {_ROLLED_BACK}; federator db prune removes old history",
    ),
    _Failure(
        ("SQLITE_READONLY",), ("25006", "42501"), "it cannot be written to",
        "give the service's user write access to the file and its directory, or to the tables; federator doctor checks it",
    ),
    _Failure(
        ("SQLITE_CANTOPEN",), (), "it cannot be opened",
        "check [index] url, and that the service's user may open it; federator doctor checks it",
    ),
    _Failure(
        ("SQLITE_BUSY", "SQLITE_LOCKED"), ("55P03", "40"), "another process kept it locked",
        "run it again when the other process has finished; federator runs lists the runs",
    ),
    _Failure(
        ("SQLITE_IOERR", "SQLITE_PROTOCOL"), ("58",), "its disk failed",
        f"check the disk and its mount, then run it again: {_ROLLED_BACK}; SQLite needs a local disk, not a network share",
    ),
    _Failure(
        ("SQLITE_CORRUPT", "SQLITE_NOTADB"), ("XX",), "it is damaged",
        "restore a backup, then federator instance confirm and federator ledger rebuild",
    ),
    _NO_ANSWER,
)  # fmt: skip


def describe_failure(error: SQLAlchemyError, index: str = "the index") -> StateError:
    """Return the error to show to a user, with its cause and remedy. ``index`` names the index without its password."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = str(cause).strip().splitlines()
    text = f": {lines[0]}" if lines else ""
    for failure in _FAILURES:
        if _matches(failure, cause):
            return StateError(f"{index} failed, {failure.message}{text}", hint=failure.hint)
    disconnected = isinstance(error, DBAPIError) and error.connection_invalidated
    if not disconnected and _is_connection_failure(cause):
        return StateError(f"{index} cannot be opened{text.replace('connection failed: ', '', 1)}", hint=_CONNECTION_HINT)
    hint = _NO_ANSWER.hint if disconnected else "federator doctor checks the index"
    return StateError(f"{index} failed{text or f': {type(cause).__name__}'}", hint=hint)


def describe_error(error: BaseException) -> str:
    """Return the text of an error for people, with its remedy. A failure of the index is without its SQL."""
    return str(describe_failure(error) if isinstance(error, SQLAlchemyError) else error) or type(error).__name__


def _matches(failure: _Failure, cause: BaseException | None) -> bool:
    if isinstance(cause, sqlite3.Error):
        # The extended codes begin with the primary one: SQLITE_READONLY_DBMOVED.
        return getattr(cause, "sqlite_errorname", "").startswith(failure.sqlite)
    return _sqlstate(cause).startswith(failure.sqlstates)


def _is_connection_failure(cause: BaseException | None) -> bool:
    # psycopg reports no SQLSTATE if it could not connect: a wrong password and a wrong port differ in the server's words alone.
    return type(cause).__name__ == "OperationalError" and not isinstance(cause, sqlite3.Error) and not _sqlstate(cause)


def _sqlstate(cause: BaseException | None) -> str:
    """Return the SQLSTATE of an error of PostgreSQL; empty if it has none."""
    return getattr(cause, "sqlstate", None) or ""
