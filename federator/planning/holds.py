"""Holds: objections of guards and policies, and the changes of a plan that wait for them. Pure.

A guard (``planning.guards``) or a policy returns a ``Hold``; ``Plan.holds`` contains all of them. A hold does not list its changes.
It names the kind that it binds (``Binds``), so that ``hold.binds(change)`` is the same before and after the plan is ordered, stored
and read again. A change goes on if no hold binds it and it depends on no bound change.

To add a guard: write a function that returns its ``Measurement``, with ``Hold(name, detail, Binds.…)`` or None, add it to
``guards.GUARDS``, and add a row to the table "What holds a plan" in docs/explanation/mirroring.md.
``detail`` is for people; it may contain counts, because no approval depends on
it.

- A hold of all changes that ``plans approve`` must not lift (for example, another catalog behind the address):
  ``Hold("...", detail, Binds.ALL, LiftedBy.CONFIRMATION, command)`` with the command that lifts it.
- A hold that an earlier approval of the same changes must not lift (``half_gone``, ``feed_went_back``, closed change windows):
  ``LiftedBy.ITS_APPROVAL``.
- A limit on dropped namespaces alone: ``Binds.DROPPED_NAMESPACES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from federator.planning.changes import Action, Change, is_destructive


class Binds(StrEnum):
    """The kind of changes that a hold binds."""

    ALL = "all"
    #: removed, moved and recreated tables, and dropped namespaces; one kind, so that a large removal cannot be split into small
    #: ones
    DESTRUCTIVE = "destructive"
    #: the destructive ones, and the deregistrations of renames: if an absence is in doubt, so is that of an old name
    REMOVALS = "removals"
    #: dropped namespaces
    DROPPED_NAMESPACES = "dropped_namespaces"


class LiftedBy(StrEnum):
    """What releases a bound change."""

    #: any valid approval of the change
    APPROVAL = "approval"
    #: an approval of the change that was given while this guard held it
    ITS_APPROVAL = "its_approval"
    #: no decision about the plan: another command removes the cause
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True)
class Hold:
    """An objection to a plan. ``guard`` is a stable name, ``detail`` is a text for people.

    ``command`` is the command line that lifts the hold; None for the approval of the plan.
    """

    guard: str
    detail: str
    bound: Binds = Binds.ALL
    lifted_by: LiftedBy = LiftedBy.APPROVAL
    command: str | None = None

    def __str__(self) -> str:
        return f"{self.guard}: {self.detail}"

    def binds(self, change: Change) -> bool:
        """Tell whether a change waits until the hold is lifted for it."""
        if self.bound is Binds.ALL:
            return True
        if is_namespace_drop(change) or self.bound is Binds.DROPPED_NAMESPACES:
            return is_namespace_drop(change)
        removes = change.action is Action.DEREGISTER_TABLE and change.before is not None
        return is_destructive(change) or (self.bound is Binds.REMOVALS and removes)

    def to_json(self) -> dict[str, Any]:
        data = {"guard": self.guard, "detail": self.detail, "binds": self.bound.value, "lifted_by": self.lifted_by.value}
        return data if self.command is None else {**data, "command": self.command}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json``."""
        return cls(data["guard"], data["detail"], Binds(data["binds"]), LiftedBy(data["lifted_by"]), data.get("command"))


def is_namespace_drop(change: Change) -> bool:
    """Tell whether a change drops a namespace that exists."""
    return change.action is Action.DROP_NAMESPACE and change.namespace is not None
