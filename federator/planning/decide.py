"""The decision about one target path: pure, without I/O, called for every cell of a mirror.

::

    origin            target              ledger   decision
    ----------------  ------------------  -------  -------------------------------------------------------------
    wanted            absent, proven      -        declare_table
    wanted            absent, proven      yes      declare_table (on_missing = recreate), else missing_at_target
    wanted            not covered         any      not_covered
    wanted            same location       -        adopt (on_conflict = adopt_if_same_location), else name_taken
    wanted            other location      -        name_taken
    wanted            ours by its mark    -        unledgered
    wanted            somebody's mark     -        not_ours
    wanted            ours, as declared   yes      (nothing)
    wanted            ours, different     yes      update_table, or drifted where the catalog cannot alter
    wanted            not ours any more   yes      not_ours
    wanted            ours, for another   yes      name_clash while that origin is there, else as for an origin that is not wanted
    wanted by two     any                 any      name_clash, case_fold_clash
    cannot be there   any                 any      loop, depth, name_not_allowed, no_location, managed_table, undescribed
    refused           any                 yes      (nothing)
    not selected      any                 yes      unselected (deregister_table with prune_unselected)
    unknown           any                 yes      not_covered
    gone, too few     any                 yes      misses
    gone, proven      ours                yes      deregister_table (delete = owned), else delete_never
    gone, proven      not ours any more   yes      not_ours
    gone, proven      absent, proven      yes      deregister_table (only the ledger forgets)
    gone, proven      not covered         yes      not_covered
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from federator.model import Coverage, Kind, Path, TableRecord, path_key
from federator.planning.changes import Action, Change, Decision, Refusal
from federator.planning.evidence import counted_misses, covered, enough_misses
from federator.planning.mapping import Desired, MirrorContext
from federator.planning.marks import bound_mark, unmarked
from federator.planning.reasons import Reason


class OriginState(StrEnum):
    """What the index and the rule say of the origin named in a ledger entry."""

    #: it is there, and the mirror takes it in under this name, even where it refuses it for now
    SELECTED = "selected"
    #: the mirror does not take it in, or under another name, whether it is there or not
    UNSELECTED = "unselected"
    #: the mirror would take it in under this name, and the index does not have it
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What we declared at a target path, as the ledger keeps it."""

    origin_path: str
    op_id: str
    native_id: str | None
    declared: Mapping[str, object]
    origin: OriginState


@dataclass(frozen=True, slots=True)
class Cell:
    """Everything known about one target path."""

    path: Path
    desired: Sequence[Desired] = ()
    target: TableRecord | None = None
    ledger: LedgerEntry | None = None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the two sources' crawls can prove. ``misses`` are times, by origin path."""

    origin: Mapping[str, Coverage]
    target: Mapping[str, Coverage]
    misses: Mapping[str, Sequence[float]]


def decide(context: MirrorContext, cell: Cell, knowledge: Knowledge) -> Decision | None:
    """The change for one target path, a refusal, or None where all is as it should be."""
    if len(cell.desired) > 1:
        return _clash(context, cell)
    if cell.desired:
        return _wanted(context, cell, cell.desired[0], knowledge)
    if cell.ledger is not None:
        return _unwanted(context, cell, cell.ledger, knowledge)
    return None


def refuse_desired(context: MirrorContext, desired: Desired) -> Refusal | None:
    """Why a selected origin can have no target at all; None if it can."""
    kinds = {Kind.MANAGED_TABLE: Reason.MANAGED_TABLE, Kind.UNDESCRIBED: Reason.UNDESCRIBED}
    reason = kinds.get(desired.origin.kind) or desired.refusal
    if reason is None:
        return None
    detail = desired.detail if desired.origin.kind is Kind.TABLE else desired.origin.problem or ""
    return Refusal(reason, context.rule.target, "", desired.origin.key, detail)


def _clash(context: MirrorContext, cell: Cell) -> Refusal:
    origins = sorted(desired.origin.key for desired in cell.desired)
    folded = len({origin.lower() for origin in origins}) == 1
    reason = Reason.CASE_FOLD_CLASH if folded else Reason.NAME_CLASH
    return _refuse(context, cell, reason, origins[0], f"wanted there by {', '.join(origins)}")


