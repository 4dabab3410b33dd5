"""Cells: origin tables, target tables and ledger rows brought together by target path, each path decided on its own.

The same functions run inside the Spark tasks, where a record is read only if its cell is not settled, and over records in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from federator.model import TableRecord, parse_key, path_key
from federator.planning.changes import Change, Decision, Refusal
from federator.planning.decide import Cell, Knowledge, LedgerEntry, OriginState, decide, refuse_desired
from federator.planning.mapping import MirrorContext, desire, target_path
from federator.planning.reasons import Reason
from federator.planning.selection import filtered_out, selected


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What the ledger says of one target path. ``declared`` is JSON (``decide.declaration``); ``origin_there`` says whether the
    index has the origin now."""

    origin_source: str
    origin_path: str
    target_path: str
    op_id: str
    native_id: str | None = None
    declared: str | None = None
    origin_digest: str | None = None
    target_digest: str | None = None
    mapping_digest: str | None = None
    origin_there: bool = True

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """From a row of the index, which has more columns."""
        return cls(**{f.name: row[f.name] for f in fields(cls)})


@dataclass(frozen=True, slots=True)
class Member:
    """A record in a cell: its path and digest at once, the record itself only when it is needed."""

    key: str
    digest: str
    load: Callable[[], TableRecord]

    @classmethod
    def of(cls, record: TableRecord) -> Self:
        return cls(record.key, record.digest, lambda: record)


@dataclass(slots=True)
class Members:
    """What meets at one target path. ``refused`` are origins that would go there and cannot be there, or do not pass a filter."""

    wanted: list[Member] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    target: Member | None = None
    entries: list[LedgerRow] = field(default_factory=list)

    @property
    def selected(self) -> int:
        """How many origins the mirror selects here, other mirrors' copies apart."""
        others = (Reason.LOOP, Reason.UNSELECTED)
        return len(self.wanted) + sum(refusal.reason not in others for refusal in self.refused)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The decisions of one mirror, and how many origin tables it selects, other mirrors' copies apart."""

    decisions: list[Decision]
    selected: int

    @property
    def changes(self) -> list[Change]:
        return [decision for decision in self.decisions if isinstance(decision, Change)]

    @property
    def refusals(self) -> list[Refusal]:
        return [decision for decision in self.decisions if isinstance(decision, Refusal)]


def place(context: MirrorContext, origin: TableRecord) -> tuple[str, Refusal | None] | None:
    """The target path (text form) where an origin belongs, with the refusal if it cannot be there; None if its name is not selected.

    A table of a selected name that does not pass a filter is ``unselected`` there: only its ledger entry wants to know.
    """
    if not selected(context.rule, origin.path):
        return None
    if reason := filtered_out(context.rule, origin):
        cell = path_key(target_path(context, origin.path))
        return cell, Refusal(Reason.UNSELECTED, context.rule.target, cell, origin.key, reason)
    desired = desire(context, origin)
    cell = desired.record.key if desired.record is not None else path_key(target_path(context, origin.path))
    refusal = refuse_desired(context, desired)
    return cell, refusal and replace(refusal, target_path=cell)


def decide_members(context: MirrorContext, knowledge: Knowledge, cell: str, members: Members) -> list[Decision]:
    """Everything that is decided about one target path."""
    refused = [refusal for refusal in members.refused if refusal.reason is not Reason.UNSELECTED]
    decisions: list[Decision] = [*refused]
    # A refused origin still exists: what we once declared at its path stays, whatever becomes of unselected ones.
    if (members.wanted or not refused) and not _settled(context, members):
        decision = decide(context, _cell(context, cell, members), knowledge)
        decisions += [decision] if decision is not None else []
    return decisions


def decide_all(
    context: MirrorContext, knowledge: Knowledge,
    origins: Iterable[TableRecord], targets: Iterable[TableRecord], ledger: Iterable[LedgerRow],
) -> Candidates:  # fmt: skip
    """Decides every cell of a mirror with everything in memory."""
    cells: dict[str, Members] = {}
    for origin in origins:
        placed = place(context, origin)
        if placed is not None:
            cell, refusal = placed
            members = cells.setdefault(cell, Members())
            if refusal is not None:
                members.refused.append(refusal)
            else:
                members.wanted.append(Member.of(origin))
    for target in targets:
        cells.setdefault(target.key, Members()).target = Member.of(target)
    for row in ledger:
        cells.setdefault(row.target_path, Members()).entries.append(row)
    decisions = [decision for cell in sorted(cells) for decision in decide_members(context, knowledge, cell, cells[cell])]
    return Candidates(decisions, sum(members.selected for members in cells.values()))


def _settled(context: MirrorContext, members: Members) -> bool:
    """Whether nothing has changed since the ledger entry was written; and whether there is anything to decide at all."""
    if not members.wanted and not members.entries:
        return True
    if len(members.wanted) != 1 or len(members.entries) != 1 or members.target is None:
        return False
    origin, entry = members.wanted[0], members.entries[0]
    return (
        entry.origin_path == origin.key
        and entry.origin_digest == origin.digest
        and entry.target_digest == members.target.digest
        and entry.mapping_digest == context.rule.mapping_digest
    )


def _cell(context: MirrorContext, key: str, members: Members) -> Cell:
    wanted = [desire(context, member.load()) for member in members.wanted]
    # An entry of the wanted origin comes first: an older one at the same path is only history.
    origins = {desired.origin.key for desired in wanted}
    entries = sorted(members.entries, key=lambda entry: (entry.origin_path not in origins, entry.origin_path))
    target = members.target.load() if members.target is not None else None
    filtered = {refusal.origin_path for refusal in members.refused if refusal.reason is Reason.UNSELECTED}
    return Cell(parse_key(key), wanted, target, _entry(context, entries[0], filtered) if entries else None)


def _entry(context: MirrorContext, row: LedgerRow, filtered: Collection[str]) -> LedgerEntry:
    state = OriginState.UNSELECTED if row.origin_path in filtered else _origin(context, row)
    return LedgerEntry(row.origin_path, row.op_id, row.native_id, json.loads(row.declared or "{}"), state)


def _origin(context: MirrorContext, row: LedgerRow) -> OriginState:
    """Only an origin that the mirror still takes in under the entry's name can be missed: the others are not looked for."""
    origin = parse_key(row.origin_path)
    here = row.origin_source == context.rule.origin and selected(context.rule, origin)
    if not here or path_key(target_path(context, origin)) != row.target_path:
        return OriginState.UNSELECTED
    return OriginState.SELECTED if row.origin_there else OriginState.ABSENT
