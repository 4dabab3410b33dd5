"""Directories that stay the same while a table is checked and then opened, whatever its owner does with its name.

Between the check of a path and its use, the owner of a directory can replace it by a link into another table. An open descriptor keeps
the directory, and Linux gives it a path of its own below /proc. The directories in it can still be replaced.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from federator.connector import PermissionDenied
from federator.model import local_path

_DESCRIPTORS = "/proc/self/fd"
# The path of a pinned directory in texts of Lance, with or without its first slash.
_PINNED_PATH = re.compile(r"(/?)proc/self/fd/(?:\d+|none)")
_CAN_PIN = hasattr(os, "O_PATH") and Path(_DESCRIPTORS).is_dir()
# A path at which nothing can be created.
_NOTHING = f"{_DESCRIPTORS}/none"


@dataclass(frozen=True, slots=True)
class PinnedDirectory:
    """An open directory. ``path`` leads to it and nowhere else; ``target`` was its real path when it was opened.

    Without a target, there is no directory, and nothing can be opened or created at ``path``.
    """

    path: str
    target: str | None = None


def show_location(text: str, location: str) -> str:
    """Return a text of Lance with the path of a local location in place of that of its pinned directory."""
    path = local_path(location)
    return text if path is None else _PINNED_PATH.sub(lambda match: match[1] + path.lstrip("/"), text)


@contextmanager
def pin_directory(location: str) -> Iterator[PinnedDirectory | None]:
    """Open the directory of a local location for a block. None for other locations, and on systems without /proc.

    Raise PermissionDenied if it cannot be opened.
    """
    path = local_path(location)
    if path is None or not _CAN_PIN:
        yield None
        return
    try:
        descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        yield PinnedDirectory(_NOTHING)
        return
    except OSError as error:
        raise PermissionDenied(f"the directory of the table cannot be opened: {error.strerror}") from error
    try:
        pinned = f"{_DESCRIPTORS}/{descriptor}"
        yield PinnedDirectory(pinned, str(Path(pinned).readlink()))
    finally:
        os.close(descriptor)


def delete_directory(pinned: PinnedDirectory, location: str) -> None:
    """Delete the content of the pinned directory of a local location, and then its name. A link in it is removed, and not followed.

    Raise OSError. The name stays if it is no longer that of an empty directory.
    """
    descriptor = os.open(pinned.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for entry in list(os.scandir(descriptor)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.name, dir_fd=descriptor)
            else:
                os.unlink(entry.name, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    with suppress(OSError):
        Path(str(local_path(location))).rmdir()


@contextmanager
def create_directory(location: str) -> Iterator[PinnedDirectory | None]:
    """Create the directory of a local location and pin it for a block. It is removed if the block fails and leaves it empty.

    Raise PermissionDenied if it cannot be created.
    """
    path = local_path(location)
    if path is None:
        yield None
        return
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise PermissionDenied(f"the directory of the table cannot be created: {error}") from error
    with pin_directory(location) as pinned:
        try:
            yield pinned
        except BaseException:
            with suppress(OSError):
                Path(path).rmdir()
            raise
