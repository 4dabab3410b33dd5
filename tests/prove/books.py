"""The oracle's own books: who declared which object, when an origin was really gone while a crawl could have seen it, what each
instance has been shown, and what was removed within the guards' window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from federator.model import Coverage, Record, TableRecord, parse_path_key, path_key
from federator.planning.changes import Change
from federator.planning.journal_lines import is_abandoned
from federator.planning.plan import Plan
from federator.planning.publication import ObservedObject
from federator.planning.release import list_guarded_changes
from federator.planning.rule import MirrorRule
from tests.prove.catalog import LightCatalog
from tests.prove.replacing import Doubts

if TYPE_CHECKING:
    from tests.prove.world import Instance, World


class Violation(AssertionError):
    """A rule was broken; ``rule`` names it in a few words that stay the same while a story is shortened."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


@dataclass(frozen=True)
class Actor:
    """On whose behalf writes are made now."""

    instance: Instance
    rule: MirrorRule
    changes: Mapping[tuple[bool, str], Change]
    approved: bool
    #: what a dead run had begun is made whole, long after the origin was looked at
    resumes: bool = False


@dataclass
class Books:
    """``faults`` and ``pairs`` are what the table of a proof is made of: how often each fault struck, and after which ones each
    reason was given for a mirror of the source that was struck."""

    world: World = field(init=False)
    actor: Actor | None = None
    faults: Counter[str] = field(default_factory=Counter)
    reasons: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    writes: int = 0
    doubts: Doubts = field(default_factory=Doubts)
    #: (catalog, real identity) → (instance, mirror), one of them where the catalog keeps a mark
    owners: dict[tuple[str, int], set[tuple[str, str]]] = field(default_factory=dict)
    #: (instance, mirror, target path) → when a person approved its change, and (instance, source, path) of an absent origin
    approved: dict[tuple[str, str, str], tuple[float, tuple[str, str, str] | None]] = field(default_factory=dict)
    #: (instance, source, path) → times at which it was really gone and a crawl could see that
    gone: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    #: (instance, catalog) → what it was shown there: path → (record, real identity)
    shown: dict[tuple[str, str], dict[str, tuple[TableRecord, int]]] = field(default_factory=dict)
    #: (instance, catalog, path) → what it was shown there last, though it may be gone since, and its real identity
    ever: dict[tuple[str, str, str], tuple[TableRecord, int]] = field(default_factory=dict)
    #: (instance, catalog, path) → when its index took over what it had looked at or written there, and the digest
    looked: dict[tuple[str, str, str], tuple[float, str]] = field(default_factory=dict)
    #: (instance, catalog, path) → what it wrote there last
    written: dict[tuple[str, str, str], tuple[TableRecord, int]] = field(default_factory=dict)
    #: (instance, mirror) → times and paths of removals and moves
    removed: dict[tuple[str, str], list[tuple[float, str]]] = field(default_factory=dict)
    _struck: dict[str, set[str]] = field(default_factory=dict)
    _counted: set[tuple[str, str, str]] = field(default_factory=set)
    #: what the application observed of origins since its last read of the target: (source, path) → the truth then, and when it began
    _observed: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)
    #: the call is what makes an observation old, not the moment at which its effect lands
    _called_at: float | None = None

    def struck(self, fault: str, *sources: str) -> None:
        self.faults[fault] += 1
        for source in sources:
            self._struck.setdefault(source, set()).add(fault)
        self._counted.clear()
        if self.world.story is not None:
            self.world.say(f"    ⚡ {fault} at {', '.join(sources)}")

    def count_reasons(self, rule: MirrorRule, reasons: Iterable[str]) -> None:
        """Reason codes that a plan or an outcome of a mirror gave."""
        for reason in reasons:
            counted = (rule.origin, rule.target, reason)
            if counted not in self._counted:
                self._counted.add(counted)
                self.reasons.add(reason)
                for source in (rule.origin, rule.target):
                    self.pairs.update((fault, reason) for fault in self._struck.get(source, ()))

    def listed(self, instance: Instance, catalog: LightCatalog, items: Sequence[Record | Coverage], at: float) -> None:
        """What a crawl handed to an instance. What another catalog in its stead says is no evidence."""
        if not self.doubts.trusts(instance, catalog):
            return
        shown = self.shown.setdefault((instance.id, catalog.source), {})
        looked = instance.index.states[catalog.source].observed
        whole: set[str] = set()
        before = dict(shown)
        arrived: Counter[str] = Counter()
        for item in items:
            if isinstance(item, Coverage):
                key = item.key
                if item.presence.complete and item.records == arrived[key]:
                    whole.add(key)
                continue
            arrived[path_key(item.path[:-1])] += 1
            before.pop(item.key, None)
            if isinstance(item, TableRecord) and item.location is not None:
                read = self.ever[instance.id, catalog.source, item.key] = (item, catalog.uids.get(item.key, 0))
                # After the clock went back, a direct look says more than what was read "before" it.
                if at >= looked.get((1, item.key), 0.0):
                    shown[item.key] = read
                if self.gone.pop((instance.id, catalog.source, item.key), None) is not None:
                    self._seen_again((instance.id, catalog.source, item.key))
        # What a whole listing shows no more is not known any more, be it gone or hidden.
        for key in [key for key in before if key.rpartition("$")[0] in whole]:
            del shown[key]
        for origin in {key[2] for key in instance.index.ledger if key[4] and key[1] == catalog.source}:
            # Where a catalog hides what may not be seen, nobody can tell that from its being gone.
            missing = origin not in catalog.tables or path_key(parse_path_key(origin)[:-1]) in catalog.hidden
            if missing and self._nearest(catalog, origin) in whole:
                self.gone.setdefault((instance.id, catalog.source, origin), []).append(at)

    def crawled(self, instance: Instance, source: str, began_at: float) -> None:
        """An instance has published a crawl: what it had looked at later is still as it was seen then."""
        tables = instance.index.states[source].tables
        for key in [key for key in self.looked if key[:2] == (instance.id, source)]:
            at, digest = self.looked[key]
            now = tables.get(key[2])
            if now is None or now.digest != digest:
                if began_at < at:
                    raise Violation("old evidence took the place of a newer look", f"{source}${key[2]}")
                del self.looked[key]

    def _seen_again(self, origin: tuple[str, str, str]) -> None:
        for key in [key for key, (_, of) in self.approved.items() if of == origin]:
            del self.approved[key]

    def reconfigured(self, source: str) -> None:
        """Another principal: what was missed before proves nothing."""
        self.doubts.principal_changed(source)
        for key in [key for key in self.gone if key[1] == source]:
            del self.gone[key]

    def approves(self, instance: Instance, plan: Plan) -> None:
        """A person approves what a plan holds."""
        for change in list_guarded_changes(plan):
            # Only what was to go because its origin was absent is another matter once that is seen.
            absent = change.precondition.get("origin") == "absent"
            origin = (instance.id, change.origin_source, change.origin_path) if absent else None
            self.approved[instance.id, plan.mirror, change.target_path] = (self.world.now, origin)

    def _is_approved(self, actor: Actor, key: str) -> bool:
        """An approval holds for a week, and until a listing shows the origin of what goes again."""
        at, _ = self.approved.get((actor.instance.id, actor.rule.name, key), (float("-inf"), None))
        return actor.approved or at > self.world.now - 7 * 86_400.0

    def remade(self, catalog: LightCatalog, record: TableRecord, uid: int) -> None:
        """A user is about to recreate the object ``uid`` with the same content.

        While the call that made it has no outcome, or the outcome that it was not made, its identity is in no ledger: nobody can tell
        the two apart.
        """
        op_id = record.properties.get("federator.op") or (record.doc or "").rpartition(" op=")[2].rstrip("]")
        for instance in self.world.instances:
            entry = instance.index.journal.get(op_id)
            if entry is not None and is_abandoned(entry.state, entry.code):
                owners = self.owners.get((catalog.source, uid), set())
                self.owners[catalog.source, catalog.next_uid] = set(owners)

    def later(self, effect: Callable[[], None]) -> Callable[[], None]:
        """A call whose effect comes after its answer was given up, judged as if it came now."""
        actor, observed, called_at = self.actor, dict(self._observed), self.world.now

        def land() -> None:
            before = self.actor, self._observed, self._called_at
            self.actor, self._observed, self._called_at = actor, observed, called_at
            effect()
            self.actor, self._observed, self._called_at = before

        return land

    def denied(self, catalog: LightCatalog, key: str) -> None:
        """An application observed an object that is hidden from it, as absent: the instance no longer knows the object."""
        if self.actor is not None:
            self.shown.get((self.actor.instance.id, catalog.source), {}).pop(key, None)

    def observed(self, catalog: LightCatalog, key: str, truth: str, started_at: float) -> None:
        """An application read one table, as it really was."""
        if self.actor is None:
            return
        if catalog.source == self.actor.rule.target:
            self._observed.clear()
        else:
            self._observed[catalog.source, key] = (truth, started_at)

    def now(self) -> float:
        return self.world.now

    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    def published(self, instance: Instance, catalog: LightCatalog, observation: ObservedObject) -> None:
        """An instance's index now knows what it wrote itself, or saw to be gone."""
        state, key = instance.index.states[catalog.source], observation.key[1]
        record = state.tables.get(key)
        self.looked.pop((instance.id, catalog.source, key), None)
        # A look that found what the index had already is not kept: then the crawl that said so is the newest evidence.
        if record is not None and (1, key) in state.observed:
            self.looked[instance.id, catalog.source, key] = (self.world.now, record.digest)
        shown = self.shown.setdefault((instance.id, catalog.source), {})
        known = self.written.get((instance.id, catalog.source, key))
        if observation.record is None:
            shown.pop(key, None)
        elif known is not None:
            shown[key] = known
            self.ever[instance.id, catalog.source, key] = known

    def _nearest(self, catalog: LightCatalog, key: str) -> str:
        path = parse_path_key(key)[:-1]
        while path and path_key(path) not in catalog.namespaces:
            path = path[:-1]
        return path_key(path)
