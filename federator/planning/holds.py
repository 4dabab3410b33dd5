"""Holds: what a guard or a policy objects to, and which changes of the plan wait for it. Pure.

A guard (``planning.guards``) or a policy returns a ``Hold``; ``Plan.holds`` has all of them. A hold does not list its changes: it
names the kind that it binds (``Binds``), so that ``hold.binds(change)`` is the same before and after the plan is ordered, stored and
read again. What a hold does not bind, and does not depend on what it binds, goes on.

To add a guard: write a function that returns ``Hold(name, detail, Binds.…)`` or None, enter it in ``guards.GUARDS``, and add a line to
the table "What holds a plan" in docs/mirroring.md. ``detail`` is for people; it may hold counts, since no approval depends on it.

- A hold of everything that ``plans approve`` must not lift (another catalog behind the address, say):
  ``Hold("...", detail, Binds.ALL, LiftedBy.CONFIRMATION)``; the detail names the command that lifts it.
- A hold that an earlier approval of the same changes must not lift (``half_gone``, ``feed_went_back``, closed windows):
  ``LiftedBy.ITS_APPROVAL``.
- A limit on dropped namespaces alone: ``Binds.DROPPED_NAMESPACES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from federator.planning.changes import Action, Change, destructive


class Binds(StrEnum):
    """Which changes of the plan a hold binds."""

    ALL = "all"
    #: tables that are removed, moved or recreated, and namespaces that are dropped; all together, so that nothing is cut in slices
    DESTRUCTIVE = "destructive"
    #: those, and the deregistrations of renames: where the absence itself is in doubt, an old name is too
    REMOVALS = "removals"
    #: namespaces that are dropped
    DROPPED_NAMESPACES = "dropped_namespaces"


class LiftedBy(StrEnum):
    """What lets a bound change go."""

    #: any approval of the change that still holds
    APPROVAL = "approval"
    #: an approval of the change that was given while this guard held it
    ITS_APPROVAL = "its_approval"
    #: nothing that is said about a plan: another command removes the cause
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True)
class Hold:
    """An objection to a plan. ``guard`` is a stable name, ``detail`` a text for people."""

    guard: str
    detail: str
    bound: Binds = Binds.ALL
    lifted_by: LiftedBy = LiftedBy.APPROVAL

    def __str__(self) -> str:
        return f"{self.guard}: {self.detail}"

    def binds(self, change: Change) -> bool:
        """Whether a change waits until the hold is lifted for it."""
        if self.bound is Binds.ALL:
            return True
        if drops(change) or self.bound is Binds.DROPPED_NAMESPACES:
            return drops(change)
        removes = change.action is Action.DEREGISTER_TABLE and change.before is not None
        return destructive(change) or (self.bound is Binds.REMOVALS and removes)

    def to_json(self) -> dict[str, Any]:
        return {"guard": self.guard, "detail": self.detail, "binds": self.bound.value, "lifted_by": self.lifted_by.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json``."""
        return cls(data["guard"], data["detail"], Binds(data["binds"]), LiftedBy(data["lifted_by"]))


def drops(change: Change) -> bool:
    """Whether a namespace that is there goes."""
    return change.action is Action.DROP_NAMESPACE and change.namespace is not None
