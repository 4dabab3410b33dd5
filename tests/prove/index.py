"""The index in memory: what ``federator.index`` and the pipeline's publishing keep in SQL and compute in Spark.

Each method names the function whose rule it restates. Decisions are the product's own (``planning.evidence``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from federator.apply.port import Intent
from federator.connector import CatalogError, Internal
from federator.model import (
    ROOT,
    Coverage,
    Kind,
    NamespaceRecord,
    Record,
    TableRecord,
    ancestors,
    failed,
    parent,
    parse_key,
    path_key,
    skipped,
)
from federator.planning import evidence
from federator.planning.cells import LedgerRow
from federator.planning.changes import Action, Change
from federator.planning.guards import destructive, shows_effect
from federator.planning.namespaces import MadeNamespace
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule
from tests.prove.catalog import LightCatalog

_DESTRUCTIVE = (Action.DEREGISTER_TABLE, Action.RECREATE_TABLE)
_RENAMED, _ALREADY_GONE = "renamed", "already_gone"
_GIVEN_UP = (("failed", "not_made"), ("failed", Reason.NAMESPACE_MISSING))


@dataclass(slots=True)
class State:
    """What is published of one source. ``observed``: when an object was last looked at directly, by ``(is_table, path)``."""

    tables: dict[str, TableRecord] = field(default_factory=dict)
    namespaces: dict[str, NamespaceRecord] = field(default_factory=dict)
    observed: dict[tuple[int, str], float] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    absences: dict[str, list[float]] = field(default_factory=dict)
    #: counts every change, so that a plan over unchanged knowledge need not be made again
    version: int = 0
    #: versions of catalog, state and index after a crawl that saw everything; None: it may have missed something
    seen: tuple[int, int, int] | None = None


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
    #: counts every change of ledger and journal
    version: int = 0

    # Crawling: pipeline.normalise, pipeline.diff, pipeline.publish.

    def crawled(self, source: str, items: Iterable[Record | Coverage], began_at: float) -> bool:
        """Publishes a crawl (``normalise``, ``diff``, ``publish``), and counts misses; returns whether all of it was newer than
        what was known."""
        records, stated, times = _sorted(items)
        listed = {r.key for r in records if isinstance(r, NamespaceRecord)}
        coverage: dict[str, Coverage] = {}
        arrived: dict[str, list[Record]] = {}
        for record in records:
            arrived.setdefault(path_key(parent(record.path)), []).append(record)
        for key in {*stated, *arrived, *listed}:
            if key not in stated:
                coverage[key] = Coverage(source, parse_key(key), skipped("it appeared while the crawl was running"))
            elif times[key] > 1:
                coverage[key] = _broken(stated[key], "two shards covered it")
            else:
                coverage[key] = _checked(stated[key], arrived.get(key, ()))
        if "" not in coverage:
            coverage[""] = Coverage(source, ROOT, failed(Internal.code, "the crawl ended without a word on the root"))
        kept = {key: c for key, c in coverage.items() if key in listed or c.namespace == ROOT or c.found}
        newer = self._publish(source, records, kept, listed, began_at)
        self._count_misses(source, kept, listed, began_at)
        return newer

    def unreachable(self, source: str, error: CatalogError, began_at: float) -> None:
        """A crawl whose shards could not be cut (``pipeline.reading.slots``)."""
        evidence_ = failed(error.code, str(error))
        self.crawled(source, [Coverage(source, ROOT, evidence_, evidence_)], began_at)

    def _publish(
        self, source: str, records: Sequence[Record], coverage: dict[str, Coverage], listed: set[str], began_at: float
    ) -> bool:
        state = self.states[source]
        seen: set[tuple[int, str]] = set()
        changed, newer = False, True
        for record in records:
            is_table = isinstance(record, TableRecord)
            known: dict[str, Any] = state.tables if is_table else state.namespaces
            key = (int(is_table), record.key)
            seen.add(key)
            before = known.get(key[1])
            if before is record or (before is not None and before.digest == record.digest):
                continue
            if before is not None:
                older = began_at < state.observed.get(key, 0.0)
                undescribed = record.kind is Kind.UNDESCRIBED and before.kind is not Kind.UNDESCRIBED
                if older or undescribed:
                    newer = False
                    continue
            known[key[1]] = record
            state.observed.pop(key, None)
            changed = True
        for is_table, content in ((1, state.tables), (0, state.namespaces)):
            for path in [path for path in content if (is_table, path) not in seen]:
                older = began_at < state.observed.get((is_table, path), 0.0)
                newer = newer and not older
                if not older and evidence.proves_absent(parse_key(path), coverage, listed):
                    del content[path]  # type: ignore[attr-defined]
                    state.observed.pop((is_table, path), None)
                    changed = True
        # SQL keeps no ``found``: what is kept at all counts as found.
        stored = {key: c if c.found else replace(c, found=True) for key, c in coverage.items()}
        if stored != state.coverage:
            state.coverage, changed = stored, True
        state.version += changed
        return newer

    def _count_misses(self, source: str, coverage: Mapping[str, Coverage], listed: set[str], began_at: float) -> None:
        """``publish._count_misses`` and ``coverage.set_absences``."""
        state = self.states[source]
        origins = {key[2] for key in self.ledger if key[4] and key[1] == source}
        lost = {path for path in origins if path not in state.tables}
        for path in [path for path in state.absences if path not in lost]:
            del state.absences[path]
            state.version += 1
        for path in lost:
            if evidence.proves_absent(parse_key(path), coverage, listed):
                misses = state.absences.setdefault(path, [])
                misses.append(began_at)
                if len(misses) > 32:
                    del misses[-2]
                state.version += 1

    def configured(self, source: str) -> None:
        """``revisions.register`` with another configuration: proven misses are forgotten."""
        self.states[source].absences.clear()
        self.states[source].version += 1

    def observed(self, source: str, key: str, record: Record | None, at: float, *, is_table: bool) -> None:
        """``observed.publish_observed`` of one look."""
        state = self.states[source]
        content: dict[str, Any] = state.tables if is_table else state.namespaces
        known = content.get(key)
        if (known.digest if known else None) == (record.digest if record else None):
            return
        state.version += 1
        if record is None:
            del content[key]
            state.observed.pop((int(is_table), key), None)
        else:
            content[key] = record
            state.observed[int(is_table), key] = at

    # Reading: index.records, index.ledger, index.journal.

    def names_at(self, source: str, canonical: str) -> list[str]:
        return [key for key, record in self.states[source].tables.items() if record.canonical == canonical]

    def names_given(self, target: str, canonical: str) -> list[str]:
        """``ledger.names_at``."""
        return [key[3] for key, row in self.ledger.items() if (row["target_source"], row["canonical"]) == (target, canonical)]

    def names_pending(self, target: str, canonical: str) -> list[str]:
        """``journal.names_pending``."""
        changes = [entry.intent.change for entry in self.journal.values() if entry.state == "intent"]
        return [
            change.target_path
            for change in changes
            if change.target_source == target and change.after is not None and change.after.canonical == canonical
        ]

    def entries(self, rule: MirrorRule) -> list[LedgerRow]:
        """``ledger.with_origins``, less what lies in another target."""
        return [
            LedgerRow(
                origin_source=row["origin_source"], origin_path=row["origin_path"], target_path=row["target_path"],
                op_id=row["op_id"], native_id=row["native_id"], declared=row["declared"], origin_digest=row["origin_digest"],
                target_digest=row["target_digest"], mapping_digest=row["mapping_digest"],
                origin_there=row["origin_path"] in self.states[row["origin_source"]].tables,
            )
            for key, row in sorted(self.ledger.items(), key=lambda item: item[0][3])
            if key[0] == rule.name and key[4] and row["target_source"] == rule.target
        ]  # fmt: skip

    def made(self, rule: MirrorRule, entries: Sequence[LedgerRow]) -> list[MadeNamespace]:
        """``sync.mirroring._made``."""
        rows = [
            row
            for key, row in self.ledger.items()
            if key[0] == rule.name and not key[4] and row["target_source"] == rule.target
        ]
        if not rows:
            return []
        above = {path_key(namespace) for entry in entries for namespace in ancestors(parse_key(entry.target_path))}
        state = self.states[rule.target]
        found = []
        for row in rows:
            key = row["target_path"]
            if key not in above:
                path = parse_key(key)
                inside = sum(parent(r.path) == path for r in (*state.tables.values(), *state.namespaces.values()))
                record = state.namespaces.get(key)
                found.append(MadeNamespace(key, row["origin_path"], row["native_id"], record, min(inside, 1)))
        return found

    def destructive_since(self, mirror: str, since: float) -> list[str]:
        """``journal.destructive_since``."""
        rows = [row for row in self.journal.values() if row.mirror == mirror and row.at >= since]
        made = [
            row.intent.change.target_path
            for row in rows
            if row.state in ("done", "needs_adoption")
            and (
                (row.intent.change.action in _DESTRUCTIVE and row.code not in (_RENAMED, _ALREADY_GONE))
                or row.code == "location_changed"
            )
        ]
        return [*made, *self._made_after_all(rows)]

    def _made_after_all(self, rows: Sequence[Entry]) -> set[str]:
        """``journal._made_after_all``; the journal's order is that of time."""
        found: set[str] = set()
        for row in rows:
            change = row.intent.change
            given_up = row.state == "intent" or (row.state, row.code) in _GIVEN_UP
            if row.state == "done":
                found.discard(change.target_path)
            elif given_up and destructive(change) and (row.state == "intent" or shows_effect(change, self._now(change))):
                found.add(change.target_path)
        return found

    def _now(self, change: Change) -> TableRecord | None:
        return self.states[change.target_source].tables.get(change.target_path)

    def obstructed(self, mirror: str) -> set[str]:
        """``journal.obstructed``."""
        return {
            row.intent.change.target_path
            for row in self.journal.values()
            if row.mirror == mirror and row.state == "skipped" and row.code == "moved"
            and row.intent.change.action is Action.DECLARE_TABLE
        }  # fmt: skip

    def unfinished_renames(self, mirror: str, since: float) -> list[Change]:
        """``journal.unfinished_renames``."""
        left: dict[str, Change] = {}
        for row in self.journal.values():
            if row.mirror == mirror and row.at >= since and row.state == "done" and row.code == _RENAMED:
                change = row.intent.change
                assert change.pair is not None
                if change.action is Action.DEREGISTER_TABLE:
                    left[change.pair] = change
                else:
                    left.pop(change.pair, None)
        return list(left.values())

    def save(self, plan: Plan) -> Kept:
        """``plans.save``: the same plan made again keeps its decision."""
        known = self.plans.get(plan.digest)
        if known is not None and known.state in ("approved", "rejected", "held"):
            return known
        self.plans.pop(plan.digest, None)
        kept = self.plans[plan.digest] = Kept(plan, "held" if plan.held else "ready")
        return kept


def _sorted(items: Iterable[Record | Coverage]) -> tuple[list[Record], dict[str, Coverage], dict[str, int]]:
    records: list[Record] = []
    stated: dict[str, Coverage] = {}
    times: dict[str, int] = {}
    for item in items:
        if isinstance(item, Coverage):
            key = item.key
            stated[key] = item
            times[key] = times.get(key, 0) + 1
        else:
            records.append(item)
    return records, stated, times


def _checked(coverage: Coverage, arrived: Sequence[Record]) -> Coverage:
    """``normalise._checked``: rows that do not add up prove nothing."""
    folded = 0
    for record in arrived:
        folded ^= int(record.digest[:15], 16)
    if coverage.complete and (len(arrived), folded) != (coverage.records, coverage.digest):
        return _broken(coverage, f"{coverage.records} records were read and {len(arrived)} arrived")
    return coverage


def _broken(coverage: Coverage, reason: str) -> Coverage:
    told = failed(Internal.code, reason)
    return replace(coverage, presence=told, detail=told)


__all__ = ["Entry", "Kept", "LightCatalog", "MemoryIndex", "State"]
