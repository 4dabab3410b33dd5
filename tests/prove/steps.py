"""The steps of a story: what users do, what strikes, and what the federator does. A step is plain data that means something in every
world, so that a story can be cut shorter: ``(operation, a, b, c)``, the numbers taken modulo what there is to choose from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from federator.model import Kind, TableRecord, parse_path_key, path_key
from federator.planning.ownership import find_bound_marker
from tests.prove import replacing
from tests.prove.catalog import LightCatalog
from tests.prove.truth import without_mark
from tests.prove.world import Instance, World
from tests.prove.worlds import interned, native_path

Step = tuple[str, int, int, int]

NAMES = ("a", "b", "c", "A", "bad name")
GOOD = ("s3://lake/1", "s3://lake/2", "s3://lake/3", "s3://lake/5", "s3://lake/8", "s3://lake/9")
#: spelled differently, corrupt, missing, never looked at, no place at all
ODD = ("s3a://lake/1", "s3://lake/4", "s3://lake/6", "s3://lake/7", "nowhere")
PROPERTIES: tuple[dict[str, str], ...] = ({}, {"p": "1"}, {"p": "2"}, {"p": "1", "q": "1"}, {"long": "x" * 70})
LISTING_FAULTS = (
    "listing_failed",
    "listing_short",
    "namespace_denied",
    "namespace_vanished",
    "rows_lost",
    "table_undescribed",
    "unreachable",
    "answer_without_fields",
)
WRITE_FAULTS = (
    "answer_lost_after", "answer_lost_before", "answer_late", "answer_and_look_lost", "throttled", "write_denied", "crash_after_call",
    "answer_malformed", "name_raced",
)  # fmt: skip
LOOK_FAULTS = ("look_failed", "look_denied", "look_throttled", "look_without_fields")
HALFWAY_FAULTS = ("halfway_denied", "halfway_lost", "crash_halfway")
JOURNAL_FAULTS = (
    "crash_before_intent",
    "crash_after_intent",
    "crash_before_outcome",
    "crash_after_outcome",
    "lease_lost",
    "lease_short",
    "stop_asked",
)
#: what the table of a proof has rows for, with the faults that are steps of their own
FAULTS = (
    *LISTING_FAULTS, "grant_revoked", "principal_changed", "catalog_replaced", "feed_restored",
    *LOOK_FAULTS, "look_slow", *WRITE_FAULTS, *HALFWAY_FAULTS, *JOURNAL_FAULTS,
    "outage", "concurrent_edit", "origin_acts",
    "stale_plan", "clock_forward", "clock_back", "mirror_changed", "mark_lost", "recreated_by_user", "moved_by_user",
    "dropped_by_user", "copied_by_user", "name_squatted", "namespace_dropped",
)  # fmt: skip


def perform(world: World, step: Step) -> None:
    """Makes one step happen. Raises Violation."""
    world.now += 1.0
    operation, a, b, c = step
    OPERATIONS[operation](world, a, b, c)


def _catalog(world: World, number: int) -> LightCatalog:
    return world.catalogs[f"c{number % len(world.catalogs)}"]


def _mirror(world: World, number: int) -> tuple[Instance, str]:
    mirrors = [(instance, name) for instance in world.instances for name in instance.rules]
    return mirrors[number % len(mirrors)]


def _pick(names: list[str], number: int) -> str | None:
    return names[number % len(names)] if names else None


# What users do with their own tables.


def _new(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    kind = world.kinds[catalog.source]
    name = NAMES[(b >> 3) % 3 if b % 8 else b // 8 % 5]
    path = native_path(kind, b, name.lower() if catalog.capabilities.names.folds_case else name)
    if path[-1] not in ("bad name",) or catalog.capabilities.names.allows(path[-1]):
        record = TableRecord(catalog.source, path, _location(c), PROPERTIES[c % 5 if c % 3 else 1])
        world.say(f"a user makes {catalog.source}${record.key} at {record.location}")
        catalog.put(record)


def _location(number: int) -> str:
    return GOOD[number % len(GOOD)] if number % 7 else ODD[number // 7 % len(ODD)]


def _drop(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    if key := _pick(catalog.natives(), b):
        world.say(f"a user drops {catalog.source}${key}")
        catalog.remove(key)


def _rename(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    if key := _pick(catalog.natives(), b):
        record = catalog.tables[key]
        path = (*record.path[:-1], f"n{c % 3}")
        world.say(f"a user renames {catalog.source}${key} to {path[-1]}")
        catalog.remove(key)
        catalog.put(replace(record, path=path))


def _alter(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    if key := _pick(catalog.natives(), b):
        world.say(f"a user changes {catalog.source}${key}")
        if c % 4 == 0:
            catalog.change(key, location=_location(c // 4))
        elif c % 4 == 1 and catalog.capabilities.keeps_comment:
            catalog.change(key, doc=f"words {c % 3}")
        elif c % 4 == 2 and c % 3 == 0:
            catalog.change(key, kind=Kind.MANAGED_TABLE)
        elif catalog.capabilities.keeps_properties:
            catalog.change(key, properties=PROPERTIES[c // 4 % 5])


def _unlance(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    if key := _pick(catalog.natives(), b):
        world.say(f"{catalog.source}${key} is no Lance table any more")
        catalog.squat(key)


def _drop_namespace(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    if key := _pick(sorted(catalog.namespaces), b):
        world.say(f"a user drops the namespace {catalog.source}${key}")
        world.oracle.struck("namespace_dropped", catalog.source)
        catalog.take_away(parse_path_key(key))


# What users do to what we declared.


def _tamper(world: World, a: int, b: int, c: int) -> None:
    instance, name = _mirror(world, a)
    tamper_with(world, world.catalogs[instance.rules[name].target], b, c)


def tamper_with(world: World, catalog: LightCatalog, b: int, c: int) -> None:
    key = _pick(catalog.copies(), b)
    if key is None:
        return
    record = catalog.tables[key]
    what = _TAMPERING[c % len(_TAMPERING)]
    world.oracle.struck(what, catalog.source)
    if what == "mark_lost":
        catalog.change(key, **without_mark(record))
    elif what == "recreated_by_user":
        world.oracle.remade(catalog, record, catalog.uids[key])
        catalog.put(record)
    elif what == "moved_by_user":
        catalog.change(key, location=GOOD[c // 8 % 3])
    elif what == "dropped_by_user":
        catalog.remove(key)
    elif what == "copied_by_user":
        copy = replace(record, path=(*record.path[:-1], "copy"))
        if copy.key not in catalog.tables:
            catalog.put(copy)
    elif what == "name_squatted":
        catalog.squat(key)


_TAMPERING = (
    "mark_lost",
    "recreated_by_user",
    "moved_by_user",
    "dropped_by_user",
    "copied_by_user",
    "name_squatted",
    "dropped_by_user",
)


# What the configuration and the environment do.


def _change_mirror(world: World, a: int, b: int, c: int) -> None:
    instance, name = _mirror(world, a)
    rule = instance.rules[name]
    changed = interned(replace(rule, **CONFIGURATIONS[b % len(CONFIGURATIONS)]))
    if changed != rule:
        world.oracle.struck("mirror_changed", rule.origin, rule.target)
        instance.rules[name] = changed
        instance.contexts.clear()


CONFIGURATIONS: tuple[dict[str, Any], ...] = (
    {"include": ("*$a",)},
    {"include": ("*",), "exclude": ()},
    {"exclude": ("*b*",)},
    {"suffix": "_2"},
    {"suffix": ""},
    {"prune_unselected": True},
    {"delete": "never"},
    {"delete": "owned"},
    {"on_missing": "recreate"},
    {"update_by_recreate": True},
    {"transitive": False},
    {"on_conflict": "adopt_if_same_location"},
)


def _change_principal(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    world.oracle.struck("principal_changed", catalog.source)
    world.oracle.reconfigured(catalog.source)
    for instance in world.instances:
        if catalog.source in instance.index.states:
            instance.index.configured(catalog.source)


def _revoke(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    key = _pick(sorted(catalog.namespaces), b)
    if not catalog.capabilities.listing_filtered or key is None:
        return
    world.oracle.struck("grant_revoked", catalog.source)
    catalog.hidden.add(key)
    catalog.version += 1


def _use_and_hide(world: World, a: int, b: int, c: int) -> None:
    """A user puts a table into a namespace that a mirror made, and the mirror's principal loses its grants there."""
    instance, name = _mirror(world, a)
    catalog = world.catalogs[instance.rules[name].target]
    keys = sorted(key for key, record in catalog.namespaces.items() if find_bound_marker(record) is not None)
    key = _pick(keys, b)
    if key is None or not catalog.capabilities.listing_filtered:
        return
    record = TableRecord(catalog.source, (*parse_path_key(key), "own"), _location(c))
    world.say(f"a user makes {catalog.source}${record.key}")
    catalog.put(record)
    world.oracle.struck("grant_revoked", catalog.source)
    catalog.hidden.add(key)


