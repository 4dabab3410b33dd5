"""Release: what of a held plan goes, what waits, and what an approval is of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.model import NamespaceRecord
from federator.planning.changes import Action, Change
from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.planning.release import Approvals, evidence, guarded_digest, release, state_of
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


def made(path: str) -> Change:
    namespace = NamespaceRecord("b", tuple(path.split("$")))
    return Change(Action.CREATE_NAMESPACE, "b", path, "a", path, "needed", namespace=namespace)


def plan(*changes: Change, holds: tuple[Hold, ...] = (SHARE,), unproven: tuple[Change, ...] = ()) -> Plan:
    return Plan("m", "d", 1, 1, changes, holds=holds, unproven=unproven)


def approved(*changes: Change, guards: tuple[str, ...] = ("max_delete_percent",)) -> Approvals:
    return {evidence(change): frozenset(guards) for change in changes}


def paths(found: Plan, approvals: Approvals | None = None) -> list[str]:
    return [change.target_path for change in release(found, approvals or {}).changes]


def test_what_no_hold_binds_goes() -> None:
    held = plan(gone("a"), gone("b"), new("s$new"))
    assert paths(held) == ["s$new"]
    assert [waiting.reason for waiting in release(held, {}).waiting] == [Reason.HELD_BY_GUARD] * 2
    assert state_of(held, {}) == "held"


def test_an_approval_holds_in_another_plan_and_a_new_change_waits_for_its_own() -> None:
    approvals = approved(gone("a"), gone("b"))
    assert state_of(plan(gone("a"), new("s$other")), approvals) == "approved"
    more = plan(gone("a"), gone("b"), gone("c"))
    assert (paths(more, approvals), state_of(more, approvals)) == (["s$a", "s$b"], "held")


def test_an_origin_that_was_seen_again_is_another_absence() -> None:
    assert paths(plan(gone("a", since="2.0")), approved(gone("a"))) == []


def test_what_depends_on_what_waits_waits_with_it() -> None:
    moved = replace(gone("b"), action=Action.UPDATE_TABLE, after=table("b", "s$b", "s3://x/a"))
    chain = plan(
        gone("a"),
        moved,
        new("n$c", "s3://x/b"),
        made("n"),
        made("k"),
        new("k$d"),
    )
    assert paths(chain) == ["k", "k$d"]
    # The move is approved, what it waits for is not.
    assert paths(chain, approved(moved)) == ["k", "k$d"]
    assert paths(chain, approved(moved, gone("a"))) == [change.target_path for change in chain.changes]


def test_both_halves_of_a_rename_wait_where_one_does() -> None:
    pair = "s$a -> s$z"
    renamed = plan(gone("a", pair=pair), new("s$z", "s3://x/a", pair=pair), holds=(replace(SHARE, bound=Binds.REMOVALS),))
    assert paths(renamed) == []
    assert paths(replace(renamed, holds=(SHARE,))) == ["s$a", "s$z"]


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
    assert (state_of(lost, {}), state_of(lost, approved(gone("a"), gone("b")))) == ("held", "approved")
