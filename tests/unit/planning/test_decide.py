"""The decision table: each row of the docstring of ``planning.decision``, and no row that the docstring lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from federator.connector import Capabilities, NameRules
from federator.model import COMPLETE, Kind, TableRecord, failed_evidence
from federator.planning import decision as decide_module
from federator.planning.changes import Action, Change, Decision, Refusal
from federator.planning.decision import Cell, OriginState, decide, declaration_json, merge_desired, refuse_unmappable
from federator.planning.mapping import MirrorContext, map_table
from federator.planning.ownership import OwnershipMarker, append_comment_marker, find_bound_marker, strip_comment_marker
from federator.planning.reasons import Reason
from tests.fixtures.planning import ANY, HERE, context, coverage, desired, entry, knows, owned, table

FIXED = replace(ANY, can_alter=False)
MARKLESS = replace(ANY, keeps_properties=False, keeps_comment=False)
BROKEN = failed_evidence(17, "down")
TWICE = (0.0, 600.0)
PATH = ("s", "t")
ORIGIN = table("a", "s$t", properties={"team": "x"})


@dataclass(frozen=True)
class Case:
    """One way through a row. ``outcome`` is an action, a reason, or None."""

    row: tuple[str, str, str]
    outcome: Action | Reason | None
    decide: Callable[[], Decision | None]


def case(
    row: tuple[str, str, str], outcome: Action | Reason | None, *, origins: tuple[TableRecord, ...] = (), target: Any = None,
    ledger: Any = None, at: MirrorContext | None = None, knowing: Any = None,
) -> Any:  # fmt: skip
    def run() -> Decision | None:
        where = at or context()
        return decide(where, Cell(PATH, desired(where, *origins), target, ledger), knowing or knows())

    return pytest.param(Case(row, outcome, run), id=f"{' | '.join(row)} → {outcome.value if outcome else 'nothing'}")


def refused(origin: TableRecord, reason: Reason, at: MirrorContext | None = None, row: str = "impossible") -> Any:
    where = at or context()
    case = Case((row, "any", "any"), reason, lambda: refuse_unmappable(where, map_table(where, origin)))
    return pytest.param(case, id=f"{row} → {reason.value}")


DARK = knows(target=coverage("b", s=BROKEN))
SETTLED = owned(properties={"team": "x"})
GONE = OriginState.ABSENT
MOVED = table("a", "s$t", "s3://x/new.lance")
OTHER = entry(origin_path="s$old")
DECLARED = entry(declared=json.loads(declaration_json(ORIGIN)))
RIVALS = owned(mark=OwnershipMarker("me", "n", "c$s$t"))
FIRST = replace(context(on_conflict="source_priority", source_priority=("a", "c")), competing_mirrors={"n": "c"})
LAST = replace(context(on_conflict="source_priority", source_priority=("c", "a")), competing_mirrors={"n": "c"})

CASES = [
    case(("desired", "absent, proven", "-"), Action.DECLARE_TABLE, origins=(ORIGIN,)),
    case(("desired", "absent, proven", "yes"), Action.DECLARE_TABLE, origins=(ORIGIN,), ledger=entry(), at=context(on_missing="recreate")),  # noqa: E501
    case(("desired", "absent, proven", "yes"), Reason.MISSING_AT_TARGET, origins=(ORIGIN,), ledger=entry()),
    case(("desired", "not covered", "any"), Reason.NOT_COVERED, origins=(ORIGIN,), knowing=DARK),
    case(("desired", "not covered", "any"), Reason.NOT_COVERED, origins=(ORIGIN,), ledger=entry(), knowing=DARK, at=context(on_missing="recreate")),  # noqa: E501
    case(("desired", "same location", "-"), Action.ADOPT, origins=(ORIGIN,), target=table("b", "s$t"), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("desired", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t")),
    case(("desired", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t"), at=context(FIXED, on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("desired", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t", kind=Kind.MANAGED_TABLE), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("desired", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t", properties=HERE.to_properties(("s", "other")))),  # noqa: E501
    case(("desired", "other location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t", "s3://y"), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("desired", "this mirror's marker", "-"), Reason.UNLEDGERED, origins=(ORIGIN,), target=owned()),
    case(("desired", "another owner's marker", "-"), Reason.NOT_OURS, origins=(ORIGIN,), target=owned(mark=OwnershipMarker("you", "m", "a$s$t"))),  # noqa: E501
    case(("desired", "another owner's marker", "-"), Reason.NOT_OURS, origins=(ORIGIN,), target=owned(mark=OwnershipMarker("me", "n", "a$s$t")), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("desired", "other mirror's marker", "any"), Action.ADOPT, origins=(ORIGIN,), target=RIVALS, at=FIRST),
    case(("desired", "other mirror's marker", "any"), Action.ADOPT, origins=(MOVED,), target=RIVALS, ledger=entry(), at=FIRST),
    case(("desired", "other mirror's marker", "any"), Reason.OUTRANKED, origins=(ORIGIN,), target=RIVALS, at=LAST),
    case(("desired", "other mirror's marker", "any"), Reason.OUTRANKED, origins=(ORIGIN,), target=RIVALS, ledger=entry(), at=LAST),
    case(("desired", "other mirror's marker", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=RIVALS, at=replace(FIRST, competing_mirrors={})),  # noqa: E501
    case(("desired", "other mirror's marker", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=RIVALS, at=replace(LAST, competing_mirrors={"n": "a"})),  # noqa: E501
    case(("desired", "other mirror's marker", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=RIVALS, at=replace(FIRST, target=FIXED)),  # noqa: E501
    case(("desired", "other mirror's marker", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=owned(mark=OwnershipMarker("you", "n", "a$s$t")), at=FIRST),  # noqa: E501
    case(("desired", "owned, as declared", "yes"), None, origins=(ORIGIN,), target=SETTLED, ledger=entry()),
    case(("desired", "owned, as declared", "yes"), None, origins=(replace(ORIGIN, location="s3a://x/t.lance/"),), target=SETTLED, ledger=entry()),  # noqa: E501
    case(("desired", "owned, different", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=owned(), ledger=entry()),
    case(("desired", "owned, different", "yes"), Action.UPDATE_TABLE, origins=(MOVED,), target=owned(), ledger=entry()),
    case(("desired", "owned, different", "yes"), Reason.DRIFTED, origins=(ORIGIN,), target=owned(), ledger=entry(), at=context(FIXED)),
    case(("desired", "owned, different", "yes"), Action.RECREATE_TABLE, origins=(ORIGIN,), target=owned(), ledger=entry(), at=context(FIXED, update_by_recreate=True)),  # noqa: E501
    case(("desired", "owned, edited", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=owned(), ledger=DECLARED),
    case(("desired", "owned, edited", "yes"), Reason.DRIFTED, origins=(ORIGIN,), target=owned(), ledger=DECLARED, at=context(on_drift="report")),  # noqa: E501
    case(("desired", "owned, different", "yes"), Action.UPDATE_TABLE, origins=(MOVED,), target=owned(), ledger=DECLARED, at=context(on_drift="report")),  # noqa: E501
    case(("desired", "no longer owned", "yes"), Reason.UNLEDGERED, origins=(ORIGIN,), target=owned(), ledger=entry(op_id="op0")),
    case(("desired", "no longer owned", "yes"), Reason.NEEDS_ADOPTION, origins=(ORIGIN,), target=owned(), ledger=entry(native_id=None), at=context(MARKLESS)),  # noqa: E501
    case(("desired", "no longer owned", "yes"), Reason.NOT_OURS, origins=(ORIGIN,), target=table("b", "s$t", native_id="n1"), ledger=entry()),  # noqa: E501
    case(("desired", "owned, origin renamed", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=SETTLED, ledger=replace(OTHER, origin_state=GONE)),  # noqa: E501
    case(("desired", "owned, origin renamed", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=table("b", "s$t", native_id="n1"), ledger=replace(OTHER, origin_state=GONE), at=context(MARKLESS)),  # noqa: E501
    case(("desired", "owned, other origin", "yes"), Reason.NAME_CLASH, origins=(MOVED,), target=owned(), ledger=OTHER),
    case(("desired", "owned, other origin", "yes"), Reason.UNSELECTED, origins=(MOVED,), target=owned(), ledger=replace(OTHER, origin_state=OriginState.UNSELECTED)),  # noqa: E501
    case(("desired", "owned, other origin", "yes"), Reason.NOT_COVERED, origins=(MOVED,), target=owned(), ledger=replace(OTHER, origin_state=GONE)),  # noqa: E501
    case(("desired", "owned, other origin", "yes"), Reason.MISSES, origins=(MOVED,), target=owned(), ledger=replace(OTHER, origin_state=GONE), knowing=knows(s_old=(0.0,))),  # noqa: E501
    case(("desired", "owned, other origin", "yes"), Action.DEREGISTER_TABLE, origins=(MOVED,), target=owned(), ledger=replace(OTHER, origin_state=GONE), knowing=knows(s_old=TWICE)),  # noqa: E501
    case(("desired twice", "any", "any"), Reason.NAME_CLASH, origins=(ORIGIN, table("a", "z$t"))),
    case(("desired twice", "any", "any"), Reason.CASE_FOLD_CLASH, origins=(ORIGIN, table("a", "S$T")), target=owned(), ledger=entry()),
    refused(owned("s$t"), Reason.LOOP),
    refused(ORIGIN, Reason.DEPTH, context(replace(ANY, min_depth=2, max_depth=2))),
    refused(ORIGIN, Reason.NAME_NOT_ALLOWED, context(replace(ANY, names=NameRules(pattern="[0-9]+")))),
    refused(table("a", "s$t", None), Reason.NO_LOCATION),
    refused(table("a", "s$t", "relative/place"), Reason.NO_LOCATION),
    refused(ORIGIN, Reason.PROPERTY_REFUSED, context(replace(ANY, property_key_length=3))),
    refused(table("a", "s$t", properties={"p": "long"}), Reason.PROPERTY_REFUSED, context(replace(ANY, property_value_length=3))),
    refused(table("a", "s$t", kind=Kind.MANAGED_TABLE), Reason.MANAGED_TABLE, row="not readable"),
    refused(table("a", "s$t", None, kind=Kind.UNDESCRIBED, problem="timeout"), Reason.UNDESCRIBED, row="not readable"),
    case(("refused", "any", "yes"), None, target=owned(), ledger=entry(), at=context(prune_unselected=True), knowing=knows(s_t=TWICE)),
    case(("not selected", "any", "yes"), Reason.UNSELECTED, target=owned(), ledger=entry(OriginState.UNSELECTED), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("not selected", "any", "yes"), Action.DEREGISTER_TABLE, target=owned(), ledger=entry(OriginState.UNSELECTED), at=context(prune_unselected=True)),  # noqa: E501
    case(("unknown", "any", "yes"), Reason.NOT_COVERED, target=owned(), ledger=entry(GONE)),
    case(("unknown", "any", "yes"), Reason.NOT_COVERED, ledger=entry(GONE)),
    case(("absent, unproven", "any", "yes"), Reason.MISSES, target=owned(), ledger=entry(GONE), knowing=knows(s_t=(0.0,))),
    case(("absent, unproven", "any", "yes"), Reason.MISSES, target=owned(), ledger=entry(GONE), knowing=knows(s_t=(0.0, 300.0, 599.9))),
    case(("absent, proven", "owned", "yes"), Action.DEREGISTER_TABLE, target=owned(), ledger=entry(GONE), knowing=knows(s_t=TWICE)),
    case(("absent, proven", "owned", "yes"), Reason.DELETE_NEVER, target=owned(), ledger=entry(GONE), knowing=knows(s_t=TWICE), at=context(delete="never")),  # noqa: E501
    case(("absent, proven", "no longer owned", "yes"), Reason.UNLEDGERED, target=owned(), ledger=entry(GONE, op_id="op0"), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("absent, proven", "no longer owned", "yes"), Reason.NEEDS_ADOPTION, target=owned(native_id=None), ledger=entry(GONE), at=context(MARKLESS), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("absent, proven", "no longer owned", "yes"), Reason.NOT_OURS, target=table("b", "s$t", native_id="n1"), ledger=entry(GONE), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("absent, proven", "absent, proven", "yes"), Action.DEREGISTER_TABLE, ledger=entry(GONE), knowing=knows(s_t=TWICE)),
    case(("absent, proven", "absent, proven", "yes"), Action.DEREGISTER_TABLE, ledger=entry(GONE), knowing=knows(s_t=TWICE), at=context(delete="never")),  # noqa: E501
    case(("absent, proven", "not covered", "yes"), Reason.NOT_COVERED, ledger=entry(GONE), knowing=knows(target=coverage("b", s=BROKEN), s_t=TWICE)),  # noqa: E501
]  # fmt: skip


def documented() -> set[tuple[str, str, str]]:
    lines = (decide_module.__doc__ or "").splitlines()
    start = next(number for number, line in enumerate(lines) if line.strip().startswith("---"))
    rows = [re.split(r"\s{2,}", line.strip())[:4] for line in lines[start + 1 :] if line.strip()]
    assert all(len(row) == 4 for row in rows)
    return {(row[0], row[1], row[2]) for row in rows}


@pytest.mark.parametrize("case", CASES)
def test_a_row_decides_as_documented(case: Case) -> None:
    decision = case.decide()
    found = decision.action if isinstance(decision, Change) else decision.reason if isinstance(decision, Refusal) else None
    assert found == case.outcome


def test_the_documented_rows_and_the_tested_ones_are_the_same() -> None:
    assert {param.values[0].row for param in CASES} == documented()


def test_a_cell_that_nobody_wants_and_nobody_wrote_is_left_alone() -> None:
    assert decide(context(), Cell(PATH, (), table("b", "s$t")), knows()) is None


class TestOwnership:
    """A target counts as ours by ledger, mark and identity together."""

    def gone(self, target: TableRecord, ledger: Any, at: Capabilities = ANY) -> Decision | None:
        return decide(context(at), Cell(PATH, (), target, ledger), knows(s_t=TWICE))

    @pytest.mark.parametrize(
        "target",
        [
            owned(native_id="n2"),
            owned(mark=OwnershipMarker("you", "m", "a$s$t")),
            owned(mark=OwnershipMarker("me", "n", "a$s$t")),
            table("b", "s$t", properties=HERE.to_properties(("s", "copied")), native_id="n1"),
            table("b", "s$t", native_id="n1"),
            owned(kind=Kind.MANAGED_TABLE),
            owned(kind=Kind.UNDESCRIBED),
        ],
        ids=["made again", "another instance", "another mirror", "a copy", "unmarked", "managed", "undescribed"],
    )
    def test_an_object_that_is_not_owned_is_neither_removed_nor_changed(self, target: TableRecord) -> None:
        for at in (ANY, MARKLESS) if target.native_id != "n1" or target.kind is not Kind.TABLE else (ANY,):
            removal = self.gone(target, entry(GONE), at)
            assert isinstance(removal, Refusal)
            assert removal.reason is Reason.NOT_OURS
            where = context(at, prune_unselected=True)
            for cell in (
                Cell(PATH, desired(where, MOVED), target, entry()),
                Cell(PATH, (), target, entry(OriginState.UNSELECTED)),
            ):
                decision = decide(where, cell, knows(s_t=TWICE))
                assert isinstance(decision, Refusal)
                assert decision.reason is Reason.NOT_OURS

    def test_without_a_kept_mark_the_identity_must_be_known_on_both_sides(self) -> None:
        bare = table("b", "s$t", native_id="n1")
        assert isinstance(self.gone(bare, entry(GONE), MARKLESS), Change)
        for target, ledger in ((replace(bare, native_id=None), entry(GONE)), (bare, entry(GONE, native_id=None))):
            kept = self.gone(target, ledger, MARKLESS)
            assert isinstance(kept, Refusal)
            assert kept.reason is Reason.NEEDS_ADOPTION

    def test_a_mark_is_enough_where_the_catalog_has_no_identities(self) -> None:
        assert isinstance(self.gone(owned(native_id=None), entry(GONE, native_id=None)), Change)


class TestANameThatPassesToAnotherOrigin:
    def test_it_passes_at_once_where_the_location_stays(self) -> None:
        renamed = table("a", "s$t", properties={"team": "x"})
        decision = decide(context(), Cell(PATH, desired(context(), renamed), owned(), OTHER), knows())
        assert isinstance(decision, Change)
        assert (decision.action, decision.moves_location) == (Action.UPDATE_TABLE, False)

    def test_a_removed_target_is_declared_for_the_new_origin(self) -> None:
        decision = decide(context(), Cell(PATH, desired(context(), MOVED), None, OTHER), knows())
        assert isinstance(decision, Change)
        assert decision.action is Action.DECLARE_TABLE


class TestWhatAChangeSays:
    def test_a_removal_depends_on_the_origins_absence_and_the_targets_content(self) -> None:
        target = owned()
        decision = decide(context(), Cell(PATH, (), target, entry(GONE)), knows(s_t=TWICE))
        assert isinstance(decision, Change)
        assert dict(decision.precondition) == {"target": target.digest, "origin": "absent", "absent_since": "0.0"}
        assert (decision.before, decision.after) == (target, None)

    def test_pruning_does_not_ask_for_the_origin(self) -> None:
        decision = decide(context(prune_unselected=True), Cell(PATH, (), owned(), entry(OriginState.UNSELECTED)), knows())
        assert isinstance(decision, Change)
        assert decision.precondition["origin"] == "any"

    def test_a_removal_reads_the_same_after_one_more_miss(self) -> None:
        one, two = (
            decide(context(), Cell(PATH, (), owned(), entry(GONE)), knows(s_t=times)) for times in (TWICE, (*TWICE, 1200.0))
        )
        assert one == two

    def test_a_declaration_carries_the_mark_bound_to_its_path(self) -> None:
        decision = decide(context(), Cell(PATH, desired(context(), ORIGIN)), knows())
        assert isinstance(decision, Change)
        assert decision.after is not None
        marks = {key: value for key, value in decision.after.properties.items() if key.startswith("federator.")}
        assert marks == {
            "federator.instance": "me", "federator.mirror": "m", "federator.origin": "a$s$t", "federator.path": "s$t",
        }  # fmt: skip
        assert dict(decision.precondition) == {"target": "absent", "origin": ORIGIN.digest}

    def test_an_update_keeps_the_targets_own_properties_and_the_ledger_does_not_claim_them(self) -> None:
        where = context()
        target = owned(properties={"team": "old", "dropped": "1", "own": "kept"})
        ledger = entry(declared={"properties": {"team": "old", "dropped": "1"}})
        decision = decide(where, Cell(PATH, desired(where, ORIGIN), target, ledger), knows())
        assert isinstance(decision, Change)
        assert decision.after is not None
        plain = {key: value for key, value in decision.after.properties.items() if not key.startswith("federator.")}
        assert plain == {"team": "x", "own": "kept"}
        assert decision.declared == declaration_json(table("b", "s$t", properties={"team": "x"}))

    def test_an_adoption_does_not_claim_existing_properties(self) -> None:
        where = context(on_conflict="adopt_if_same_location")
        target = table("b", "s$t", properties={"own": "kept"})
        decision = decide(where, Cell(PATH, desired(where, ORIGIN), target), knows())
        assert isinstance(decision, Change)
        assert decision.declared == declaration_json(table("b", "s$t", properties={"team": "x"}))
        assert decision.after is not None
        assert decision.after.properties["own"] == "kept"

    def test_merging_keeps_the_targets_spelling_of_one_location(self) -> None:
        merged = merge_desired(table("b", "s$t", "s3a://x/t.lance/"), table("b", "s$t", "s3://x/t.lance"), {})
        assert merged.location == "s3a://x/t.lance/"
        assert merge_desired(table("b", "s$t", "s3://y"), table("b", "s$t", "s3://x"), {}).location == "s3://x"

    def test_newer_columns_are_part_of_a_change_and_no_reason_for_one(self) -> None:
        old, new = '[{"name":"a","type":"int"}]', '[{"name":"b","type":"int"}]'
        target = table("b", "s$t", "s3://x", schema=old)
        assert merge_desired(target, table("b", "s$t", "s3://y", schema=new), {}).schema == new
        assert merge_desired(target, table("b", "s$t", "s3://y"), {}).schema == old
        catalog = replace(ANY, can_alter=False, keeps_columns=True)
        declared = owned(schema=old)
        cell = Cell(("s", "t"), desired(context(catalog), table("a", "s$t", schema=new)), declared, entry())
        assert decide(context(catalog), cell, knows()) is None


class TestComments:
    """Which comment a target has, and when that is a difference."""

    @pytest.mark.parametrize(
        ("desired_doc", "target_doc", "declared", "after"),
        [
            ("new", "old", {"doc": "old"}, "new"),
            ("new", None, {}, "new"),
            (None, "theirs", {}, "theirs"),
            (None, "theirs", {"doc": None}, "theirs"),
            (None, "old", {"doc": "old"}, None),
            ("new", "edited", {"doc": "new"}, "new"),
        ],
    )
    def test_it_follows_the_origins_and_leaves_the_targets_own(
        self, desired_doc: str | None, target_doc: str | None, declared: dict[str, object], after: str | None
    ) -> None:
        target, desired = table("b", "s$t", doc=target_doc), table("b", "s$t", doc=desired_doc)
        assert merge_desired(target, desired, declared).doc == after
        assert merge_desired(target, desired, declared, doc=False).doc == target_doc

    def test_a_new_comment_alone_is_a_change_and_says_so(self) -> None:
        where = context()
        ledger = entry(declared={"properties": {}, "doc": "old"})
        decision = decide(where, Cell(PATH, desired(where, table("a", "s$t", doc="new")), owned(doc="old"), ledger), knows())
        assert isinstance(decision, Change)
        assert (decision.action, decision.reason) == (Action.UPDATE_TABLE, "the comment differs")
        silent = context(doc=False)
        assert (
            decide(silent, Cell(PATH, desired(silent, table("a", "s$t", doc="new")), owned(doc="old"), ledger), knows()) is None
        )

    def test_an_empty_comment_is_none(self) -> None:
        where = context()
        assert decide(where, Cell(PATH, desired(where, table("a", "s$t")), owned(doc=""), entry()), knows()) is None

    def test_the_operation_in_a_comment_is_no_difference(self) -> None:
        where = context(replace(ANY, keeps_properties=False))
        target = table("b", "s$t", doc=append_comment_marker("orders", HERE, PATH), native_id="n1")
        same = desired(where, table("a", "s$t", doc="orders"))
        assert decide(where, Cell(PATH, same, target, entry()), knows()) is None
        other = decide(where, Cell(PATH, desired(where, table("a", "s$t", doc="new")), target, entry()), knows())
        assert isinstance(other, Change)
        assert other.after is not None
        assert (strip_comment_marker(other.after.doc), find_bound_marker(other.after)) == ("new", HERE)


def test_a_taken_over_location_does_not_keep_what_described_another_dataset() -> None:
    moved, same = (
        decide(
            FIRST,
            Cell(
                PATH, desired(FIRST, table("a", "s$t", location)), replace(RIVALS, properties={**RIVALS.properties, "own": "1"})
            ),
            knows(),
        )
        for location in ("s3://x/other", "s3://x/t.lance")
    )
    for change, kept in ((moved, False), (same, True)):
        assert isinstance(change, Change)
        assert change.after is not None
        assert ("own" in change.after.properties) is kept
        mark = find_bound_marker(change.after)
        assert mark is not None
        assert (mark.mirror, mark.origin) == ("m", "a$s$t")


def test_a_name_is_free_only_where_the_nearest_listing_is_complete() -> None:
    for known, free in ((coverage("b", s=COMPLETE), True), (coverage("b"), True), (coverage("b", BROKEN), False), ({}, False)):
        decision = decide(
            context(), Cell(PATH, desired(context(), ORIGIN)), knows(target=known or {"other": coverage("b")[""]})
        )
        assert isinstance(decision, Change) == free
