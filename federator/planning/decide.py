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
    wanted            another mirror's    any      adopt (source_priority puts us first), outranked (last), else not_ours
    wanted            somebody's mark     -        not_ours
    wanted            ours, as declared   yes      (nothing)
    wanted            ours, different     yes      update_table; recreate_table (update_by_recreate) or drifted where it cannot alter
    wanted            ours, edited there  yes      as above, or drifted (on_drift = report)
    wanted            not ours any more   yes      not_ours, or unledgered (our mark, another operation), needs_adoption (no proof)
    wanted            ours, other name    yes      as ours, different: mark and ledger follow to the origin that has the place by now
    wanted            ours, for another   yes      name_clash while that origin is there, else as for an origin that is not wanted
    wanted by two     any                 any      name_clash, case_fold_clash
    cannot be there   any                 any      loop, depth, name_not_allowed, no_location, property_refused
    cannot be read    any                 any      managed_table, undescribed
    refused           any                 yes      (nothing)
    not selected      any                 yes      unselected (deregister_table with prune_unselected)
    unknown           any                 yes      not_covered
    gone, too few     any                 yes      misses
    gone, proven      ours                yes      deregister_table (delete = owned), else delete_never
    gone, proven      not ours any more   yes      not_ours, or unledgered (our mark, another operation), needs_adoption (no proof)
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
from federator.planning.marks import bound_mark, marked_in_comment, plain_doc, stamped, unmarked, with_comment
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
    if alien is not None:
        rival = _rival(context, target)
        return rival.decide(cell, origin, after) if rival else _refuse(context, cell, alien[0], origin.key, alien[1])
    if ledger.origin_path != origin.key and after.canonical != target.canonical:
        return _wanted_by_another(context, cell, origin, ledger, knowledge)
    merged = merge(target, after, ledger.declared, doc=context.rule.doc)
    as_wanted = merged.canonical == target.canonical and _same(merged, target)
    if as_wanted and ledger.origin_path == origin.key:
        return None
    if context.rule.on_drift == "report" and ledger.origin_path == origin.key and _as_declared(after, ledger.declared):
        return _refuse(context, cell, Reason.DRIFTED, origin.key, "changed at the target, and on_drift = report")
    reason = "the location differs" if merged.canonical != target.canonical else "properties differ"
    if dict(merged.properties) == dict(target.properties) and merged.canonical == target.canonical:
        reason = "the comment differs"
    if as_wanted:
        # Where no mark tells: as long as the ledger names the first origin, whose absence is proven, nobody would miss this one.
        reason = f"it was declared for {ledger.origin_path}"
    if context.target.can_alter:
        return _change(context, Action.UPDATE_TABLE, cell, origin, reason, before=target, after=merged, wanted=after)
    if context.rule.update_by_recreate:
        reason = f"{reason}, and the catalog cannot alter tables"
        return _change(context, Action.RECREATE_TABLE, cell, origin, reason, before=target, after=merged, wanted=after)
    detail = f"{reason}, and the catalog cannot alter tables; update_by_recreate = true allows to declare it anew"
    return _refuse(context, cell, Reason.DRIFTED, origin.key, detail)


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
        rival = _rival(context, target)
        if rival is not None:
            return rival.decide(cell, origin, after)
        return _refuse(context, cell, Reason.NOT_OURS, origin.key, f"it is marked by {mark.instance}/{mark.mirror}")
    if target.kind is not Kind.TABLE:
        return _refuse(context, cell, Reason.NAME_TAKEN, origin.key, f"a {target.kind.value.replace('_', ' ')} has the name")
    if target.canonical != after.canonical:
        return _refuse(context, cell, Reason.NAME_TAKEN, origin.key, f"it points to {target.location}")
    if context.rule.on_conflict != "adopt_if_same_location" or not context.target.can_alter:
        return _refuse(context, cell, Reason.NAME_TAKEN, origin.key, "it was there before us, with the same location")
    adopted = merge(target, after, {}, doc=context.rule.doc)
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
        return _refuse(context, cell, alien[0], ledger.origin_path, alien[1])
    if context.rule.delete == "never" and target is not None:
        return _refuse(context, cell, Reason.DELETE_NEVER, ledger.origin_path, "delete = never")
    precondition = {"target": target.digest if target else "absent", "origin": "absent" if gone else "any"}
    if gone:
        # An approval ends when the origin is seen again: the misses that are counted afterwards are others.
        precondition["absent_since"] = str(knowledge.misses[ledger.origin_path][0])
    return Change(
        Action.DEREGISTER_TABLE, context.rule.target, path_key(cell.path), context.rule.origin, ledger.origin_path, reason,
        before=target, precondition=precondition, declared=json.dumps(ledger.declared, sort_keys=True),
    )  # fmt: skip


