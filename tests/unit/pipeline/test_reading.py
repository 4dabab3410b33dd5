"""Reading of a crawl task: each namespace ends with its coverage, and a failure is never an empty list."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import ClassVar

import pytest

from federator.connector import (
    Capabilities,
    Catalog,
    ConfigError,
    Connector,
    ConnectorSettings,
    PermissionDenied,
    ServiceUnavailable,
    Shard,
    SourceSpec,
)
from federator.model import ROOT, Coverage, NamespaceRecord, Path, Record, TableRecord, path_key
from federator.pipeline.datasource import LanceCatalogSource
from federator.pipeline.shard_reader import CrawlTask, Item, plan_crawl_tasks, read_crawl_task
from federator.planning.identity import IdentityReading
from federator.testing import MemoryStore, get_memory_store
from federator.testing.contract import unique_name

MEMORY = "federator.testing:CONNECTOR"
SPEC = SourceSpec("lake", f"{__name__}:CONNECTOR")
SHARDS = tuple(Shard((path,)) for path in (("one",), ("two",), ("three",)))
GENEROUS = 30.0


class _Script(Catalog):
    """A catalog that does what a test says, and remembers who was asked what."""

    source = "lake"
    reads: ClassVar[Callable[[_Script, Shard], Iterator[Record | Coverage]]]
    cut: ClassVar[Callable[[], Sequence[Shard]]]
    opening: ClassVar[Callable[[], None]]
    opened: ClassVar[list[_Script]] = []

    def __init__(self) -> None:
        self.closed = False
        self.asked: list[Shard] = []
        _Script.opening()
        _Script.opened.append(self)

    def plan_shards(self) -> Sequence[Shard]:
        return _Script.cut()

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        self.asked.append(shard)
        return _Script.reads(self, shard)

    def close(self) -> None:
        self.closed = True

    def list_namespaces(self, parent: Path) -> list[str]:
        return []

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        return NamespaceRecord(self.source, path)

    def list_tables(self, namespace: Path) -> list[str]:
        return []

    def describe_table(self, path: Path) -> TableRecord:
        return TableRecord(self.source, path)


class _ScriptConnector(Connector[ConnectorSettings]):
    impl = "script"
    settings_type = ConnectorSettings
    capabilities = Capabilities(1, 1)

    def open(self, source: str, settings: ConnectorSettings) -> Catalog:
        return _Script()


CONNECTOR = _ScriptConnector()


def well(_: _Script, shard: Shard) -> Iterator[Record | Coverage]:
    for namespace in shard.namespaces:
        yield TableRecord("lake", (*namespace, "t"), "s3://x")
        yield Coverage("lake", namespace, records=1)


@pytest.fixture(autouse=True)
def _well_behaved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Script, "opened", [])
    does(monkeypatch)


def does(
    monkeypatch: pytest.MonkeyPatch,
    reads: Callable[[_Script, Shard], Iterator[Record | Coverage]] = well,
    cut: Callable[[], Sequence[Shard]] = lambda: SHARDS,
    opening: Callable[[], None] = lambda: None,
) -> None:
    for name, what in (("reads", reads), ("cut", cut), ("opening", opening)):
        monkeypatch.setattr(_Script, name, staticmethod(what), raising=False)


def read(deadline: float = GENEROUS, shards: tuple[Shard, ...] = SHARDS) -> tuple[set[str], dict[str, Coverage]]:
    """The tables and the Coverage, by key, of a slot with these shards."""
    read_items = read_crawl_task(SPEC, CrawlTask(0, shards), deadline)
    items: list[Item] = [item for item in read_items if not isinstance(item, IdentityReading)]
    covered = [item for item in items if isinstance(item, Coverage)]
    assert len(covered) == len({item.key for item in covered}), "a namespace was covered twice"
    return {item.key for item in items if not isinstance(item, Coverage)}, {item.key: item for item in covered}


class TestAShardThatFails:
    @pytest.mark.parametrize(
        ("error", "code"), [(PermissionDenied("no"), 15), (ServiceUnavailable("down"), 17), (KeyError("x"), 18)]
    )
    def test_the_others_are_read_all_the_same(self, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int) -> None:
        def reads(catalog: _Script, shard: Shard) -> Iterator[Record | Coverage]:
            if shard.namespaces == (("two",),):
                yield TableRecord("lake", ("two", "partial"), "s3://x")
                raise error
            yield from well(catalog, shard)

        does(monkeypatch, reads)
        tables, coverage = read()
        assert tables == {"one$t", "two$partial", "three$t"}
        assert {key for key, each in coverage.items() if each.complete} == {"one", "three"}
        assert coverage["two"].presence.code == coverage["two"].detail.code == code

    def test_namespaces_that_were_covered_before_it_broke_stay_covered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def reads(_: _Script, shard: Shard) -> Iterator[Record | Coverage]:
            yield Coverage("lake", shard.namespaces[0])
            raise ServiceUnavailable("down")

        does(monkeypatch, reads)
        _, coverage = read(shards=(Shard((("one",), ("two",))),))
        assert (coverage["one"].complete, coverage["two"].complete) == (True, False)

    def test_a_connectors_own_mistake_says_which_and_not_with_what(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def reads(_: _Script, __: Shard) -> Iterator[Record | Coverage]:
            raise ValueError("password hunter2")
            yield

        does(monkeypatch, reads)
        reason = read()[1]["one"].presence.reason
        assert "ValueError" in reason
        assert "hunter2" not in reason


class TestAShardThatHangs:
    def test_it_costs_its_deadline_once_and_the_rest_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        go_on = threading.Event()

        def reads(catalog: _Script, shard: Shard) -> Iterator[Record | Coverage]:
            if shard.namespaces == (("one",),):
                go_on.wait(GENEROUS)
            yield from well(catalog, shard)

        does(monkeypatch, reads)
        began = time.monotonic()
        tables, coverage = read(deadline=0.3)
        took = time.monotonic() - began
        go_on.set()
        assert tables == {"two$t", "three$t"}
        assert coverage["one"].presence.code == 17
        assert "0.3 s" in coverage["one"].presence.reason
        assert 0.3 <= took < GENEROUS

    def test_its_connection_is_never_used_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        go_on = threading.Event()

        def reads(catalog: _Script, shard: Shard) -> Iterator[Record | Coverage]:
            if shard.namespaces == (("two",),):
                go_on.wait(GENEROUS)
            yield from well(catalog, shard)

        does(monkeypatch, reads)
        read(deadline=0.3)
        go_on.set()
        first, second = _Script.opened
        assert [shard.namespaces[0][0] for shard in first.asked] == ["one", "two"]
        assert [shard.namespaces[0][0] for shard in second.asked] == ["three"]
        assert second.closed

    def test_records_before_a_failure_are_kept_and_prove_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        go_on = threading.Event()

        def reads(_: _Script, shard: Shard) -> Iterator[Record | Coverage]:
            for number in range(1500):
                yield TableRecord("lake", ("one", f"t{number}"), "s3://x")
            go_on.wait(GENEROUS)
            yield Coverage("lake", shard.namespaces[0], records=1500)

        does(monkeypatch, reads)
        tables, coverage = read(deadline=2.0, shards=SHARDS[:1])
        go_on.set()
        assert len(tables) >= 1000
        assert not coverage["one"].complete

    def test_a_reader_that_leaves_early_lets_the_thread_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def reads(_: _Script, __: Shard) -> Iterator[Record | Coverage]:
            while True:
                yield TableRecord("lake", ("one", "t"), "s3://x")

        does(monkeypatch, reads)
        before = threading.active_count()
        items = read_crawl_task(SPEC, CrawlTask(0, SHARDS[:1]), GENEROUS)
        next(item for item in items if isinstance(item, TableRecord))
        items.close()  # type: ignore[attr-defined]  # a generator
        end = time.monotonic() + 60
        while threading.active_count() > before and time.monotonic() < end:
            time.sleep(0.05)
        assert threading.active_count() <= before


class TestACatalogThatCannotBeOpened:
    @pytest.mark.parametrize("error", [ServiceUnavailable("down"), RuntimeError("broken")])
    def test_each_namespace_of_the_slot_has_failed(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        def opening() -> None:
            raise error

        does(monkeypatch, opening=opening)
        tables, coverage = read()
        assert tables == set()
        assert {key: each.complete for key, each in coverage.items()} == {"one": False, "two": False, "three": False}

    def test_closing_it_may_fail_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def close(_: _Script) -> None:
            raise OSError("already gone")

        monkeypatch.setattr(_Script, "close", close)
        assert all(each.complete for each in read()[1].values())


class TestCuttingACrawl:
    @pytest.mark.parametrize("concurrency", [1, 2, 3, 8])
    def test_every_shard_is_in_exactly_one_slot(self, concurrency: int) -> None:
        cut = plan_crawl_tasks(SPEC, concurrency, GENEROUS)
        assert len(cut) == min(concurrency, len(SHARDS))
        assert sorted(shard.namespaces for slot in cut for shard in slot.shards) == sorted(shard.namespaces for shard in SHARDS)

    @pytest.mark.parametrize(("error", "code"), [(PermissionDenied("no"), 15), (ValueError("hunter2"), 18)])
    def test_a_source_that_does_not_answer_proves_nothing_of_its_root(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
    ) -> None:
        def cut() -> Sequence[Shard]:
            raise error

        does(monkeypatch, cut=cut)
        self.fails(code)

    def test_a_source_that_hangs_costs_one_deadline(self, monkeypatch: pytest.MonkeyPatch) -> None:
        go_on = threading.Event()

        def cut() -> Sequence[Shard]:
            go_on.wait(GENEROUS)
            return SHARDS

        does(monkeypatch, cut=cut)
        began = time.monotonic()
        self.fails(17, deadline=0.3)
        assert time.monotonic() - began < GENEROUS
        go_on.set()

    def test_a_source_that_names_nothing_to_read_is_no_empty_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        does(monkeypatch, cut=lambda: ())
        self.fails(18)

    def fails(self, code: int, deadline: float = GENEROUS) -> None:
        (slot,) = plan_crawl_tasks(SPEC, 2, deadline)
        # As Spark sends it to a worker.
        items = list(read_crawl_task(SPEC, pickle.loads(pickle.dumps(slot)), GENEROUS))
        assert len(items) == 1
        assert isinstance(items[0], Coverage)
        assert (items[0].namespace, items[0].presence.code, items[0].complete) == (ROOT, code, False)
        assert "hunter2" not in items[0].presence.reason


@pytest.fixture
def store() -> tuple[str, MemoryStore]:
    name = unique_name("store")
    for namespace in ("sales", "hr", "ops"):
        for number in range(4):
            get_memory_store(name).add_table((namespace, f"t{number}"))
    return name, get_memory_store(name)


@pytest.mark.parametrize(("fault", "broken"), [("fail:sales", {"sales"}), ("deny:hr", {"hr"}), ("short:ops", {"ops"}), ("hang:ops=9", {"ops"}), ("fail:*", {"", "sales", "hr", "ops"})])  # fmt: skip  # noqa: E501
def test_only_failed_namespaces_are_unproven(store: tuple[str, MemoryStore], fault: str, broken: set[str]) -> None:
    spec = SourceSpec("lake", MEMORY, {"store": store[0], "faults": fault})
    cut = plan_crawl_tasks(spec, 2, GENEROUS)
    items = [item for slot in cut for item in read_crawl_task(spec, slot, 0.5 if "hang" in fault else GENEROUS)]
    coverage = {item.key: item for item in items if isinstance(item, Coverage)}
    assert set(coverage) == {"", "sales", "hr", "ops"}
    assert {key for key, each in coverage.items() if not each.complete} == broken
    tables = [item.path for item in items if isinstance(item, TableRecord)]
    for namespace in {"sales", "hr", "ops"} - broken:
        assert sum(path_key(path[:1]) == namespace for path in tables) == 4


def test_a_source_in_a_spark_session_has_the_deadline_of_its_configuration(tmp_path: FilePath) -> None:
    config = tmp_path / "federator.toml"
    config.write_text('[sources.lake]\nimpl = "dir"\ndir.root = "/lake"\ndeadline = "90s"\n')
    options = {"config": str(config), "source": "lake"}
    assert LanceCatalogSource(options).reader(None).deadline == 90.0
    assert LanceCatalogSource({**options, "deadline": "5"}).reader(None).deadline == 5.0
    spec = '{"name": "lake", "impl": "dir", "properties": {}}'
    assert LanceCatalogSource({"spec": spec, "deadline": "5"}).reader(None).deadline == 5.0
    with pytest.raises(ConfigError, match="needs the option deadline beside spec"):
        LanceCatalogSource({"spec": spec}).reader(None)
