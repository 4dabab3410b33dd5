"""Exit codes, and how an exception is told: one line, and a hint on a line of its own."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from federator.cli.output import shown
from federator.connector.errors import CatalogError, ConfigError, FederatorError, StateError

if TYPE_CHECKING:
    import typer

OK, FAILED, PENDING, PARTIAL, HELD, USAGE, INTERRUPTED = 0, 1, 2, 3, 4, 64, 130

CODES = {
    OK: "fine",
    FAILED: "failed",
    PENDING: "changes are pending (only with --detailed-exitcode)",
    PARTIAL: "partial: some source or namespace failed, or a change could not be attempted",
    HELD: "held by a guard, until a person approves",
    USAGE: "a mistake on the command line or in the configuration",
    INTERRUPTED: "interrupted",
}


class Interrupted(Exception):
    """The run was ended by a signal; carries the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


#: by the state of a run
OF_STATE = {"ok": OK, "partial": PARTIAL, "held": HELD, "failed": FAILED, "interrupted": INTERRUPTED}

TRACEBACK = "FEDERATOR_TRACEBACK"

_DISK_HINTS = {
    errno.ENOSPC: "free space on that disk, then run it again",
    errno.EROFS: "the file system is mounted read-only: mount it writable, or choose another path",
}


def report(error: FederatorError, *, json_format: bool = False) -> int:
    """Tells an expected error on stderr; returns the exit code."""
    if json_format:
        sys.stderr.write(json.dumps({"error": as_data(error)}, ensure_ascii=False) + "\n")
    else:
        say_error(error.message, error.hint)
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    return USAGE if isinstance(error, ConfigError) else FAILED


def say_error(message: str, hint: str | None = None) -> None:
    """``error: message`` and ``hint: ...`` on stderr."""
    sys.stderr.write(f"error: {shown(message, lines=True)}\n" + (f"hint: {shown(hint, lines=True)}\n" if hint else ""))


def as_data(error: FederatorError) -> dict[str, Any]:
    """An error as JSON data."""
    code = error.code if isinstance(error, CatalogError) else None
    return {"type": type(error).__name__, "code": code, "message": error.message, "hint": error.hint}


def split(text: str) -> tuple[str, str | None]:
    """Message and hint of an error that was kept as text."""
    message, _, hint = text.partition("\n  hint: ")
    return message, hint or None


def report_usage(error: typer.TyperException) -> int:
    """Tells a mistake on the command line, in our words."""
    ctx = getattr(error, "ctx", None)
    text = error.format_message().strip()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(text + "\n")
        return USAGE
    path = ctx.command_path if ctx is not None else "federator"
    say_error(text[:1].lower() + text[1:].rstrip("."), f"{path} --help")
    return USAGE


def report_unexpected(error: Exception) -> int:
    """Tells an error that nobody foresaw: a bug, or a failure below us."""
    first = (str(error).strip().splitlines() or [""])[0]
    say_error(f"unexpected {type(error).__name__}: {first[:500]}", f"{TRACEBACK}=1 shows where it happened")
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    return FAILED


def describe_failure(error: Exception) -> StateError | None:
    """A failure of the index's database or of a disk as an error with its remedy; None for any other exception."""
    if isinstance(error, OSError) and error.errno in _DISK_HINTS:
        where = f" {error.filename}" if error.filename else ""
        return StateError(f"cannot write{where}: {error.strerror}", hint=_DISK_HINTS[error.errno])
    # Imported here: commands without an index start faster without SQLAlchemy.
    from federator.index import DatabaseError, failures

    return failures.describe_failure(error) if isinstance(error, DatabaseError) else None
