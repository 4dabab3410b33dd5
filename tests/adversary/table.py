"""The result table of the adversary."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """One tested combination. ``observed`` and ``expected`` are short texts; ``ok`` says whether they agree."""

    part: str
    name: str
    observed: str
    expected: str
    ok: bool
