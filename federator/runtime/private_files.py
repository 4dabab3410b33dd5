"""Modes of files: those that only the user of this process may read (the index, configuration, plan files), and the umask of others."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def create_private_text(path: Path, text: str) -> None:
    """Write a new file that only its owner may read. Raise FileExistsError if there is one, or a link; raise OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def write_private_text(path: Path, text: str) -> None:
    """Write a file that only its owner may read, also if it exists and others may read it. Raise OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            with suppress(OSError):
                os.fchmod(descriptor, 0o600)
        file.write(text)


def make_private(path: Path) -> None:
    """Take access to a file from all other users. The file is not opened: closing it would end SQLite's locks of this process.

    A file of another user, or on a read-only file system, stays as it is: ``is_readable_by_others`` tells.
    """
    if is_readable_by_others(path):
        with suppress(OSError):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)


def is_readable_by_others(path: Path) -> bool:
    """Return whether a file exists, and users other than its owner have any access to it."""
    try:
        return bool(path.stat().st_mode & _OTHERS)
    except OSError:
        return False


def process_umask() -> int:
    """Return the umask of this process."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    # Elsewhere it is only returned when it is set.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