def _alien(context: MirrorContext, target: TableRecord, ledger: LedgerEntry) -> tuple[Reason, str] | None:
    """Why an object at a ledgered path is not ours any more; None if it is."""
    if target.kind is not Kind.TABLE:
        return Reason.NOT_OURS, f"it is now a {target.kind.value.replace('_', ' ')}"
    if ledger.native_id is not None and target.native_id is not None and ledger.native_id != target.native_id:
        return Reason.NOT_OURS, "it was dropped and made again by somebody"
    if not context.target.keeps_properties and not context.target.keeps_comment:
        known = ledger.native_id is not None and target.native_id is not None
        return None if known else (Reason.NEEDS_ADOPTION, "the catalog keeps no mark and has no identity to compare")
    mark = bound_mark(target)
    if mark is None:
        return Reason.NOT_OURS, "it lost our mark"
    if (mark.instance, mark.mirror) != (context.instance, context.rule.name):
        return Reason.NOT_OURS, f"it is marked by {mark.instance}/{mark.mirror}"
    if mark.op_id and ledger.op_id and mark.op_id != ledger.op_id:
        # Another index with our instance's id wrote it, or ours was restored from an older backup: what it says is not what we know.
        return Reason.UNLEDGERED, f"its mark names the operation {mark.op_id}, and the ledger {ledger.op_id}"
    return None


@dataclass(frozen=True, slots=True)
class _Rival:
    """Another mirror of this instance that declared the target, under ``on_conflict = source_priority``."""

    context: MirrorContext
    target: TableRecord
    mirror: str
    source: str

    def decide(self, cell: Cell, origin: TableRecord, after: TableRecord) -> Decision:
        context, target = self.context, self.target
        ours, theirs = (_rank(context, source) for source in (context.rule.origin, self.source))
        if theirs < ours:
            return _refuse(context, cell, Reason.OUTRANKED, origin.key, f"it is declared for {self.source}, by {self.mirror}")
        if theirs == ours or not context.target.can_alter:
            return _refuse(context, cell, Reason.NOT_OURS, origin.key, f"it is marked by {context.instance}/{self.mirror}")
        # What describes another dataset does not stay on ours.
        bare = replace(target, properties={}, doc=None) if target.canonical != after.canonical else target
        taken = merge(bare, after, {}, doc=context.rule.doc)
        reason = f"{context.rule.origin} comes before {self.source}, whose {self.mirror} declared it"
        return _change(context, Action.ADOPT, cell, origin, reason, before=target, after=taken, wanted=after)


def _rival(context: MirrorContext, target: TableRecord) -> _Rival | None:
    mark = bound_mark(target)
    if context.rule.on_conflict != "source_priority" or mark is None or target.kind is not Kind.TABLE:
        return None
    known = mark.instance == context.instance and mark.mirror != context.rule.name and mark.mirror in context.rivals
    return _Rival(context, target, mark.mirror, context.rivals[mark.mirror]) if known else None


def _rank(context: MirrorContext, source: str) -> int:
    order = context.rule.source_priority
    return order.index(source) if source in order else len(order)


def merge(target: TableRecord, desired: TableRecord, declared: Mapping[str, object], *, doc: bool = True) -> TableRecord:
    """The target as it should be: our properties set, those we set before and no longer want removed, its own extras kept.

    ``declared`` is what we last declared (``declaration``). A location that means the same place is left as the target spells it;
    ``doc`` says whether its comment follows the origin's.
    """
    before = declared.get("properties")
    dropped = set(before) - set(desired.properties) if isinstance(before, dict) else set()
    kept = {key: value for key, value in unmarked(target.properties).items() if key not in dropped}
    location = target.location if target.canonical == desired.canonical else desired.location
    text = plain_doc(desired.doc)
    if not doc or (text is None and not declared.get("doc")):
        text = plain_doc(target.doc)
    mark = bound_mark(desired)
    merged = replace(target, properties={**kept, **desired.properties}, location=location, doc=text)
    if mark is not None and marked_in_comment(desired):
        merged = replace(merged, doc=with_comment(text, mark, desired.path))
    before_us = bound_mark(target)
    # The operation is not part of what is wanted: it stays until the next one.
    return stamped(merged, before_us.op_id) if before_us is not None and before_us.op_id else merged


def declaration(record: TableRecord) -> str:
    """What the ledger remembers of a declaration, as JSON."""
    content = {"location": record.location, "properties": unmarked(record.properties), "doc": plain_doc(record.doc)}
    return json.dumps(content, sort_keys=True)


def _as_declared(wanted: TableRecord, declared: Mapping[str, object]) -> bool:
    """Whether the origin still asks for what we declared last, so that a difference was made at the target."""
    return bool(declared) and json.loads(declaration(wanted)) == dict(declared)


def _same(one: TableRecord, other: TableRecord) -> bool:
    return dict(one.properties) == dict(other.properties) and (one.doc or None) == (other.doc or None)


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
