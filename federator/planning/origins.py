"""The expected origins of a change, checked by an observation immediately before the call. Pure.

A change that removes, moves or recreates a table expects each origin that it depends on to be as the plan read it: absent, or with
the same digest. The deregistration of a rename depends on both names: the old one is absent, and the new one is what the
declaration declares. A change whose plan did not depend on the origin (pruning, a user's declaration) expects nothing of it.
Dropping a namespace also expects nothing: it removes no declaration, and the next plan creates the namespace again if an origin
needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from federator.connector import Observation
from federator.planning.changes import ABSENT, ANY, Action, Change
from federator.planning.reasons import Reason


@dataclass(frozen=True, slots=True)
class ExpectedOrigin:
    """One origin that a change depends on: its path key, and the digest that the plan read (``ABSENT``: proven absent)."""

    path: str
    digest: str

    def find_contradiction(self, observation: Observation) -> tuple[Reason, str] | None:
        """Return the reason and the detail why the change must not be made. None if the origin is as expected."""
        if self.digest == ABSENT:
            if observation.is_absent:
                return None
            return Reason.STILL_THERE, f"the origin {self.path} exists: {observation.foreign or 'it was observed directly'}"
        if observation.record is not None and observation.record.digest == self.digest:
            return None
        return Reason.MOVED, f"the origin {self.path} has changed since the plan was made"


def expected_origins(change: Change, group: Iterable[Change] = ()) -> tuple[ExpectedOrigin, ...]:
    """Return the origins to observe immediately before a change. ``group`` are the changes of its group, itself included.

    Empty if the change neither removes, moves nor recreates a table, or does not depend on an origin.
    """
    removes = change.action in (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE)
    if not removes and not (change.before is not None and change.moves_location):
        return ()
    depends = [change]
    if change.action is Action.DEREGISTER_TABLE and change.pair is not None:
        depends += [other for other in group if other.pair == change.pair and other.action is Action.DECLARE_TABLE]
    return tuple(expected for dependency in depends if (expected := _expected(dependency)) is not None)


def _expected(change: Change) -> ExpectedOrigin | None:
    digest = change.precondition.get("origin", ANY)
    return None if digest == ANY or change.is_user_declaration else ExpectedOrigin(change.origin_path, digest)
