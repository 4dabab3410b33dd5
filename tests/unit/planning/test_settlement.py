"""What an observation proves of a lost call, and what the journal and the ledger keep: cell by cell, without catalog or index."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.connector import Observation
from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Action, Change
from federator.planning.marks import Mark
from federator.planning.rule import MirrorRule
from federator.planning.settlement import (
    State,
    journal_code,
    ledger_entry,
    require_leases,
    resolve_namespace,
    resolve_table,
)

OLD = TableRecord("b", ("s", "t"), "s3://x/old", native_id="1")
NEW = replace(OLD, location="s3://x/new", properties=Mark("me", "m", "a$s$t", "op").properties(("s", "t")))
OTHER = replace(OLD, location="s3://x/other", native_id="2")
RULE = MirrorRule(name="m", origin="a", target="b")


def change(action: Action, before: TableRecord | None = OLD, after: TableRecord | None = NEW, **fields: object) -> Change:
    return Change(action, "b", "s$t", "a", "s$t", "", before, after, **fields)  # type: ignore[arg-type]  # fields of a Change


@pytest.mark.parametrize(
    ("action", "seen", "expected"),
    [
        (Action.DEREGISTER_TABLE, Observation(), "done"),
        (Action.DEREGISTER_TABLE, Observation(OLD), "failed not_made"),
        (Action.DEREGISTER_TABLE, Observation(foreign="a view"), "failed not_made"),
        (Action.DECLARE_TABLE, Observation(), "failed not_made"),
        (Action.DECLARE_TABLE, Observation(NEW), "done"),
        (Action.DECLARE_TABLE, Observation(foreign="half", unfinished="op"), None),
        (Action.DECLARE_TABLE, Observation(foreign="half", unfinished="another"), "failed not_made"),
        (Action.UPDATE_TABLE, Observation(OLD), "failed not_made"),
        (Action.UPDATE_TABLE, Observation(OTHER), "needs_adoption needs_adoption"),
        (Action.RECREATE_TABLE, Observation(), None),
        (Action.RECREATE_TABLE, Observation(NEW), "done"),
    ],
)
def test_an_observation_resolves_the_call_on_a_table(action: Action, seen: Observation, expected: str | None) -> None:
    found = resolve_table(change(action), "op", seen, keeps_properties=True)
    assert (found and " ".join(filter(None, (found.state.value, found.code)))) == expected


@pytest.mark.parametrize(
    ("action", "seen", "expected"),
    [
        (Action.DROP_NAMESPACE, None, State.DONE),
        (Action.DROP_NAMESPACE, NamespaceRecord("b", ("s",)), State.FAILED),
        (Action.CREATE_NAMESPACE, None, State.FAILED),
        (Action.CREATE_NAMESPACE, NamespaceRecord("b", ("s",)), State.SKIPPED),
    ],
)
def test_an_observation_resolves_the_call_on_a_namespace(action: Action, seen: NamespaceRecord | None, expected: State) -> None:
    assert resolve_namespace(change(action, None, None, namespace=NamespaceRecord("b", ("s",))), seen).state is expected


@pytest.mark.parametrize(
    ("made", "state", "code", "forgotten", "expected"),
    [
        (change(Action.DEREGISTER_TABLE, OLD, None), State.DONE, "origin_returned", True, "origin_returned"),
        (change(Action.DEREGISTER_TABLE, OLD, None), State.DONE, None, False, "already_gone"),
        (change(Action.DEREGISTER_TABLE, OLD, None, pair="r"), State.DONE, None, True, "renamed"),
        (change(Action.DEREGISTER_TABLE, OLD, None, pair="r"), State.FAILED, "17", False, "17"),
        (change(Action.UPDATE_TABLE), State.DONE, None, True, "location_changed"),
        (change(Action.UPDATE_TABLE), State.NEEDS_ADOPTION, "needs_adoption", False, "location_changed"),
        (change(Action.UPDATE_TABLE), State.SKIPPED, "moved", False, "moved"),
        (change(Action.UPDATE_TABLE, OLD, OLD), State.DONE, None, True, None),
    ],
)
def test_the_code_of_a_journal_line(
    made: Change, state: State, code: str | None, forgotten: bool, expected: str | None
) -> None:
    assert journal_code(made, state, code, forgotten=forgotten) == expected


def test_the_ledger_keeps_what_is_there_and_is_not_a_persons() -> None:
    declared = change(Action.DECLARE_TABLE, None, precondition={"origin": "digest"})
    entry = ledger_entry(RULE, declared, "op", NEW, "target")
    assert entry is not None
    assert (entry["origin_digest"], entry["target_digest"], entry["location"], entry["native_id"]) == (
        "digest", "target", "s3://x/new", "1",
    )  # fmt: skip
    assert ledger_entry(RULE, change(Action.DEREGISTER_TABLE, OLD, None), "op", None, None) is None
    assert ledger_entry(RULE, replace(declared, origin_source=""), "op", NEW, "target") is None


def test_a_lost_lease_stops_the_write_whichever_it_is() -> None:
    class Lease:
        def __init__(self, *, held: bool) -> None:
            self.held = held

        def check(self, _: None) -> None:
            if not self.held:
                raise RuntimeError

        def fits(self, _: float) -> bool:
            return self.held

    require_leases([Lease(held=True), Lease(held=True)], None)
    with pytest.raises(RuntimeError):
        require_leases([Lease(held=True), Lease(held=False)], None)