def _wanted(context: MirrorContext, cell: Cell, desired: Desired, knowledge: Knowledge) -> Decision | None:
    origin, after = desired.origin, desired.record
    assert after is not None, "cells hold only desired tables that can be there"
    target, ledger = cell.target, cell.ledger
    if target is None:
        return _wanted_absent(context, cell, origin, after, knowledge)
    if ledger is None:
        return _wanted_unledgered(context, cell, origin, after, target)
    alien = _alien(context, target, ledger)
    if alien:
        return _refuse(context, cell, Reason.NOT_OURS, origin.key, alien)
    if ledger.origin_path != origin.key and after.canonical != target.canonical:
        return _wanted_by_another(context, cell, origin, ledger, knowledge)
    merged = merge(target, after, ledger.declared)
    if merged.canonical == target.canonical and _same(merged, target):
        return None
    if not context.target.can_alter:
        return _refuse(context, cell, Reason.DRIFTED, origin.key, "the target differs and its catalog cannot alter tables")
    reason = "the location differs" if merged.canonical != target.canonical else "properties differ"
    return _change(context, Action.UPDATE_TABLE, cell, origin, reason, before=target, after=merged, wanted=after)


def _wanted_by_another(
    context: MirrorContext, cell: Cell, origin: TableRecord, ledger: LedgerEntry, knowledge: Knowledge
) -> Decision | None:
    # Pointing it elsewhere would take the name from the first origin without the proof that it is gone: the name is freed first, as
    # for any origin, and a later run declares the other one.
    if ledger.origin is OriginState.SELECTED:
        detail = f"wanted there by {origin.key}, and declared there for {ledger.origin_path}"
        return _refuse(context, cell, Reason.NAME_CLASH, origin.key, detail)
    return _unwanted(context, cell, ledger, knowledge)


def _wanted_absent(
    context: MirrorContext, cell: Cell, origin: TableRecord, after: TableRecord, knowledge: Knowledge
) -> Decision:
    if not covered(cell.path, knowledge.target):
        return _refuse(
            context, cell, Reason.NOT_COVERED, origin.key, "the target's listing does not prove that the name is free"
        )
    ours = cell.ledger is not None and cell.ledger.origin_path == origin.key
    if ours and context.rule.on_missing == "report":
        return _refuse(context, cell, Reason.MISSING_AT_TARGET, origin.key, "we declared it, and somebody removed it there")
    reason = "declared there before and gone" if ours else "new at the origin"
    return _change(context, Action.DECLARE_TABLE, cell, origin, reason, after=after, wanted=after)


def _wanted_unledgered(
    context: MirrorContext, cell: Cell, origin: TableRecord, after: TableRecord, target: TableRecord
) -> Decision:
    mark = bound_mark(target)
    if mark is not None:
        if (mark.instance, mark.mirror) == (context.instance, context.rule.name):
            return _refuse(context, cell, Reason.UNLEDGERED, origin.key, "it carries our mark, and the ledger does not know it")
        return _refuse(context, cell, Reason.NOT_OURS, origin.key, f"it is marked by {mark.instance}/{mark.mirror}")
    if target.kind is not Kind.TABLE:
        return _refuse(context, cell, Reason.NAME_TAKEN, origin.key, f"a {target.kind.value.replace('_', ' ')} has the name")
    if target.canonical != origin.canonical:
        return _refuse(context, cell, Reason.NAME_TAKEN, origin.key, f"it points to {target.location}")
    if context.rule.on_conflict != "adopt_if_same_location" or not context.target.can_alter:
        return _refuse(context, cell, Reason.NAME_TAKEN, origin.key, "it was there before us, with the same location")
    adopted = merge(target, after, {})
    return _change(context, Action.ADOPT, cell, origin, "same name, same location", before=target, after=adopted, wanted=after)


