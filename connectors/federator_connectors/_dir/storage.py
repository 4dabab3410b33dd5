"""One directory of Lance tables on a file system or in an object store, through ``pyarrow.fs``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from federator.connector.stores import place, translated

# A probe of many paths is one call that the file system works off in parallel.
_PROBES = 1000


class Directory:
    """The directory at ``root``: an absolute or relative path, or a URI of a store that ``stores`` knows.

    ``storage`` are Lance's own storage options (``region``, ``aws_region``, ``endpoint``, ...). Raises CatalogError only.
    """

    def __init__(self, root: str, storage: Mapping[str, str]) -> None:
        with translated(root):
            self._at = place(root, storage)
        self.root = root

    def location(self, *names: str) -> str:
        """The location of something inside, as Lance opens it."""
        return self._at.location(*names)

    def subdirectories(self) -> tuple[list[str], int]:
        """The names of the directories inside, and how many others have a name that is no text (not UTF-8).

        A directory that is not there is ServiceUnavailable, never an empty list.
        """
        from pyarrow.fs import FileSelector, FileType

        with translated(self.root):
            found = self._at.system.get_file_info(FileSelector(self._at.base, recursive=False))
        names = [_name(info) for info in found if info.type == FileType.Directory]
        return [name for name in names if name is not None], names.count(None)

    def holding(self, names: Sequence[str], file: str) -> set[str]:
        """Those of the subdirectories ``names`` that hold something called ``file``."""
        return {name for name, kind in self._kinds(names, f"/{file}") if kind is not None}

    def among(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that are subdirectories, in order.

        Where none is, the directory itself was seen to be there; of an object store, where a prefix exists only as long as
        something is in it, the bucket.
        """
        found = [name for name, kind in self._kinds(names, "") if kind == "Directory"]
        if not found:
            self._present()
        return found

    def _present(self) -> None:
        from pyarrow.fs import FileType

        with translated(self.root):
            info = self._at.system.get_file_info(self._at.base if self._at.tree else self._at.base.split("/")[0])
            if info.type == FileType.NotFound:
                raise FileNotFoundError(self.root)

    def _kinds(self, names: Sequence[str], below: str) -> Iterator[tuple[str, str | None]]:
        from pyarrow.fs import FileType

        for start in range(0, len(names), _PROBES):
            chunk = names[start : start + _PROBES]
            with translated(self.root):
                infos = self._at.system.get_file_info([f"{self._at.base}/{name}{below}" for name in chunk])
            for name, info in zip(chunk, infos, strict=True):
                yield name, None if info.type == FileType.NotFound else info.type.name

    def make(self, name: str) -> bool:
        """Makes the subdirectory ``name``; False if it is there already. Decided by the file system itself where it can."""
        with translated(self.root):
            if not self._at.local:
                # An object store has no directories: the first object makes one. Nor can HDFS say who was first.
                return not any(kind for _, kind in self._kinds([name], ""))
            try:
                FilePath(self._at.base, name).mkdir()
            except FileExistsError:
                return False
        return True

    def mark(self, path: str) -> None:
        """Writes an empty file; harmless if it is there."""
        with translated(self.root), self._at.system.open_output_stream(f"{self._at.base}/{path}"):
            pass

    def unmark(self, path: str) -> None:
        """Removes a file that ``mark`` wrote."""
        with translated(self.root):
            self._at.system.delete_file(f"{self._at.base}/{path}")


def _name(info: Any) -> str | None:
    try:
        return str(info.base_name)
    except UnicodeDecodeError:
        return None
