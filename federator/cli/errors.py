"""Exit codes, and the output of errors: one line for the message, one for the hint."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from federator.cli.printer import escape_text, print_to_stderr
from federator.connector.errors import (
    CatalogError,
    ConfigError,
    FederatorError,
    InvalidInput,
    NamespaceNotFound,
    StateError,
    TableNotFound,
)
from federator.runtime.input_faults import describe_fault

if TYPE_CHECKING:
    import typer

OK, FAILED, PENDING, PARTIAL, HELD, USAGE, INTERRUPTED = 0, 1, 2, 3, 4, 64, 130

CODES = {
    OK: "success",
    FAILED: "failed",
    PENDING: "changes are pending (only with --detailed-exitcode)",
    PARTIAL: "partial: some source or namespace failed, a change could not be attempted, or apply skipped one",
    HELD: "held by a guard until the plan is approved",
    USAGE: "an error on the command line or in the configuration; no object, run or plan has the given name or id",
    INTERRUPTED: "interrupted",
}


class Interrupted(Exception):
    """The run was ended by a signal; ``code`` is the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


#: exit code by the state of a run
EXIT_CODE_BY_STATE = {"ok": OK, "partial": PARTIAL, "held": HELD, "failed": FAILED, "interrupted": INTERRUPTED}

# Errors of the caller: what was written is wrong, or nothing has the given name.
_MISTAKES = (ConfigError, InvalidInput, NamespaceNotFound, TableNotFound)

TRACEBACK = "FEDERATOR_TRACEBACK"

_DISK_HINTS = {
    errno.ENOSPC: "free space on that disk, then run it again",
    errno.EROFS: "the file system is mounted read-only: mount it writable, or choose another path",
    errno.EACCES: "let this user read and write there, or choose another path",
}


def print_error(error: FederatorError, *, json_format: bool = False, format_hint: Callable[[str], str] = str) -> int:
    """Print an expected error on stderr. Return the exit code."""
    if json_format:
        sys.stderr.write(json.dumps({"error": error_to_json(error)}, ensure_ascii=False) + "\n")
    else:
        print_message(error.message, format_hint(error.hint) if error.hint else None)
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    return USAGE if isinstance(error, _MISTAKES) or _is_unknown_id(error) else FAILED


def _is_unknown_id(error: FederatorError) -> bool:
    if not isinstance(error, StateError):
        return False
    # Import late: commands that do not read the index start faster without SQLAlchemy.
    from federator.store.failures import UnknownId

    return isinstance(error, UnknownId)


def print_message(message: str, hint: str | None = None) -> None:
    """Print ``error: message`` and ``hint: ...`` on stderr."""
    print_to_stderr(f"error: {escape_text(message, lines=True)}")
    if hint:
        print_to_stderr(f"hint: {escape_text(hint, lines=True)}")


def error_to_json(error: FederatorError) -> dict[str, Any]:
    """Return an error as JSON data."""
    code = error.code if isinstance(error, CatalogError) else None
    return {"type": type(error).__name__, "code": code, "message": error.message, "hint": error.hint}


def print_usage_error(error: typer.TyperException) -> int:
    """Print an error on the command line in the federator's format. Return the exit code."""
    ctx = getattr(error, "ctx", None)
    # Typer passes on pydantic's text of a wrong value.
    if callable(faults := getattr(error.__cause__, "errors", None)):
        error.message = " or ".join(map(describe_fault, faults()))
    text = error.format_message().strip()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(text + "\n")
        return USAGE
    path = ctx.command_path if ctx is not None else "federator"
    # A missing or superfluous argument: the first line of the help says what there is.
    if ctx is not None and "argument" in text:
        path = re.sub("Usage: |[{}]", "", ctx.get_usage()) + f"; {path}"
    print_message(text[:1].lower() + text[1:].rstrip("."), f"{path} --help")
    return USAGE


def print_unexpected_error(error: Exception) -> int:
    """Print an unexpected error: a bug, or an unhandled failure of a library. Return the exit code."""
    first = (str(error).strip().splitlines() or [""])[0]
    print_message(f"unexpected {type(error).__name__}: {first[:500]}", f"{TRACEBACK}=1 shows where it happened")
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    return FAILED


def describe_failure(error: Exception) -> StateError | None:
    """Return a failure of the index's database or of a disk as an error with a hint; None for any other exception."""
    if isinstance(error, OSError) and error.errno in _DISK_HINTS:
        where = f" {error.filename}" if error.filename else ""
        action = "no access to" if error.errno == errno.EACCES else "cannot write"
        return StateError(f"{action}{where}: {error.strerror}", hint=_DISK_HINTS[error.errno])
    # Import late: commands without an index start faster without SQLAlchemy.
    from federator.store import DatabaseError, failures

    return failures.describe_failure(error) if isinstance(error, DatabaseError) else None