def _unwanted(context: MirrorContext, cell: Cell, ledger: LedgerEntry, knowledge: Knowledge) -> Decision | None:
    rule = context.rule
    origin = ledger.origin_path
    if ledger.origin is OriginState.SELECTED:
        return None
    if ledger.origin is OriginState.UNSELECTED:
        if not rule.prune_unselected:
            return _refuse(
                context, cell, Reason.UNSELECTED, origin, "no longer selected under this name; mirror prune removes it"
            )
        return _remove(context, cell, ledger, knowledge, "no longer selected, and prune_unselected is set", gone=False)
    misses = knowledge.misses.get(origin, ())
    if not misses:
        return _refuse(context, cell, Reason.NOT_COVERED, origin, "no listing proves that the origin is gone")
    if not enough_misses(misses, rule.misses_before_delete, rule.min_miss_interval):
        counted = counted_misses(misses, rule.min_miss_interval)
        detail = f"missed {counted} of {rule.misses_before_delete} times, at least {rule.min_miss_interval:g} s apart"
        return _refuse(context, cell, Reason.MISSES, origin, detail)
    # Without a count: the plan that a person approves must be the one that the next run makes.
    return _remove(context, cell, ledger, knowledge, "gone at the origin, and missed often enough", gone=True)


def _remove(
    context: MirrorContext, cell: Cell, ledger: LedgerEntry, knowledge: Knowledge, reason: str, *, gone: bool
) -> Decision:
    target = cell.target
    if target is None and not covered(cell.path, knowledge.target):
        return _refuse(context, cell, Reason.NOT_COVERED, ledger.origin_path, "the target could not be read")
    if target is not None and (alien := _alien(context, target, ledger)):
        return _refuse(context, cell, Reason.NOT_OURS, ledger.origin_path, alien)
    if context.rule.delete == "never" and target is not None:
        return _refuse(context, cell, Reason.DELETE_NEVER, ledger.origin_path, "delete = never")
    precondition = {"target": target.digest if target else "absent", "origin": "absent" if gone else "any"}
    return Change(
        Action.DEREGISTER_TABLE, context.rule.target, path_key(cell.path), context.rule.origin, ledger.origin_path, reason,
        before=target, precondition=precondition,
    )  # fmt: skip


def _alien(context: MirrorContext, target: TableRecord, ledger: LedgerEntry) -> str:
    """Why an object at a ledgered path is not ours any more; empty if it is."""
    if target.kind is not Kind.TABLE:
        return f"it is now a {target.kind.value.replace('_', ' ')}"
    if ledger.native_id is not None and target.native_id is not None and ledger.native_id != target.native_id:
        return "it was dropped and made again by somebody"
    if not context.target.keeps_properties:
        known = ledger.native_id is not None and target.native_id is not None
        return "" if known else "the catalog keeps no mark and has no identity to compare"
    mark = bound_mark(target)
    if mark is None:
        return "it lost our mark"
    if (mark.instance, mark.mirror) != (context.instance, context.rule.name):
        return f"it is marked by {mark.instance}/{mark.mirror}"
    return ""


def merge(target: TableRecord, desired: TableRecord, declared: Mapping[str, object]) -> TableRecord:
    """The target as it should be: our properties set, those we set before and no longer want removed, its own extras kept.

    ``declared`` is what we last declared (``declaration``). A location that means the same place is left as the target spells it.
    """
    before = declared.get("properties")
    dropped = set(before) - set(desired.properties) if isinstance(before, dict) else set()
    kept = {key: value for key, value in target.properties.items() if key not in dropped}
    location = target.location if target.canonical == desired.canonical else desired.location
    return replace(target, properties={**kept, **desired.properties}, location=location)


def declaration(record: TableRecord) -> str:
    """What the ledger remembers of a declaration, as JSON."""
    return json.dumps({"location": record.location, "properties": unmarked(record.properties)}, sort_keys=True)


def _same(one: TableRecord, other: TableRecord) -> bool:
    return dict(one.properties) == dict(other.properties)


def _change(
    context: MirrorContext, action: Action, cell: Cell, origin: TableRecord, reason: str, *,
    after: TableRecord, wanted: TableRecord, before: TableRecord | None = None,
) -> Change:  # fmt: skip
    precondition = {"target": before.digest if before else "absent", "origin": origin.digest}
    return Change(
        action, context.rule.target, path_key(cell.path), context.rule.origin, origin.key, reason,
        before=before, after=after, precondition=precondition, declared=declaration(wanted),
    )  # fmt: skip


def _refuse(context: MirrorContext, cell: Cell, reason: Reason, origin: str, detail: str) -> Refusal:
    return Refusal(reason, context.rule.target, path_key(cell.path), origin, detail)
