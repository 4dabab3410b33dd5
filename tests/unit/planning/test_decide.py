"""The decision table: every row of ``planning.decide``'s docstring, and no row that the docstring does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from federator.connector import Capabilities, NameRules
from federator.model import COMPLETE, Kind, TableRecord, failed
from federator.planning import decide as decide_module
from federator.planning.changes import Action, Change, Decision, Refusal
from federator.planning.decide import Cell, OriginState, decide, declaration, merge, refuse_desired
from federator.planning.mapping import MirrorContext, desire
from federator.planning.marks import Mark, bound_mark, plain_doc, with_comment
from federator.planning.reasons import Reason
from tests.fixtures.planning import ANY, HERE, context, coverage, entry, knows, ours, table, wanted

FIXED = replace(ANY, can_alter=False)
MARKLESS = replace(ANY, keeps_properties=False, keeps_comment=False)
BROKEN = failed(17, "down")
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
        return decide(where, Cell(PATH, wanted(where, *origins), target, ledger), knowing or knows())

    return pytest.param(Case(row, outcome, run), id=f"{' | '.join(row)} → {outcome.value if outcome else 'nothing'}")


def refused(origin: TableRecord, reason: Reason, at: MirrorContext | None = None, row: str = "cannot be there") -> Any:
    where = at or context()
    made = Case((row, "any", "any"), reason, lambda: refuse_desired(where, desire(where, origin)))
    return pytest.param(made, id=f"{row} → {reason.value}")


DARK = knows(target=coverage("b", s=BROKEN))
SETTLED = ours(properties={"team": "x"})
GONE = OriginState.ABSENT
MOVED = table("a", "s$t", "s3://x/new.lance")
OTHER = entry(origin_path="s$old")
DECLARED = entry(declared=json.loads(declaration(ORIGIN)))
RIVALS = ours(mark=Mark("me", "n", "c$s$t"))
FIRST = replace(context(on_conflict="source_priority", source_priority=("a", "c")), rivals={"n": "c"})
LAST = replace(context(on_conflict="source_priority", source_priority=("c", "a")), rivals={"n": "c"})

CASES = [
    case(("wanted", "absent, proven", "-"), Action.DECLARE_TABLE, origins=(ORIGIN,)),
    case(("wanted", "absent, proven", "yes"), Action.DECLARE_TABLE, origins=(ORIGIN,), ledger=entry(), at=context(on_missing="recreate")),  # noqa: E501
    case(("wanted", "absent, proven", "yes"), Reason.MISSING_AT_TARGET, origins=(ORIGIN,), ledger=entry()),
    case(("wanted", "not covered", "any"), Reason.NOT_COVERED, origins=(ORIGIN,), knowing=DARK),
    case(("wanted", "not covered", "any"), Reason.NOT_COVERED, origins=(ORIGIN,), ledger=entry(), knowing=DARK, at=context(on_missing="recreate")),  # noqa: E501
    case(("wanted", "same location", "-"), Action.ADOPT, origins=(ORIGIN,), target=table("b", "s$t"), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("wanted", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t")),
    case(("wanted", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t"), at=context(FIXED, on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("wanted", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t", kind=Kind.MANAGED_TABLE), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("wanted", "same location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t", properties=HERE.properties(("s", "other")))),  # noqa: E501
    case(("wanted", "other location", "-"), Reason.NAME_TAKEN, origins=(ORIGIN,), target=table("b", "s$t", "s3://y"), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("wanted", "ours by its mark", "-"), Reason.UNLEDGERED, origins=(ORIGIN,), target=ours()),
    case(("wanted", "somebody's mark", "-"), Reason.NOT_OURS, origins=(ORIGIN,), target=ours(mark=Mark("you", "m", "a$s$t"))),
    case(("wanted", "somebody's mark", "-"), Reason.NOT_OURS, origins=(ORIGIN,), target=ours(mark=Mark("me", "n", "a$s$t")), at=context(on_conflict="adopt_if_same_location")),  # noqa: E501
    case(("wanted", "another mirror's", "any"), Action.ADOPT, origins=(ORIGIN,), target=RIVALS, at=FIRST),
    case(("wanted", "another mirror's", "any"), Action.ADOPT, origins=(MOVED,), target=RIVALS, ledger=entry(), at=FIRST),
    case(("wanted", "another mirror's", "any"), Reason.OUTRANKED, origins=(ORIGIN,), target=RIVALS, at=LAST),
    case(("wanted", "another mirror's", "any"), Reason.OUTRANKED, origins=(ORIGIN,), target=RIVALS, ledger=entry(), at=LAST),
    case(("wanted", "another mirror's", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=RIVALS, at=replace(FIRST, rivals={})),
    case(("wanted", "another mirror's", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=RIVALS, at=replace(LAST, rivals={"n": "a"})),
    case(("wanted", "another mirror's", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=RIVALS, at=replace(FIRST, target=FIXED)),
    case(("wanted", "another mirror's", "any"), Reason.NOT_OURS, origins=(ORIGIN,), target=ours(mark=Mark("you", "n", "a$s$t")), at=FIRST),  # noqa: E501
    case(("wanted", "ours, as declared", "yes"), None, origins=(ORIGIN,), target=SETTLED, ledger=entry()),
    case(("wanted", "ours, as declared", "yes"), None, origins=(replace(ORIGIN, location="s3a://x/t.lance/"),), target=SETTLED, ledger=entry()),  # noqa: E501
    case(("wanted", "ours, different", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=ours(), ledger=entry()),
    case(("wanted", "ours, different", "yes"), Action.UPDATE_TABLE, origins=(MOVED,), target=ours(), ledger=entry()),
    case(("wanted", "ours, different", "yes"), Reason.DRIFTED, origins=(ORIGIN,), target=ours(), ledger=entry(), at=context(FIXED)),
    case(("wanted", "ours, different", "yes"), Action.RECREATE_TABLE, origins=(ORIGIN,), target=ours(), ledger=entry(), at=context(FIXED, update_by_recreate=True)),  # noqa: E501
    case(("wanted", "ours, edited there", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=ours(), ledger=DECLARED),
    case(("wanted", "ours, edited there", "yes"), Reason.DRIFTED, origins=(ORIGIN,), target=ours(), ledger=DECLARED, at=context(on_drift="report")),  # noqa: E501
    case(("wanted", "ours, different", "yes"), Action.UPDATE_TABLE, origins=(MOVED,), target=ours(), ledger=DECLARED, at=context(on_drift="report")),  # noqa: E501
    case(("wanted", "not ours any more", "yes"), Reason.UNLEDGERED, origins=(ORIGIN,), target=ours(), ledger=entry(op_id="op0")),
    case(("wanted", "not ours any more", "yes"), Reason.NEEDS_ADOPTION, origins=(ORIGIN,), target=ours(), ledger=entry(native_id=None), at=context(MARKLESS)),  # noqa: E501
    case(("wanted", "not ours any more", "yes"), Reason.NOT_OURS, origins=(ORIGIN,), target=table("b", "s$t", native_id="n1"), ledger=entry()),  # noqa: E501
    case(("wanted", "ours, other name", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=SETTLED, ledger=replace(OTHER, origin=GONE)),  # noqa: E501
    case(("wanted", "ours, other name", "yes"), Action.UPDATE_TABLE, origins=(ORIGIN,), target=table("b", "s$t", native_id="n1"), ledger=replace(OTHER, origin=GONE), at=context(MARKLESS)),  # noqa: E501
    case(("wanted", "ours, for another", "yes"), Reason.NAME_CLASH, origins=(MOVED,), target=ours(), ledger=OTHER),
    case(("wanted", "ours, for another", "yes"), Reason.UNSELECTED, origins=(MOVED,), target=ours(), ledger=replace(OTHER, origin=OriginState.UNSELECTED)),  # noqa: E501
    case(("wanted", "ours, for another", "yes"), Reason.NOT_COVERED, origins=(MOVED,), target=ours(), ledger=replace(OTHER, origin=GONE)),  # noqa: E501
    case(("wanted", "ours, for another", "yes"), Reason.MISSES, origins=(MOVED,), target=ours(), ledger=replace(OTHER, origin=GONE), knowing=knows(s_old=(0.0,))),  # noqa: E501
    case(("wanted", "ours, for another", "yes"), Action.DEREGISTER_TABLE, origins=(MOVED,), target=ours(), ledger=replace(OTHER, origin=GONE), knowing=knows(s_old=TWICE)),  # noqa: E501
    case(("wanted by two", "any", "any"), Reason.NAME_CLASH, origins=(ORIGIN, table("a", "z$t"))),
    case(("wanted by two", "any", "any"), Reason.CASE_FOLD_CLASH, origins=(ORIGIN, table("a", "S$T")), target=ours(), ledger=entry()),
    refused(ours("s$t"), Reason.LOOP),
    refused(ORIGIN, Reason.DEPTH, context(replace(ANY, min_depth=2, max_depth=2))),
    refused(ORIGIN, Reason.NAME_NOT_ALLOWED, context(replace(ANY, names=NameRules(pattern="[0-9]+")))),
    refused(table("a", "s$t", None), Reason.NO_LOCATION),
    refused(table("a", "s$t", "relative/place"), Reason.NO_LOCATION),
    refused(ORIGIN, Reason.PROPERTY_REFUSED, context(replace(ANY, property_key_length=3))),
    refused(table("a", "s$t", properties={"p": "long"}), Reason.PROPERTY_REFUSED, context(replace(ANY, property_value_length=3))),
    refused(table("a", "s$t", kind=Kind.MANAGED_TABLE), Reason.MANAGED_TABLE, row="cannot be read"),
    refused(table("a", "s$t", None, kind=Kind.UNDESCRIBED, problem="timeout"), Reason.UNDESCRIBED, row="cannot be read"),
    case(("refused", "any", "yes"), None, target=ours(), ledger=entry(), at=context(prune_unselected=True), knowing=knows(s_t=TWICE)),
    case(("not selected", "any", "yes"), Reason.UNSELECTED, target=ours(), ledger=entry(OriginState.UNSELECTED), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("not selected", "any", "yes"), Action.DEREGISTER_TABLE, target=ours(), ledger=entry(OriginState.UNSELECTED), at=context(prune_unselected=True)),  # noqa: E501
    case(("unknown", "any", "yes"), Reason.NOT_COVERED, target=ours(), ledger=entry(GONE)),
    case(("unknown", "any", "yes"), Reason.NOT_COVERED, ledger=entry(GONE)),
    case(("gone, too few", "any", "yes"), Reason.MISSES, target=ours(), ledger=entry(GONE), knowing=knows(s_t=(0.0,))),
    case(("gone, too few", "any", "yes"), Reason.MISSES, target=ours(), ledger=entry(GONE), knowing=knows(s_t=(0.0, 300.0, 599.9))),
    case(("gone, proven", "ours", "yes"), Action.DEREGISTER_TABLE, target=ours(), ledger=entry(GONE), knowing=knows(s_t=TWICE)),
    case(("gone, proven", "ours", "yes"), Reason.DELETE_NEVER, target=ours(), ledger=entry(GONE), knowing=knows(s_t=TWICE), at=context(delete="never")),  # noqa: E501
    case(("gone, proven", "not ours any more", "yes"), Reason.UNLEDGERED, target=ours(), ledger=entry(GONE, op_id="op0"), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("gone, proven", "not ours any more", "yes"), Reason.NEEDS_ADOPTION, target=ours(native_id=None), ledger=entry(GONE), at=context(MARKLESS), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("gone, proven", "not ours any more", "yes"), Reason.NOT_OURS, target=table("b", "s$t", native_id="n1"), ledger=entry(GONE), knowing=knows(s_t=TWICE)),  # noqa: E501
    case(("gone, proven", "absent, proven", "yes"), Action.DEREGISTER_TABLE, ledger=entry(GONE), knowing=knows(s_t=TWICE)),
    case(("gone, proven", "absent, proven", "yes"), Action.DEREGISTER_TABLE, ledger=entry(GONE), knowing=knows(s_t=TWICE), at=context(delete="never")),  # noqa: E501
    case(("gone, proven", "not covered", "yes"), Reason.NOT_COVERED, ledger=entry(GONE), knowing=knows(target=coverage("b", s=BROKEN), s_t=TWICE)),  # noqa: E501
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


class TestWhatIsOurs:
    """A target counts as ours by ledger, mark and identity together."""

    def gone(self, target: TableRecord, ledger: Any, at: Capabilities = ANY) -> Decision | None:
        return decide(context(at), Cell(PATH, (), target, ledger), knows(s_t=TWICE))

    @pytest.mark.parametrize(
        "target",
        [
            ours(native_id="n2"),
            ours(mark=Mark("you", "m", "a$s$t")),
            ours(mark=Mark("me", "n", "a$s$t")),
            table("b", "s$t", properties=HERE.properties(("s", "copied")), native_id="n1"),
            table("b", "s$t", native_id="n1"),
            ours(kind=Kind.MANAGED_TABLE),
            ours(kind=Kind.UNDESCRIBED),
        ],
        ids=["made again", "another instance", "another mirror", "a copy", "unmarked", "managed", "undescribed"],
    )
    def test_what_is_not_ours_is_neither_removed_nor_changed(self, target: TableRecord) -> None:
        for at in (ANY, MARKLESS) if target.native_id != "n1" or target.kind is not Kind.TABLE else (ANY,):
            removal = self.gone(target, entry(GONE), at)
            assert isinstance(removal, Refusal)
            assert removal.reason is Reason.NOT_OURS
            where = context(at, prune_unselected=True)
            for cell in (
                Cell(PATH, wanted(where, MOVED), target, entry()),
                Cell(PATH, (), target, entry(OriginState.UNSELECTED)),
            ):
                kept = decide(where, cell, knows(s_t=TWICE))
                assert isinstance(kept, Refusal)
                assert kept.reason is Reason.NOT_OURS

    def test_without_a_kept_mark_the_identity_must_be_known_on_both_sides(self) -> None:
        bare = table("b", "s$t", native_id="n1")
        assert isinstance(self.gone(bare, entry(GONE), MARKLESS), Change)
        for target, ledger in ((replace(bare, native_id=None), entry(GONE)), (bare, entry(GONE, native_id=None))):
            kept = self.gone(target, ledger, MARKLESS)
            assert isinstance(kept, Refusal)
            assert kept.reason is Reason.NEEDS_ADOPTION

    def test_a_mark_is_enough_where_the_catalog_has_no_identities(self) -> None:
        assert isinstance(self.gone(ours(native_id=None), entry(GONE, native_id=None)), Change)


class TestANameThatPassesToAnotherOrigin:
    def test_it_passes_at_once_where_the_location_stays(self) -> None:
        renamed = table("a", "s$t", properties={"team": "x"})
        found = decide(context(), Cell(PATH, wanted(context(), renamed), ours(), OTHER), knows())
        assert isinstance(found, Change)
        assert (found.action, found.moves_location) == (Action.UPDATE_TABLE, False)

    def test_a_removed_target_is_declared_for_the_new_origin(self) -> None:
        found = decide(context(), Cell(PATH, wanted(context(), MOVED), None, OTHER), knows())
        assert isinstance(found, Change)
        assert found.action is Action.DECLARE_TABLE


class TestWhatAChangeSays:
    def test_a_removal_depends_on_the_origins_absence_and_the_targets_content(self) -> None:
        target = ours()
        found = decide(context(), Cell(PATH, (), target, entry(GONE)), knows(s_t=TWICE))
        assert isinstance(found, Change)
        assert dict(found.precondition) == {"target": target.digest, "origin": "absent", "absent_since": "0.0"}
        assert (found.before, found.after) == (target, None)

    def test_pruning_does_not_ask_for_the_origin(self) -> None:
        found = decide(context(prune_unselected=True), Cell(PATH, (), ours(), entry(OriginState.UNSELECTED)), knows())
        assert isinstance(found, Change)
        assert found.precondition["origin"] == "any"

    def test_a_removal_reads_the_same_after_one_more_miss(self) -> None:
        one, two = (
            decide(context(), Cell(PATH, (), ours(), entry(GONE)), knows(s_t=times)) for times in (TWICE, (*TWICE, 1200.0))
        )
        assert one == two

    def test_a_declaration_carries_the_mark_bound_to_its_path(self) -> None:
        found = decide(context(), Cell(PATH, wanted(context(), ORIGIN)), knows())
        assert isinstance(found, Change)
        assert found.after is not None
        marks = {key: value for key, value in found.after.properties.items() if key.startswith("federator.")}
        assert marks == {
            "federator.instance": "me", "federator.mirror": "m", "federator.origin": "a$s$t", "federator.path": "s$t",
        }  # fmt: skip
        assert dict(found.precondition) == {"target": "absent", "origin": ORIGIN.digest}

    def test_an_update_keeps_the_targets_own_properties_and_the_ledger_does_not_take_them_for_ours(self) -> None:
        where = context()
        target = ours(properties={"team": "old", "dropped": "1", "own": "kept"})
        ledger = entry(declared={"properties": {"team": "old", "dropped": "1"}})
        found = decide(where, Cell(PATH, wanted(where, ORIGIN), target, ledger), knows())
        assert isinstance(found, Change)
        assert found.after is not None
        plain = {key: value for key, value in found.after.properties.items() if not key.startswith("federator.")}
        assert plain == {"team": "x", "own": "kept"}
        assert found.declared == declaration(table("b", "s$t", properties={"team": "x"}))

    def test_an_adoption_does_not_take_the_properties_that_were_there_for_ours(self) -> None:
        where = context(on_conflict="adopt_if_same_location")
        target = table("b", "s$t", properties={"own": "kept"})
        found = decide(where, Cell(PATH, wanted(where, ORIGIN), target), knows())
        assert isinstance(found, Change)
        assert found.declared == declaration(table("b", "s$t", properties={"team": "x"}))
        assert found.after is not None
        assert found.after.properties["own"] == "kept"

    def test_merging_keeps_the_targets_spelling_of_one_place(self) -> None:
        merged = merge(table("b", "s$t", "s3a://x/t.lance/"), table("b", "s$t", "s3://x/t.lance"), {})
        assert merged.location == "s3a://x/t.lance/"
        assert merge(table("b", "s$t", "s3://y"), table("b", "s$t", "s3://x"), {}).location == "s3://x"


class TestComments:
    """Which comment a target has, and when that is a difference."""

    @pytest.mark.parametrize(
        ("wanted_doc", "there", "declared", "after"),
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
        self, wanted_doc: str | None, there: str | None, declared: dict[str, object], after: str | None
    ) -> None:
        target, wished = table("b", "s$t", doc=there), table("b", "s$t", doc=wanted_doc)
        assert merge(target, wished, declared).doc == after
        assert merge(target, wished, declared, doc=False).doc == there

    def test_a_new_comment_alone_is_a_change_and_says_so(self) -> None:
        where = context()
        ledger = entry(declared={"properties": {}, "doc": "old"})
        found = decide(where, Cell(PATH, wanted(where, table("a", "s$t", doc="new")), ours(doc="old"), ledger), knows())
        assert isinstance(found, Change)
        assert (found.action, found.reason) == (Action.UPDATE_TABLE, "the comment differs")
        silent = context(doc=False)
        assert (
            decide(silent, Cell(PATH, wanted(silent, table("a", "s$t", doc="new")), ours(doc="old"), ledger), knows()) is None
        )

    def test_an_empty_comment_is_none(self) -> None:
        where = context()
        assert decide(where, Cell(PATH, wanted(where, table("a", "s$t")), ours(doc=""), entry()), knows()) is None

    def test_the_operation_in_a_comment_is_no_difference(self) -> None:
        where = context(replace(ANY, keeps_properties=False))
        target = table("b", "s$t", doc=with_comment("orders", HERE, PATH), native_id="n1")
        same = wanted(where, table("a", "s$t", doc="orders"))
        assert decide(where, Cell(PATH, same, target, entry()), knows()) is None
        other = decide(where, Cell(PATH, wanted(where, table("a", "s$t", doc="new")), target, entry()), knows())
        assert isinstance(other, Change)
        assert other.after is not None
        assert (plain_doc(other.after.doc), bound_mark(other.after)) == ("new", HERE)


def test_a_place_that_is_taken_over_does_not_keep_what_described_another_dataset() -> None:
    moved, same = (
        decide(
            FIRST,
            Cell(PATH, wanted(FIRST, table("a", "s$t", place)), replace(RIVALS, properties={**RIVALS.properties, "own": "1"})),
            knows(),
        )
        for place in ("s3://x/other", "s3://x/t.lance")
    )
    for change, kept in ((moved, False), (same, True)):
        assert isinstance(change, Change)
        assert change.after is not None
        assert ("own" in change.after.properties) is kept
        mark = bound_mark(change.after)
        assert mark is not None
        assert (mark.mirror, mark.origin) == ("m", "a$s$t")


def test_a_name_is_free_only_where_the_nearest_listing_is_complete() -> None:
    for known, free in ((coverage("b", s=COMPLETE), True), (coverage("b"), True), (coverage("b", BROKEN), False), ({}, False)):
        found = decide(context(), Cell(PATH, wanted(context(), ORIGIN)), knows(target=known or {"other": coverage("b")[""]}))
        assert isinstance(found, Change) == free
