"""Scans of real directories: recognised tables, and gaps, which are never empty directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from federator.connector import ConfigError, SourceSpec
from federator.model import LocationAliases, canonical_location
from federator.pipeline import directory_lister, scan
from federator.pipeline.directory_lister import DirectoryListing
from federator.pipeline.scan import ScanSpec
from federator.runtime import child_process
from federator.runtime.child_process import ChildProcess
from federator.settings import parse_settings
from federator.store import Index, roots
from federator.store.roots import ScanGap, ScanResult
from tests.fixtures.index_reads import list_scans


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for table in ("a.lance", "deep/er/b", "a.lance/tree/branch", "skip/c.lance"):
        (tmp_path / "lake" / table / "_versions").mkdir(parents=True)
        (tmp_path / "lake" / table / "_versions" / "1.manifest").write_bytes(b"x")
    (tmp_path / "lake" / "torn" / "_versions").mkdir(parents=True)
    (tmp_path / "lake" / "deep" / "round").symlink_to(tmp_path / "lake")
    return tmp_path / "lake"


def walk(lake: Path, *, budget: int = 100, depth: int = 12, path: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Return the rows of one task by kind. Locations are relative to the lake."""
    skip = canonical_location(f"{lake}/skip")
    spec = ScanSpec(SourceSpec("disk", "dir", {"root": str(lake)}), str(lake), depth, (skip,), 60.0, 1000)
    rows: dict[str, list[str]] = {}
    for kind, body in scan._walk_directories(spec, [path], budget):
        rows.setdefault(kind, []).append(body.replace(f"file://{lake}", "").replace(str(lake), ""))
    return rows


class InProcess:
    """The lister without its process. ``fault`` acts before it."""

    fault: Callable[[list[str]], None] = staticmethod(lambda _: None)

    def __init__(self, module: str) -> None:
        assert module == "federator.pipeline.directory_lister"

    def request(self, request: dict[str, object], timeout: float) -> dict[str, object]:
        path = list(request["path"])  # type: ignore[call-overload]
        self.fault(path)
        return asdict(directory_lister.list_directory(str(request["root"]), {}, path))

    def kill(self) -> None:
        pass


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "ChildProcess", InProcess)
    monkeypatch.setattr(InProcess, "fault", staticmethod(lambda _: None))


def test_a_table_has_manifests_and_nothing_in_it_is_one(lake: Path) -> None:
    assert walk(lake) == {
        "table": ["/a.lance", "/deep/er/b"],
        # The root, a.lance, deep, er, b, torn; neither links nor what is left out.
        "summary": [json.dumps({"listed": 6, "vanished": False})],
    }


def test_directories_beyond_the_limit_are_left_to_another_task(lake: Path) -> None:
    assert sorted(walk(lake, budget=1)["left"]) == ['["a.lance"]', '["deep"]', '["torn"]']


def test_depth_is_a_gap(lake: Path) -> None:
    rows = walk(lake, depth=1)
    assert rows["table"] == ["/a.lance"]
    assert [(gap["location"], gap["code"]) for gap in map(json.loads, rows["gap"])] == [("/deep", "depth")]


def test_a_root_that_is_not_there_or_holds_nothing_is_not_empty(tmp_path: Path) -> None:
    for name, code in (("none", "unreachable"), ("bare", "failed")):
        (tmp_path / "bare").mkdir(exist_ok=True)
        (gap,) = map(json.loads, walk(tmp_path / name)["gap"])
        assert (gap["location"], gap["code"]) == ("", code)


def test_a_store_that_does_not_respond_gets_three_requests_and_no_more(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[list[str]] = []

    def silent(path: list[str]) -> None:
        if path:
            requested.append(path)
            raise TimeoutError

    monkeypatch.setattr(InProcess, "fault", staticmethod(silent))
    for name in ("x", "y", "z"):
        (lake / name).mkdir()
    gaps = [json.loads(gap) for gap in walk(lake)["gap"]]
    assert (len(requested), len(gaps), {gap["code"] for gap in gaps}) == (3, 6, {"unreachable"})


def test_the_process_answers_as_the_function_does(lake: Path) -> None:
    child = ChildProcess("federator.pipeline.directory_lister")
    try:
        response = child.request({"root": str(lake), "storage": {}, "path": ["a.lance"]}, 60.0)
    finally:
        child.kill()
    listing = directory_lister.list_directory(str(lake), {}, ["a.lance"])
    assert listing == DirectoryListing(f"file://{lake}/a.lance", "table")
    assert response == {**asdict(listing), "directories": []}


@pytest.fixture
def index(sqlite_index: Index) -> Index:
    return sqlite_index


def test_only_a_listing_forgets_a_table(index: Index) -> None:
    def save_scan(state: str, orphans: list[str], *gaps: ScanGap) -> list[str]:
        row = ScanResult("lake", "s3://b", state, None, 1.0, 1, len(orphans), len(gaps))
        with index.write() as connection:
            roots.save_scan(connection, row, orphans, gaps, LocationAliases())
            return [orphan.canonical for orphan in roots.iter_orphans(connection)]

    assert save_scan("complete", ["s3a://b/x/1", "s3://b/y/2"]) == ["s3://b/x/1", "s3://b/y/2"]
    assert save_scan("failed", [], ScanGap("s3://b", "denied", "no")) == ["s3://b/x/1", "s3://b/y/2"]
    assert save_scan("partial", [], ScanGap("s3://b/x", "denied", "no")) == ["s3://b/x/1"]
    assert save_scan("complete", ["s3://b/z"]) == ["s3://b/z"]
    ((last_scan, gaps),) = list_scans(index)
    assert (last_scan.state, last_scan.tables, gaps) == ("complete", 1, [])
    with index.write() as connection:
        roots.delete_other_roots(connection, [])
        assert list(roots.iter_orphans(connection)) == []
    assert list_scans(index) == []
    index.close()


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"location": "lake"}, "location"),
        ({"location": "s3://b", "source": "none"}, "no source is called 'none'"),
        ({"location": "s3://b", "storage": {"secret_access_key": "clear"}}, "a secret must not stand in the file"),
        ({"location": "s3://b/x", "exclude": ["s3://b/y"]}, "is not below"),
        ({"location": "s3://b", "deep": 3}, "allowed: location, source, storage, depth"),
    ],
)
def test_a_mistake_in_a_root_is_named(root: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_settings({"roots": {"lake": root}}, tmp_path / "federator.toml")
    assert "[roots.lake]" in caught.value.message
