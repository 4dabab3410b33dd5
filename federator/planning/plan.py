"""Plan: the ordered Changes of one mirror, bound by digests to everything they were decided from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from federator.connector import StateError
from federator.model import digest_of, parent, parse_key, path_key
from federator.planning.changes import Action, Change, Decision, Refusal
from federator.planning.mapping import MirrorContext
from federator.planning.reasons import Reason

_ORDER = (
    Action.DEREGISTER_TABLE, Action.CREATE_NAMESPACE, Action.ADOPT, Action.UPDATE_TABLE, Action.DECLARE_TABLE, Action.DROP_NAMESPACE,
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What a mirror would do now. ``held`` are the guards' objections; ``mirror_digest`` binds it to the mirror's configuration."""

    mirror: str
    mirror_digest: str
    origin_revision: int
    target_revision: int
    changes: tuple[Change, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    held: tuple[str, ...] = ()
    selected: int = 0

    @cached_property
    def digest(self) -> str:
        """Over everything but the revisions' numbers: a plan that was made again from the same reality is the same plan."""
        body = self.to_json()
        return digest_of(
            {key: value for key, value in body.items() if key not in ("digest", "origin_revision", "target_revision")}
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "mirror": self.mirror,
            "mirror_digest": self.mirror_digest,
            "origin_revision": self.origin_revision,
            "target_revision": self.target_revision,
            "selected": self.selected,
            "changes": [change.to_json() for change in self.changes],
            "refusals": [refusal.to_json() for refusal in self.refusals],
            "held": list(self.held),
        }

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
            held=tuple(data["held"]),
        )


def ordered(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Deregistrations free names and locations first, namespaces come before what is in them; by path within each."""
    return tuple(sorted(changes, key=lambda change: (_ORDER.index(change.action), change.target_path)))


def with_namespaces(
    context: MirrorContext, decisions: Iterable[Decision], existing: Collection[str]
) -> tuple[list[Change], list[Refusal]]:
    """Adds the creation of missing namespaces; declarations whose namespace cannot be created become refusals.

    ``existing`` holds the target's namespaces in text form.
    """
    changes: list[Change] = []
    refusals: list[Refusal] = []
    missing: dict[str, Change] = {}
    for decision in decisions:
        if isinstance(decision, Refusal):
            refusals.append(decision)
            continue
        wanted = _missing_above(decision, existing) if decision.action is Action.DECLARE_TABLE else []
        impossible = [key for key in wanted if len(parse_key(key)) not in context.target.creates_namespaces_at]
        if impossible:
            detail = f"{impossible[0]} does not exist and cannot be created there"
            refusals.append(_refusal(Reason.NAMESPACE_MISSING, decision, detail))
            continue
        for key in wanted:
            missing.setdefault(key, _create(decision, key))
        changes.append(decision)
    return [*missing.values(), *changes], refusals


def refuse_second_names(
    changes: Iterable[Change], declared: Mapping[str, Sequence[str]], leaving: Collection[str]
) -> tuple[list[Change], list[Refusal]]:
    """Keeps one name per location at the target.

    ``declared`` gives the target's paths by canonical location; ``leaving`` are paths that this plan deregisters. A table that is
    pointed elsewhere frees its old location, unless that update is refused here: then what wanted the place is refused as well.
    """
    kept = sorted(changes, key=lambda change: change.origin_path)
    refusals: list[Refusal] = []
    while True:
        away = {change.target_path for change in kept if change.moves_location} | set(leaving)
        taken: dict[str, str] = {}
        refused: list[Change] = []
        for change in kept:
            canonical = _new_location(change)
            if canonical is None:
                continue
            others = sorted(path for path in declared.get(canonical, ()) if path != change.target_path and path not in away)
            other = others[0] if others else taken.setdefault(canonical, change.target_path)
            if other != change.target_path:
                refused.append(change)
                detail = f"{change.target_source}${other} already points to {change.after and change.after.location}"
                refusals.append(_refusal(Reason.LOCATION_DECLARED, change, detail))
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


def _new_location(change: Change) -> str | None:
    if change.after is None or not (change.action is Action.DECLARE_TABLE or change.moves_location):
        return None
    return change.after.canonical


def _missing_above(change: Change, existing: Collection[str]) -> list[str]:
    path = parent(parse_key(change.target_path))
    return [key for depth in range(1, len(path) + 1) if (key := path_key(path[:depth])) not in existing]


def _create(change: Change, key: str) -> Change:
    origin_namespace = path_key(parent(parse_key(change.origin_path)))
    return Change(
        Action.CREATE_NAMESPACE, change.target_source, key, change.origin_source, origin_namespace, "holds what will be declared",
        precondition={"target": "absent"},
    )  # fmt: skip


def _refusal(reason: Reason, change: Change, detail: str) -> Refusal:
    return Refusal(reason, change.target_source, change.target_path, change.origin_path, detail)
