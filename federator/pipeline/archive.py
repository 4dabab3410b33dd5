"""The JVM's class archive: Spark's classes as the JVM has them in memory, with which a command starts seconds sooner.

The first JVM on a machine writes it when it ends, in the background, into the user's cache directory (about 200 MB); later ones map it.
A JVM checks that an archive is of its own build and class path, and does without one that is not (class data sharing, JEP 350).
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from federator.pipeline.java import Java

# A draft this old has no JVM any more that would finish it.
_ABANDONED = 3600.0


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """One archive: ``file`` once it is whole, ``draft`` while this process's JVM writes it."""

    file: Path

    @property
    def draft(self) -> Path:
        return self.file.with_suffix(f".{os.getpid()}.draft")

    @property
    def ready(self) -> bool:
        return self.file.is_file()

    @property
    def options(self) -> str:
        """The JVM's options: use it, or write it at the end."""
        return f"-XX:SharedArchiveFile={self.file}" if self.ready else f"-XX:ArchiveClassesAtExit={self.draft}"


def class_archive(java: Java) -> ClassArchive | None:
    """The archive of this Java and this Spark; None where there is nowhere to keep one."""
    import pyspark

    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(home) / "lance-federator"
    place = hashlib.sha256(f"{java.home}\n{Path(pyspark.__file__).parent}".encode()).hexdigest()[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob("*.draft"):
            if time.time() - draft.stat().st_mtime > _ABANDONED:
                draft.unlink(missing_ok=True)
    except OSError:
        return None
    return ClassArchive(folder / f"spark-{pyspark.__version__}-java{java.version}-{place}.jsa")
