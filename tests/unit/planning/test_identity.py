"""Identity as evidence: the verdict on what connections read, and what a loss holds."""

from __future__ import annotations

import pytest

from federator.model import Identity, TableRecord
from federator.planning.holds import Binds, LiftedBy
from federator.planning.identity import IdentityReading, IdentityState, changed_text, judge, judge_as_confirmed, rebinds
from federator.planning.losses import Loss, loss_holds
from federator.planning.marks import Mark

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
    verdict = judge("lake", accepted, readings)
    assert (verdict.state.value, verdict.first, verdict.unknown) == (state, first, unknown)
    assert (verdict.problem is None) == (verdict.state is IdentityState.TRUSTED)
    assert ("federator sources confirm lake" in (verdict.problem or "")) == bool(unknown)


def test_a_problem_names_both_identities() -> None:
    problem = judge("lake", KNOWN, [B]).problem or ""
    assert "metastore a" in problem
    assert "metastore b" in problem


def test_a_hold_names_every_identity_that_waits() -> None:
    """A first crawl that met two catalogs leaves both to a person."""
    verdict = judge("lake", {}, [A, B])
    text = changed_text("lake", {}, verdict.unknown)
    assert "metastore a and metastore b" in text
    assert "metastore b" in changed_text("lake", KNOWN, [("", "metastore b"), ("", "")])


def test_a_confirmation_accepts_what_was_seen_and_nothing_else() -> None:
    assert judge_as_confirmed("lake", KNOWN, [("", "metastore b")], B).trusted
    other = IdentityReading(Identity.of("metastore c"))
    assert not judge_as_confirmed("lake", KNOWN, [("", "metastore b")], other).trusted


def test_an_identity_survives_json() -> None:
    identity = Identity.of("realm r", {"c": "1"})
    assert Identity.from_json(identity.to_json()) == identity


MARK = Mark("one", "copy", "lake$t", "op1")
ROW = {"mirror": "copy", "op_id": "op1", "canonical": "s3://b/t", "native_id": "1"}


def target(**fields: object) -> TableRecord:
    values = {"location": "s3://b/t", "properties": MARK.properties(("db", "t")), "native_id": "2"} | fields
    return TableRecord("far", ("db", "t"), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (target(), True),
        (target(native_id="1"), False),
        (target(location="s3://b/other"), False),
        (target(properties={}), False),
        (target(properties=Mark("one", "copy", "lake$t", "op2").properties(("db", "t"))), False),
        (target(properties=Mark("two", "copy", "lake$t", "op1").properties(("db", "t"))), False),
        (target(properties=MARK.properties(("db", "other"))), False),
    ],
)
def test_rows_are_rebound_to_objects_that_are_intact(record: TableRecord, expected: bool) -> None:
    assert rebinds(ROW, record, "one") is expected


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
