"""The caches from which Hive 3.1.3 and 4.0.1 are started, without a download."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from federator.connector import StateError
from federator.demo.servers import hive, hive_jars


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(hive_jars, "create_template", lambda version, target: (target / "metastore_db").mkdir())
    return tmp_path / "lance-federator"


def test_two_processes_may_make_the_cache_at_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both_ask = threading.Barrier(2, timeout=10)
    fetched: list[str] = []

    def fetch(version: str, target: Path) -> None:
        fetched.append(version)
        (target / "lib").mkdir()

    def ask() -> None:
        both_ask.wait()
        made.append(hive_jars.prepare("4.0.1"))

    monkeypatch.setattr(hive_jars, "fetch", fetch)
    made: list[Path] = []
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [cache / "hive-4.0.1"] * 2
    assert fetched == ["4.0.1"]
    assert sorted(entry.name for entry in cache.iterdir()) == ["hive-4.0.1", "maven.lock"]
    assert sorted(entry.name for entry in made[0].iterdir()) == ["lib", "metastore_db"]
    assert hive_jars.prepare("4.0.1") == made[0]


def test_a_cache_that_could_not_be_made_is_not_left_half_made(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert not hive.hive3_available()
    for version, variable in (("3.1.3", "HIVE3_URI"), ("4.0.1", "HIVE4_URI")):
        with pytest.raises(StateError, match=variable):
            hive_jars.prepare(version)
    assert [entry.name for entry in cache.iterdir()] == ["maven.lock"]


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["somewhere"], ["somewhere", "4"], ["somewhere", "4.0.1", "no equals sign"]):
        assert hive.main(wrong) == 64
        assert "2.3|3.1.3|4.0.1" in capsys.readouterr().err
