"""Faults of the process that applies: it dies between two writes of the journal, or loses its lease, or is asked to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from federator.apply import Outcome
from federator.apply.journal import Intent
from federator.connector import StateError
from tests.prove.armed import Crash
from tests.prove.books import Violation
from tests.prove.index import MemoryJournal

if TYPE_CHECKING:
    from tests.prove.world import Instance, World


class LeaseLost(StateError):
    """As ``federator.store.leases`` raises it inside a writing transaction."""


@dataclass
class FaultyLease:
    """A lease that may be lost before a write of the journal, or end too early for a call."""

    strikes: Callable[[str], bool]
    lost: bool = False

    def require_held(self, _: None) -> None:
        if self.lost:
            raise LeaseLost("the lease was lost to another process")

    def outlasts(self, _: float) -> bool:
        return not self.strikes("lease_short")


@dataclass
class FaultyJournal(MemoryJournal):
    """A fault of the process strikes at a write of the journal: before it is durable, or after."""

    world: World
    instance: Instance
    stop: threading.Event

    def __post_init__(self) -> None:
        self.lease = FaultyLease(self._strikes)
        self.leases = (self.lease,)

    def record_intent(self, intent: Intent) -> None:
        self._write("intent", lambda: super(FaultyJournal, self).record_intent(intent))

    def record_outcome(self, intent: Intent, outcome: Outcome) -> None:
        self._write("outcome", lambda: super(FaultyJournal, self).record_outcome(intent, outcome))
        if self._strikes("stop_asked"):
            self.stop.set()

    def _write(self, what: str, write: Callable[[], None]) -> None:
        if self._strikes(f"crash_before_{what}"):
            raise Crash
        self.lease.lost = self.lease.lost or self._strikes("lease_lost")
        write()
        if self.lease.lost:
            raise Violation("a write of the journal without its leases", what)
        if self._strikes(f"crash_after_{what}"):
            raise Crash

    def _strikes(self, fault: str) -> bool:
        armed = self.instance.armed
        if armed is None or armed[0] != fault:
            return False
        if armed[1] > 0:
            self.instance.armed = (fault, armed[1] - 1)
            return False
        self.instance.armed = None
        self.world.oracle.struck(fault, self.rule.origin, self.rule.target)
        return True
