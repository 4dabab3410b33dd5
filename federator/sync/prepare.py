"""``python -m federator.sync.prepare``: one run over an empty directory, at whose end the JVM writes its class archive.

Done once after installation, so that a machine's first command starts as fast as every later one (``pipeline/archive.py``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from federator.pipeline import session
from federator.pipeline.archive import ClassArchive, class_archive
from federator.pipeline.java import find_java
from federator.settings import load
from federator.sync import Federator

_CONFIG = """
[sources.empty]
impl = "dir"
dir.root = "{base}/tables"
"""
#: seconds: the JVM writes the archive when the process that ran it is gone
_PATIENCE = 120.0


def prepare() -> ClassArchive | None:
    """The archive, ready unless its JVM could not write it; None where there is nowhere to keep one.

    Raises StateError without a Java, CalledProcessError where the run failed.
    """
    archive = class_archive(find_java())
    if archive is None or archive.ready:
        return archive
    with tempfile.TemporaryDirectory() as base:
        Path(base, "tables").mkdir()
        file = Path(base, "federator.toml")
        file.write_text(_CONFIG.format(base=base), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "federator.sync.prepare", str(file)], check=True)
        end = time.monotonic() + _PATIENCE
        while not archive.ready and time.monotonic() < end:
            time.sleep(0.2)
    return archive


def _run(file: Path) -> None:
    federator = Federator.open(load(file))
    federator.sync()
    federator.index.close()
    session.stop()


if __name__ == "__main__":
    if sys.argv[1:]:
        _run(Path(sys.argv[1]))
    else:
        prepare()
