"""Switching a rule of the product off, so that the proof is seen to fail. Only the product is changed; the oracle stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from federator.apply import looking, steps
from federator.planning import decide, evidence, mapping, namespaces, planner
from federator.planning.changes import Change
from federator.planning.planner import Look
from tests.prove.world import World


def _absence() -> list[Any]:
    looked = looking.Look._origin

    def origin(self: looking.Look, change: Change) -> Any:
        return None if change.precondition.get("origin") == "absent" else looked(self, change)

    yes: Callable[..., bool] = lambda *_: True  # noqa: E731
    return [
        patch.object(evidence, "proves_absent", yes),
        patch.object(decide, "covered", yes),
        patch.object(namespaces, "covered", yes),
        patch.object(decide, "enough_misses", yes),
        patch.object(World, "_look", lambda *_: Look()),
        patch.object(looking.Look, "_origin", origin),
    ]


def _ownership() -> list[Any]:
    return [patch.object(decide, "_alien", lambda *_: None)]


def _guards() -> list[Any]:
    return [patch.object(planner, "objections", lambda *_: [])]


def _reality() -> list[Any]:
    def unmoved(target: Any, before: Any) -> Any:
        return target.observe(before.path).record or before

    return [patch.object(looking.Look, "objection", lambda *_: None), patch.object(steps, "_unmoved", unmoved)]


def _loops() -> list[Any]:
    return [
        patch.object(mapping, "bound_mark", lambda _: None),
        patch.object(planner, "refuse_second_names", lambda changes, *_: (list(changes), [])),
        patch.object(looking.Look, "_second_name", lambda *_: None),
    ]


#: the rules of DESIGN that can be switched off, by number
RULES: dict[int, tuple[str, Callable[[], list[Any]]]] = {
    1: ("absence is proven: every listing counts as complete, one miss is enough, nobody looks again", _absence),
    2: ("only what is ours: whatever is at a ledgered path counts as ours", _ownership),
    4: ("guards: none objects", _guards),
    5: ("bound to reality: nothing is read again before a change", _reality),
    6: (
        "a mirror of a mirror is no origin, and a location gets one name: marks are not recognised, second names allowed",
        _loops,
    ),
}


@contextmanager
def without(rule: int | None) -> Iterator[None]:
    """The product without one of its rules; None: as it is."""
    with ExitStack() as stack:
        for change in RULES[rule][1]() if rule is not None else []:
            stack.enter_context(change)
        yield
