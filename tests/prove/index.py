"""The index in memory: storage in place of SQL and Spark. The product's own functions say what is stored, and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from federator.apply.port import Intent
from federator.connector import CatalogError
from federator.model import ROOT, Coverage, Identity, NamespaceRecord, Record, TableRecord, failed, parent, parse_key
from federator.planning import crawls, identity, misses, publication
from federator.planning.cells import LedgerRow
from federator.planning.changes import Change
from federator.planning.crawls import CrawlEvidence
from federator.planning.identity import IdentityReading
from federator.planning.journal_lines import (
    JournalLine,
    count_dropped,
    is_obstructed,
    is_renamed,
    pending_paths,
    removals,
    unfinished_renames,
)
from federator.planning.misses import Missed
from federator.planning.namespaces import MadeNamespace, without_tables
from federator.planning.plan import Plan
from federator.planning.publication import Effect, Version
from federator.planning.release import KEPT, Approvals, evidence, guarded, state_of
from federator.planning.rule import MirrorRule

_DIFFERING = (Effect.ADDED, Effect.CHANGED)
_KEPT = (Effect.OUTDATED, Effect.UNDESCRIBED)


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
    #: versions of catalog, state and index after a crawl that saw everything; None: it may have missed something
    seen: tuple[int, int, int] | None = None

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

    # Crawling: pipeline.normalise, pipeline.diff, pipeline.publish.

    def crawled(self, source: str, items: Iterable[Record | Coverage], began_at: float) -> bool:
        """Publishes a crawl and counts misses; returns whether all of it was newer than what was known."""
        read = list(items)
        proven = crawls.validate_crawl(source, crawls.collect_arrivals(read))
        newer = self._publish(source, [item for item in read if not isinstance(item, Coverage)], proven, began_at)
        state = self.states[source]
        lost = misses.lost_origins({key[2] for key in self.ledger if key[4] and key[1] == source}, state.tables)
        if lost or state.misses:
            update = misses.update_misses(state.misses, state.config, lost, proven.coverage, proven.namespaces, began_at)
            for path in update.forgotten:
                del state.misses[path]
            state.misses.update({path: Missed(at, state.config) for path, at in update.counted.items()})
            state.version += len(update.forgotten) + len(update.counted)
        return newer

    def unproven(self, source: str, error: CatalogError, began_at: float) -> None:
        """A crawl whose shards could not be cut (``pipeline.reading.slots``), or of another catalog (``normalise.unproven``)."""
        evidence = failed(error.code, str(error))
        self.crawled(source, [Coverage(source, ROOT, evidence, evidence)], began_at)

    def _publish(self, source: str, read: Sequence[Record], proven: CrawlEvidence, began_at: float) -> bool:
        state = self.states[source]
        crawled: dict[tuple[int, str], Record] = {(int(isinstance(record, TableRecord)), record.key): record for record in read}
        effects: dict[tuple[int, str], Effect] = {}
        for key in {**crawled, **{(1, path): None for path in state.tables}, **{(0, path): None for path in state.namespaces}}:
            before, now = self._content(source, key[0]).get(key[1]), crawled.get(key)
            if before is not now:  # the same object has the same digest
                indexed = before and Version(before.kind, before.digest, state.observed.get(key))
                effects[key] = publication.compare(indexed, now and Version(now.kind, now.digest), began_at)
        changed = [(key, crawled[key]) for key, effect in effects.items() if effect in _DIFFERING]
        missing = [key for key, effect in effects.items() if effect is Effect.MISSING]
        removed = publication.removable(missing, proven.coverage, proven.namespaces)
        for key, record in [*changed, *((key, None) for key in removed)]:
            self._store(source, key, record)
        # SQL keeps no ``found``: what is kept at all counts as found.
        stored = {key: c if c.found else replace(c, found=True) for key, c in proven.coverage.items()}
        state.version += bool(changed or removed or stored != state.coverage)
        state.coverage = stored
        return not any(effect in _KEPT for effect in effects.values())

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

    def observed(self, source: str, key: str, record: Record | None, at: float, *, is_table: bool) -> None:
        """``observed.publish_observed`` of one look."""
        known = self._content(source, is_table).get(key)
        if (known.digest if known else None) != (record.digest if record else None):
            self._store(source, (int(is_table), key), record, at)
            self.states[source].version += 1

    # Reading: index.records, index.ledger, index.journal.

    def names_at(self, source: str, canonical: str) -> list[str]:
        return [key for key, record in self.states[source].tables.items() if record.canonical == canonical]

    def names_given(self, target: str, canonical: str) -> list[str]:
        """``ledger.names_at``."""
        return [key[3] for key, row in self.ledger.items() if (row["target_source"], row["canonical"]) == (target, canonical)]

    def names_pending(self, target: str, canonical: str) -> list[str]:
        """``journal.names_pending``."""
        open_ = [entry.intent.change for entry in self.journal.values() if entry.state == "intent"]
        return sorted(pending_paths(open_, target, canonical))

    def entries(self, rule: MirrorRule) -> list[LedgerRow]:
        """``ledger.with_origins``, less what lies in another target."""
        rows = sorted(
            (row for key, row in self.ledger.items() if key[0] == rule.name and key[4]), key=lambda r: r["target_path"]
        )
        rows = [row for row in rows if row["target_source"] == rule.target]
        return [LedgerRow.of({**r, "origin_there": r["origin_path"] in self.states[r["origin_source"]].tables}) for r in rows]

    def made(self, rule: MirrorRule, entries: Sequence[LedgerRow]) -> list[MadeNamespace]:
        """``sync.mirroring._made``."""
        made = [
            MadeNamespace(key[3], key[2], row["native_id"])
            for key, row in self.ledger.items()
            if key[0] == rule.name and not key[4] and row["target_source"] == rule.target
        ]
        return (
            [self._filled(rule.target, each) for each in without_tables(made, (e.target_path for e in entries))] if made else []
        )

    def _filled(self, target: str, made: MadeNamespace) -> MadeNamespace:
        state, path = self.states[target], parse_key(made.path)
        inside = any(parent(r.path) == path for r in (*state.tables.values(), *state.namespaces.values()))
        return replace(made, record=state.namespaces.get(made.path), inside=int(inside))

    def _lines(self, mirror: str, since: float = float("-inf")) -> list[JournalLine]:
        rows = (row for row in self.journal.values() if row.mirror == mirror and row.at >= since)
        return [JournalLine(row.intent.change, row.state, row.code) for row in rows]

    def destructive_since(self, mirror: str, since: float) -> list[str]:
        return removals(self._lines(mirror, since), lambda source, path: self.states[source].tables.get(path))

    def dropped_since(self, mirror: str, since: float) -> int:
        return count_dropped(self._lines(mirror, since))

    def obstructed(self, mirror: str) -> set[str]:
        return {c.target_path for c, state, code in self._lines(mirror) if is_obstructed(c.action, state, code)}

    def unfinished_renames(self, mirror: str, since: float) -> list[Change]:
        return unfinished_renames(c for c, state, code in self._lines(mirror, since) if is_renamed(state, code))

    def save(self, plan: Plan, now: float) -> Kept:
        """``plans.save`` and ``plans.supersede``: the state follows from the approvals that hold."""
        for other in self.plans.values():
            if other.state == "held" and other.plan.mirror == plan.mirror:
                other.state = "outdated"
        self.plans.pop(plan.digest, None)
        kept = self.plans[plan.digest] = Kept(plan, state_of(plan, self.approved(plan.mirror, now)))
        return kept

    def approved(self, mirror: str, now: float) -> Approvals:
        """``approvals.current``."""
        return {key: guards for (name, key), (at, guards) in self.approvals.items() if name == mirror and at > now - KEPT}

    def approve(self, kept: Kept, now: float) -> None:
        """``sync.deciding.decide``."""
        plan = kept.plan
        for change in guarded(plan):
            guards = frozenset(hold.guard for hold in plan.holds if hold.binds(change))
            self.approvals[plan.mirror, evidence(change)] = (now, guards)
        kept.state = "approved"


__all__ = ["Entry", "Kept", "MemoryIndex", "State"]
