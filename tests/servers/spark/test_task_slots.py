"""Sources are crawled side by side within the slots of Spark's tasks, and one that hangs occupies its own only."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from federator.pipeline import session
from federator.pipeline.session import task_slots
from federator.settings import Settings, parse_settings
from federator.stages.result import ProgressEvent
from federator.stages.task_slots import TaskSlots
from tests.fixtures.spark import MEMORY, Worlds


def test_sources_run_within_the_slots_and_a_hanging_one_holds_up_none(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_MAX_SLOTS", 4)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    quick = [f"s{number}" for number in range(6)]
    world = worlds(sources={"hanging": {"faults": "hang:s=600", "deadline": "20s"}, **{name: {} for name in quick}})
    for name in ("hanging", *quick):
        world.store(name).add_table(("s", "t"))
    running, most, ended = set[str](), Counter[int](), list[str]()
    lock = threading.Lock()

    def watch(step: ProgressEvent) -> None:
        if step.stage != "crawl":
            return
        with lock:
            if step.state is None:
                running.add(step.subject)
                most[len(running)] += 1
            else:
                running.discard(step.subject)
                ended.append(step.subject)

    world.during = watch
    result = world.federator.crawl()
    assert {name: result.sources[name].state for name in quick} == dict.fromkeys(quick, "ok")
    assert result.sources["hanging"].state == "partial"
    # Each source reads two shards at once, so two of them have the four slots.
    assert max(most) == 2
    assert (set(ended), ended[-1]) == ({"hanging", *quick}, "hanging")


def settings(master: str, *concurrency: int) -> Settings:
    sources = {f"s{number}": {"impl": MEMORY, "concurrency": value} for number, value in enumerate(concurrency)}
    staging = {} if master.startswith("local") else {"staging": "hdfs://127.0.0.1/staging"}
    index = {"url": "postgresql+psycopg://federator@127.0.0.1/federator"}
    return parse_settings({"spark": {"master": master, **staging}, "index": index, "sources": sources}, Path("federator.toml"))


@pytest.mark.parametrize(
    ("master", "concurrency", "slots"),
    [
        ("local", [], 2), ("local[*]", [3, 4], 7), ("local", [2] * 200, 32), ("local", [40, 2], 40), ("local[6]", [2] * 200, 6),
        ("local[3,4]", [2], 3), ("spark://127.0.0.1:7077", [2], 32),
    ],
)  # fmt: skip
def test_slots_of_a_master(monkeypatch: pytest.MonkeyPatch, master: str, concurrency: list[int], slots: int) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert task_slots(settings(master, *concurrency)) == slots
    if master in ("local", "local[*]"):
        assert session.local_master(settings(master, *concurrency)) == f"local[{slots},4]"


def test_a_source_with_more_reads_than_slots_takes_all_and_returns_them() -> None:
    slots = TaskSlots(2)
    for _ in range(2):
        with pytest.raises(KeyError), slots.hold(5):
            raise KeyError
    with slots.hold(1), slots.hold(1):
        pass
