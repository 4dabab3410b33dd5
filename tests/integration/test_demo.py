"""The demo, told on real servers: every expectation holds, and every state and every kind of drift is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from federator.demo import story
from federator.index import Index, datasets
from federator.index.drift import SeenDrift
from federator.index.looks import UNVERIFIED
from federator.model.drift import DriftKind
from federator.planning.plan import Plan
from federator.sync import Step
from federator.sync.explaining import Explanation


@dataclass
class Seen:
    """A screen that remembers what it was shown."""

    checks: dict[str, bool] = field(default_factory=dict)
    states: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    chapters: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)

    def chapter(self, title: str) -> None:
        self.chapters.append(title)

    def say(self, text: str) -> None:
        pass

    def check(self, ok: bool, text: str) -> None:
        self.checks[text] = ok

    def progress(self, step: Step) -> None:
        pass

    def tree(self, index: Index) -> None:
        self.states |= {view.state for view in datasets.page(index).datasets}

    def drift(self, found: Sequence[SeenDrift]) -> None:
        self.kinds |= {seen.kind for seen in found}

    def plans(self, plans: Sequence[Plan]) -> None:
        pass

    def explanation(self, found: Explanation) -> None:
        self.explained.append(found.id)


@pytest.mark.timeout(900)
def test_every_state_and_every_kind_of_drift_is_shown(spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The story is the same without Hive 3, whose server takes longest; the mirrors into it have tests of their own.
    monkeypatch.setattr("federator.demo.world.hive3_available", lambda: False)
    screen = Seen()
    assert story.run(screen, once=True, keep=tmp_path / "demo") == 0
    try:
        assert [text for text, ok in screen.checks.items() if not ok] == []
        assert screen.states == set(datasets.STATES) - {UNVERIFIED}
        assert screen.kinds == {kind.value for kind in DriftKind}
        assert (len(screen.chapters), screen.explained) == (11, ["aws$123456789012$sales$legacy"])
    finally:
        assert story.stop(tmp_path / "demo") == ["glue", "hive 2.3"]
