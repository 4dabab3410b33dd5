"""``python -m federator.worker.prepare_class_archive``: one run over an empty directory, after which the JVM writes its class
archive.

Run it once after installation, so that the first command of a machine is as fast as later ones (``pipeline/class_archive.py``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from federator.pipeline import session
from federator.pipeline.class_archive import ClassArchive, find_class_archive
from federator.pipeline.java import find_java
from federator.service import Federator
from federator.settings import load_settings

_CONFIG = """
[sources.empty]
impl = "dir"
dir.root = "{base}/tables"
"""
#: in seconds: the JVM writes the archive after the process that started it has ended
_TIMEOUT_SECONDS = 120.0


def prepare_class_archive() -> ClassArchive | None:
    """Return the class archive, which is ready unless the JVM could not write it. None if there is no directory for it.

    Raise StateError if there is no Java, and CalledProcessError if the run failed.
    """
    archive = find_class_archive(find_java())
    if archive is None or archive.is_ready:
        return archive
    with tempfile.TemporaryDirectory() as base:
        Path(base, "tables").mkdir()
        file = Path(base, "federator.toml")
        file.write_text(_CONFIG.format(base=base), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "federator.worker.prepare_class_archive", str(file)], check=True)
        end = time.monotonic() + _TIMEOUT_SECONDS
        while not archive.is_ready and time.monotonic() < end:
            time.sleep(0.2)
    return archive


def _run(file: Path) -> None:
    federator = Federator.open(load_settings(file))
    federator.sync()
    federator.index.close()
    session.stop_session()


if __name__ == "__main__":
    if sys.argv[1:]:
        _run(Path(sys.argv[1]))
    else:
        prepare_class_archive()
