"""The oracle: it sees every write with the truth before it, and judges by what really is, not by what the product believes.

It keeps its own books: who declared which object (by an identity that no catalog tells), when an origin was really gone while a
crawl could have seen it, what each instance has been shown, and what was removed within the guards' window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from federator.model import Coverage, NamespaceRecord, Record, TableRecord, parse_key, path_key
from federator.planning.cells import place
from federator.planning.changes import Action, Change
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.planning.release import guarded, release
from federator.planning.rule import MirrorRule
from tests.prove.catalog import LightCatalog
from tests.prove.index import Kept

if TYPE_CHECKING:
    from tests.prove.world import Instance, World

_CALLS = {
    "create_namespace": (Action.CREATE_NAMESPACE,),
    "drop_namespace": (Action.DROP_NAMESPACE,),
    "declare_table": (Action.DECLARE_TABLE, Action.RECREATE_TABLE),
    "update_table": (Action.UPDATE_TABLE, Action.ADOPT),
    "deregister_table": (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE),
}
_OF_NAMESPACES = ("create_namespace", "drop_namespace")
_PLACES_THAT_EXIST = ("1", "2", "3", "4", "5", "8", "9")


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
class Oracle:
    """``faults`` and ``pairs`` are what the table of a proof is made of: how often each fault struck, and after which ones each
    reason was given for a mirror of the source that was struck."""

    world: World = field(init=False)
    actor: Actor | None = None
    faults: Counter[str] = field(default_factory=Counter)
    reasons: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    writes: int = 0
    #: (catalog, real identity) → (instance, mirror), one of them where the catalog keeps a mark
    owners: dict[tuple[str, int], set[tuple[str, str]]] = field(default_factory=dict)
    #: (instance, mirror, target path) → when a person approved its change, and (instance, source, path) of an absent origin
    approved: dict[tuple[str, str, str], tuple[float, tuple[str, str, str] | None]] = field(default_factory=dict)
    #: (instance, source, path) → times at which it was really gone and a crawl could see that
    gone: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    #: (instance, catalog) → what it was shown there: path → (record, real identity)
    shown: dict[tuple[str, str], dict[str, tuple[TableRecord, int]]] = field(default_factory=dict)
    #: (instance, catalog, path) → what it was shown there last, though it may be gone since
    ever: dict[tuple[str, str, str], TableRecord] = field(default_factory=dict)
    #: (instance, catalog, path) → when its index took over what it had looked at or written there, and the digest
    looked: dict[tuple[str, str, str], tuple[float, str]] = field(default_factory=dict)
    #: (instance, mirror) → times and paths of removals and moves
    removed: dict[tuple[str, str], list[tuple[float, str]]] = field(default_factory=dict)
    #: (instance, catalog, path) → what it wrote there last
    _written: dict[tuple[str, str, str], tuple[TableRecord, int]] = field(default_factory=dict)
    _struck: dict[str, set[str]] = field(default_factory=dict)
    _told: set[tuple[str, str, str]] = field(default_factory=set)
    #: what the application observed of origins since its last read of the target: (source, path) → the truth then, and when it began
    _observed: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)
    #: the call is what makes an observation old, not the moment at which its effect lands
    _called_at: float | None = None

    # What it is told.

    def struck(self, fault: str, *sources: str) -> None:
        self.faults[fault] += 1
        for source in sources:
            self._struck.setdefault(source, set()).add(fault)
        self._told.clear()
        if self.world.story is not None:
            self.world.say(f"    ⚡ {fault} at {', '.join(sources)}")

    def said(self, rule: MirrorRule, reasons: Iterable[str]) -> None:
        """Reason codes that a plan or an outcome of a mirror gave."""
        for reason in reasons:
            told = (rule.origin, rule.target, reason)
            if told not in self._told:
                self._told.add(told)
                self.reasons.add(reason)
                for source in (rule.origin, rule.target):
                    self.pairs.update((fault, reason) for fault in self._struck.get(source, ()))

    def listed(self, instance: Instance, catalog: LightCatalog, items: Sequence[Record | Coverage], at: float) -> None:
        """What a crawl handed to an instance. What another catalog in its stead says is no evidence."""
        if catalog.replaced is not None:
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
                self.ever[instance.id, catalog.source, item.key] = item
                # After the clock went back, a direct look says more than what was read "before" it.
                if at >= looked.get((1, item.key), 0.0):
                    shown[item.key] = (item, catalog.uids.get(item.key, 0))
                if self.gone.pop((instance.id, catalog.source, item.key), None) is not None:
                    self._seen_again((instance.id, catalog.source, item.key))
        # What a whole listing shows no more is not known any more, be it gone or hidden.
        for key in [key for key in before if key.rpartition("$")[0] in whole]:
            del shown[key]
        for origin in {key[2] for key in instance.index.ledger if key[4] and key[1] == catalog.source}:
            # Where a catalog hides what may not be seen, nobody can tell that from its being gone.
            missing = origin not in catalog.tables or path_key(parse_key(origin)[:-1]) in catalog.hidden
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
        for key in [key for key in self.gone if key[1] == source]:
            del self.gone[key]

    def planned(self, instance: Instance, rule: MirrorRule, kept: Kept) -> None:
        """A plan that was made: what must hold it does."""
        plan = kept.plan
        free = release(plan, {}).changes
        if not free:
            return
        if len(plan.changes) > rule.max_changes:
            raise Violation("guard: too many changes", f"{len(plan.changes)} of {rule.name}")
        if rule.approval == "required":
            raise Violation("guard: approval", f"{rule.name} wants a person's word")
        removes = any(change.action is Action.DEREGISTER_TABLE and change.before is not None for change in free)
        originals = (r for r in instance.index.states[rule.origin].tables.values() if rule.transitive or _marked_by(r) is None)
        if removes and not any(True for _ in originals):
            raise Violation("guard: an empty source", f"{rule.name} would empty {rule.target}")

    def approves(self, instance: Instance, plan: Plan) -> None:
        """A person approves what a plan holds."""
        for change in guarded(plan):
            # Only what was to go because its origin was absent is another matter once that is seen.
            absent = change.precondition.get("origin") == "absent"
            origin = (instance.id, change.origin_source, change.origin_path) if absent else None
            self.approved[instance.id, plan.mirror, change.target_path] = (self.world.now, origin)

    def _is_approved(self, actor: Actor, key: str) -> bool:
        """An approval holds for a week, and until a listing shows the origin of what goes again."""
        at, _ = self.approved.get((actor.instance.id, actor.rule.name, key), (float("-inf"), None))
        return actor.approved or at > self.world.now - 7 * 86_400.0

    def remade(self, catalog: LightCatalog, record: TableRecord) -> None:
        """A user is about to make an object anew with everything that it says. While the call that made it has no outcome, its
        identity is in no ledger: nobody can tell the two apart."""
        said = record.properties.get("federator.op") or (record.doc or "").rpartition(" op=")[2].rstrip("]")
        for instance in self.world.instances:
            entry = instance.index.journal.get(said)
            if entry is not None and entry.state == "intent":
                owners = self.owners.get((catalog.source, catalog.uids[record.key]), set())
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
        """An application looked at what it may not see, and was told that it is not there: it does not know of it any more."""
        if self.actor is not None:
            self.shown.get((self.actor.instance.id, catalog.source), {}).pop(key, None)

    def observed(self, catalog: LightCatalog, key: str, truth: str, began: float) -> None:
        """An application read one table, as it really was."""
        if self.actor is None:
            return
        if catalog.source == self.actor.rule.target:
            self._observed.clear()
        else:
            self._observed[catalog.source, key] = (truth, began)

    def now(self) -> float:
        return self.world.now

    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    # What it judges.

    def wrote(self, catalog: LightCatalog, call: str, key: str, before: TableRecord | None, after: TableRecord | None) -> None:
        """Every write, just before it becomes true."""
        self.writes += 1
        if self.world.story is not None:
            self.world.say(f"    → {call} {catalog.source}${key}" + (f" at {after.location}" if after else ""))
        actor = self.actor
        if actor is None:
            raise Violation("a write outside of an application", f"{call} {key}")
        if any(self.world.catalogs[name].replaced is not None for name in (actor.rule.origin, actor.rule.target)):
            raise Violation("a write while another catalog answers", f"{call} {catalog.source}${key}")
        change = actor.changes.get((call in _OF_NAMESPACES, key))
        if change is None or change.action not in _CALLS[call] or catalog.source != actor.rule.target:
            raise Violation("a write that no plan has", f"{call} {catalog.source}${key}")
        me = (actor.instance.id, actor.rule.name)
        if actor.rule.approval == "required" and not self._is_approved(actor, key):
            raise Violation("guard: approval", f"{call} {catalog.source}${key} was not approved")
        if call == "create_namespace":
            self.owners[catalog.source, catalog.uids[f"/{key}"]] = {me}
            return
        if call == "drop_namespace":
            self._own_namespace(actor, catalog, key)
            return
        self._judge_table(actor, catalog, key, before, after, change)

    def _judge_table(
        self,
        actor: Actor,
        catalog: LightCatalog,
        key: str,
        before: TableRecord | None,
        after: TableRecord | None,
        change: Change,
    ) -> None:
        me = (actor.instance.id, actor.rule.name)
        if before is not None:
            self._bound(change, before)
            if change.action is Action.ADOPT:
                self._adoptable(actor, catalog, before, change)
            else:
                self._own(actor, catalog, before)
        moves = before is not None and after is not None and before.canonical != after.canonical
        if after is None or moves:
            self._observed_last(actor, change)
        if after is None:
            self._removable(actor, catalog, change)
        elif (before or change.before) is None or (before or change.before).canonical != after.canonical:  # type: ignore[union-attr]
            # Declared anew where it was is no other name.
            self._placed(actor, catalog, key, after, change)
        if moves and before is not None and change.action is Action.UPDATE_TABLE:
            self._within_guards(actor, key)
        restored = before is None and after is not None and change.before is not None
        if restored and after is not None and change.before is not None and after.properties == change.before.properties:
            # A recreation that was undone took nothing away; it may be undone twice, when somebody drops what its process died after.
            times = self.removed.get(me, [])
            taken = [number for number, (_, path) in enumerate(times) if path == key]
            if taken:
                del times[taken[-1]]
        if after is not None:
            if not actor.resumes:
                self._original(actor, change)
            self._written[me[0], catalog.source, key] = (after, catalog.uids[key])
            before_us = self.owners.get((catalog.source, catalog.uids[key]), set()) if before is not None else set()
            # Without marks nobody can see that another instance declared what one adopts.
            self.owners[catalog.source, catalog.uids[key]] = {me} if keeps_marks(catalog) else {me} | before_us

    def published(self, instance: Instance, catalog: LightCatalog, key: str, *, gone: bool) -> None:
        """An instance's index now knows what it wrote itself, or saw to be ``gone``."""
        state = instance.index.states[catalog.source]
        record = state.tables.get(key)
        self.looked.pop((instance.id, catalog.source, key), None)
        # A look that found what the index had already is not kept: then the crawl that said so is the newest evidence.
        if record is not None and (1, key) in state.observed:
            self.looked[instance.id, catalog.source, key] = (self.world.now, record.digest)
        shown = self.shown.setdefault((instance.id, catalog.source), {})
        known = self._written.get((instance.id, catalog.source, key))
        if gone:
            shown.pop(key, None)
        elif known is not None:
            shown[key] = known
            self.ever[instance.id, catalog.source, key] = known[0]

    def _bound(self, change: Change, now: TableRecord) -> None:
        read = change.before
        same = read is not None and (read.canonical, dict(read.properties), read.doc, read.native_id) == (
            now.canonical, dict(now.properties), now.doc, now.native_id,
        )  # fmt: skip
        if not same:
            raise Violation("a call on an object that moved", f"{change.action.value} {change.target_path}")

    def _own(self, actor: Actor, catalog: LightCatalog, now: TableRecord) -> None:
        if not self._is_own(actor, catalog, now):
            raise Violation(
                "what is not ours was changed", f"{catalog.source}${now.key}, by {actor.instance.id}/{actor.rule.name}"
            )

    def _is_own(self, actor: Actor, catalog: LightCatalog, now: TableRecord) -> bool:
        me = (actor.instance.id, actor.rule.name)
        mine = me in self.owners.get((catalog.source, catalog.uids[now.key]), ())
        if keeps_marks(catalog):
            # Without native ids a copy that carries the whole mark cannot be told apart by anybody.
            return _marked_by(now) == me and (mine or not catalog.has_ids)
        return catalog.has_ids and mine

    def _own_namespace(self, actor: Actor, catalog: LightCatalog, key: str) -> None:
        record, me = catalog.namespaces[key], (actor.instance.id, actor.rule.name)
        if me not in self.owners.get((catalog.source, catalog.uids[f"/{key}"]), ()) or _marked_by(record) != me:
            raise Violation("what is not ours was changed", f"the namespace {catalog.source}${key}")
        if catalog.below(record.path) or any(inside.startswith(f"{key}$") for inside in catalog.foreign):
            raise Violation("a cascade took what was hidden", f"the namespace {catalog.source}${key}")
        if actor.rule.delete == "never":
            raise Violation("delete = never", f"the namespace {catalog.source}${key}")

    def _adoptable(self, actor: Actor, catalog: LightCatalog, now: TableRecord, change: Change) -> None:
        rule, holder = actor.rule, _marked_by(now)
        if rule.on_conflict == "adopt_if_same_location":
            allowed = holder is None and change.after is not None and change.after.canonical == now.canonical
        else:
            allowed = rule.on_conflict == "source_priority" and holder is not None and holder[0] == actor.instance.id
        if not allowed:
            raise Violation("what is not ours was changed", f"{catalog.source}${now.key} was adopted")

    def _removable(self, actor: Actor, catalog: LightCatalog, change: Change) -> None:
        rule = actor.rule
        if change.action is Action.RECREATE_TABLE:
            if not rule.update_by_recreate:
                raise Violation("recreated without being told to", change.target_path)
            self._within_guards(actor, change.target_path)
            return
        if rule.delete == "never":
            raise Violation("delete = never", change.target_path)
        if change.precondition.get("origin") == "absent":
            times = self.gone.get((actor.instance.id, change.origin_source, change.origin_path), [])
            if _apart(times, rule.min_miss_interval) < rule.misses_before_delete:
                raise Violation("deregistered without evidence", f"{change.target_path}: really gone and looked for at {times}")
        elif not rule.prune_unselected:
            raise Violation("deregistered without being asked to", change.target_path)
        if change.pair is None:
            self._within_guards(actor, change.target_path)

    def _observed_last(self, actor: Actor, change: Change) -> None:
        """What is removed or moved was last looked for at its origin, after the last read of the target and just before the call.

        What happens at the origin after that look is permitted, and nothing else is: the next round puts it right.
        """
        both = change.pair is not None and change.action is Action.DEREGISTER_TABLE
        pair = [other for other in actor.changes.values() if both and other.pair == change.pair and other.after is not None]
        for each in (change, *pair):
            expected = each.precondition.get("origin", "any")
            if expected == "any":
                continue
            truth, began = self._observed.get((each.origin_source, each.origin_path), ("not observed", 0.0))
            name = f"{each.target_path} of {each.origin_path}"
            if truth == "not observed":
                raise Violation("the origin was not observed last", name)
            if truth != expected:
                rule = "deregistered while its origin is there" if expected == "absent" else "moved for an origin that changed"
                raise Violation(rule, f"{name}: {truth}")
            age = (self.world.now if self._called_at is None else self._called_at) - began
            if age > actor.rule.max_origin_age:
                raise Violation("the origin was observed too long ago", f"{name}: {age:g} s")

    def _within_guards(self, actor: Actor, key: str) -> None:
        rule, now = actor.rule, self.world.now
        times = self.removed.setdefault((actor.instance.id, rule.name), [])
        recent = sum(at >= now - rule.guard_window for at, _ in times)
        times.append((now, key))
        live = sum(k[0] == rule.name and k[4] == 1 for k in actor.instance.index.ledger)
        if (
            not self._is_approved(actor, key)
            and recent + 1 >= 3
            and (recent + 1) * 100 > rule.max_delete_percent * (live + recent)
        ):
            raise Violation("guard: too much removed", f"{key} is the {recent + 1}th of {live + recent} by {rule.name}")

    def _placed(self, actor: Actor, catalog: LightCatalog, key: str, after: TableRecord, change: Change) -> None:
        shown = self.shown.get((actor.instance.id, catalog.source), {})
        for other, record in catalog.tables.items():
            known = shown.get(other)
            same = other != key and record.canonical == after.canonical
            if same and known is not None and known[0].canonical == after.canonical and known[1] == catalog.uids[other]:
                raise Violation("a second name for a location", f"{key} beside {other} at {after.location}")
        creates = catalog.capabilities.makes_location and not actor.rule.declare_missing
        declares = change.action is Action.DECLARE_TABLE
        if creates and declares and after.canonical is not None and after.canonical[-1] not in _PLACES_THAT_EXIST:
            raise Violation("data touched: a directory was made", f"{after.location}")

    def _original(self, actor: Actor, change: Change) -> None:
        known = self.ever.get((actor.instance.id, change.origin_source, change.origin_path))
        if known is None:
            raise Violation("declared for an origin that was never shown", change.origin_path)
        if not actor.rule.transitive and _marked_by(known) is not None:
            raise Violation("a mirror of a mirror was an origin", f"{change.origin_source}${change.origin_path}")

    def _nearest(self, catalog: LightCatalog, key: str) -> str:
        path = parse_key(key)[:-1]
        while path and path_key(path) not in catalog.namespaces:
            path = path[:-1]
        return path_key(path)

    # After each step, and at the end.

    def ledger_is_sound(self, instance: Instance) -> None:
        """One entry for each target path of a mirror."""
        keys = [
            (row["mirror"], row["target_source"], row["target_path"], row["is_table"]) for row in instance.index.ledger.values()
        ]
        if len(set(keys)) != len(keys):
            raise Violation("the ledger has a duplicate", str(sorted(keys)))

    def at_rest(self, plans: Mapping[tuple[str, str], Kept]) -> None:
        """After the faults ended and a plan of every mirror was empty: what differs has a reason, and nothing is left open."""
        for instance in self.world.instances:
            left = [entry.intent.op_id for entry in instance.index.journal.values() if entry.state == "intent"]
            if left:
                raise Violation("an intent was left open", ", ".join(left))
            for rule in instance.rules.values():
                self._explained(instance, rule, plans[instance.id, rule.name])

    def _explained(self, instance: Instance, rule: MirrorRule, kept: Kept) -> None:
        refused = {refusal.target_path for refusal in kept.plan.refusals}
        refused |= {path for _, path in instance.left_alone}
        clashes = [r for r in kept.plan.refusals if r.reason in (Reason.NAME_CLASH, Reason.CASE_FOLD_CLASH)]
        origins = {refusal.origin_path for refusal in kept.plan.refusals}
        origins |= {path for clash in clashes for path in clash.detail.removeprefix("wanted there by ").split(", ")}
        origin, target = self.world.catalogs[rule.origin], self.world.catalogs[rule.target]
        entries = [
            row for row in instance.index.ledger.values()
            if row["mirror"] == rule.name and row["is_table"] and row["target_source"] == rule.target
        ]  # fmt: skip
        known = {row["target_path"] for row in entries}
        for row in entries:
            key, path = row["target_path"], row["origin_path"]
            now, first = target.tables.get(key), origin.tables.get(path)
            settled = now is not None and first is not None and now.canonical == first.canonical
            if not settled and key not in refused and path not in origins:
                raise Violation("the ledger has an orphan", f"{key} for {path}, and the plan says nothing of it")
            nameless = not target.has_ids and not keeps_marks(target)
            own = nameless or now is None or self._is_own(Actor(instance, rule, {}, approved=False), target, now)
            if settled and not own and key not in refused:
                raise Violation("the ledger claims what is not ours", f"{key}, and the plan says nothing of it")
        mirrored = {row["origin_path"] for row in entries}
        for key in origin.tables:
            # A name that another origin has for now is refused in that one's name.
            placed = place(self.world.context(instance, rule), origin.tables[key])
            told = placed is None or placed[0] in refused or key in origins
            if key not in mirrored and not told and self._wanted(rule, origin.tables[key]):
                raise Violation(
                    "a difference without a reason", f"{key} is not at {rule.target}, and the plan says nothing of it"
                )
        for key, record in target.tables.items():
            ours = _marked_by(record) == (instance.id, rule.name)
            if ours and key not in known and key not in refused:
                self._unclaimed(instance, rule, key, record)

    def _unclaimed(self, instance: Instance, rule: MirrorRule, key: str, record: TableRecord) -> None:
        """Our mark on what the ledger does not know: nobody wants that name now, so that no plan speaks of it; counted, not wrong."""

    def _wanted(self, rule: MirrorRule, record: TableRecord) -> bool:
        return any(fnmatchcase(record.key, p) for p in rule.include) and not any(
            fnmatchcase(record.key, p) for p in rule.exclude
        )


def keeps_marks(catalog: LightCatalog) -> bool:
    return catalog.capabilities.keeps_properties or catalog.capabilities.keeps_comment


def _marked_by(record: TableRecord | NamespaceRecord) -> tuple[str, str] | None:
    """Who the mark on an object names, read without the product's own reader; None without a mark that is bound to its path."""
    properties = record.properties
    if properties.get("federator.path") == record.key:
        return properties.get("federator.instance", ""), properties.get("federator.mirror", "")
    if record.doc and "[federator " in record.doc:
        line = record.doc[record.doc.rindex("[federator ") :].strip("[]")
        said = dict(pair.split("=", 1) for pair in line.split()[1:])
        if said.get("path") == record.key:
            return said["instance"], said["mirror"]
    return None


def _apart(times: Sequence[float], interval: float) -> int:
    """How many of the times, in order, lie an interval apart."""
    found: list[float] = []
    for at in sorted(times):
        if not found or at - found[-1] >= interval:
            found.append(at)
    return len(found)
