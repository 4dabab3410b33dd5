"""One run: a world and its story out of a seed, the story step by step under the oracle's eyes, then rest; and how a story that
broke a rule is made shorter."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

from federator.model import TableRecord
from federator.planning import cells, mapping
from federator.planning.mapping import DesiredTable, MirrorContext
from tests.prove import drawing, worlds
from tests.prove.armed import Crash
from tests.prove.books import Violation
from tests.prove.catalog import LightCatalog
from tests.prove.index import MemoryIndex, SavedPlan, State
from tests.prove.oracle import Oracle
from tests.prove.steps import Step, perform
from tests.prove.world import Instance, World

#: a world at rest within this many rounds of crawl, plan and apply; each waits long enough for the next miss to count
ROUNDS = 14
_FEWEST_FAULTS = 3


@dataclass
class StoryResult:
    """What became of one run. ``story`` is filled only where somebody wants to read it."""

    seed: int
    number: int
    steps: int
    faults: dict[str, int]
    reasons: set[str]
    pairs: set[tuple[str, str]]
    writes: int
    rounds: int = 0
    violation: Violation | None = None
    story: list[str] = field(default_factory=list)


def story_of(seed: int, number: int) -> tuple[worlds.Blueprint, list[Step]]:
    """World and story of a run: the same for the same seed and number, on every machine."""
    rng = Random(f"{seed}:{number}")
    blueprint = worlds.draw(rng, number)
    return blueprint, drawing.draw(rng, blueprint)


def build(blueprint: worlds.Blueprint, *, verbose: bool = False) -> World:
    """An empty world."""
    oracle = Oracle()
    catalogs = {
        f"c{number}": LightCatalog(
            f"c{number}", kind.capabilities, kind.has_ids, witness=oracle, has_identity=kind.has_identity
        )
        for number, kind in enumerate(blueprint.kinds)
    }
    instances = []
    for number, rules in enumerate(blueprint.rules):
        sources = {name for rule in rules for name in (rule.origin, rule.target)}
        index = MemoryIndex({name: State() for name in sorted(sources)})
        instances.append(Instance(f"i{number}", index, {rule.name: rule for rule in rules}, impatient=blueprint.impatient))
    kinds = {f"c{number}": kind for number, kind in enumerate(blueprint.kinds)}
    world = World(catalogs, instances, oracle, kinds, story=[] if verbose else None)
    oracle.world = world
    if verbose:
        world.say(f"{blueprint.topology}: {', '.join(f'{name} is {kind.name}' for name, kind in kinds.items())}")
        for instance in instances:
            for rule in instance.rules.values():
                world.say(f"{instance.id}/{rule.name}: {rule}")
    return world


def tell(
    seed: int, number: int, *, story: Sequence[Step] | None = None, verbose: bool = False, whole: bool = True
) -> StoryResult:
    """Runs one story (by default the whole one of its number) to its end or to the first broken rule."""
    blueprint, drawn = story_of(seed, number)
    chosen = list(drawn if story is None else story)
    world = build(blueprint, verbose=verbose)
    oracle = world.oracle
    result = StoryResult(seed, number, len(chosen), oracle.faults, oracle.reasons, oracle.pairs, 0)
    try:
        with _remembered():
            for at, step in enumerate(chosen):
                live(world, step, at)
            if story is None:
                result.steps += _until_faults(world, len(chosen))
            result.rounds = rest(world)
    except Violation as violation:
        result.violation = violation
    except Exception as error:  # noqa: BLE001 - whatever the product raises is what a proof is to find
        frame = traceback.extract_tb(error.__traceback__)[-1]
        result.violation = Violation(
            f"an unexpected {type(error).__name__}", f"{error} in {frame.name}, line {frame.lineno} of {frame.filename}"
        )
    if result.violation is not None:
        world.say(f"    ✗ {result.violation}")
    result.writes = oracle.writes
    result.story = world.story or []
    return result


@contextmanager
def _remembered() -> Iterator[None]:
    """What a table is to become at a target is worked out once for each record and context: neither ever changes."""
    honest = mapping.map_table
    # With what it was made from, so that no other object gets one of their ids.
    known: dict[tuple[int, int], tuple[MirrorContext, TableRecord, DesiredTable]] = {}

    def desire(context: MirrorContext, origin: TableRecord) -> DesiredTable:
        found = known.get((id(context), id(origin)))
        if found is None:
            found = known[id(context), id(origin)] = (context, origin, honest(context, origin))
        return found[2]

    with patch.object(cells, "map_table", desire):
        yield


def live(world: World, step: Step, at: int) -> None:
    """One step, and what must hold after it. Raises Violation."""
    if world.story is not None:
        world.say(f"{at:3} {step[0]} {step[1:]}")
    perform(world, step)
    world.check()


def _until_faults(world: World, at: int) -> int:
    """A story whose faults found nothing to strike goes on until three have."""
    added = 0
    while sum(world.oracle.faults.values()) < _FEWEST_FAULTS:
        live(world, (("change_principal", added, 0, 0), ("clock", 4, 0, 0))[added % 2], at + added)
        added += 1
    return added


def rest(world: World) -> int:
    """The faults end; everything is crawled, planned (held plans approved) and applied until a whole round plans nothing.

    Returns the number of rounds. Raises Violation where that does not happen, or where what is left has no reason.
    """
    world.say("the faults end")
    world.calm()
    for number in range(1, ROUNDS + 1):
        world.now += 700.0
        plans: dict[tuple[str, str], SavedPlan] = {}
        completed, names, waits = 0, _names(world), False
        for instance in world.instances:
            written = world.oracle.writes
            for rule in instance.rules.values():
                waits = not world.resume(instance, rule) or waits
            completed += world.oracle.writes - written
            for source in instance.index.states:
                world.crawl(instance, source)
            for rule in instance.rules.values():
                saved = plans[instance.id, rule.name] = world.plan(instance, rule)
                if saved.plan.changes:
                    if saved.state == "held":
                        world.approve(instance, saved)
                    world.apply(instance, saved)
            world.check()
        # What one instance removes at last, another has still to notice; what could not be resumed waits for a crawl.
        if (
            not waits
            and not completed
            and names == _names(world)
            and not any(_goes_on(instance, plans) for instance in world.instances)
        ):
            world.oracle.at_rest(plans)
            return number
    left = [f"{c.action.value} {c.target_source}${c.target_path}" for saved in plans.values() for c in saved.plan.changes]
    raise Violation("no fixed point", f"after {ROUNDS} rounds: {', '.join(left) or 'misses'}")


def _names(world: World) -> set[tuple[str, str]]:
    return {(source, key) for source, catalog in world.catalogs.items() for key in catalog.tables}


def _goes_on(instance: Instance, plans: Mapping[tuple[str, str], SavedPlan]) -> bool:
    """Whether an instance planned something that may be done, or counts a miss after which the next round may."""
    mine = [saved.plan for (name, _), saved in plans.items() if name == instance.id]
    changes = any((plan.mirror, change.target_path) not in instance.left_alone for plan in mine for change in plan.changes)
    misses = any(map(instance.index.list_misses, instance.index.states))
    return changes or (misses and any(refusal.reason == "misses" for plan in mine for refusal in plan.refusals))


def shorten(seed: int, number: int, violation: Violation) -> list[Step]:
    """The story with every step left out that the violation does not need; it still breaks the same rule."""
    _, story = story_of(seed, number)

    def breaks(candidate: list[Step]) -> bool:
        result = tell(seed, number, story=candidate)
        return result.violation is not None and result.violation.rule == violation.rule

    if not breaks(story):
        return story
    size = max(len(story) // 2, 1)
    while size:
        at = 0
        while at < len(story):
            candidate = story[:at] + story[at + size :]
            if breaks(candidate):
                story = candidate
            else:
                at += size
        size //= 2
    return story


def short_reason(code: str) -> str:
    """A reason code as a column of the table: what catalogs say by number is one column each."""
    return f"code {code}" if re.fullmatch(r"\d+", code) else code


__all__ = ["Crash", "StoryResult", "build", "live", "rest", "shorten", "story_of", "tell"]