def _restore(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    if catalog.hidden:
        world.say(f"the grants in {catalog.source} are back")
        catalog.hidden.clear()
        catalog.version += 1


def _clock(world: World, a: int, b: int, c: int) -> None:
    seconds = (700.0, 700.0, 650.0, 30.0, 50_000.0, -400.0, -100_000.0, 300.0)[a % 8]
    if abs(seconds) > 10_000 or seconds < 0:
        world.oracle.struck("clock_forward" if seconds > 0 else "clock_back", *world.catalogs)
    else:
        world.say(f"{seconds:g} s pass")
    world.now += seconds


def _arm_listing(world: World, a: int, b: int, c: int) -> None:
    _catalog(world, a).armed.listing = (LISTING_FAULTS[b % len(LISTING_FAULTS)], c)


def _arm_write(world: World, a: int, b: int, c: int) -> None:
    _catalog(world, a).armed.write = WRITE_FAULTS[b % len(WRITE_FAULTS)]


def _arm_outage(world: World, a: int, b: int, c: int) -> None:
    _catalog(world, a).armed.outage = True


def _arm_halfway(world: World, a: int, b: int, c: int) -> None:
    _catalog(world, a).armed.halfway = HALFWAY_FAULTS[b % len(HALFWAY_FAULTS)]


def _arm_look(world: World, a: int, b: int, c: int) -> None:
    _catalog(world, a).armed.observation = LOOK_FAULTS[b % len(LOOK_FAULTS)]


def _arm_race(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)

    def race() -> None:
        world.oracle.struck("concurrent_edit", catalog.source)
        if c % 3 == 0:
            _new(world, a, b, c)
        else:
            tamper_with(world, catalog, b, c)

    catalog.armed.race, catalog.armed.race_after = race, b % 3


def _arm_slow(world: World, a: int, b: int, c: int) -> None:
    _catalog(world, a).armed.slow = 1 + b % 3


def _arm_return(world: World, a: int, b: int, c: int) -> None:
    """Users of a mirror's origin act while it is applied: they declare again what they dropped, or move what is there."""
    instance, name = _mirror(world, a)
    rule = instance.rules[name]
    origin = world.catalogs[rule.origin]

    def act() -> None:
        world.oracle.struck("origin_acts", rule.origin)
        if c % 4:
            for record, uid in origin.dropped[-3:]:
                if record.key not in origin.tables and path_key(record.path[:-1]) in ("", *origin.namespaces):
                    world.say(f"    users declare {origin.source}${record.key} again")
                    world.oracle.remade(origin, record, uid)
                    origin.put(record)
        elif key := _pick(origin.natives(), c):
            world.say(f"    users move {origin.source}${key}")
            origin.change(key, location=GOOD[c // 4 % len(GOOD)])

    armed = world.catalogs[rule.target if b % 2 else rule.origin].armed
    armed.race, armed.race_after = act, b // 2 % 4


def _arm_journal(world: World, a: int, b: int, c: int) -> None:
    instance, _ = _mirror(world, a)
    instance.armed = (JOURNAL_FAULTS[b % len(JOURNAL_FAULTS)], c % 3)


# What the federator does.


def _crawl(world: World, a: int, b: int, c: int) -> None:
    instance, name = _mirror(world, a)
    rule = instance.rules[name]
    source = rule.target if b % 2 else rule.origin
    world.say(f"{instance.id} crawls {source}")
    world.crawl(instance, source)


def _plan(world: World, a: int, b: int, c: int) -> None:
    instance, name = _mirror(world, a)
    if b % 2:
        world.resume(instance, instance.rules[name])
    world.plan(instance, instance.rules[name])


def _apply(world: World, a: int, b: int, c: int) -> None:
    """The newest plan of a mirror, or (rarely) an older one."""
    instance, name = _mirror(world, a)
    saved = [saved for saved in instance.index.plans.values() if saved.plan.mirror == name and saved.plan.changes]
    if not saved:
        return
    stale = c % 8 == 0 and len(saved) > 1
    chosen = saved[c // 8 % (len(saved) - 1)] if stale else saved[-1]
    rule = instance.rules[name]
    if stale:
        world.oracle.struck("stale_plan", rule.origin, rule.target)
    world.apply(instance, chosen, stored=stale)


def _approve(world: World, a: int, b: int, c: int) -> None:
    instance, name = _mirror(world, a)
    held = [saved for saved in instance.index.plans.values() if saved.plan.mirror == name and saved.state == "held"]
    # Somebody who is asked whether a namespace may really go looks whether it is the grants.
    if held and not world.catalogs[instance.rules[name].origin].hidden:
        world.say(f"a person approves the last held plan of {instance.id}/{name}")
        world.approve(instance, held[-1])


OPERATIONS: dict[str, Callable[[World, int, int, int], None]] = {
    "new": _new, "drop": _drop, "rename": _rename, "alter": _alter, "unlance": _unlance, "drop_namespace": _drop_namespace,
    "tamper": _tamper, "change_mirror": _change_mirror, "change_principal": _change_principal, "revoke": _revoke,
    "use_and_hide": _use_and_hide, "replace_catalog": replacing.replaced, "put_back": replacing.returned,
    "confirm": replacing.confirmed, "feed_back": replacing.feed_replaced,
    "restore": _restore, "clock": _clock, "arm_listing": _arm_listing, "arm_write": _arm_write, "arm_look": _arm_look,
    "arm_outage": _arm_outage, "arm_halfway": _arm_halfway, "arm_race": _arm_race, "arm_slow": _arm_slow,
    "arm_return": _arm_return, "arm_journal": _arm_journal,
    "crawl": _crawl, "plan": _plan, "apply": _apply, "approve": _approve,
}  # fmt: skip
