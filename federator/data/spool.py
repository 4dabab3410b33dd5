"""Temporary files of request bodies and responses, with a limit for each principal."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from federator.connector import Throttled


@dataclass(slots=True)
class SpoolFile:
    """An empty file that its user fills. As a context manager, it is closed at the end."""

    path: Path
    _spool: Spool
    _principal: str
    _size: int = 0

    def count(self, size: int) -> None:
        """Count ``size`` further bytes. Raise Throttled if the principal's files are too large together."""
        self._spool.count(self._principal, size)
        self._size += size

    def close(self) -> None:
        """Remove the file, and count it no longer."""
        self.path.unlink(missing_ok=True)
        self._spool.count(self._principal, -self._size)
        self._size = 0

    def __enter__(self) -> SpoolFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Spool:
    """The files of one process. Thread-safe.

    The open files of one principal (a name) have at most ``limit`` bytes together. A client that does not read its responses, or sends
    its bodies slowly, would otherwise fill the disk.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._directory: Path | None = None

    def open(self, principal: str) -> SpoolFile:
        with self._lock:
            if self._directory is None:
                self._directory = Path(tempfile.mkdtemp(prefix="federator-data-"))
        with tempfile.NamedTemporaryFile(dir=self._directory, delete=False) as file:
            return SpoolFile(Path(file.name), self, principal)

    def count(self, principal: str, size: int) -> None:
        """Count ``size`` bytes of a principal's files; none if Throttled is raised."""
        with self._lock:
            total = self._sizes[principal] + size
            if size > 0 and total > self._limit:
                raise Throttled(
                    f"the request bodies and responses that are being sent to or by this principal exceed {self._limit} bytes",
                    hint="read or close the responses of other requests first",
                )
            self._sizes[principal] = total
            if not total:
                del self._sizes[principal]

    def close(self) -> None:
        """Remove every file."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
