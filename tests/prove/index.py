"""The index in memory: storage in place of SQL and Spark. The product's own functions say what is stored, and what it means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from federator.apply import Intent, Outcome
from federator.apply.journal import LeasedJournal
from federator.connector import CatalogChanges
from federator.model import Coverage, Identity, NamespaceRecord, Record, TableRecord, parent_path, parse_path_key
from federator.planning import crawls, journal_lines, losses, misses, publication, release
from federator.planning.cells import LedgerRow
from federator.planning.changes import Change
from federator.planning.identity import IdentityReading, KnownIdentities
from federator.planning.ledger import OwnedObject
from federator.planning.plan import Plan
from federator.planning.publication import ObservedObject, Version
from federator.planning.rule import MirrorRule
from tests.prove.rules_in_memory import collect_arrivals, confirm_identities, count_losses, difference, lost_origins

#: what verification says of the places that tables point to, by the place's last letter; of others nothing is known
STATES = {"1": "valid", "2": "valid", "3": "valid", "4": "corrupt", "5": "valid", "6": "missing", "8": "valid", "9": "valid"}


@dataclass(slots=True)
class State:
    """What is published of one source. ``observed``: when an object was last looked at directly, by ``(is_table, path)``."""

    tables: dict[str, TableRecord] = field(default_factory=dict)
    namespaces: dict[str, NamespaceRecord] = field(default_factory=dict)
    observed: dict[tuple[int, str], float] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    misses: dict[str, misses.Missed] = field(default_factory=dict)
    identities: KnownIdentities = field(default_factory=KnownIdentities)
    #: numbered by ``version``, as revisions are in SQL
    losses: list[losses.Loss] = field(default_factory=list)
    cursor: str | None = None
    #: stands for the digest of the source's configuration
    config: str = "0"
    #: counts every change, so that a plan over unchanged knowledge need not be made again
    version: int = 0


@dataclass(slots=True)
class Entry:
    """A row of the journal."""

    intent: Intent
    mirror: str
    at: float
    state: str = journal_lines.INTENT
    code: str | None = None


@dataclass(slots=True)
class SavedPlan:
    """A row of the plans."""

    plan: Plan
    state: str
    made_at: float


@dataclass
class MemoryIndex:
    """One instance's index. It answers what a plan reads (``FactsIndex``), and what an application does (``ApplicationIndex``)."""

    states: dict[str, State]
    ledger: dict[tuple[str, str, str, str, int], OwnedObject] = field(default_factory=dict)
    journal: dict[str, Entry] = field(default_factory=dict)
    plans: dict[str, SavedPlan] = field(default_factory=dict)
    #: by mirror and evidence
    approvals: defaultdict[str, dict[str, release.Approval]] = field(default_factory=lambda: defaultdict(dict))
    #: counts every change of ledger and journal
    version: int = 0

    # What is stored.

    def crawled(
        self, source: str, items: Sequence[Record | Coverage], began_at: float, changes: CatalogChanges | None = None
    ) -> bool:
        """Publishes a crawl and counts misses and losses; returns whether all of it was newer than what was known."""
        proven, state = crawls.validate_arrivals(source, collect_arrivals(items)), self.states[source]
        evidence = proven.coverage, proven.namespaces
        before = [(path, table.canonical) for path, table in state.tables.items()]
        read = {(int(isinstance(item, TableRecord)), item.key): item for item in items if not isinstance(item, Coverage)}
        crawl = {key: Version(record.kind, record.digest) for key, record in read.items()}
        known = {key: Version(r.kind, r.digest, state.observed.get(key)) for key, r in self._indexed(source).items()}
        made = difference(known, crawl, *evidence, began_at)
        for key in [*made.written, *made.removed]:
            self._store(source, key, read.get(key))
        after = {path: state.tables[path].canonical for is_table, path in made.written if is_table}
        back = changes.full_crawl if changes is not None and changes.went_back else None
        counts = count_losses(made.removed, made.written, before, after)
        state.version += 1
        state.losses.append(losses.Loss(source, state.version, len(before), *counts, back))
        origins = {entry.origin_path for entry in self.entries(origin_source=source, is_table=1)}
        lost = lost_origins(origins, state.tables)
        missed = misses.update_misses(state.misses, state.config, lost, *evidence, began_at)
        state.misses = missed.applied(state.misses, state.config)
        # SQL keeps no ``found``: what is kept at all counts as found.
        state.coverage = {key: c if c.found else replace(c, found=True) for key, c in proven.coverage.items()}
        if changes is not None and not crawls.is_failed(state.coverage):
            state.cursor = changes.cursor
        return made.newest

    def publish(self, source: str, observations: Sequence[ObservedObject]) -> None:
        known = {key: record.digest for key, record in self._indexed(source).items()}
        changed = publication.changed_observations(observations, {seen.key: known.get(seen.key) for seen in observations})
        for key, seen in changed.items():
            self._store(source, key, seen.record, seen.at)
        self.states[source].version += bool(changed)

    def _indexed(self, source: str) -> dict[tuple[int, str], Record]:
        state = self.states[source]
        return {(1, key): table for key, table in state.tables.items()} | {(0, key): n for key, n in state.namespaces.items()}

    def _store(self, source: str, key: tuple[int, str], record: Record | None, observed_at: float | None = None) -> None:
        state = self.states[source]
        content: dict[str, Any] = state.tables if key[0] else state.namespaces
        state.observed.pop(key, None)
        if record is None:
            del content[key[1]]
            return
        content[key[1]] = record
        if observed_at is not None:
            state.observed[key] = observed_at

    def configured(self, source: str) -> None:
        """``store.revisions.register_source`` with another configuration."""
        state = self.states[source]
        state.config, state.cursor = str(int(state.config) + 1), None
        state.version += 1

    def identified(self, source: str, answered: Identity | None, *, crawl: bool = False) -> str | None:
        """``store.identities.check`` of one reading. Return why it proves nothing; None if it is trusted."""
        state = self.states[source]
        before = state.identities
        verdict, state.identities = before.judge(source, [IdentityReading(answered)], crawl=crawl)
        state.version += before != state.identities
        return verdict.problem

    def confirm(self, source: str, rebound: Iterable[tuple[OwnedObject, Record]]) -> None:
        """``store.identities.confirm``, and ``store.ledger.rebind`` of entries whose objects are intact."""
        state = self.states[source]
        state.identities, state.cursor = confirm_identities(state.identities), None
        state.misses = misses.forget_all(state.misses).applied(state.misses, state.config)
        for entry, record in rebound:
            self.ledger[entry.key] = replace(entry, native_id=record.native_id)
        state.version += 1
        self.version += 1

    def save(self, plan: Plan, now: float) -> SavedPlan:
        """``store.plans.save_plan`` and ``supersede``: the state follows from the valid approvals."""
        before, state = self.plans.pop(plan.digest, None), release.release_state(plan, self.approved(plan.mirror, now))
        for other in self.plans.values():
            if other.state == "held" and (other.plan.mirror, other.plan.mirror_digest) == (plan.mirror, plan.mirror_digest):
                other.state = "outdated"
        saved = before if before is not None and release.keeps_state(before.state, state) else SavedPlan(plan, state, now)
        self.plans[plan.digest] = saved
        return saved

    def approve(self, saved: SavedPlan, now: float) -> None:
        """``apply.plan_decisions.decide_plan`` for an approval. Raise StateError."""
        mirror = saved.plan.mirror
        approved = release.approve(saved.plan, self.approved(mirror, now))
        self.approvals[mirror] |= {key: release.Approval(now, guards) for key, guards in approved.items()}
        saved.state = "approved"

    def mark_applied(self, digest: str) -> None:
        self.plans[digest].state = "applied"

    # What is read.

    def entries(self, **columns: Any) -> list[OwnedObject]:
        """The ledger's entries with these values."""
        rows = self.ledger.values()
        return [entry for entry in rows if all(getattr(entry, name) == value for name, value in columns.items())]

    def namespace_entries(self, mirror: str) -> list[OwnedObject]:
        return self.entries(mirror=mirror, is_table=0)

    def ledger_sides(self, mirror: str) -> set[tuple[str, str]]:
        entries = self.entries(mirror=mirror)
        return {side for e in entries for side in ((e.origin_source, "origin"), (e.target_source, "target"))}

    def owned_tables(self, mirror: str, target: str, paths: Sequence[str]) -> set[str]:
        return {entry.target_path for entry in self.entries(mirror=mirror, target_source=target, is_table=1)} & set(paths)

    def ledger_rows(self, rule: MirrorRule) -> list[LedgerRow]:
        """``store.ledger.select_rows``."""
        entries = self.entries(mirror=rule.name, target_source=rule.target, is_table=1)
        tables = self.states[rule.origin].tables
        return [
            LedgerRow.from_entry(e, origin_exists=e.origin_source == rule.origin and e.origin_path in tables) for e in entries
        ]

    def content(self, source: str, namespace: str) -> tuple[NamespaceRecord | None, int]:
        path = parse_path_key(namespace)
        inside = sum(parent_path(record.path) == path for record in self._indexed(source).values())
        return self.states[source].namespaces.get(namespace), inside

    def namespaces(self, source: str) -> Collection[str]:
        return self.states[source].namespaces

    def table(self, source: str, path: str) -> TableRecord | None:
        return self.states[source].tables.get(path)

    def paths_at(self, source: str, locations: Sequence[str]) -> dict[str, list[str]]:
        tables = self.states[source].tables.items()
        return {location: [key for key, record in tables if record.canonical == location] for location in locations}

    def verified(self, locations: Sequence[str]) -> dict[str, str]:
        return {location: STATES[location[-1]] for location in locations if location[-1] in STATES}

    def list_misses(self, source: str) -> dict[str, list[float]]:
        return misses.valid_misses(self.states[source].misses, self.states[source].config)

    def unconfirmed(self, source: str) -> str | None:
        return self.states[source].identities.describe_hold(source)

    def accepted_revisions(self, mirror: str) -> Mapping[tuple[str, str], int]:
        accepted = [s for s in self.plans.values() if s.plan.mirror == mirror and s.state in losses.ACCEPTED_STATES]
        last = max(accepted, key=lambda saved: saved.made_at).plan if accepted else Plan(mirror, "", 0, 0)
        named = ((change.origin_source, change.target_source) for change in last.changes)
        return losses.known_revisions(named, last.origin_revision, last.target_revision)

    def losses(self, source: str, revision: int) -> list[losses.Loss]:
        return [loss for loss in self.states[source].losses if loss.revision > revision]

    def open_intents(self, mirror: str) -> list[Intent]:
        """``store.journal.list_open_intents``."""
        return [row.intent for row in self.journal.values() if row.mirror == mirror and self._is_open(row)]

    def _is_open(self, row: Entry) -> bool:
        change = row.intent.change
        find_indexed = partial(self.table, change.target_source, change.target_path)
        return journal_lines.needs_resolution(row.intent.op_id, row.state, row.code, find_indexed)

    def lines(self, mirror: str, _: Any, since: float, /) -> list[journal_lines.JournalLine]:
        rows = (row for row in self.journal.values() if row.mirror == mirror and row.at >= since)
        return [journal_lines.JournalLine(row.intent.change, row.state, row.code) for row in rows]

    def approved(self, mirror: str, now: float) -> release.Approvals:
        return release.valid_approvals(self.approvals[mirror], now)


