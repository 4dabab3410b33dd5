"""Another catalog at an address, and a feed of changes with another past: how that comes about in a story, what a person does about it,
and what the oracle knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from federator.model import TableRecord
from federator.planning.release import release_changes
from federator.planning.rule import MirrorRule
from tests.prove.catalog import LightCatalog
from tests.prove.index import SavedPlan
from tests.prove.worlds import Kind

if TYPE_CHECKING:
    from tests.prove.books import Books
    from tests.prove.world import Instance, World

#: below this many tables a share of them says nothing
_FEWEST = 2


# What happens.


def substitute(world: World, catalog: LightCatalog, keep: int, *, migrated: bool) -> None:
    """Another catalog answers: an empty one, or a restored one with every ``keep``-th table. A ``migrated`` one gives its tables new
    native ids."""
    catalog.land()
    catalog.replaced = (catalog.number, catalog.tables, catalog.namespaces, catalog.foreign, catalog.uids)
    records = list(catalog.tables.values())[::keep] if keep else []
    catalog.tables, catalog.foreign = {record.key: record for record in records}, {}
    catalog.namespaces = dict(catalog.namespaces) if keep else {}
    catalog.uids, catalog.number = dict(catalog.uids), catalog.next_uid
    catalog.version += 1
    for record in records if migrated else []:
        owners = world.oracle.owners.get((catalog.source, catalog.uids[record.key]), set())
        catalog.put(record)
        world.oracle.owners[catalog.source, catalog.uids[record.key]] = set(owners)


def put_back(catalog: LightCatalog) -> None:
    """The catalog itself answers again."""
    if catalog.replaced is not None:
        catalog.land()
        catalog.number, catalog.tables, catalog.namespaces, catalog.foreign, catalog.uids = catalog.replaced
        catalog.replaced = None
        catalog.version += 1


def end(world: World) -> None:
    """A story ends: the first catalog answers again, unless somebody has confirmed another one; then everybody does."""
    for catalog in world.catalogs.values():
        if catalog.replaced is not None and not world.oracle.doubts.is_confirmed(catalog):
            put_back(catalog)
        for instance in _readers(world, catalog) if catalog.replaced is not None else ():
            world.crawl(instance, catalog.source)
            world.confirm(instance, catalog.source)
        catalog.replaced = None


# The steps of a story.


def replaced(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    # The first identity is trusted: an instance that has never read this catalog could not know that it was replaced.
    known = all(i.index.states[catalog.source].identities.accepted for i in _readers(world, catalog))
    if catalog.has_identity and catalog.replaced is None and known:
        world.oracle.struck("catalog_replaced", catalog.source)
        substitute(world, catalog, (0, 1, 1, 2)[b % 4], migrated=c % 2 == 1)


def returned(world: World, a: int, b: int, c: int) -> None:
    catalog = _catalog(world, a)
    if catalog.replaced is not None and not world.oracle.doubts.is_confirmed(catalog):
        world.say(f"{catalog.source} itself answers again")
        put_back(catalog)


def confirmed(world: World, a: int, b: int, c: int) -> None:
    """A person confirms whichever catalog waits for that, for every instance that has met it."""
    catalog = _catalog(world, a)
    for instance in _readers(world, catalog):
        world.confirm(instance, catalog.source)
    if all(world.oracle.doubts.trusts(instance, catalog) for instance in _readers(world, catalog)):
        catalog.replaced = None


def feed_replaced(world: World, a: int, b: int, c: int) -> None:
    """The feed has another past from now on; the tables stay."""
    catalog = _catalog(world, a)
    if catalog.capabilities.change_feed:
        world.oracle.struck("feed_restored", catalog.source)
        catalog.past += 1
        catalog.version += 1


def _catalog(world: World, number: int) -> LightCatalog:
    return world.catalogs[f"c{number % len(world.catalogs)}"]


def _readers(world: World, catalog: LightCatalog) -> list[Instance]:
    return [instance for instance in world.instances if catalog.source in instance.index.states]


def drawn(rng: Random, mirror: int, edge: tuple[int, int, int], kinds: Sequence[Kind]) -> list[tuple[str, int, int, int]]:
    """Another catalog answers at one of a mirror's addresses, or a feed goes back, while there is something to do. Somebody confirms
    the other catalog, or the first one answers again."""
    number, origin = rng.getrandbits, edge[1]
    sides = [side for side in (0, 1) if kinds[edge[1 + side]].has_identity]
    if not sides:
        return []
    feeds = [side for side in sides if kinds[edge[1 + side]].capabilities.change_feed]
    goes_back = bool(feeds) and rng.random() < 0.6
    side = rng.choice(feeds if goes_back else sides)
    at = edge[1 + side]
    crawled = [("crawl", mirror, 0, 0), ("crawl", mirror, 1, 0)]
    missed = [("drop", origin, number(6), 0), ("crawl", mirror, 0, 0), ("clock", 0, 0, 0)]
    approved = [("approve", mirror, 0, 0)] if number(1) else []
    decided = [*crawled, ("plan", mirror, 1, 0), *approved, ("apply", mirror, 0, 1)]
    before = [*(missed if number(1) else []), ("alter", origin, number(8), number(8)), *crawled, ("plan", mirror, 0, 0)]
    if goes_back:
        return [*before, ("feed_back", at, 0, 0), *decided]
    story = [*before, ("replace_catalog", at, number(4), number(4)), ("apply", mirror, 0, 1), ("crawl", mirror, side, 0)]
    story += [("plan", mirror, 0, 0), *approved, ("apply", mirror, 0, 1)]
    if rng.random() < 0.3:
        return [*story, ("put_back", at, 0, 0)]
    return [*story, ("confirm", at, 0, 0), *decided, ("clock", 0, 0, 0), *decided]


# What the oracle knows.


@dataclass
class Doubts:
    """Which catalogs each instance may trust, and which of its crawls look like another catalog's."""

    #: (instance, source) → the catalogs that a person confirmed; the first one is trusted
    _trusted: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    #: (instance, source) → the feed's past when a crawl of it last read the root
    _pasts: dict[tuple[str, str], int] = field(default_factory=dict)
    #: (instance, source) → crawls of a doubtful state, counted, with the rule that holds its plans and what was wrong
    _raised: dict[tuple[str, str], list[tuple[int, str, str]]] = field(default_factory=dict)
    #: each plan, and how many doubts there were when it was made
    _planned_at: dict[int, tuple[SavedPlan, int]] = field(default_factory=dict)
    #: (instance, mirror) → how many doubts there were when the newest plan was made that a person, or nobody, objected to
    _let_go: dict[tuple[str, str], int] = field(default_factory=dict)
    _count: int = 0

    def trusts(self, instance: Instance, catalog: LightCatalog) -> bool:
        return catalog.number in self._trusted.get((instance.id, catalog.source), {0})

    def is_confirmed(self, catalog: LightCatalog) -> bool:
        """Whether anybody confirmed the catalog that answers now."""
        return any(source == catalog.source and catalog.number in numbers for (_, source), numbers in self._trusted.items())

    def confirmed(self, instance: Instance, catalog: LightCatalog, books: Books) -> None:
        """A person confirms the catalog that answers now: what was really gone from another one proves nothing of it.

        What was owned when the instance wrote it or was last shown it, and says the same, nobody can tell from what a user made again
        since then.
        """
        for key in [key for key in books.gone if key[:2] == (instance.id, catalog.source)]:
            del books.gone[key]
        viewer = (instance.id, catalog.source)
        known = {path: each for (*by, path), each in books.written.items() if tuple(by) == viewer} | books.shown.get(viewer, {})
        for path, (record, uid) in known.items():
            now = catalog.tables.get(path)
            mine = {owner for owner in books.owners.get((catalog.source, uid), ()) if owner[0] == instance.id}
            if now is not None and (_operation(now), now.canonical) == (_operation(record), record.canonical):
                books.owners.setdefault((catalog.source, catalog.uids[path]), set()).update(mine)
        self._trusted.setdefault((instance.id, catalog.source), {0}).add(catalog.number)
        self._pasts.pop((instance.id, catalog.source), None)

    def crawled(self, instance: Instance, catalog: LightCatalog, before: Mapping[str, TableRecord]) -> None:
        """An instance has published a crawl of a catalog that it trusts; ``before`` are the tables that it knew until then."""
        key, state = (instance.id, catalog.source), instance.index.states[catalog.source]
        named = {record.canonical for path, record in state.tables.items() if record is not before.get(path)}
        lost = sum(path not in state.tables and record.canonical not in named for path, record in before.items())
        lost += sum(path in state.tables and state.tables[path].canonical != r.canonical for path, r in before.items())
        if len(before) >= _FEWEST and lost * 2 > len(before):
            self._raise(key, "guard: half gone", f"{lost} of {len(before)} tables of {catalog.source}")
        if catalog.capabilities.change_feed:
            if self._pasts.get(key, catalog.past) != catalog.past:
                self._raise(key, "guard: the feed went back", catalog.source)
            if state.coverage[""].complete_or_carried:
                self._pasts[key] = catalog.past

    def principal_changed(self, source: str) -> None:
        """The feed is read from its end then."""
        for key in [key for key in self._pasts if key[1] == source]:
            del self._pasts[key]

    def planned(self, instance: Instance, rule: MirrorRule, saved: SavedPlan) -> tuple[str, str] | None:
        """A plan was made; returns which rule should have held it and did not."""
        self._planned_at.setdefault(id(saved), (saved, self._count))
        if not release_changes(saved.plan, {}).changes:
            return None
        since = self._let_go.get((instance.id, rule.name), 0)
        entries = [entry for entry in instance.index.ledger.values() if entry.mirror == rule.name]
        for source, side in ((rule.origin, "origin_source"), (rule.target, "target_source")):
            # The past of a source from or into which the mirror has declared nothing does not matter.
            if not any(getattr(entry, side) == source for entry in entries):
                continue
            for number, guard, what in self._raised.get((instance.id, source), ()):
                if number > since:
                    return guard, f"{rule.name}: {what}"
        return None

    def let_go(self, instance: Instance, saved: SavedPlan) -> None:
        """A plan was approved or applied."""
        key = (instance.id, saved.plan.mirror)
        self._let_go[key] = max(self._let_go.get(key, 0), self._planned_at[id(saved)][1])

    def _raise(self, key: tuple[str, str], guard: str, what: str) -> None:
        self._count += 1
        self._raised.setdefault(key, []).append((self._count, guard, what))


def _operation(record: TableRecord) -> str:
    return record.properties.get("federator.op") or (record.doc or "").rpartition(" op=")[2]
