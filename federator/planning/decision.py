"""The decision about one target path: pure, without I/O, called for every cell of a mirror.

The column *origin* says what is known of the origin table: *desired* (selected, possible at the target), *impossible* or *not readable*
(selected, see ``refuse_unmappable``), *refused* (one of these two, and declared earlier), *not selected*, *unknown* (no longer in the
index, without a miss), or *absent* (with misses: too few, or enough). An object at the target is *owned* if its marker and the ledger
agree. *Not covered* means that no complete listing proves whether the target has an object. The ledger has an entry (yes) or not (-).

::

    origin            target                  ledger   decision
    ----------------  ----------------------  -------  -------------------------------------------------------------
    desired           absent, proven          -        declare_table
    desired           absent, proven          yes      declare_table (on_missing = recreate), else missing_at_target
    desired           not covered             any      not_covered
    desired           same location           -        adopt (on_conflict = adopt_if_same_location), else name_taken
    desired           other location          -        name_taken
    desired           this mirror's marker    -        unledgered
    desired           other mirror's marker   any      adopt (source_priority: first), outranked (later), else not_ours
    desired           another owner's marker  -        not_ours
    desired           owned, as declared      yes      (nothing)
    desired           owned, different        yes      update_table; else recreate_table (update_by_recreate) or drifted
    desired           owned, edited           yes      as above, or drifted (on_drift = report)
    desired           no longer owned         yes      not_ours; unledgered (another operation); needs_adoption (no proof)
    desired           owned, origin renamed   yes      as owned, different: marker and ledger change to the new origin
    desired           owned, other origin     yes      name_clash while that origin is selected and exists, else as if not desired
    desired twice     any                      any      name_clash, case_fold_clash
    impossible        any                     any      loop, depth, name_not_allowed, no_location, location_declared, property_refused
    not readable      any                     any      managed_table, undescribed
    refused           any                     yes      (nothing)
    not selected      any                     yes      unselected (deregister_table with prune_unselected)
    unknown           any                     yes      not_covered
    absent, unproven  any                     yes      misses
    absent, proven    owned                   yes      deregister_table (delete = owned), else delete_never
    absent, proven    no longer owned         yes      not_ours; unledgered (another operation); needs_adoption (no proof)
    absent, proven    absent, proven          yes      deregister_table (only the ledger entry is deleted)
    absent, proven    not covered             yes      not_covered
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from federator.model import Coverage, Kind, Path, TableRecord, path_key
from federator.planning.changes import ABSENT, ANY, Action, Change, Decision, Refusal
from federator.planning.evidence import count_spaced_misses, has_enough_misses, is_covered
from federator.planning.mapping import DesiredTable, MirrorContext
from federator.planning.ownership import (
    append_comment_marker,
    describe_unbound_marker,
    find_bound_marker,
    has_comment_marker,
    strip_comment_marker,
    strip_marker_properties,
    with_operation_id,
)
from federator.planning.reasons import Reason


class OriginState(StrEnum):
    """Whether the index has the origin of a ledger entry, and whether the mirror selects it for the entry's target path."""

    #: the index has it, and the mirror selects it for this path; a refusal of the table does not matter
    SELECTED = "selected"
    #: the mirror does not select it for this path, whether the index has it or not
    UNSELECTED = "unselected"
    #: the mirror would select it for this path, but the index does not have it; only misses prove that it is absent
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The ledger's entry of the table that the mirror declared at a target path.

    ``op_id`` is the operation that declared it last. ``native_id`` is the catalog's own id of the table, if it has one.
    """

    #: path key
    origin_path: str
    op_id: str
    native_id: str | None
    #: the last declaration, parsed from ``declaration_json``
    declared: Mapping[str, object]
    origin_state: OriginState


@dataclass(frozen=True, slots=True)
class Cell:
    """Everything known about one target path."""

    path: Path
    #: the origins that map to this path and are possible there; two or more clash
    desired: Sequence[DesiredTable] = ()
    #: None if the index has no table at this path: it is absent, or its namespace was not listed
    target: TableRecord | None = None
    ledger: LedgerEntry | None = None


@dataclass(frozen=True, slots=True)
class CrawlEvidence:
    """What the crawls of origin and target prove: the coverage of both sources by namespace path key.

    ``misses`` are the times of an origin's misses (seconds since the epoch, ascending) by path key.
    """

    origin: Mapping[str, Coverage]
    target: Mapping[str, Coverage]
    misses: Mapping[str, Sequence[float]]


def decide(context: MirrorContext, cell: Cell, evidence: CrawlEvidence) -> Decision | None:
    """Return the change for one target path, or a refusal. None if nothing differs, or if there is nothing to decide."""
    if len(cell.desired) > 1:
        return _refuse_clash(context, cell)
    if cell.desired:
        return _decide_desired(context, cell, cell.desired[0], evidence)
    if cell.ledger is not None:
        return _decide_undesired(context, cell, cell.ledger, evidence)
    return None


def refuse_unmappable(context: MirrorContext, desired: DesiredTable) -> Refusal | None:
    """Return the refusal of a selected origin that is impossible at the target, without a target path. None if it is possible."""
    reason_by_kind = {Kind.MANAGED_TABLE: Reason.MANAGED_TABLE, Kind.UNDESCRIBED: Reason.UNDESCRIBED}
    reason = reason_by_kind.get(desired.origin.kind) or desired.refusal
    if reason is None:
        return None
    detail = desired.detail if desired.origin.kind is Kind.TABLE else desired.origin.problem or ""
    return Refusal(reason, context.rule.target, "", desired.origin.key, detail)


def _refuse_clash(context: MirrorContext, cell: Cell) -> Refusal:
    """Return the refusal of a path to which several origins map. It names the first origin; its detail names all."""
    origins = sorted(desired.origin.key for desired in cell.desired)
    differ_only_in_case = len({origin.lower() for origin in origins}) == 1
    reason = Reason.CASE_FOLD_CLASH if differ_only_in_case else Reason.NAME_CLASH
    return _build_refusal(context, cell, reason, origins[0], f"several origins map to this name: {', '.join(origins)}")


def _decide_desired(context: MirrorContext, cell: Cell, desired: DesiredTable, evidence: CrawlEvidence) -> Decision | None:
    origin, desired_record = desired.origin, desired.record
    assert desired_record is not None, "cells contain only desired tables that are possible at the target"
    target, ledger = cell.target, cell.ledger
    if target is None:
        return _decide_absent_target(context, cell, origin, desired_record, evidence)
    if ledger is None:
        return _decide_unledgered_target(context, cell, origin, desired_record, target)
    ownership_loss = _find_lost_ownership(context, target, ledger)
    if ownership_loss is not None:
        competitor = _find_competing_mirror(context, target)
        if competitor is not None:
            return competitor.decide(cell, origin, desired_record)
        reason, detail = ownership_loss
        return _build_refusal(context, cell, reason, origin.key, detail)
    same_origin = ledger.origin_path == origin.key
    if not same_origin and desired_record.canonical != target.canonical:
        return _decide_desired_by_other_origin(context, cell, origin, ledger, evidence)
    return _decide_owned_target(context, cell, origin, desired_record, target, ledger)


def _decide_owned_target(
    context: MirrorContext,
    cell: Cell,
    origin: TableRecord,
    desired_record: TableRecord,
    target: TableRecord,
    ledger: LedgerEntry,
) -> Decision | None:
    same_origin = ledger.origin_path == origin.key
    merged = merge_desired(target, desired_record, ledger.declared, doc=context.rule.doc)
    same_location = merged.canonical == target.canonical
    same_properties = dict(merged.properties) == dict(target.properties)
    is_unchanged = same_location and same_properties and (merged.doc or None) == (target.doc or None)
    if is_unchanged and same_origin:
        return None
    if context.rule.on_drift == "report" and same_origin and _matches_last_declaration(desired_record, ledger.declared):
        return _build_refusal(context, cell, Reason.DRIFTED, origin.key, "changed at the target, and on_drift = report")
    if is_unchanged:
        # The change only writes the new origin to the ledger, in catalogs that keep no marker. The old origin may have
        # enough misses: while the ledger names it, the table would be deregistered as soon as the new origin is not listed once.
        difference = f"it was declared for {ledger.origin_path}"
    elif not same_location:
        difference = "the location differs"
    else:
        difference = "the comment differs" if same_properties else "properties differ"
    if context.target.can_alter:
        return _build_change(
            context, Action.UPDATE_TABLE, cell, origin, difference, before=target, after=merged, desired_record=desired_record
        )
    difference = f"{difference}, and the catalog cannot alter tables"
    if context.rule.update_by_recreate:
        return _build_change(
            context, Action.RECREATE_TABLE, cell, origin, difference, before=target, after=merged, desired_record=desired_record
        )
    detail = f"{difference}; set update_by_recreate = true to recreate it"
    return _build_refusal(context, cell, Reason.DRIFTED, origin.key, detail)


def _decide_desired_by_other_origin(
    context: MirrorContext, cell: Cell, origin: TableRecord, ledger: LedgerEntry, evidence: CrawlEvidence
) -> Decision | None:
    # An update would replace the ledger's origin without proof that it is absent. So its declaration is kept or deregistered like
    # that of any origin, and a later run declares the new one at the free path.
    if ledger.origin_state is OriginState.SELECTED:
        detail = f"{origin.key} maps to this name, which is declared for {ledger.origin_path}"
        return _build_refusal(context, cell, Reason.NAME_CLASH, origin.key, detail)
    return _decide_undesired(context, cell, ledger, evidence)


def _decide_absent_target(
    context: MirrorContext, cell: Cell, origin: TableRecord, desired_record: TableRecord, evidence: CrawlEvidence
) -> Decision:
    if not is_covered(cell.path, evidence.target):
        return _build_refusal(
            context, cell, Reason.NOT_COVERED, origin.key, "the target's listing does not prove that the name is free"
        )
    declared_before = cell.ledger is not None and cell.ledger.origin_path == origin.key
    if declared_before and context.rule.on_missing == "report":
        return _build_refusal(
            context, cell, Reason.MISSING_AT_TARGET, origin.key, "this mirror declared it, and another process removed it"
        )
    reason = "declared before, and absent now" if declared_before else "new at the origin"
    return _build_change(
        context, Action.DECLARE_TABLE, cell, origin, reason, after=desired_record, desired_record=desired_record
    )


def _decide_unledgered_target(
    context: MirrorContext, cell: Cell, origin: TableRecord, desired_record: TableRecord, target: TableRecord
) -> Decision:
    marker = find_bound_marker(target)
    if marker is not None:
        if (marker.instance, marker.mirror) == (context.instance, context.rule.name):
            return _build_refusal(
                context,
                cell,
                Reason.UNLEDGERED,
                origin.key,
                f"it has this mirror's ownership marker, and the ledger does not know it: federator ledger rebuild {context.rule.name}",
            )
        competitor = _find_competing_mirror(context, target)
        if competitor is not None:
            return competitor.decide(cell, origin, desired_record)
        return _build_refusal(
            context, cell, Reason.NOT_OURS, origin.key, f"its ownership marker names {marker.instance}/{marker.mirror}"
        )
    if target.kind is not Kind.TABLE:
        return _build_refusal(
            context, cell, Reason.NAME_TAKEN, origin.key, f"a {target.kind.value.replace('_', ' ')} has this name"
        )
    if target.canonical != desired_record.canonical:
        return _build_refusal(context, cell, Reason.NAME_TAKEN, origin.key, f"it points to {target.location}")
    if context.rule.on_conflict != "adopt_if_same_location" or not context.target.can_alter:
        return _build_refusal(
            context, cell, Reason.NAME_TAKEN, origin.key, "it was declared before this mirror, with the same location"
        )
    adopted = merge_desired(target, desired_record, {}, doc=context.rule.doc)
    reason = "same name, same location"
    return _build_change(
        context, Action.ADOPT, cell, origin, reason, before=target, after=adopted, desired_record=desired_record
    )


def _decide_undesired(context: MirrorContext, cell: Cell, ledger: LedgerEntry, evidence: CrawlEvidence) -> Decision | None:
    rule = context.rule
    origin_path = ledger.origin_path
    if ledger.origin_state is OriginState.SELECTED:
        # The origin exists, so its declaration stays. Its refusal is reported by ``cells.decide_cell``.
        return None
    if ledger.origin_state is OriginState.UNSELECTED:
        if not rule.prune_unselected:
            return _build_refusal(
                context, cell, Reason.UNSELECTED, origin_path, "no longer selected under this name; mirror prune removes it"
            )
        return _decide_removal(
            context, cell, ledger, evidence, "no longer selected, and prune_unselected is set", origin_absent=False
        )
    misses = evidence.misses.get(origin_path, ())
    if not misses:
        return _build_refusal(context, cell, Reason.NOT_COVERED, origin_path, "no listing proves that the origin is absent")
    if not has_enough_misses(misses, rule.misses_before_delete, rule.min_miss_interval):
        counted = count_spaced_misses(misses, rule.min_miss_interval)
        detail = f"missed {counted} of {rule.misses_before_delete} times, at least {rule.min_miss_interval:g} s apart"
        return _build_refusal(context, cell, Reason.MISSES, origin_path, detail)
    # No count of misses in the reason: the plan that a person approves must be identical to the one that the next run builds.
    return _decide_removal(context, cell, ledger, evidence, "absent at the origin, with enough misses", origin_absent=True)


def _decide_removal(
    context: MirrorContext, cell: Cell, ledger: LedgerEntry, evidence: CrawlEvidence, reason: str, *, origin_absent: bool
) -> Decision:
    target = cell.target
    if target is None and not is_covered(cell.path, evidence.target):
        return _build_refusal(context, cell, Reason.NOT_COVERED, ledger.origin_path, "the target could not be read")
    if target is not None and (ownership_loss := _find_lost_ownership(context, target, ledger)):
        loss_reason, detail = ownership_loss
        return _build_refusal(context, cell, loss_reason, ledger.origin_path, detail)
    if context.rule.delete == "never" and target is not None:
        return _build_refusal(context, cell, Reason.DELETE_NEVER, ledger.origin_path, "delete = never")
    precondition = {"target": target.digest if target else ABSENT, "origin": ABSENT if origin_absent else ANY}
    if origin_absent:
        # If the origin is listed again, its misses are counted from the start. The time of the first miss then differs, so the plan
        # has another digest, and an approval of this plan does not apply to it.
        precondition["absent_since"] = str(evidence.misses[ledger.origin_path][0])
    return Change(
        Action.DEREGISTER_TABLE, context.rule.target, path_key(cell.path), context.rule.origin, ledger.origin_path, reason,
        before=target, precondition=precondition, declared=json.dumps(ledger.declared, sort_keys=True),
    )  # fmt: skip


def _find_lost_ownership(context: MirrorContext, target: TableRecord, ledger: LedgerEntry) -> tuple[Reason, str] | None:
    """Return the reason and the detail if the object at a path in the ledger is no longer owned. None if it is owned."""
    if target.kind is not Kind.TABLE:
        return Reason.NOT_OURS, f"it is now a {target.kind.value.replace('_', ' ')}"
    has_native_ids = ledger.native_id is not None and target.native_id is not None
    if has_native_ids and ledger.native_id != target.native_id:
        return Reason.NOT_OURS, "another process dropped and recreated it"
    if not context.target.keeps_properties and not context.target.keeps_comment:
        if has_native_ids:
            return None
        return Reason.NEEDS_ADOPTION, "the catalog keeps no ownership marker and returns no native id to compare"
    marker = find_bound_marker(target)
    if marker is None:
        return Reason.NOT_OURS, describe_unbound_marker(target)
    if (marker.instance, marker.mirror) != (context.instance, context.rule.name):
        return Reason.NOT_OURS, f"its ownership marker names {marker.instance}/{marker.mirror}"
    if marker.op_id and ledger.op_id and marker.op_id != ledger.op_id:
        # Either another index with the same instance id wrote the object, or this index was restored from an older backup. The
        # ledger entry cannot be trusted.
        detail = f"its ownership marker has the operation {marker.op_id}, the ledger has {ledger.op_id}"
        return Reason.UNLEDGERED, f"{detail}: federator ledger rebuild {context.rule.name}"
    return None


@dataclass(frozen=True, slots=True)
class _CompetingMirror:
    """Another mirror of this instance that declared the target, under ``on_conflict = source_priority``.

    ``context`` is that of the mirror that is being decided. ``mirror`` and ``source`` name the other mirror and its origin.
    """

    context: MirrorContext
    target: TableRecord
    mirror: str
    source: str

    def decide(self, cell: Cell, origin: TableRecord, desired_record: TableRecord) -> Decision:
        """Return an adoption if the own source has priority over the other one and the target can be altered, else a refusal."""
        context, target = self.context, self.target
        own_rank, other_rank = (_source_rank(context, source) for source in (context.rule.origin, self.source))
        if other_rank < own_rank:
            return _build_refusal(context, cell, Reason.OUTRANKED, origin.key, f"{self.mirror} declared it for {self.source}")
        if other_rank == own_rank or not context.target.can_alter:
            return _build_refusal(
                context, cell, Reason.NOT_OURS, origin.key, f"its ownership marker names {context.instance}/{self.mirror}"
            )
        # If the location changes, the target's properties and comment describe another dataset: they are not kept.
        base = replace(target, properties={}, doc=None) if target.canonical != desired_record.canonical else target
        adopted = merge_desired(base, desired_record, {}, doc=context.rule.doc)
        reason = f"{context.rule.origin} has priority over {self.source}, for which {self.mirror} declared it"
        return _build_change(
            context, Action.ADOPT, cell, origin, reason, before=target, after=adopted, desired_record=desired_record
        )


def _find_competing_mirror(context: MirrorContext, target: TableRecord) -> _CompetingMirror | None:
    """Return the configured mirror that declared the target, if source priority decides between it and this mirror. Else None."""
    marker = find_bound_marker(target)
    if context.rule.on_conflict != "source_priority" or marker is None or target.kind is not Kind.TABLE:
        return None
    source = context.competing_mirrors.get(marker.mirror)
    if source is None or marker.instance != context.instance or marker.mirror == context.rule.name:
        return None
    return _CompetingMirror(context, target, marker.mirror, source)


def _source_rank(context: MirrorContext, source: str) -> int:
    """Return the rank of a source in ``source_priority``: 0 is the first. Sources that are not listed share the last rank."""
    order = context.rule.source_priority
    return order.index(source) if source in order else len(order)


def merge_desired(
    target: TableRecord, desired: TableRecord, declared: Mapping[str, object], *, doc: bool = True
) -> TableRecord:
    """Return the target's record as it should be. Properties that the mirror did not declare, and the operation id, are kept.

    ``desired`` is the record that the rule derives. ``declared`` is the mirror's last declaration (the content of
    ``declaration_json``, empty if there is none): its properties are removed if they are no longer desired. If both locations are
    the same dataset, the target's spelling is kept. ``doc`` says whether the target's comment follows the origin's.
    """
    declared_properties = declared.get("properties")
    removed = set(declared_properties) - set(desired.properties) if isinstance(declared_properties, dict) else set()
    kept_properties = {key: value for key, value in strip_marker_properties(target.properties).items() if key not in removed}
    location = target.location if target.canonical == desired.canonical else desired.location
    comment = strip_comment_marker(desired.doc)
    if not doc or (comment is None and not declared.get("doc")):
        comment = strip_comment_marker(target.doc)
    marker = find_bound_marker(desired)
    merged = replace(
        target,
        properties={**kept_properties, **desired.properties},
        location=location,
        doc=comment,
        # A difference in columns alone is no reason for a change: they are those of the last declaration.
        schema=desired.schema or target.schema,
    )
    if marker is not None and has_comment_marker(desired):
        merged = replace(merged, doc=append_comment_marker(comment, marker, desired.path))
    current_marker = find_bound_marker(target)
    # The operation id is not part of the desired state; keep the current one.
    return with_operation_id(merged, current_marker.op_id) if current_marker is not None and current_marker.op_id else merged


def declaration_json(record: TableRecord) -> str:
    """Return the JSON that the ledger stores of a declaration: location, properties and doc, without the ownership marker."""
    content = {
        "location": record.location,
        "properties": strip_marker_properties(record.properties),
        "doc": strip_comment_marker(record.doc),
    }
    return json.dumps(content, sort_keys=True)


def _matches_last_declaration(desired_record: TableRecord, declared: Mapping[str, object]) -> bool:
    """Tell whether the desired record equals the last declaration. Then a difference was made at the target, not at the origin."""
    return bool(declared) and json.loads(declaration_json(desired_record)) == dict(declared)


def _build_change(
    context: MirrorContext, action: Action, cell: Cell, origin: TableRecord, reason: str, *,
    after: TableRecord, desired_record: TableRecord, before: TableRecord | None = None,
) -> Change:  # fmt: skip
    """Build a change that depends on the current digests of origin and target.

    ``after`` is the complete record of the target, ``desired_record`` the part of it that comes from the mirror.
    """
    precondition = {"target": before.digest if before else ABSENT, "origin": origin.digest}
    return Change(
        action, context.rule.target, path_key(cell.path), context.rule.origin, origin.key, reason,
        before=before, after=after, precondition=precondition, declared=declaration_json(desired_record),
    )  # fmt: skip


def _build_refusal(context: MirrorContext, cell: Cell, reason: Reason, origin_path: str, detail: str) -> Refusal:
    return Refusal(reason, context.rule.target, path_key(cell.path), origin_path, detail)
