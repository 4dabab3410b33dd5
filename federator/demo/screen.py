"""What the story needs to show itself: implemented by the command line, so that the demo looks like the commands it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from federator.index import Index
from federator.index.drift import SeenDrift
from federator.planning.plan import Plan
from federator.sync import Step
from federator.sync.explaining import Explanation


class Screen(Protocol):
    """Where the story is told."""

    def chapter(self, title: str) -> None:
        """A heading."""

    def say(self, text: str) -> None:
        """A line of explanation."""

    def check(self, ok: bool, text: str) -> None:
        """One expectation and whether it held."""

    def progress(self, step: Step) -> None:
        """A Step of a run."""

    def tree(self, index: Index) -> None:
        """The unified tree with what verification found."""

    def drift(self, found: Sequence[SeenDrift]) -> None:
        """What has drifted."""

    def plans(self, plans: Sequence[Plan]) -> None:
        """Plans with their refusals."""

    def explanation(self, found: Explanation) -> None:
        """Why an object is where it is."""
