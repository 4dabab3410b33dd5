"""Switching a rule of the product off, so that the proof is seen to fail. Only the product is changed; the oracle stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from federator.apply import executor, journal, operations, preflight
from federator.apply.confirmation import NotConfirmed, OriginConfirmation
from federator.planning import (
    crawls,
    decision,
    facts,
    identity,
    journal_lines,
    losses,
    mapping,
    misses,
    namespaces,
    planner,
    publication,
)
from federator.planning.identity import Accepted, IdentityReading, IdentityState, IdentityVerdict
from federator.planning.losses import Loss
from federator.planning.misses import MissUpdate
from federator.planning.origins import ExpectedOrigin
from federator.planning.planner import OriginObservation
from tests.prove import world


def _absence() -> list[Any]:
    yes: Callable[..., bool] = lambda *_: True  # noqa: E731
    return [
        patch.object(publication, "is_proven_absent", yes),
        patch.object(misses, "is_proven_absent", yes),
        patch.object(decision, "is_covered", yes),
        patch.object(namespaces, "is_covered", yes),
        patch.object(decision, "has_enough_misses", yes),
        patch.object(facts, "observe_origin", lambda *_: OriginObservation()),
        patch.object(ExpectedOrigin, "find_contradiction", lambda *_: None),
    ]


def _ownership() -> list[Any]:
    return [patch.object(decision, "_find_lost_ownership", lambda *_: None)]


def _guards() -> list[Any]:
    return [patch.object(planner, "measure_guards", lambda *_: [])]


def _reality() -> list[Any]:
    def unmoved(target: Any, before: Any) -> Any:
        return target.observe(before.path).record or before

    return [
        patch.object(preflight.PreflightCheck, "find_blocker", lambda *_: None),
        patch.object(operations, "_require_unchanged", unmoved),
        patch.object(ExpectedOrigin, "find_contradiction", lambda *_: None),
    ]


class _Early(OriginConfirmation):
    """The origin is observed once the intent is durable, and not again when the connector asks for it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        with suppress(NotConfirmed):
            super().__call__()

    def __call__(self) -> None:
        if self.refusal is not None:
            raise NotConfirmed(self.refusal[2])


def _last() -> list[Any]:
    return [patch.object(executor, "OriginConfirmation", _Early)]


def _loops() -> list[Any]:
    return [
        patch.object(mapping, "find_origin_marker", lambda _: None),
        patch.object(planner, "refuse_duplicate_locations", lambda changes, *_: (list(changes), [])),
        patch.object(preflight.PreflightCheck, "_find_other_path", lambda *_, **__: None),
    ]


def _rows() -> list[Any]:
    checked = crawls.check_coverage

    def unchecked(source: str, key: str, arrival: crawls.Arrival) -> Any:
        return arrival.stated or checked(source, key, arrival)

    return [patch.object(crawls, "check_coverage", unchecked)]


def _outdated() -> list[Any]:
    return [patch.object(publication, "is_outdated", lambda *_: False)]


def _undescribed() -> list[Any]:
    return [patch.object(publication, "loses_description", lambda *_: False)]


def _forgetting() -> list[Any]:
    updated = misses.update_misses

    def keep_every_miss(*arguments: Any) -> MissUpdate:
        return MissUpdate(updated(*arguments).counted, frozenset())

    everything: Callable[..., Any] = lambda stored, _: {path: list(missed.at) for path, missed in stored.items()}  # noqa: E731
    return [patch.object(misses, "update_misses", keep_every_miss), patch.object(misses, "valid_misses", everything)]


def _removals() -> list[Any]:
    return [patch.object(journal_lines, "counts_as_removal", lambda *_: False)]


def _leases() -> list[Any]:
    return [patch.object(journal, "require_leases", lambda *_: None)]


def _cascades() -> list[Any]:
    return [patch.object(module, "drop_refusal", lambda _: None) for module in (namespaces, world)]


def _identity() -> list[Any]:
    judge = identity.judge_identity

    def trust(source: str, accepted: Accepted, readings: Sequence[IdentityReading]) -> IdentityVerdict:
        return replace(judge(source, accepted, readings), state=IdentityState.TRUSTED, problem=None, unknown=())

    return [patch.object(identity, "judge_identity", trust)]


def _half_gone() -> list[Any]:
    return [patch.object(Loss, "exceeds_half", property(lambda _: False))]


def _feed() -> list[Any]:
    honest = losses.loss_holds
    return [patch.object(planner, "loss_holds", lambda raised: honest(replace(loss, went_back=None) for loss in raised))]


def _confirmation() -> list[Any]:
    return [patch.object(misses, "forget_all", lambda _: MissUpdate({}, frozenset()))]


#: the rules that can be switched off: those of DESIGN by number, the others by name
RULES: dict[str, tuple[str, Callable[[], list[Any]]]] = {
    "1": ("absence is proven: every listing counts as complete, one miss is enough, nobody looks again", _absence),
    "2": ("only what is ours: whatever is at a ledgered path counts as ours", _ownership),
    "4": ("guards: none objects", _guards),
    "5": ("bound to reality: nothing is read again before a change", _reality),
    "origin": ("the origin is observed before the target is read, and not after it", _last),
    "6": (
        "a mirror of a mirror is no origin, and a location gets one name: marks are not recognised, second names allowed",
        _loops,
    ),
    "cascades": ("a namespace is not dropped where that takes what is hidden: it is", _cascades),
    "identity": ("identity is evidence: whichever catalog answers is trusted", _identity),
    "half_gone": ("more than half of a revision's tables gone or moved at once holds every change: it does not", _half_gone),
    "feed": ("a feed that went back holds every change: it does not", _feed),
    "confirmation": ("confirming another catalog forgets the misses in the old one: it does not", _confirmation),
    "rows": ("rows that do not add up to their Coverage prove nothing: whatever a shard states counts", _rows),
    "outdated": ("evidence older than a direct look neither removes nor replaces: it does", _outdated),
    "undescribed": ("what was listed and not described does not replace what was: it does", _undescribed),
    "misses": ("misses are forgotten when an origin is seen or the configuration changes: they are not", _forgetting),
    "leases": ("a write of the journal checks the leases first: it does not", _leases),
    "removals": ("what the journal has as removed counts in the guards: it does not", _removals),
}


@contextmanager
def without(rule: str | None) -> Iterator[None]:
    """The product without one of its rules; None: as it is."""
    with ExitStack() as stack:
        for change in RULES[rule][1]() if rule is not None else []:
            stack.enter_context(change)
        yield
