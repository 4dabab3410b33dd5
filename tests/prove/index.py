"""The index in memory: storage in place of SQL and Spark. The product's own functions say what is stored, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from federator.apply import Intent, Outcome
from federator.apply.leased_journal import LeasedJournal
from federator.model import Coverage, Identity, NamespaceRecord, Record, TableRecord, parent, parse_key
from federator.planning import crawls, identity, journal_lines, misses, publication
from federator.planning.cells import LedgerRow
from federator.planning.changes import Change
from federator.planning.crawls import CrawlEvidence
from federator.planning.identity import IdentityReading
from federator.planning.journal_lines import JournalLine
from federator.planning.losses import Loss
from federator.planning.misses import Missed
from federator.planning.namespaces import MadeNamespace
from federator.planning.plan import Plan
from federator.planning.publication import Effect, Observed, Version
from federator.planning.release import KEPT, Approvals, keeps_state, objecting_guards, state_of
from federator.planning.rule import MirrorRule
from federator.planning.settlement import ledger_key

#: what verification says of the places that tables point to, by the place's last letter; of others nothing is known
STATES = {"1": "valid", "2": "valid", "3": "valid", "4": "corrupt", "5": "valid", "6": "missing", "8": "valid", "9": "valid"}


@dataclass(slots=True)
class State:
    """What is published of one source. ``observed``: when an object was last looked at directly, by ``(is_table, path)``."""

    tables: dict[str, TableRecord] = field(default_factory=dict)
    namespaces: dict[str, NamespaceRecord] = field(default_factory=dict)
    observed: dict[tuple[int, str], float] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    misses: dict[str, Missed] = field(default_factory=dict)
    #: identities by scope that were accepted, and why the source waits for a person
    accepted: dict[str, set[str]] = field(default_factory=dict)
    unconfirmed: str | None = None
    #: stands for the digest of the source's configuration
    config: str = "0"
    #: counts every change, so that a plan over unchanged knowledge need not be made again
    version: int = 0

    @property
    def absences(self) -> dict[str, list[float]]:
        return misses.valid_misses(self.misses, self.config)


@dataclass(slots=True)
class Entry:
    """A row of the journal."""

    intent: Intent
    mirror: str
    at: float
    state: str = "intent"
    code: str | None = None


@dataclass(slots=True)
class Kept:
    """A row of the plans."""

    plan: Plan
    state: str


@dataclass
class MemoryIndex:
    """One instance's index. ``ledger`` is keyed as in SQL: mirror, origin source, origin path, target path, whether a table."""

    states: dict[str, State]
    ledger: dict[tuple[str, str, str, str, int], dict[str, Any]] = field(default_factory=dict)
    journal: dict[str, Entry] = field(default_factory=dict)
    plans: dict[str, Kept] = field(default_factory=dict)
    #: when, and with which guards objecting, by mirror and evidence
    approvals: dict[tuple[str, str], tuple[float, frozenset[str]]] = field(default_factory=dict)
    #: counts every change of ledger and journal
    version: int = 0

    # Crawls and observations.

    def crawled(self, source: str, items: Sequence[Record | Coverage], began_at: float) -> bool:
        """Publishes a crawl and counts misses; returns whether all of it was newer than what was known."""
        proven, state = crawls.validate_crawl(source, crawls.collect_arrivals(items)), self.states[source]
        newer = self._publish(source, [item for item in items if not isinstance(item, Coverage)], proven, began_at)
        lost = misses.lost_origins({key[2] for key in self.ledger if key[4] and key[1] == source}, state.tables)
        if lost or state.misses:
            update = misses.update_misses(state.misses, state.config, lost, proven.coverage, proven.namespaces, began_at)
            counted = {path: Missed(at, state.config) for path, at in update.counted.items()}
            state.misses = {path: known for path, known in state.misses.items() if path not in update.forgotten} | counted
            state.version += len(update.forgotten) + len(update.counted)
        return newer

    def _publish(self, source: str, read: Sequence[Record], proven: CrawlEvidence, began_at: float) -> bool:
        state = self.states[source]
        crawled = {(int(isinstance(record, TableRecord)), record.key): record for record in read}
        known = [*((1, path) for path in state.tables), *((0, path) for path in state.namespaces)]
        effects: dict[Effect, list[tuple[int, str]]] = {effect: [] for effect in Effect}
        for key in dict.fromkeys([*crawled, *known]):
            before, now = self._content(source, key[0]).get(key[1]), crawled.get(key)
            if before is not now:  # the same object has the same digest
                indexed = before and Version(before.kind, before.digest, state.observed.get(key))
                effects[publication.compare(indexed, now and Version(now.kind, now.digest), began_at)].append(key)
        removed = publication.removable(effects[Effect.MISSING], proven.coverage, proven.namespaces)
        changed = [*effects[Effect.ADDED], *effects[Effect.CHANGED], *removed]
        for key in changed:
            self._store(source, key, crawled.get(key))
        # SQL keeps no ``found``: what is kept at all counts as found.
        stored = {key: c if c.found else replace(c, found=True) for key, c in proven.coverage.items()}
        state.version += bool(changed or stored != state.coverage)
        state.coverage = stored
        return not (effects[Effect.OUTDATED] or effects[Effect.UNDESCRIBED])

    def _content(self, source: str, is_table: int) -> dict[str, Any]:
        return self.states[source].tables if is_table else self.states[source].namespaces  # type: ignore[return-value]

    def _store(self, source: str, key: tuple[int, str], record: Record | None, observed_at: float | None = None) -> None:
        content, state = self._content(source, key[0]), self.states[source]
        if record is None:
            del content[key[1]]
        else:
            content[key[1]] = record
        state.observed.pop(key, None)
        if observed_at is not None and record is not None:
            state.observed[key] = observed_at

    def publish(self, source: str, seen: Sequence[Observed]) -> None:
        known = {look.key: self._content(source, look.is_table).get(look.key[1]) for look in seen}
        changed = publication.changed_observations(seen, {key: record and record.digest for key, record in known.items()})
        for key, look in changed.items():
            self._store(source, key, look.record, look.at)
        self.states[source].version += bool(changed)

    def configured(self, source: str) -> None:
        """``revisions.register`` with another configuration."""
        state = self.states[source]
        state.config = str(int(state.config) + 1)
        state.version += 1

    def identified(self, source: str, answered: Identity | None, *, crawl: bool = False) -> str | None:
        """``identities.check`` of one reading; returns why it proves nothing."""
        state = self.states[source]
        verdict = identity.judge(source, state.accepted, [IdentityReading(answered)])
        for scope, value in verdict.first:
            state.accepted.setdefault(scope, set()).add(value)
        if crawl or verdict.unknown:
            state.version += state.unconfirmed != verdict.problem
            state.unconfirmed = verdict.problem
        return verdict.problem

    # What a plan reads: ``planning.facts.FactsIndex``, and the mirror's entries.

    def entries(self, rule: MirrorRule) -> list[LedgerRow]:
        """``ledger.with_origins``, less what lies in another target."""
        rows = sorted(self._made(rule, 1), key=lambda row: str(row["target_path"]))
        return [LedgerRow.of({**r, "origin_there": r["origin_path"] in self.states[r["origin_source"]].tables}) for r in rows]

    def _made(self, rule: MirrorRule, is_table: int) -> list[dict[str, Any]]:
        rows = (row for key, row in self.ledger.items() if key[0] == rule.name and key[4] == is_table)
        return [row for row in rows if row["target_source"] == rule.target]

    def made_namespaces(self, rule: MirrorRule) -> list[MadeNamespace]:
        return [MadeNamespace(row["target_path"], row["origin_path"], row["native_id"]) for row in self._made(rule, 0)]

    def content(self, source: str, namespace: str) -> tuple[NamespaceRecord | None, int]:
        state, path = self.states[source], parse_key(namespace)
        inside = any(parent(record.path) == path for record in (*state.tables.values(), *state.namespaces.values()))
        return state.namespaces.get(namespace), int(inside)

    def namespaces(self, source: str) -> Mapping[str, NamespaceRecord]:
        return self.states[source].namespaces

    def paths_at(self, source: str, locations: Sequence[str]) -> dict[str, list[str]]:
        tables = self.states[source].tables.items()
        return {place: [key for key, record in tables if record.canonical == place] for place in locations}

    def verified(self, locations: Sequence[str]) -> dict[str, str]:
        return {place: STATES[place[-1]] for place in locations if place[-1] in STATES}

    def unconfirmed(self, source: str) -> str | None:
        return self.states[source].unconfirmed

    def losses(self, _: MirrorRule) -> Sequence[Loss]:
        return ()

    def open_intents(self, mirror: str | None = None) -> list[Intent]:
        """Of one mirror, or of all."""
        return [row.intent for row in self.journal.values() if row.state == "intent" and mirror in (None, row.mirror)]

    def _lines(self, mirror: str, since: float = float("-inf")) -> list[JournalLine]:
        rows = (row for row in self.journal.values() if row.mirror == mirror and row.at >= since)
        return [JournalLine(row.intent.change, row.state, row.code) for row in rows]

    def destructive_since(self, mirror: str, since: float) -> list[str]:
        return journal_lines.removals(self._lines(mirror, since), lambda source, path: self.states[source].tables.get(path))

    def dropped_since(self, mirror: str, since: float) -> int:
        return journal_lines.count_dropped(self._lines(mirror, since))

    def obstructed(self, mirror: str) -> set[str]:
        lines = self._lines(mirror)
        return {c.target_path for c, state, code in lines if journal_lines.is_obstructed(c.action, state, code)}

    def unfinished_renames(self, mirror: str, since: float) -> list[Change]:
        lines = self._lines(mirror, since)
        return journal_lines.unfinished_renames(c for c, state, code in lines if journal_lines.is_renamed(state, code))

    # Plans and their approvals.

    def save(self, plan: Plan, now: float) -> Kept:
        """``plans.save`` and ``plans.supersede``: the state follows from the approvals that hold."""
        before, state = self.plans.pop(plan.digest, None), state_of(plan, self.approved(plan.mirror, now))
        for other in self.plans.values():
            if other.state == "held" and other.plan.mirror == plan.mirror:
                other.state = "outdated"
        kept = before if before is not None and keeps_state(before.state, state) else Kept(plan, state)
        self.plans[plan.digest] = kept
        return kept

    def approved(self, mirror: str, now: float) -> Approvals:
        """``approvals.current``."""
        return {key: guards for (name, key), (at, guards) in self.approvals.items() if name == mirror and at > now - KEPT}

    def approve(self, kept: Kept, now: float) -> None:
        """``sync.deciding.decide``."""
        for key, guards in objecting_guards(kept.plan).items():
            self.approvals[kept.plan.mirror, key] = (now, guards)
        kept.state = "approved"


