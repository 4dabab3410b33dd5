"""What many runs came to: counts that add up over processes and restarts, and the table of faults by reason codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from federator.planning.guards import GUARDS
from federator.planning.identity import IDENTITY_CHANGED
from federator.planning.losses import FEED_WENT_BACK, HALF_GONE
from federator.planning.reasons import ApplyCode, Reason
from tests.prove.run import StoryResult
from tests.prove.steps import FAULTS

#: what the executor says of its own, besides the reasons of planning and the codes of catalogs
OUTCOMES = tuple(code.value for code in ApplyCode)
#: codes that a light catalog answers with where apply may meet them: Unsupported is never asked for, since plans know capabilities
CODES = ("1", "4", "15", "17", "18", "21")
#: holds that no guard makes
HOLDS = (HALF_GONE, FEED_WENT_BACK, IDENTITY_CHANGED)
REASONS = (*(reason.value for reason in Reason), *GUARDS, *HOLDS, *OUTCOMES, *CODES)


@dataclass
class Tally:
    """``faults``: how often each struck; ``reasons``: in how many runs each was given; ``pairs``: in how many runs a reason was given
    for a mirror of a source that the fault had struck before."""

    runs: int = 0
    steps: int = 0
    fewest_steps: int = 10**9
    fewest_faults: int = 10**9
    writes: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    rounds: Counter[int] = field(default_factory=Counter)
    violations: list[tuple[int, str]] = field(default_factory=list)

    def add(self, result: StoryResult) -> None:
        """Counts one run."""
        self.runs += 1
        self.steps += result.steps
        self.writes += result.writes
        self.fewest_steps = min(self.fewest_steps, result.steps)
        self.fewest_faults = min(self.fewest_faults, sum(result.faults.values()))
        self.faults.update(result.faults)
        self.reasons.update(result.reasons)
        self.pairs.update(result.pairs)
        self.rounds[result.rounds] += 1
        if result.violation is not None:
            self.violations.append((result.number, str(result.violation)))

    def __iadd__(self, other: Tally) -> Self:
        for name in ("runs", "steps", "writes", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.fewest_steps = min(self.fewest_steps, other.fewest_steps)
        self.fewest_faults = min(self.fewest_faults, other.fewest_faults)
        for name in ("faults", "reasons", "pairs", "rounds"):
            getattr(self, name).update(getattr(other, name))
        self.violations += other.violations
        return self

    def to_json(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in ("runs", "steps", "fewest_steps", "fewest_faults", "writes", "seconds")}
        return {
            **data,
            "faults": dict(self.faults),
            "reasons": dict(self.reasons),
            "pairs": [[*pair, count] for pair, count in self.pairs.items()],
            "rounds": [list(item) for item in self.rounds.items()],
            "violations": self.violations,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(
            **{
                **data,
                "faults": Counter(data["faults"]),
                "reasons": Counter(data["reasons"]),
                "pairs": Counter({(fault, reason): count for fault, reason, count in data["pairs"]}),
                "rounds": Counter(dict(data["rounds"])),
                "violations": [(run, text) for run, text in data["violations"]],
            }
        )

    @property
    def missing(self) -> list[str]:
        """Faults that never struck and reasons that were never given."""
        return [fault for fault in FAULTS if not self.faults[fault]] + [
            reason for reason in REASONS if not self.reasons[reason]
        ]

    @property
    def apart(self) -> list[str]:
        """Pairs of a fault and a reason that did not occur together."""
        return [f"{fault} and {reason}" for fault in FAULTS for reason in REASONS if not self.pairs[fault, reason]]

    @property
    def besides(self) -> str:
        """What else catalogs answered calls with, which is no reason of ours: codes and in how many runs."""
        others = sorted(set(self.reasons) - set(REASONS))
        return ", ".join(f"{code} in {self.reasons[code]:,} runs" for code in others)

    def table(self) -> str:
        """Faults by reasons. A cell counts the runs in which the reason was given, for a mirror of the source that the fault had
        struck, after it struck; a dot is none."""
        # As many columns as fit a wide page stand side by side.
        blocks = [REASONS[start : start + 16] for start in range(0, len(REASONS), 16)]
        return "\n\n".join(self._block(block) for block in blocks)

    def _block(self, columns: Sequence[str]) -> str:
        names = [f"code {name}" if name.isdecimal() else name for name in columns]
        heads = [list(name.split("_")) for name in names]
        height = max(len(head) for head in heads)
        widths = [max(7, *(len(word) for word in head)) for head in heads]
        rows = [["", *(head[line] if line < len(head) else "" for head in heads)] for line in range(height)]
        rows += [
            [f"{fault} ({self.faults[fault]})", *(str(self.pairs[fault, name] or "·") for name in columns)] for fault in FAULTS
        ]
        rows.append(["runs in which it was given", *(str(self.reasons[name] or "·") for name in columns)])
        first = max(len(row[0]) for row in rows)
        return "\n".join(
            row[0].ljust(first) + "".join(f" {cell.rjust(width)}" for cell, width in zip(row[1:], widths, strict=True))
            for row in rows
        )
