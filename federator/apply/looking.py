"""The look before a call: whether reality still is what the plan read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federator.apply.outcome import Outcome, State
from federator.apply.port import Journal
from federator.apply.steps import already_settled
from federator.connector import Catalog, NamespaceNotFound, Unsupported
from federator.model import parse_key
from federator.planning.changes import Action, Change
from federator.planning.origins import ABSENT
from federator.planning.reasons import Reason


@dataclass(frozen=True)
class Look:
    """``freed`` are places (target path, canonical location) that this application has left, whatever the index says of them.

    ``origin`` is given for a plan that another run made: each origin is observed, since the index may be older or newer than the plan.
    ``drop_refusal`` says why no namespace is dropped, whatever the plan has.
    """

    journal: Journal
    target: Catalog
    freed: Collection[tuple[str, str]]
    clock: Callable[[], float]
    origin: Catalog | None = None
    drop_refusal: str | None = None

    def objection(self, change: Change) -> Outcome | None:
        """Why the Change must not be made; None if it may. Raises CatalogError where nobody can tell."""
        if change.action is Action.CREATE_NAMESPACE:
            return None
        if change.action is Action.DROP_NAMESPACE:
            return self._namespace(change)
        return self._origin(change) or self._target(change)

    def saved(self, change: Change) -> tuple[Mapping[str, Any] | None, Outcome | None]:
        """What a recreation is about to replace, whole; and why it must not, where not all of it would come back."""
        if change.action is not Action.RECREATE_TABLE:
            return None, None
        try:
            native = self.target.native(parse_key(change.target_path))
        except Unsupported as error:
            return None, Outcome(change, State.SKIPPED, "not_restorable", error.message)
        lost = self.target.lost_by_recreation(native)
        return native, Outcome(change, State.SKIPPED, "not_restorable", lost) if lost else None

    def taken_since(self, change: Change) -> str | None:
        """Which other name has got the place of a recreation that was left half done. Raises CatalogError where nobody can tell.

        What the run that died had freed may still be in the index: each name is looked at.
        """
        if pending := self._others(change, self.journal.names_pending):
            return _may_point_to(pending[0], change)
        indexed = self._others(change, self.journal.names_at)
        other = self._still_there(change, {*indexed, *self._others(change, self.journal.names_given)}, indexed=indexed)
        return _points_to(other, change) if other else None

    def _namespace(self, change: Change) -> Outcome | None:
        path = parse_key(change.target_path)
        try:
            now = self.target.describe_namespace(path)
        except NamespaceNotFound:
            return None
        known = change.namespace
        same_object = known is None or None in (known.native_id, now.native_id) or known.native_id == now.native_id
        if known is None or now.digest != change.precondition.get("target") or not same_object:
            return self._moved(change, "the namespace has changed since the plan was made")
        if self.target.list_namespaces(path) or self.target.list_tables(path):
            return Outcome(change, State.SKIPPED, "not_empty", "something is in the namespace by now")
        return Outcome(change, State.SKIPPED, Reason.DROP_CASCADES, self.drop_refusal) if self.drop_refusal else None

    def _origin(self, change: Change) -> Outcome | None:
        # A proven absence is observed immediately before the call (``confirmation``), and not here.
        expected = change.precondition.get("origin")
        if expected in (None, "any", ABSENT) or expected == self._origin_now(change):
            return None
        return self._moved(change, "the origin has changed since the plan was made")

    def _origin_now(self, change: Change) -> str | None:
        if self.origin is None:
            return self.journal.origin_digest(change.origin_path)
        record = self.origin.observe(parse_key(change.origin_path)).record
        return record.digest if record is not None else None

    def _target(self, change: Change) -> Outcome | None:
        seen = self.target.observe(parse_key(change.target_path))
        now = seen.record.digest if seen.record else "absent" if seen.absent else "foreign"
        if now == change.precondition.get("target"):
            return self._second_name(change)
        if already_settled(change, seen):
            return None
        detail = "the target has changed since the plan was made"
        return Outcome(change, State.SKIPPED, Reason.MOVED, detail, seen.record, self.clock())

    def _second_name(self, change: Change) -> Outcome | None:
        """The plan saw to it that a location gets one name; since then another mirror may have declared it, or a name not come free.

        A name that only the ledger has there was given by a run that died: what a look says counts.
        """
        if pending := self._others(change, self.journal.names_pending):
            return Outcome(change, State.SKIPPED, "open_intent", _may_point_to(pending[0], change))
        indexed = self._others(change, self.journal.names_at)
        other = indexed[0] if indexed else self._still_there(change, self._others(change, self.journal.names_given))
        return Outcome(change, State.SKIPPED, Reason.LOCATION_DECLARED, _points_to(other, change)) if other else None

    def _others(self, change: Change, names_at: Callable[[str], Collection[str]]) -> list[str]:
        """The other names of the place that a Change would declare anew."""
        canonical = change.after.canonical if change.after is not None else None
        if canonical is None or not (change.action is Action.DECLARE_TABLE or change.moves_location):
            return []
        left = {path for path, place in self.freed if place == canonical}
        return sorted(set(names_at(canonical)) - left - {change.target_path})

    def _still_there(self, change: Change, names: Iterable[str], *, indexed: Collection[str] = ()) -> str | None:
        """The first of some names that a look finds at the place of a Change; no further one is looked at.

        Where a look does not say what is there (a managed table, say), the place that the index has it at counts.
        """
        canonical = change.after.canonical if change.after is not None else None
        for name in sorted(names):
            seen = self.target.observe(parse_key(name))
            at_place = seen.record is not None and seen.record.canonical == canonical
            if at_place or (seen.foreign is not None and name in indexed):
                return name
        return None

    @staticmethod
    def _moved(change: Change, detail: str) -> Outcome:
        return Outcome(change, State.SKIPPED, Reason.MOVED, detail)


def _may_point_to(other: str, change: Change) -> str:
    return f"{other} may point to {change.after and change.after.location} by now: the fate of the last call there is not known"


def _points_to(other: str, change: Change) -> str:
    return f"{other} already points to {change.after and change.after.location}"
