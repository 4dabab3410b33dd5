"""Identity as evidence: the verdict on what connections read, and what a loss holds."""

from __future__ import annotations

import pytest

from federator.model import Identity, TableRecord
from federator.planning.holds import Binds, LiftedBy
from federator.planning.identity import (
    IdentityReading,
    IdentityState,
    KnownIdentities,
    can_rebind,
    changed_text,
    judge_confirmed_identity,
    judge_identity,
)
from federator.planning.losses import Loss, known_revisions, list_unapproved, loss_holds, weighed_since
from federator.planning.ownership import OwnershipMarker
from federator.planning.rule import MirrorRule
from tests.fixtures.index_content import owned
from tests.prove.rules_in_memory import confirm_identities, count_losses

A, B = IdentityReading(Identity.of("metastore a")), IdentityReading(Identity.of("metastore b"))
NONE = IdentityReading()
KNOWN = {"": {"metastore a"}}


def catalogs(**parts: str) -> IdentityReading:
    return IdentityReading(Identity.of("realm r", parts))


@pytest.mark.parametrize(
    ("accepted", "readings", "state", "first", "unknown"),
    [
        ({}, [], "trusted", (), ()),
        ({}, [NONE, NONE], "trusted", (), ()),
        ({}, [A, A], "trusted", (("", "metastore a"),), ()),
        (KNOWN, [A], "trusted", (), ()),
        (KNOWN, [B], "changed", (), (("", "metastore b"),)),
        (KNOWN, [NONE], "changed", (), (("", ""),)),
        (KNOWN, [A, B], "mixed", (), (("", "metastore b"),)),
        ({"": {"metastore a", "metastore b"}}, [A, B], "mixed", (), ()),
        ({"": {"metastore a", "metastore b"}}, [B], "trusted", (), ()),
        ({}, [A, B], "mixed", (), (("", "metastore a"), ("", "metastore b"))),
        ({}, [A, NONE], "mixed", (), (("", "metastore a"),)),
        (KNOWN, [A, IdentityReading(error="denied")], "unreadable", (), ()),
        ({"": {"realm r"}, "c": {"1"}}, [catalogs(c="1", d="2")], "trusted", (("d", "2"),), ()),
        ({"": {"realm r"}, "c": {"1"}}, [catalogs(d="2")], "trusted", (("d", "2"),), ()),
        ({"": {"realm r"}, "c": {"1"}}, [catalogs(c="9")], "changed", (), (("c", "9"),)),
        ({"": {"realm r"}, "c": {"1"}}, [catalogs(c="")], "changed", (), (("c", ""),)),
        ({"": {"realm r"}}, [catalogs(c="")], "trusted", (), ()),
        # A connection that was asked for fewer scopes contradicts nobody.
        ({"": {"realm r"}, "c": {"1"}}, [catalogs(c="1"), catalogs()], "trusted", (), ()),
    ],
)
def test_verdict(
    accepted: dict[str, set[str]],
    readings: list[IdentityReading],
    state: str,
    first: tuple[tuple[str, str], ...],
    unknown: tuple[tuple[str, str], ...],
) -> None:
    verdict = judge_identity("lake", accepted, readings)
    assert (verdict.state.value, verdict.first_values, verdict.unknown) == (state, first, unknown)
    assert (verdict.problem is None) == (verdict.state is IdentityState.TRUSTED)
    assert ("federator sources confirm lake" in (verdict.problem or "")) == bool(unknown)


def test_a_problem_names_both_identities() -> None:
    problem = judge_identity("lake", KNOWN, [B]).problem or ""
    assert "metastore a" in problem
    assert "metastore b" in problem


def test_a_hold_names_every_identity_that_waits() -> None:
    """A first crawl that met two catalogs leaves both to a person."""
    verdict = judge_identity("lake", {}, [A, B])
    text = changed_text("lake", {}, verdict.unknown)
    assert "metastore a and metastore b" in text
    assert "metastore b" in changed_text("lake", KNOWN, [("", "metastore b"), ("", "")])


def test_a_confirmation_accepts_only_the_observed_identity() -> None:
    assert judge_confirmed_identity("lake", KNOWN, [("", "metastore b")], B).trusted
    other = IdentityReading(Identity.of("metastore c"))
    assert not judge_confirmed_identity("lake", KNOWN, [("", "metastore b")], other).trusted


def test_only_a_crawl_that_could_read_ends_the_wait_for_a_confirmation() -> None:
    first = KnownIdentities().judge("lake", [A], crawl=False)[1]
    assert first == KnownIdentities(frozenset({("", "metastore a")}))
    waits = first.judge("lake", [B], crawl=False)[1]
    assert waits.unconfirmed == (("", "metastore b"),)
    assert "federator sources confirm lake" in (waits.describe_hold("lake") or "")
    for readings, crawl in (([A], False), ([], True), ([IdentityReading(error="no answer")], True)):
        assert waits.judge("lake", readings, crawl=crawl)[1] == waits
    assert waits.judge("lake", [A], crawl=True)[1] == first
    assert first.describe_hold("lake") is None


