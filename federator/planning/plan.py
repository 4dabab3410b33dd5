"""Plan: the ordered Changes of one mirror, bound by digests to everything they were decided from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from federator.connector import StateError
from federator.model import digest_of
from federator.planning.changes import Action, Change, Refusal
from federator.planning.evidence import enough_misses
from federator.planning.holds import Hold
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule

_ORDER = (
    Action.DEREGISTER_TABLE, Action.CREATE_NAMESPACE, Action.ADOPT, Action.UPDATE_TABLE, Action.RECREATE_TABLE, "rename",
    Action.DECLARE_TABLE, Action.DROP_NAMESPACE,
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What a mirror would do now. ``holds`` are the guards' objections; ``mirror_digest`` binds it to the mirror's configuration.

    ``unproven`` are destructive changes that are refused for now, since a look or a crawl of this run failed. The guards count them all
    the same: a hold does not go away with the source.
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

    @property
    def held(self) -> tuple[str, ...]:
        """The holds as text, ``guard: detail``."""
        return tuple(map(str, self.holds))

    @cached_property
    def digest(self) -> str:
        """Over everything but the revisions' numbers: a plan that was made again from the same reality is the same plan."""
        body = self.to_json()
        return digest_of(
            {key: value for key, value in body.items() if key not in ("digest", "origin_revision", "target_revision")}
        )

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
        # Left out where there are none: a plan that was made before they were known keeps its digest.
        if self.holds:
            data["holds"] = [hold.to_json() for hold in self.holds]
        if self.unproven:
            data["unproven"] = [change.to_json() for change in self.unproven]
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
        )


def _holds(data: Mapping[str, Any]) -> Iterable[Hold]:
    """A plan of an earlier version has the texts alone: all of it waits, and since its digest is another now it must be made again."""
    if "holds" in data or not data["held"]:
        return map(Hold.from_json, data.get("holds", ()))
    return (Hold(guard, detail) for guard, _, detail in (text.partition(": ") for text in data["held"]))


def ordered(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Deregistrations free names and locations first, namespaces come before what is in them; by path within each.

    The halves of a rename stand together, the old name first.
    """
    return tuple(sorted(changes, key=_rank))


def _rank(change: Change) -> tuple[int, str, bool, str]:
    if change.pair is not None:
        return _ORDER.index("rename"), change.pair, change.action is Action.DECLARE_TABLE, change.target_path
    return _ORDER.index(change.action), "", False, change.target_path


def refuse_second_names(
    changes: Iterable[Change],
    declared: Mapping[str, Sequence[str]],
    leaving: Collection[str],
    waiting: Collection[str] = (),
) -> tuple[list[Change], list[Refusal]]:
    """Keeps one name per location at the target.

    ``declared`` gives the target's paths by canonical location; ``leaving`` are paths that this plan deregisters, ``waiting`` those
    that a later one may: their origin is missed and not proven gone yet, and what comes after them is ``rename_pending``. A table
    that is pointed elsewhere frees its old location, unless that update is refused here: then what wanted the place is refused as well.
    """
    kept = sorted(changes, key=lambda change: change.origin_path)
    refusals: list[Refusal] = []
    while True:
        away = {change.target_path for change in kept if change.moves_location} | set(leaving)
        taken: dict[str, str] = {}
        refused: list[Change] = []
        for change in kept:
            canonical = new_location(change)
            if canonical is None:
                continue
            others = sorted(path for path in declared.get(canonical, ()) if path != change.target_path and path not in away)
            other = others[0] if others else taken.setdefault(canonical, change.target_path)
            if other != change.target_path:
                refused.append(change)
                reason = Reason.LOCATION_DECLARED
                detail = f"{change.target_source}${other} already points to {change.after and change.after.location}"
                if other in waiting and change.action is Action.DECLARE_TABLE:
                    reason = Reason.RENAME_PENDING
                    detail = f"waits until its old name, {change.target_source}${other}, may go"
                refusals.append(_refusal(reason, change, detail))
        if not refused:
            return kept, refusals
        without = set(map(id, refused))
        kept = [change for change in kept if id(change) not in without]


def refuse_missing_locations(
    changes: Iterable[Change], states: Mapping[str, str], *, allowed: bool
) -> tuple[list[Change], list[Refusal]]:
    """Keeps declarations whose location exists, for catalogs that make the directory. ``states`` by canonical location."""
    kept: list[Change] = []
    refusals: list[Refusal] = []
    for change in changes:
        canonical = change.after.canonical if change.action is Action.DECLARE_TABLE and change.after else None
        state = states.get(canonical, "not verified") if canonical else "valid"
        if allowed or state in ("valid", "declared_only", "empty", "not_lance", "corrupt"):
            kept.append(change)
        else:
            detail = (
                f"the location is {state.replace('_', ' ')}, and the target would create it; declare_missing = true allows that"
            )
            refusals.append(_refusal(Reason.LOCATION_MISSING, change, detail))
    return kept, refusals


def check(plan: Plan, *, digest: str, mirror_digest: str) -> None:
    """Raises StateError for a plan that was altered, or made for another configuration of its mirror."""
    if plan.digest != digest:
        raise StateError(
            f"the plan of mirror {plan.mirror!r} was altered after it was made", hint="make it again: federator plan -o FILE"
        )
    if plan.mirror_digest != mirror_digest:
        raise StateError(
            f"the mirror {plan.mirror!r} was configured differently when this plan was made", hint="federator plan"
        )


def new_location(change: Change) -> str | None:
    """The canonical location that a change gives a name at the target, where it did not have that name."""
    if change.after is None or not (change.action is Action.DECLARE_TABLE or change.moves_location):
        return None
    return change.after.canonical


def _refusal(reason: Reason, change: Change, detail: str) -> Refusal:
    return Refusal(reason, change.target_source, change.target_path, change.origin_path, detail)


def still_proven(
    rule: MirrorRule, changes: Iterable[Change], misses: Mapping[str, Sequence[float]]
) -> tuple[list[Change], list[Change]]:
    """Changes whose proof holds, and deregistrations whose proof does not any more: the origin was seen since the plan was made, or
    its source's configuration changed, and with it perhaps what its principal may see. ``misses`` by origin path."""
    proven: list[Change] = []
    unproven: list[Change] = []
    for change in changes:
        needs = change.action is Action.DEREGISTER_TABLE and change.precondition.get("origin") == "absent"
        missed = misses.get(change.origin_path, ())
        holds = not needs or enough_misses(missed, rule.misses_before_delete, rule.min_miss_interval)
        (proven if holds else unproven).append(change)
    return proven, unproven
