"""Shared parts of the tests of whole runs: rules without waiting times, and a world with the results of its runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from federator.model import Kind, TableRecord
from federator.stages.result import RunResult
from tests.fixtures.spark import World, content, wrote

HOUR = 3600.0
LOOSE: dict[str, Any] = {"max_delete_percent": 100}
AT_ONCE: dict[str, Any] = {"misses_before_delete": 1, "min_miss_interval": 0, **LOOSE}
# Where a story tells which of its changes was the last.
ONE_BY_ONE: dict[str, Any] = {"a": {}, "b": {"write_concurrency": 1}}


def removed(world: World, target: str = "b") -> list[str]:
    return [call.partition(" ")[2] for call in wrote(world.store(target)) if call.startswith("deregister_table")]


def target(world: World, key: str) -> TableRecord:
    record = content(world.store("b"))[key]
    return TableRecord(**{**record, "path": tuple(record["path"]), "kind": Kind(record["kind"])})


@dataclass
class Story:
    """A world with what its runs came to, by a name for each."""

    world: World
    runs: dict[str, RunResult] = field(default_factory=dict)
    observations: dict[str, Any] = field(default_factory=dict)

    def sync(self, name: str, *mirrors: str) -> RunResult:
        self.runs[name] = self.world.sync(*mirrors)
        self.world.verified()
        return self.runs[name]
