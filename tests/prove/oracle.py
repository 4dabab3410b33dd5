"""The oracle: it sees every write with the truth before it, and judges by what really is, not by what the product believes.

Objects are told apart by an identity that no catalog tells. What the oracle has learned is in its books (``tests.prove.books``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from federator.model import NamespaceRecord, TableRecord
from federator.planning.cells import assign_cell
from federator.planning.changes import Action, Change
from federator.planning.reasons import Reason
from federator.planning.release import release_changes
from federator.planning.rule import MirrorRule
from tests.prove.books import Actor, Books, Violation
from tests.prove.catalog import LightCatalog
from tests.prove.index import SavedPlan

if TYPE_CHECKING:
    from tests.prove.world import Instance

_CALLS = {
    "create_namespace": (Action.CREATE_NAMESPACE,),
    "drop_namespace": (Action.DROP_NAMESPACE,),
    "declare_table": (Action.DECLARE_TABLE, Action.RECREATE_TABLE),
    "update_table": (Action.UPDATE_TABLE, Action.ADOPT),
    "deregister_table": (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE),
}
_OF_NAMESPACES = ("create_namespace", "drop_namespace")
_EXISTING_LOCATIONS = ("1", "2", "3", "4", "5", "8", "9")


class Oracle(Books):
    """Judges every plan and every write by what its books say."""

    def planned(self, instance: Instance, rule: MirrorRule, saved: SavedPlan) -> None:
        """A plan that was made: what must hold it does."""
        plan, doubt = saved.plan, self.doubts.planned(instance, rule, saved)
        if doubt is not None:
            raise Violation(*doubt)
        free = release_changes(plan, {}).changes
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

    def wrote(self, catalog: LightCatalog, call: str, key: str, before: TableRecord | None, after: TableRecord | None) -> None:
        """Every write, just before it becomes true."""
        self.writes += 1
        if self.world.story is not None:
            self.world.say(f"    → {call} {catalog.source}${key}" + (f" at {after.location}" if after else ""))
        actor = self.actor
        if actor is None:
            raise Violation("a write outside of an application", f"{call} {key}")
        if not all(
            self.doubts.trusts(actor.instance, self.world.catalogs[name]) for name in (actor.rule.origin, actor.rule.target)
        ):
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
            # A table that is declared again where it was has no other name.
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
            self.written[me[0], catalog.source, key] = (after, catalog.uids[key])
            before_us = self.owners.get((catalog.source, catalog.uids[key]), set()) if before is not None else set()
            # Without marks nobody can see that another instance declared what one adopts.
            self.owners[catalog.source, catalog.uids[key]] = {me} if keeps_marks(catalog) else {me} | before_us

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
            truth, started_at = self._observed.get((each.origin_source, each.origin_path), ("not observed", 0.0))
            name = f"{each.target_path} of {each.origin_path}"
            if truth == "not observed":
                raise Violation("the origin was not observed last", name)
            if truth == "hidden" and not self._was_shown(actor.instance, each.origin_source, each.origin_path):
                # What no listing showed, and an observation does not find, no client of the catalog could know.
                truth = "absent"
            if truth != expected:
                rule = "deregistered while its origin is there" if expected == "absent" else "moved for an origin that changed"
                raise Violation(rule, f"{name}: {truth}")
            age = (self.world.now if self._called_at is None else self._called_at) - started_at
            if age > actor.rule.max_origin_age:
                raise Violation("the origin was observed too long ago", f"{name}: {age:g} s")

    def _was_shown(self, instance: Instance, source: str, path: str | None) -> bool:
        """Whether a crawl ever showed an instance the object that is at a path now, not another one of that name."""
        _, uid = self.ever.get((instance.id, source, path or ""), (None, None))
        return uid == self.world.catalogs[source].uids.get(path or "")

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
        if creates and declares and after.canonical is not None and after.canonical[-1] not in _EXISTING_LOCATIONS:
            raise Violation("data touched: a directory was made", f"{after.location}")

    def _original(self, actor: Actor, change: Change) -> None:
        known = self.ever.get((actor.instance.id, change.origin_source, change.origin_path))
        if known is None:
            raise Violation("declared for an origin that was never shown", change.origin_path)
        if not actor.rule.transitive and _marked_by(known[0]) is not None:
            raise Violation("a mirror of a mirror was an origin", f"{change.origin_source}${change.origin_path}")

    # After each step, and at the end.

    def ledger_is_sound(self, instance: Instance) -> None:
        """One entry for each target path of a mirror."""
        keys = [
            (entry.mirror, entry.target_source, entry.target_path, entry.is_table) for entry in instance.index.ledger.values()
        ]
        if len(set(keys)) != len(keys):
            raise Violation("the ledger has a duplicate", str(sorted(keys)))

    def at_rest(self, plans: Mapping[tuple[str, str], SavedPlan]) -> None:
        """After the faults ended and a plan of every mirror was empty: what differs has a reason, and nothing is left open."""
        for instance in self.world.instances:
            left = [entry.intent.op_id for entry in instance.index.journal.values() if entry.state == "intent"]
            if left:
                raise Violation("an intent was left open", ", ".join(left))
            for rule in instance.rules.values():
                self._explained(instance, rule, plans[instance.id, rule.name])

    def _explained(self, instance: Instance, rule: MirrorRule, saved: SavedPlan) -> None:
        refused = {refusal.target_path for refusal in saved.plan.refusals}
        refused |= {path for _, path in instance.left_alone}
        clashes = [r for r in saved.plan.refusals if r.reason in (Reason.NAME_CLASH, Reason.CASE_FOLD_CLASH)]
        origins = {refusal.origin_path for refusal in saved.plan.refusals}
        origins |= {
            path for clash in clashes for path in clash.detail.removeprefix("several origins map to this name: ").split(", ")
        }
        origin, target = self.world.catalogs[rule.origin], self.world.catalogs[rule.target]
        entries = [
            entry for entry in instance.index.ledger.values()
            if entry.mirror == rule.name and entry.is_table and entry.target_source == rule.target
        ]  # fmt: skip
        for entry in entries:
            key, path = entry.target_path, entry.origin_path
            now, first = target.tables.get(key), origin.tables.get(path)
            settled = now is not None and first is not None and now.canonical == first.canonical
            if not settled and key not in refused and path not in origins:
                raise Violation("the ledger has an orphan", f"{key} for {path}, and the plan says nothing of it")
            nameless = not target.has_ids and not keeps_marks(target)
            own = nameless or now is None or self._is_own(Actor(instance, rule, {}, approved=False), target, now)
            if settled and not own and key not in refused:
                raise Violation("the ledger claims what is not ours", f"{key}, and the plan says nothing of it")
        mirrored = {entry.origin_path for entry in entries}
        for key in origin.tables:
            # A name that another origin has for now is refused in that one's name.
            placed = assign_cell(self.world.context(instance, rule), origin.tables[key])
            explained = placed is None or placed[0] in refused or key in origins
            if key not in mirrored and not explained and self._is_selected(rule, origin.tables[key]):
                raise Violation(
                    "a difference without a reason", f"{key} is not at {rule.target}, and the plan says nothing of it"
                )

    def _is_selected(self, rule: MirrorRule, record: TableRecord) -> bool:
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
        fields = dict(pair.split("=", 1) for pair in line.split()[1:])
        if fields.get("path") == record.key:
            return fields["instance"], fields["mirror"]
    return None


def _apart(times: Sequence[float], interval: float) -> int:
    """How many of the times, in order, lie an interval apart."""
    found: list[float] = []
    for at in sorted(times):
        if not found or at - found[-1] >= interval:
            found.append(at)
    return len(found)