@dataclass
class MemoryJournal(LeasedJournal[None]):
    """``LeasedJournal`` over an index in memory."""

    index: MemoryIndex
    rule: MirrorRule
    clock: Callable[[], float]

    def list_open_intents(self) -> list[Intent]:
        # As they come back from SQL.
        return [replace(i, change=Change.from_json(i.change.to_json())) for i in self.index.open_intents(self.rule.name)]

    def _transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _store_intent(self, transaction: None, intent: Intent) -> None:
        self.index.journal[intent.op_id] = Entry(intent, self.rule.name, self.clock())

    def _replace_entry(self, transaction: None, change: Change, entry: OwnedObject | None, mirror: str | None) -> bool:
        target = {"target_source": change.target_source, "target_path": change.target_path, "is_table": change.is_table}
        before = self.index.entries(**target, **({} if mirror is None else {"mirror": mirror}))
        for deleted in before:
            del self.index.ledger[deleted.key]
        if entry is not None:
            self.index.ledger[entry.key] = entry
        return bool(before)

    def _store_native_id(self, transaction: None, change: Change, native_id: str | None) -> None:
        for entry in self.index.entries(mirror=self.rule.name, target_path=change.target_path, is_table=1):
            self.index.ledger[entry.key] = replace(entry, native_id=native_id)

    def _store_outcome(self, transaction: None, intent: Intent, outcome: Outcome, code: str | None, *_: Any) -> None:
        row = self.index.journal[intent.op_id]
        row.state, row.code = outcome.state.value, code
        self.index.version += 1

    def paths_at(self, canonical: str) -> Collection[str]:
        return self.index.paths_at(self.rule.target, [canonical])[canonical]

    def paths_declared_at(self, canonical: str) -> Collection[str]:
        return [entry.target_path for entry in self.index.entries(target_source=self.rule.target, canonical=canonical)]

    def paths_pending_at(self, canonical: str) -> Collection[str]:
        open_ = (row.intent.change for row in self.index.journal.values() if row.state == journal_lines.INTENT)
        return journal_lines.pending_paths(open_, self.rule.target, canonical)

    def origin_digest(self, path: str) -> str | None:
        record = self.index.table(self.rule.origin, path)
        return record.digest if record else None
