"""A world: catalogs, the federator's instances over them, a clock; and what a service does there: crawl, plan, apply, resume.

Decisions, their facts and execution are the product's own; the order of a run (``federator.stages``) is followed here.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from federator.connector import Catalog, CatalogError, IdentityChanged, ServiceUnavailable, StateError
from federator.model import Path, Record, TableRecord
from federator.planning import facts, planner
from federator.planning.crawls import unread_coverage
from federator.planning.decision import CrawlEvidence
from federator.planning.ledger import OwnedObject
from federator.planning.mapping import MirrorContext
from federator.planning.namespaces import drop_refusal
from federator.planning.plan import Plan, check_plan
from federator.planning.release import release_changes
from federator.planning.rule import MirrorRule
from federator.stages.confirm_source import iter_intact_entries
from tests.prove import replacing
from tests.prove.armed import Crash
from tests.prove.catalog import LightCatalog
from tests.prove.faults import FaultyJournal
from tests.prove.index import MemoryIndex, SavedPlan, State
from tests.prove.oracle import Oracle
from tests.prove.rules_in_memory import decide_all
from tests.prove.watching import WatchedApplication, WatchedExecutor
from tests.prove.worlds import Kind

#: a Thursday
BEGINNING = 1_000_000_000.0 - 1_000_000_000.0 % 86_400 + 4 * 86_400


@dataclass
class Instance:
    """One federator with its own index. ``rules`` by name; ``contexts`` are theirs."""

    id: str
    index: MemoryIndex
    rules: dict[str, MirrorRule]
    contexts: dict[str, MirrorContext] = field(default_factory=dict)
    #: gives an application up after two failures
    impatient: bool = False
    #: (mirror, target path) of what is planned again and again because only a person can act: recreations of tables that would not come
    #: back whole, drops of namespaces with something inside that no listing shows, two mirrors that adopt what carries no mark
    left_alone: set[tuple[str, str]] = field(default_factory=set)
    #: a fault of the process that waits, and how many writes of the journal it lets pass
    armed: tuple[str, int] | None = None
    #: by source: versions of catalog, state and index after a crawl that saw everything
    complete: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    #: the last plan of each mirror, with everything that it was made from
    memory: dict[str, tuple[tuple[object, ...], Plan]] = field(default_factory=dict)


@dataclass
class World:
    """``catalogs`` by source name."""

    catalogs: dict[str, LightCatalog]
    instances: list[Instance]
    oracle: Oracle
    kinds: dict[str, Kind]
    now: float = BEGINNING
    operations: int = 0
    story: list[str] | None = None

    def say(self, text: str) -> None:
        """A line of the story, where somebody wants to read it; callers ask ``story`` first where the line costs."""
        if self.story is not None:
            self.story.append(text)

    def context(self, instance: Instance, rule: MirrorRule) -> MirrorContext:
        """``stages.plan.mirror_context``."""
        known = instance.contexts.get(rule.name)
        if known is not None and known.rule is rule:
            return known
        origin, target = self.catalogs[rule.origin].capabilities, self.catalogs[rule.target].capabilities
        made = MirrorContext.from_rule(rule, instance.id, origin, target, (), instance.rules.values())
        instance.contexts[rule.name] = made
        return made

    def crawl(self, instance: Instance, source: str) -> None:
        """``stages.crawl._crawl_source``."""
        catalog, index, began_at = self.catalogs[source], instance.index, self.now
        state = index.states[source]
        now = (catalog.version, state.version, index.version)
        if instance.complete.get(source) == now and catalog.armed.listing is None and not index.list_misses(source):
            return  # nothing has changed since a crawl that saw everything: this one would say the same
        instance.complete.pop(source, None)
        try:
            shards = catalog.plan_shards()
        except ServiceUnavailable as error:
            index.crawled(source, [unread_coverage(source, error.code, str(error))], began_at)
            return
        changes = catalog.changes_since(state.cursor or str(catalog.past)) if catalog.capabilities.change_feed else None
        problem = index.identified(source, catalog.identity(), crawl=True)
        if problem is not None:
            index.crawled(source, [unread_coverage(source, IdentityChanged.code, problem)], began_at, changes)
            return
        items = [item for shard in shards for item in catalog.read_shard(shard)]
        self.oracle.listed(instance, catalog, items, began_at)
        before = dict(state.tables)
        whole = index.crawled(source, items, began_at, changes)
        self.oracle.doubts.crawled(instance, catalog, before)
        self.oracle.crawled(instance, source, began_at)
        if whole and all(c.complete and c.detail.complete for c in state.coverage.values()):
            instance.complete[source] = (catalog.version, state.version, index.version)

    def plan(self, instance: Instance, rule: MirrorRule) -> SavedPlan:
        """``stages.plan._plan_mirror``."""
        index = instance.index
        origin, target = index.states[rule.origin], index.states[rule.target]
        read = (
            rule,
            origin.version,
            target.version,
            index.version,
            self.catalogs[rule.origin].version,
            self.catalogs[rule.target].version,
        )
        last = instance.memory.get(rule.name)
        if last is not None and last[0] == read and not rule.windows:
            return self._planned(instance, rule, last[1])
        context = self.context(instance, rule)
        knowledge = CrawlEvidence(origin.coverage, target.coverage, index.list_misses(rule.origin))
        found = decide_all(context, knowledge, origin.tables.values(), target.tables.values(), index.ledger_rows(rule))
        able = self.catalogs[rule.origin].capabilities
        known = facts.collect_facts(
            context, able, found, _Sources(self, instance, rule),
            now=self.now, origin_revision=origin.version, target_revision=target.version,
        )  # fmt: skip
        made = planner.build_plan(context, knowledge, found, known)
        if not made.changes:
            # What a plan of changes says also depends on the clock.
            instance.memory[rule.name] = (read, made)
        else:
            instance.memory.pop(rule.name, None)
        return self._planned(instance, rule, made)

    def _planned(self, instance: Instance, rule: MirrorRule, plan: Plan) -> SavedPlan:
        saved = instance.index.save(plan, self.now)
        self.oracle.count_reasons(rule, [refusal.reason.value for refusal in plan.refusals])
        self.oracle.count_reasons(rule, [hold.guard for hold in plan.holds])
        if self.story is not None:
            self.say(f"    plan of {instance.id}/{rule.name}, {saved.state}{f' ({plan.held[0]})' if plan.held else ''}:")
            for change in plan.changes:
                self.say(f"      {change.action.value} {change.target_path} for {change.origin_path} ({change.reason})")
            for refusal in plan.refusals:
                self.say(f"      {refusal.reason.value}: {refusal.target_path} for {refusal.origin_path} ({refusal.detail})")
        self.oracle.planned(instance, rule, saved)
        return saved

    def resume(self, instance: Instance, rule: MirrorRule) -> bool:
        """``stages.apply.resolve_open_intents`` for one mirror. Return whether it was possible."""
        open_ = bool(instance.index.open_intents(rule.name))
        if open_ and not self._known(instance, rule):
            return False
        if open_:
            with self._survived():
                self._application(instance, rule).resume()
        return True

    def approve(self, instance: Instance, saved: SavedPlan) -> None:
        """A person approves a plan."""
        try:
            instance.index.approve(saved, self.now)
        except StateError as error:
            self.say(f"    {error}")
            return
        self.oracle.approves(instance, saved.plan)
        self.oracle.doubts.let_go(instance, saved)

    def confirm(self, instance: Instance, source: str) -> None:
        """``stages.confirm_source.confirm``: a person confirms that another catalog is the right one."""
        catalog, index = self.catalogs[source], instance.index
        state = index.states[source]
        known = state.identities
        if not known.unconfirmed:
            return

        def indexed(entry: OwnedObject) -> Record | None:
            return (state.tables if entry.is_table else state.namespaces).get(entry.target_path)

        try:
            entries = index.ledger.values()
            rebound = list(iter_intact_entries(catalog, known.by_scope, known.unconfirmed, entries, instance.id, indexed))
        except CatalogError as error:
            self.say(f"    {source} cannot be confirmed: {error}")
            return
        self.say(f"a person confirms {source} for {instance.id}, of which {len(rebound)} copies are intact")
        index.confirm(source, rebound)
        self.oracle.doubts.confirmed(instance, catalog, self.oracle)

    def apply(self, instance: Instance, saved: SavedPlan, *, stored: bool = False) -> None:
        """``stages.apply.apply_plans`` for one plan, which may be ``stored`` and read back."""
        rule = instance.rules[saved.plan.mirror]
        if not self._known(instance, rule):
            return
        plan = Plan.from_json(saved.plan.to_json()) if stored else saved.plan
        with self._survived():
            check_plan(plan, digest=saved.plan.digest, mirror_digest=rule.digest)
            released = release_changes(plan, instance.index.approved(rule.name, self.now))
            if released.waiting:
                self.oracle.count_reasons(rule, [waiting.reason.value for waiting in released.waiting])
                self.say(f"    {len(released.waiting)} of {len(plan.changes)} changes wait: {released.waiting[0].hold}")
            if released.changes:
                try:
                    self._application(instance, rule, stored=stored).apply(plan, released)
                finally:
                    for source in (rule.origin, rule.target):
                        self.catalogs[source].armed.calm()
                        self.catalogs[source].land()
        if saved.state == "applied":
            self.oracle.doubts.let_go(instance, saved)

    @contextmanager
    def _survived(self) -> Iterator[None]:
        """What ends an application ends no world: its process dies, or it loses a lease."""
        try:
            yield
        except (Crash, StateError) as error:
            self.say(f"    {str(error) or 'the process dies'}")

    def _application(self, instance: Instance, rule: MirrorRule, *, stored: bool = False) -> WatchedApplication:
        origin, target, stop = self.catalogs[rule.origin], self.catalogs[rule.target], threading.Event()
        now = self.oracle.now
        executor = WatchedExecutor(
            FaultyJournal(instance.index, rule, now, self, instance, stop), rule, origin, target,
            target.capabilities.keeps_properties, stop, clock=now, monotonic=now, op_ids=self.operation,
            max_failures=2 if instance.impatient else None, stored=stored, drop_refusal=drop_refusal(target.capabilities),
            world=self, instance=instance,
        )  # fmt: skip
        return WatchedApplication(executor, instance.index, self, instance)

    def _known(self, instance: Instance, rule: MirrorRule) -> bool:
        """``stages.apply._check_confirmed``, and ``apply.source_identity.check_identity`` of a mirror's two connections."""
        index, sources = instance.index, (rule.origin, rule.target)
        waits = [index.unconfirmed(name) or index.identified(name, self.catalogs[name].identity()) for name in sources]
        if any(waits):
            self.say(f"    {next(filter(None, waits))}")
        return not any(waits)

    def operation(self) -> str:
        """The next operation's id: the same in each telling."""
        self.operations += 1
        return f"op{self.operations}"

    def check(self) -> None:
        """What must hold between any two steps. Raises Violation."""
        for instance in self.instances:
            self.oracle.ledger_is_sound(instance)

    def calm(self) -> None:
        """The faults end: nothing is armed, calls in flight have landed, grants are back, the clock is right."""
        for catalog in self.catalogs.values():
            catalog.armed.clear()
            catalog.land()
            if catalog.hidden:
                catalog.hidden.clear()
                catalog.version += 1
        replacing.end(self)
        for instance in self.instances:
            instance.armed = None
        newest = [at for i in self.instances for state in i.index.states.values() for at in state.observed.values()]
        misses = [
            at
            for i in self.instances
            for name in i.index.states
            for times in i.index.list_misses(name).values()
            for at in times
        ]
        self.now = max([self.now, *newest, *misses])


@dataclass(frozen=True)
class _Sources:
    """``FactSources`` of one mirror: the index in memory, and the catalogs of the world."""

    world: World
    instance: Instance
    rule: MirrorRule

    def read(self) -> AbstractContextManager[MemoryIndex]:
        return nullcontext(self.instance.index)

    @contextmanager
    def open_origin(self, namespaces: Collection[Path]) -> Iterator[Catalog]:
        """``apply.source_identity.opened_as_known``."""
        catalog = self.world.catalogs[self.rule.origin]
        problem = self.instance.index.identified(catalog.source, catalog.identity(namespaces))
        if problem is not None:
            raise IdentityChanged(problem)
        yield catalog

    def open_target(self) -> AbstractContextManager[Catalog]:
        return nullcontext(self.world.catalogs[self.rule.target])


__all__ = ["BEGINNING", "Instance", "State", "TableRecord", "World"]
