"""Unpacking a Hive distribution, on every Python that the project supports (``make pythons``)."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from federator.connector import StateError
from federator.demo.servers.hive_jars import JVM_OPTIONS_VARIABLE, extract, jvm_options


def archive_of(directory: Path, names: list[str]) -> Path:
    path = directory / "hive.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
        link = tarfile.TarInfo("hive/lib/link.jar")
        link.type, link.linkname = tarfile.SYMTYPE, "hive-common.jar"
        tar.addfile(link)
    return path


def test_only_the_jars_and_scripts_that_a_metastore_needs_are_unpacked(tmp_path: Path) -> None:
    needed = ["hive/lib/hive-common.jar", "hive/scripts/metastore/upgrade/derby/schema.sql"]
    archive = archive_of(tmp_path, [*needed, "hive/lib/log4j-core.jar", "hive/scripts/upgrade/mysql/schema.sql", "hive/NOTICE"])
    target = tmp_path / "target"
    target.mkdir()
    extract(archive, target)
    files = {str(path.relative_to(target)): path.read_text() for path in target.rglob("*") if not path.is_dir()}
    assert files == {name.removeprefix("hive/"): name for name in needed}


def test_a_member_outside_of_the_directory_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(StateError, match="outside"):
        extract(archive_of(tmp_path, ["hive/lib/../../../escaped.jar"]), target)
    assert not (tmp_path.parent / "escaped.jar").exists()


def test_options_of_the_environment_replace_those_of_all_metastores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JVM_OPTIONS_VARIABLE, "-XX:TieredStopAtLevel=4 -Dname=value")
    options = jvm_options(tmp_path)
    assert [option for option in options if option.startswith("-XX:Tiered")] == [
        "-XX:TieredStopAtLevel=1",
        "-XX:TieredStopAtLevel=4",
    ]
    assert "-Dname=value" in options
