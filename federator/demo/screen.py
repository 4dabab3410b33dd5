"""The output interface of the demo. The command line implements it, so the demo looks like the real commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from federator.planning.plan import Plan
from federator.stages.result import ProgressEvent
from federator.store import Index
from federator.views.drift import DriftView
from federator.views.explain import Explanation


class Screen(Protocol):
    """The output of the demo."""

    def chapter(self, title: str) -> None:
        """Show a heading."""

    def say(self, text: str) -> None:
        """Show a line of explanation."""

    def check(self, ok: bool, text: str) -> None:
        """Show an expectation and whether it is met."""

    def progress(self, event: ProgressEvent) -> None:
        """Show a progress event of a run."""

    def tree(self, index: Index) -> None:
        """Show the tree with verification states."""

    def drift(self, findings: Sequence[DriftView]) -> None:
        """Show drift."""

    def plans(self, plans: Sequence[Plan]) -> None:
        """Show plans with their refusals."""

    def explanation(self, explanation: Explanation) -> None:
        """Show why an object exists or is absent."""
