"""The JVM's class archive: a memory image of Spark's classes, with which a command starts seconds faster.

The first JVM on a machine writes it on exit, in the background, into the user's cache directory (about 200 MB). Later JVMs map it.
A JVM ignores an archive of another build or class path (class data sharing, JEP 350).
A cold ``sync`` of eight tables takes a quarter less CPU time with it (30 s instead of 41 s on two cores).
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from federator.pipeline.java import Java

# A draft older than this has no JVM that would complete it.
_ABANDONED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """One archive: ``file`` when it is complete, ``draft`` while this process's JVM writes it."""

    file: Path

    @property
    def draft(self) -> Path:
        return self.file.with_suffix(f".{os.getpid()}.draft")

    @property
    def is_ready(self) -> bool:
        return self.file.is_file()

    @property
    def jvm_options(self) -> str:
        """The JVM options that use the archive, or write it on exit."""
        return f"-XX:SharedArchiveFile={self.file}" if self.is_ready else f"-XX:ArchiveClassesAtExit={self.draft}"

    @property
    def keep_command(self) -> str:
        """The shell command that keeps what a JVM wrote on exit. Empty if the archive is ready."""
        return "" if self.is_ready else f'[ -f "{self.draft}" ] && mv "{self.draft}" "{self.file}"'


def find_class_archive(java: Java) -> ClassArchive | None:
    """Return the archive of this Java and this Spark, and delete abandoned drafts. None if there is no directory for it."""
    import pyspark

    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(home) / "lance-federator"
    key = hashlib.sha256(f"{java.home}\n{Path(pyspark.__file__).resolve().parent}".encode()).hexdigest()[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob("*.draft"):
            if time.time() - draft.stat().st_mtime > _ABANDONED_SECONDS:
                draft.unlink(missing_ok=True)
    except OSError:
        return None
    return ClassArchive(folder / f"spark-{pyspark.__version__}-java{java.version}-{key}.jsa")