@dataclass
class MemoryJournal(LeasedJournal[None]):
    """``LeasedJournal`` over an index in memory."""

    index: MemoryIndex
    rule: MirrorRule
    clock: Callable[[], float]

    def open_intents(self) -> list[Intent]:
        # As they come back from SQL.
        return [replace(i, change=Change.from_json(i.change.to_json())) for i in self.index.open_intents(self.rule.name)]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        yield

    def _store_intent(self, transaction: None, intent: Intent) -> None:
        self.index.journal[intent.op_id] = Entry(intent, self.rule.name, self.clock())

    def _replace_entry(self, transaction: None, change: Change, entry: Mapping[str, Any] | None, *, every_mirror: bool) -> bool:
        ledger, key = self.index.ledger, ledger_key(self.rule, change)
        same = ("target_source", "target_path", "is_table", *(() if every_mirror else ("mirror",)))
        before = [at for at, row in ledger.items() if all(row[column] == key[column] for column in same)]
        for at in before:
            del ledger[at]
        if entry is not None:
            ledger[key["mirror"], key["origin_source"], key["origin_path"], key["target_path"], key["is_table"]] = dict(entry)
        return bool(before)

    def _identify(self, transaction: None, change: Change, native_id: str | None) -> None:
        for row in self.index.ledger.values():
            if (row["mirror"], row["target_path"], row["is_table"]) == (self.rule.name, change.target_path, 1):
                row["native_id"] = native_id

    def _store_outcome(self, transaction: None, intent: Intent, outcome: Outcome, code: str | None, *_: Any) -> None:
        row = self.index.journal[intent.op_id]
        row.state, row.code = outcome.state.value, code
        self.index.version += 1

    def names_at(self, canonical: str) -> Sequence[str]:
        return self.index.paths_at(self.rule.target, [canonical])[canonical]

    def names_given(self, canonical: str) -> Sequence[str]:
        rows = self.index.ledger.values()
        return [row["target_path"] for row in rows if (row["target_source"], row["canonical"]) == (self.rule.target, canonical)]

    def names_pending(self, canonical: str) -> Sequence[str]:
        return sorted(
            journal_lines.pending_paths((intent.change for intent in self.index.open_intents()), self.rule.target, canonical)
        )

    def origin_digest(self, path: str) -> str | None:
        record = self.index.states[self.rule.origin].tables.get(path)
        return record.digest if record else None
