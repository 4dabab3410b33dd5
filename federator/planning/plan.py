"""Plan: the ordered changes of one mirror, bound by digests to the evidence that they were decided from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from federator.connector import StateError
from federator.model import digest_of
from federator.planning.changes import Action, Change, Refusal
from federator.planning.holds import Hold
from federator.planning.measurement import Measurement

_ORDER = (
    Action.DEREGISTER_TABLE, Action.CREATE_NAMESPACE, Action.ADOPT, Action.UPDATE_TABLE, Action.RECREATE_TABLE, "rename",
    Action.DECLARE_TABLE, Action.DROP_NAMESPACE,
)  # fmt: skip

_NOT_IN_DIGEST = ("digest", "origin_revision", "target_revision", "guards")


@dataclass(frozen=True)
class Plan:
    """The changes that a mirror would make now.

    ``holds`` are the objections of guards and policies. ``mirror_digest`` binds the plan to the mirror's configuration.
    ``unproven`` are destructive changes that are refused now because an observation or a crawl of this run failed. Guards count
    them too, so that a failing source does not end a hold. ``selected`` is the number of origin tables that the
    mirror selects, without other mirrors' copies. ``guards`` is what each guard measured when the plan was first made; it is no part
    of the digest, because it also changes while nothing happens.
    """

    mirror: str
    mirror_digest: str
    origin_revision: int
    target_revision: int
    changes: tuple[Change, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    holds: tuple[Hold, ...] = ()
    selected: int = 0
    unproven: tuple[Change, ...] = ()
    guards: tuple[Measurement, ...] = ()

    @property
    def held(self) -> tuple[str, ...]:
        """The holds as text, ``guard: detail``. Empty if the plan may be applied without an approval."""
        return tuple(map(str, self.holds))

    @property
    def release_command(self) -> str:
        """The command that lifts the holds. As long as a confirmation is missing, the plan cannot be approved."""
        confirmations = [hold.command for hold in self.holds if hold.command is not None]
        return "; ".join(confirmations) or f"federator plans approve {self.digest[:12]}"

    @cached_property
    def digest(self) -> str:
        """The digest of the plan without revision numbers: a plan that is built again from the same state is the same plan."""
        body = self.to_json()
        return digest_of({key: value for key, value in body.items() if key not in _NOT_IN_DIGEST})

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "mirror": self.mirror,
            "mirror_digest": self.mirror_digest,
            "origin_revision": self.origin_revision,
            "target_revision": self.target_revision,
            "selected": self.selected,
            "changes": [change.to_json() for change in self.changes],
            "refusals": [refusal.to_json() for refusal in self.refusals],
            "held": list(self.held),
        }
        # Omitted if empty: a plan that was made before these fields existed keeps its digest.
        if self.holds:
            data["holds"] = [hold.to_json() for hold in self.holds]
        if self.unproven:
            data["unproven"] = [change.to_json() for change in self.unproven]
        if self.guards:
            data["guards"] = [measurement.to_json() for measurement in self.guards]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            mirror=data["mirror"],
            mirror_digest=data["mirror_digest"],
            origin_revision=data["origin_revision"],
            target_revision=data["target_revision"],
            selected=data["selected"],
            changes=tuple(Change.from_json(change) for change in data["changes"]),
            refusals=tuple(Refusal.from_json(refusal) for refusal in data["refusals"]),
            holds=tuple(_holds(data)),
            unproven=tuple(Change.from_json(change) for change in data.get("unproven", ())),
            guards=tuple(Measurement.from_json(measurement) for measurement in data.get("guards", ())),
        )


def _holds(data: Mapping[str, Any]) -> Iterable[Hold]:
    """Read the holds of a plan. One of an earlier version has only their texts: the whole plan waits, and its new digest means that
    it must be built again."""
    if "holds" in data or not data["held"]:
        return map(Hold.from_json, data.get("holds", ()))
    return (Hold(guard, detail) for guard, _, detail in (text.partition(": ") for text in data["held"]))


def sort_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Sort changes: deregistrations first, because they free names and locations; namespaces before their content; then by path.

    The two changes of a rename are adjacent, the old name first.
    """
    return tuple(sorted(changes, key=_sort_key))


def _sort_key(change: Change) -> tuple[int, str, bool, str]:
    if change.pair is not None:
        return _ORDER.index("rename"), change.pair, change.action is Action.DECLARE_TABLE, change.target_path
    return _ORDER.index(change.action), "", False, change.target_path


def check_plan(plan: Plan, *, digest: str, mirror_digest: str) -> None:
    """Raise StateError for a plan that was altered, or that was made for another configuration of its mirror."""
    if plan.digest != digest:
        raise StateError(
            f"the plan of mirror {plan.mirror!r} was altered after it was created",
            hint="create it again: federator plan -o FILE",
        )
    if plan.mirror_digest != mirror_digest:
        raise StateError(
            f"the configuration of mirror {plan.mirror!r} has changed since this plan was created",
            hint="create a new plan: federator plan",
        )


def claimed_location(change: Change) -> str | None:
    """Return the canonical location that a change gives a new name at the target. None if the change claims no location."""
    if change.after is None or not (change.action is Action.DECLARE_TABLE or change.moves_location):
        return None
    return change.after.canonical
