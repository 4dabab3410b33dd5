"""Release: the changes of a held plan that may be applied now, those that wait, and the scope of an approval."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.connector import StateError
from federator.model import NamespaceRecord
from federator.planning.changes import Action, Change
from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.planning.release import (
    Approval,
    Approvals,
    approve,
    change_evidence,
    guarded_digest,
    release_changes,
    release_state,
    valid_approvals,
)
from tests.fixtures.planning import table

SHARE = Hold("max_delete_percent", "too much", Binds.DESTRUCTIVE)


def gone(name: str, since: str = "1.0", pair: str | None = None) -> Change:
    before = table("b", f"s${name}", f"s3://x/{name}")
    proof = {"target": before.digest, "origin": "absent", "absent_since": since}
    return Change(
        Action.DEREGISTER_TABLE, "b", f"s${name}", "a", f"s${name}", "gone", before=before, precondition=proof, pair=pair
    )


def new(path: str, location: str | None = None, pair: str | None = None) -> Change:
    return Change(
        Action.DECLARE_TABLE, "b", path, "a", path, "new", after=table("b", path, location or f"s3://x/{path}"), pair=pair
    )


def create_namespace(path: str) -> Change:
    namespace = NamespaceRecord("b", tuple(path.split("$")))
    return Change(Action.CREATE_NAMESPACE, "b", path, "a", path, "needed", namespace=namespace)


def plan(*changes: Change, holds: tuple[Hold, ...] = (SHARE,), unproven: tuple[Change, ...] = ()) -> Plan:
    return Plan("m", "d", 1, 1, changes, holds=holds, unproven=unproven)


def approved(*changes: Change, guards: tuple[str, ...] = ("max_delete_percent",)) -> Approvals:
    return {change_evidence(change): frozenset(guards) for change in changes}


def paths(plan: Plan, approvals: Approvals | None = None) -> list[str]:
    return [change.target_path for change in release_changes(plan, approvals or {}).changes]


def test_a_change_without_a_hold_is_released() -> None:
    held = plan(gone("a"), gone("b"), new("s$new"))
    assert paths(held) == ["s$new"]
    assert [waiting.reason for waiting in release_changes(held, {}).waiting] == [Reason.HELD_BY_GUARD] * 2
    assert release_state(held, {}) == "held"


def test_an_approval_holds_in_another_plan_and_a_new_change_waits_for_its_own() -> None:
    approvals = approved(gone("a"), gone("b"))
    assert release_state(plan(gone("a"), new("s$other")), approvals) == "approved"
    more = plan(gone("a"), gone("b"), gone("c"))
    assert (paths(more, approvals), release_state(more, approvals)) == (["s$a", "s$b"], "held")


def test_an_origin_that_was_seen_again_is_another_absence() -> None:
    assert paths(plan(gone("a", since="2.0")), approved(gone("a"))) == []


def test_a_change_waits_with_the_change_that_it_depends_on() -> None:
    moved = replace(gone("b"), action=Action.UPDATE_TABLE, after=table("b", "s$b", "s3://x/a"))
    chain = plan(
        gone("a"),
        moved,
        new("n$c", "s3://x/b"),
        create_namespace("n"),
        create_namespace("k"),
        new("k$d"),
    )
    assert paths(chain) == ["k", "k$d"]
    # The move is approved, what it waits for is not.
    assert paths(chain, approved(moved)) == ["k", "k$d"]
    assert paths(chain, approved(moved, gone("a"))) == [change.target_path for change in chain.changes]


def test_both_changes_of_a_rename_pair_wait_where_one_does() -> None:
    pair = "s$a -> s$z"
    renamed = plan(gone("a", pair=pair), new("s$z", "s3://x/a", pair=pair), holds=(replace(SHARE, bound=Binds.REMOVALS),))
    assert paths(renamed) == []
    assert paths(replace(renamed, holds=(SHARE,))) == ["s$a", "s$z"]


def test_an_old_name_waits_with_the_new_one_and_that_with_its_namespace() -> None:
    pair = "s$a -> n$z"
    old, name = gone("a", pair=pair), new("n$z", "s3://x/a", pair=pair)
    renamed = plan(create_namespace("n"), old, name, holds=(replace(SHARE, bound=Binds.ALL),))
    assert paths(renamed, approved(old, name)) == []
    assert paths(renamed, approved(create_namespace("n"), old, name)) == ["n", "s$a", "n$z"]


def test_a_namespace_stays_while_something_in_it_waits() -> None:
    drop = replace(create_namespace("s"), action=Action.DROP_NAMESPACE)
    assert paths(plan(gone("a"), drop), approved(drop)) == []
    assert paths(plan(gone("a"), drop), approved(drop, gone("a"))) == ["s$a", "s"]


@pytest.mark.parametrize(
    ("lifted_by", "guards", "goes"),
    [
        (LiftedBy.APPROVAL, ("other",), True), (LiftedBy.ITS_APPROVAL, ("other",), False),
        (LiftedBy.ITS_APPROVAL, ("guard",), True), (LiftedBy.CONFIRMATION, ("guard",), False),
    ],
)  # fmt: skip
def test_what_lifts_a_hold(lifted_by: LiftedBy, guards: tuple[str, ...], goes: bool) -> None:
    held = plan(gone("a"), holds=(Hold("guard", "why", Binds.ALL, lifted_by),))
    assert bool(paths(held, approved(gone("a"), guards=guards))) is goes


def test_a_deletion_that_cannot_be_looked_after_keeps_the_hold_and_the_guarded_set() -> None:
    whole, lost = plan(gone("a"), gone("b")), plan(unproven=(gone("a"), gone("b")))
    assert guarded_digest(lost) == guarded_digest(whole)
    assert (release_state(lost, {}), release_state(lost, approved(gone("a"), gone("b")))) == ("held", "approved")


def test_an_approval_keeps_the_guards_that_it_was_given_for() -> None:
    change = gone("a")
    first = approve(plan(change), {})
    assert first == {change_evidence(change): {"max_delete_percent"}}
    other = Hold("half_gone", "1 of 1", Binds.ALL, LiftedBy.ITS_APPROVAL)
    assert approve(plan(change, holds=(other,)), first) == {change_evidence(change): {"max_delete_percent", "half_gone"}}


def test_a_plan_that_waits_for_a_confirmation_cannot_be_approved() -> None:
    hold = Hold("identity_changed", "another catalog", Binds.ALL, LiftedBy.CONFIRMATION, "federator sources confirm lake")
    with pytest.raises(StateError, match="another catalog") as refused:
        approve(plan(gone("a"), holds=(hold,)), {})
    assert refused.value.hint == "federator sources confirm lake"


def test_an_approval_ends_after_a_week() -> None:
    given = {"new": Approval(10.0, frozenset({"g"})), "old": Approval(9.0, frozenset())}
    assert valid_approvals(given, 9.0 + 7 * 86_400) == {"new": {"g"}}
