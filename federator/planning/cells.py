"""Cells: join origin tables, target tables and ledger rows by target path, and decide each path on its own.

The same functions run in the Spark tasks, which read a record only if its cell has changed, and over records in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Self

from federator.model import TableRecord, parent_key, parse_path_key, path_key
from federator.planning.changes import Change, Decision, Refusal
from federator.planning.decision import Cell, CrawlEvidence, LedgerEntry, OriginState, decide, refuse_unmappable
from federator.planning.ledger import OwnedObject
from federator.planning.mapping import MirrorContext, map_path, map_table
from federator.planning.reasons import Reason
from federator.planning.selection import describe_failed_filter, is_selected


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """The ledger's row of one target path in the mirror's current target. Tables in an earlier target stay there.

    ``declared`` is JSON (``decision.declaration_json``). ``origin_exists`` says whether the planned
    revision of the mirror's origin has the table.
    """

    origin_source: str
    origin_path: str
    target_path: str
    op_id: str
    native_id: str | None = None
    declared: str | None = None
    origin_digest: str | None = None
    target_digest: str | None = None
    mapping_digest: str | None = None
    origin_exists: bool = True

    @classmethod
    def from_entry(cls, entry: OwnedObject, *, origin_exists: bool) -> Self:
        """Build the row from an entry of the ledger, which has more columns."""
        columns = {f.name: getattr(entry, f.name) for f in fields(cls) if f.name != "origin_exists"}
        return cls(**columns, origin_exists=origin_exists)


@dataclass(slots=True)
class LedgerCounts:
    """The numbers of a mirror's ledger rows: by target namespace, and of those whose origin exists, by origin namespace."""

    by_target_namespace: Counter[str] = field(default_factory=Counter)
    existing_by_origin_namespace: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Iterable[LedgerRow]) -> None:
        for row in rows:
            self.by_target_namespace[parent_key(row.target_path)] += 1
            if row.origin_exists:
                self.existing_by_origin_namespace[parent_key(row.origin_path)] += 1


@dataclass(frozen=True, slots=True)
class LazyRecord:
    """A record in a cell: path and digest at once, the content only when it is needed."""

    key: str
    digest: str
    load: Callable[[], TableRecord]

    @classmethod
    def from_record(cls, record: TableRecord) -> Self:
        return cls(record.key, record.digest, lambda: record)


@dataclass(slots=True)
class CellInputs:
    """The inputs of one target path. ``refusals`` are for origins that map there but are impossible there or fail a filter."""

    origins: list[LazyRecord] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    target: LazyRecord | None = None
    ledger_rows: list[LedgerRow] = field(default_factory=list)

    @property
    def selected_count(self) -> int:
        """The number of origins that the mirror selects for this path, without other mirrors' copies."""
        uncounted = (Reason.LOOP, Reason.UNSELECTED)
        return len(self.origins) + sum(refusal.reason not in uncounted for refusal in self.refusals)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The decisions of one mirror, the number of origin tables that it selects, without other mirrors' copies, and its ledger in
    numbers."""

    decisions: list[Decision]
    selected_count: int
    ledger: LedgerCounts

    @property
    def changes(self) -> list[Change]:
        return [decision for decision in self.decisions if isinstance(decision, Change)]

    @property
    def refusals(self) -> list[Refusal]:
        return [decision for decision in self.decisions if isinstance(decision, Refusal)]


def assign_cell(context: MirrorContext, origin: TableRecord) -> tuple[str, Refusal | None] | None:
    """Return the target path key of an origin, with the refusal if the table is impossible there. None if its name is not selected.

    A table of a selected name that fails a filter is ``unselected`` there; only the decision about its ledger entry needs that.
    """
    if not is_selected(context.rule, origin.path):
        return None
    if reason := describe_failed_filter(context.rule, origin):
        cell = path_key(map_path(context, origin.path))
        return cell, Refusal(Reason.UNSELECTED, context.rule.target, cell, origin.key, reason)
    desired = map_table(context, origin)
    cell = desired.record.key if desired.record is not None else path_key(map_path(context, origin.path))
    refusal = refuse_unmappable(context, desired)
    return cell, refusal and replace(refusal, target_path=cell)


def decide_cell(context: MirrorContext, evidence: CrawlEvidence, cell: str, inputs: CellInputs) -> list[Decision]:
    """Return all decisions about one target path."""
    refused = [refusal for refusal in inputs.refusals if refusal.reason is not Reason.UNSELECTED]
    decisions: list[Decision] = [*refused]
    # A refused origin still exists, so its earlier declaration at this path stays, even if filters reject other origins.
    if (inputs.origins or not refused) and not _is_unchanged(context, inputs):
        decision = decide(context, _build_cell(context, cell, inputs), evidence)
        decisions += [decision] if decision is not None else []
    return decisions


def _is_unchanged(context: MirrorContext, inputs: CellInputs) -> bool:
    """Tell whether nothing has changed since the ledger entry was written, or whether there is nothing to decide."""
    if not inputs.origins and not inputs.ledger_rows:
        return True
    if len(inputs.origins) != 1 or len(inputs.ledger_rows) != 1 or inputs.target is None:
        return False
    origin, entry = inputs.origins[0], inputs.ledger_rows[0]
    return (
        entry.origin_path == origin.key
        and entry.origin_digest == origin.digest
        and entry.target_digest == inputs.target.digest
        and entry.mapping_digest == context.rule.mapping_digest
    )


def _build_cell(context: MirrorContext, key: str, inputs: CellInputs) -> Cell:
    desired_tables = [map_table(context, member.load()) for member in inputs.origins]
    # The entry of a desired origin comes first: an older entry at the same path is only history.
    origins = {desired.origin.key for desired in desired_tables}
    entries = sorted(inputs.ledger_rows, key=lambda entry: (entry.origin_path not in origins, entry.origin_path))
    target = inputs.target.load() if inputs.target is not None else None
    filtered = {refusal.origin_path for refusal in inputs.refusals if refusal.reason is Reason.UNSELECTED}
    return Cell(
        parse_path_key(key), desired_tables, target, _build_ledger_entry(context, entries[0], filtered) if entries else None
    )


def _build_ledger_entry(context: MirrorContext, row: LedgerRow, filtered: Collection[str]) -> LedgerEntry:
    state = OriginState.UNSELECTED if row.origin_path in filtered else _origin_state(context, row)
    return LedgerEntry(row.origin_path, row.op_id, row.native_id, json.loads(row.declared or "{}"), state)


def _origin_state(context: MirrorContext, row: LedgerRow) -> OriginState:
    """Return the state of a ledger entry's origin. Only an origin that the mirror still selects under the entry's name can be
    missed."""
    origin = parse_path_key(row.origin_path)
    selected = row.origin_source == context.rule.origin and is_selected(context.rule, origin)
    if not selected or path_key(map_path(context, origin)) != row.target_path:
        return OriginState.UNSELECTED
    return OriginState.SELECTED if row.origin_exists else OriginState.ABSENT
