"""How a story is drawn: which steps follow each other in a world, and how often. Every draw comes from one generator."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.prove import replacing
from tests.prove.steps import WRITE_FAULTS, Step
from tests.prove.worlds import TOPOLOGIES, Blueprint


def draw(rng: Random, blueprint: Blueprint) -> list[Step]:
    """A story of one world: it is filled and mirrored once, then things happen, each followed by what may notice it."""
    edges = TOPOLOGIES[blueprint.topology]
    number = rng.getrandbits
    story = _beginning(rng, edges)
    length = 26
    for mirror, edge in enumerate(edges):
        if not blueprint.kinds[edge[2]].capabilities.can_alter and number(1):
            # Early and besides: what follows from it must have its time.
            recreated = _recreated(rng, mirror, edge)
            story, length = [*story, *recreated], length + len(recreated)
        if blueprint.kinds[edge[2]].capabilities.drop_cascades and rng.random() < 0.1:
            emptied = _emptied(rng, mirror, edge)
            story, length = [*story, *emptied], length + len(emptied)
    while len(story) < length:
        mirror = number(4) % len(edges)
        _, origin, _ = edges[mirror]
        happening = rng.random()
        if happening < 0.36:
            story += _going(rng, origin, filtered=blueprint.kinds[origin].capabilities.listing_filtered)
            story += _missed(rng, mirror, edges[mirror])
        elif happening < 0.55:
            story.append(("alter" if number(2) else "new", origin, number(8), number(8)))
            story += _synchronised(rng, mirror, edges[mirror])
        elif happening < 0.74:
            story.append(("tamper", mirror, number(6), number(8)))
            story += _synchronised(rng, mirror, edges[mirror])
        elif happening < 0.86:
            story.append(("change_mirror", mirror, number(8), 0))
            story += _synchronised(rng, mirror, edges[mirror])
        elif happening < 0.90:
            story.append(("change_principal", origin, 0, 0))
        elif happening < 0.93:
            story.append(("clock", number(4), 0, 0))
        elif happening < 0.94:
            story.append(("restore", origin, 0, 0))
        else:
            story += [*replacing.drawn(rng, mirror, edges[mirror], blueprint.kinds), *_missed(rng, mirror, edges[mirror])]
    return story


def _beginning(rng: Random, edges: Sequence[tuple[int, int, int]]) -> list[Step]:
    story: list[Step] = []
    number = rng.getrandbits
    for origin in sorted({origin for _, origin, _ in edges}):
        story += [("new", origin, number(8), number(8)) for _ in range(2 if rng.random() < 0.6 else 5)]
    if rng.random() < 0.3:
        story.append(("new", edges[-1][2], number(8), number(8)))
    for mirror in range(len(edges)):
        story += _synchronised(rng, mirror, edges[mirror], refresh=True)
    return story


def _recreated(rng: Random, mirror: int, edge: tuple[int, int, int]) -> list[Step]:
    """Origins change, and a target that cannot alter has to recreate its tables; something strikes between the two calls."""
    _, origin, target = edge
    number = rng.getrandbits
    # Every target keeps a location: two of these three are other ones.
    changed = [("alter", origin, number(8), c) for c in (number(6) << 2, number(6) << 2, number(8))]
    noticed = [("crawl", mirror, 0, 0), ("crawl", mirror, 1, 0), ("plan", mirror, 1, 0)]
    applied = ("apply", mirror, 0, 1)
    return [*noticed, applied, *changed, *noticed, ("arm_halfway", target, number(4), 0), applied]


def _emptied(rng: Random, mirror: int, edge: tuple[int, int, int]) -> list[Step]:
    """All of a mirror's tables go; then users put one into a namespace that it made, and the grants on that go."""
    _, origin, _ = edge
    number = rng.getrandbits
    gone = [("drop", origin, number(6), 0) for _ in range(6)]
    missed = [("crawl", mirror, 0, 0), ("clock", 0, 0, 0)] * 2
    applied = [("crawl", mirror, 0, 0), ("plan", mirror, 0, 0), ("approve", mirror, 0, 0), ("apply", mirror, 0, 1)]
    return [*gone, *missed, *applied, ("use_and_hide", mirror, number(2), number(8)), ("crawl", mirror, 1, 0), *applied]


def _going(rng: Random, origin: int, *, filtered: bool) -> list[Step]:
    """Something goes at the origin, or only seems to."""
    number = rng.getrandbits
    gone = rng.choice(("drop", "drop", "drop", "drop", "drop_namespace", "rename", "rename", "unlance"))
    if filtered and number(2):
        gone = "revoke"
    first = (gone, origin, number(6), number(6))
    return [first, *[("drop", origin, number(6), 0)] * 3] if gone == "drop" and number(1) else [first]


def _missed(rng: Random, mirror: int, edge: tuple[int, int, int]) -> list[Step]:
    story: list[Step] = []
    for _ in range(2):
        if rng.random() < 0.3:
            story.append(("arm_listing", edge[1], rng.getrandbits(6), rng.getrandbits(6)))
        story += [("crawl", mirror, 0, 0), ("clock", 0, 0, 0)]
    return [*story, *_synchronised(rng, mirror, edge)]


def _synchronised(rng: Random, mirror: int, edge: tuple[int, int, int], *, refresh: bool = False) -> list[Step]:
    """Crawl, plan and apply, with faults in between; sometimes something is left out."""
    _, origin, target = edge
    number = rng.getrandbits
    story: list[Step] = []
    if rng.random() < 0.22:
        story.append(("arm_listing", origin if number(1) else target, number(6), number(6)))
    story += [("crawl", mirror, 0, 0)]
    if refresh or rng.random() < 0.7:
        story += [("crawl", mirror, 1, 0)]
    if rng.random() < 0.06:
        story.append(("arm_look", origin, number(4), 0))
    story += [("plan", mirror, number(2), 0)]
    disturbance = _disturbance(rng, mirror, edge)
    # Sometimes the plan waits, and is applied after the next one, or never.
    applied = [] if rng.random() < 0.06 else [("apply", mirror, 0, number(8))]
    return [*story, *disturbance, *applied]


def _disturbance(rng: Random, mirror: int, edge: tuple[int, int, int]) -> list[Step]:
    """What happens between a plan and its application, if anything does."""
    _, origin, target = edge
    number = rng.getrandbits
    chance = rng.random()
    if chance < 0.16:
        return [("arm_write", target, number(6), 0)]
    if chance < 0.28:
        return [("arm_journal", mirror, number(6), number(4))]
    if chance < 0.40:
        return [("arm_race", target, number(6), number(6))]
    if chance < 0.46:
        return [("arm_look", target if number(1) else origin, number(4), 0)]
    if chance < 0.52:
        return [("tamper", mirror, number(6), number(8))]
    if chance < 0.56:
        return [("approve", mirror, 0, 0)]
    if chance < 0.58:
        return [("arm_outage", target, 0, 0)]
    if chance < 0.60:
        # The outcome of a call stays unknown, in this application and in the next one that tries to find out.
        lost = ("arm_write", target, WRITE_FAULTS.index("answer_and_look_lost"), 0)
        return [lost, ("apply", mirror, 0, 1), ("plan", mirror, 0, 0), ("arm_look", target, 0, 0)]
    if chance < 0.68:
        return [("arm_halfway", target, number(4), 0)]
    if chance < 0.80:
        return [("arm_return", mirror, number(6), number(6))]
    if chance < 0.83:
        return [("arm_slow", origin, number(4), 0)]
    return []