def test_a_confirmation_accepts_the_new_identity_beside_the_old_one() -> None:
    known = confirm_identities(KnownIdentities(frozenset({("", "metastore a")}), (("", "metastore b"),)))
    assert known.unconfirmed == ()
    for reading in (A, B):
        assert known.judge("lake", [reading], crawl=True)[0].trusted


def test_an_identity_survives_json() -> None:
    identity = Identity.of("realm r", {"c": "1"})
    assert Identity.from_json(identity.to_json()) == identity


MARK = OwnershipMarker("one", "copy", "lake$t", "op1")
ENTRY = owned("lake", "t", "far", "db$t", mirror="copy", op_id="op1", canonical="s3://b/t", native_id="1")


def target(**fields: object) -> TableRecord:
    values = {"location": "s3://b/t", "properties": MARK.to_properties(("db", "t")), "native_id": "2"} | fields
    return TableRecord("far", ("db", "t"), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (target(), True),
        (target(native_id="1"), False),
        (target(location="s3://b/other"), False),
        (target(properties={}), False),
        (target(properties=OwnershipMarker("one", "copy", "lake$t", "op2").to_properties(("db", "t"))), False),
        (target(properties=OwnershipMarker("two", "copy", "lake$t", "op1").to_properties(("db", "t"))), False),
        (target(properties=MARK.to_properties(("db", "other"))), False),
    ],
)
def test_rows_are_rebound_to_objects_that_are_intact(record: TableRecord, expected: bool) -> None:
    assert can_rebind(ENTRY, record, "one", target(native_id="1")) is expected
    assert can_rebind(ENTRY, record, "one", None) is expected


def test_an_object_not_owned_in_the_old_catalog_is_not_bound_in_the_new_one() -> None:
    """Found by the proof (seed 41, run 2267): a user made a copy again with its mark, and then the catalog was restored."""
    assert not can_rebind(ENTRY, target(native_id="4"), "one", target(native_id="3"))


@pytest.mark.parametrize(
    ("tables", "gone", "moved", "held"),
    [
        (1, 1, 0, False),
        (2, 1, 0, False),
        (2, 2, 0, True),
        (2, 1, 1, True),
        (4, 2, 0, False),
        (4, 1, 2, True),
        (100, 51, 0, True),
    ],
)
def test_more_than_half_of_a_source_at_once(tables: int, gone: int, moved: int, held: bool) -> None:
    holds = loss_holds([Loss("lake", 7, tables, gone, moved)])
    assert [hold.guard for hold in holds] == (["half_gone"] if held else [])


def test_a_feed_that_went_back_holds_everything_until_that_is_approved() -> None:
    (hold,) = loss_holds([Loss("lake", 7, 10, 1, 0, "the log went back from event 9 to 3")])
    assert (hold.guard, hold.bound, hold.lifted_by) == ("feed_went_back", Binds.ALL, LiftedBy.ITS_APPROVAL)


def test_a_renamed_table_is_no_loss_and_one_elsewhere_is_moved() -> None:
    before = {"a": "s3://x/a", "b": "s3://x/b", "c": "s3://x/c", "d": None, "e": "s3://x/e"}
    removed, written = [(1, "a"), (1, "b"), (1, "d"), (0, "c")], [(1, "a2"), (1, "c"), (1, "e")]
    after = {"a2": "s3://x/a", "c": "s3://y/c", "e": "s3://x/e"}
    assert count_losses(removed, written, before.items(), after) == (2, 1)
    assert count_losses([], [], before.items(), {}) == (0, 0)


def test_a_loss_holds_since_the_last_plan_that_was_let_go_or_ever_since_something_was_declared() -> None:
    known = known_revisions([("a", "b"), ("a", "b")], 3, 5)
    assert known == {("a", "origin"): 3, ("b", "target"): 5}
    assert weighed_since(known, "a", "b", ()) == {"a": 3, "b": 5}
    assert weighed_since(known, "a", "c", ()) == {"a": 3}
    assert weighed_since(known, "b", "a", {("b", "origin")}) == {"b": 0}
    assert weighed_since({}, "a", "b", ()) == {}


def test_the_losses_of_both_sources_count_from_the_revisions_of_the_last_accepted_plan() -> None:
    revisions = {"a": [Loss("a", number, 10, 9, 0) for number in (2, 4)], "b": [Loss("b", 6, 10, 0, 9)]}

    def after(source: str, revision: int) -> list[Loss]:
        return [loss for loss in revisions[source] if loss.revision > revision]

    rule = MirrorRule(name="m", origin="a", target="b")
    accepted = {("a", "origin"): 3, ("b", "target"): 5}
    assert [loss.revision for loss in list_unapproved(rule, accepted, (), after)] == [4, 6]
    assert [loss.revision for loss in list_unapproved(rule, {}, {("a", "origin"), ("elsewhere", "target")}, after)] == [2, 4]
    assert list_unapproved(rule, {}, (), after) == []
