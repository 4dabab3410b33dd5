"""The demo on real servers: each expectation holds, and each state and kind of drift occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from federator.demo import story
from federator.model.drift import DriftKind
from federator.planning.plan import Plan
from federator.stages.result import ProgressEvent
from federator.store import Index, verifications
from federator.store.verifications import UNVERIFIED
from federator.views import datasets
from federator.views.drift import DriftView
from federator.views.explain import Explanation


@dataclass
class RecordingScreen:
    """A screen that remembers what it was shown."""

    checks: dict[str, bool] = field(default_factory=dict)
    stages: list[str] = field(default_factory=list)
    states: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    severities: list[list[str]] = field(default_factory=list)
    chapters: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)

    def chapter(self, title: str) -> None:
        self.chapters.append(title)

    def say(self, text: str) -> None:
        pass

    def check(self, ok: bool, text: str) -> None:
        self.checks[text] = ok

    def progress(self, step: ProgressEvent) -> None:
        self.stages.append(step.stage)

    def tree(self, index: Index) -> None:
        self.states |= {view.state for view in datasets.list_datasets(index).datasets}

    def drift(self, findings: Sequence[DriftView]) -> None:
        self.kinds |= {finding.kind for finding in findings}
        self.severities.append([finding.severity for finding in findings])

    def plans(self, plans: Sequence[Plan]) -> None:
        pass

    def explanation(self, explanation: Explanation) -> None:
        self.explained.append(explanation.id)


@pytest.mark.timeout(900)
def test_every_state_and_every_kind_of_drift_is_shown(spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The story is the same without Hive 3, whose server takes longest; the mirrors into it have tests of their own.
    monkeypatch.setattr("federator.demo.world.hive3_available", lambda: False)
    screen = RecordingScreen()
    assert story.run(screen, once=True, keep=tmp_path / "demo") == 0
    try:
        assert [text for text, ok in screen.checks.items() if not ok] == []
        assert screen.states == set(verifications.VERIFICATION_STATES) - {UNVERIFIED, "refers_outside"}
        assert screen.stages[:2] == ["start", "start"]
        assert screen.kinds == {kind.value for kind in DriftKind}
        assert all(shown == sorted(shown, key=["high", "medium", "low"].index) for shown in screen.severities)
        assert (len(screen.chapters), screen.explained) == (11, ["aws$123456789012$sales$legacy"])
    finally:
        assert story.stop(tmp_path / "demo") == ["glue", "hive 2.3"]
