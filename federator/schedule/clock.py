"""Jumps of the wall clock, by comparison with the monotonic one: a scheduler sleeps until a time that may not come for a day."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

#: seconds; less is the usual correction of a clock
_TOLERANCE = 2.0


@dataclass
class ClockWatch:
    """The offset between both clocks, as it was at the last call."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    _offset: float = field(init=False)

    def __post_init__(self) -> None:
        self._offset = self.wall() - self.monotonic()

    def find_jump(self) -> float | None:
        """Return by how many seconds the wall clock jumped since the last call, negative for backwards; None if it did not."""
        before, self._offset = self._offset, self.wall() - self.monotonic()
        jump = self._offset - before
        return jump if abs(jump) > _TOLERANCE else None
