"""Intent resolution: the outcome that an observation proves, and the journal line and ledger entry, cell by cell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.connector import Observation
from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Action, Change
from federator.planning.intent_resolution import (
    OutcomeState,
    journal_code,
    ledger_entry,
    require_leases,
    resolve_namespace,
    resolve_table,
)
from federator.planning.ownership import OwnershipMarker
from federator.planning.reasons import ApplyCode, OutcomeCode, Reason
from federator.planning.rule import MirrorRule

OLD = TableRecord("b", ("s", "t"), "s3://x/old", native_id="1")
NEW = replace(OLD, location="s3://x/new", properties=OwnershipMarker("me", "m", "a$s$t", "op").to_properties(("s", "t")))
OTHER = replace(OLD, location="s3://x/other", native_id="2")
RULE = MirrorRule(name="m", origin="a", target="b")


def change(action: Action, before: TableRecord | None = OLD, after: TableRecord | None = NEW, **fields: object) -> Change:
    return Change(action, "b", "s$t", "a", "s$t", "", before, after, **fields)  # type: ignore[arg-type]  # fields of a Change


@pytest.mark.parametrize(
    ("action", "observation", "expected"),
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
def test_an_observation_resolves_the_call_on_a_table(action: Action, observation: Observation, expected: str | None) -> None:
    resolution = resolve_table(change(action), "op", observation, keeps_properties=True)
    assert (resolution and " ".join(filter(None, (resolution.state.value, resolution.code)))) == expected


@pytest.mark.parametrize(
    ("action", "observation", "expected"),
    [
        (Action.DROP_NAMESPACE, None, OutcomeState.DONE),
        (Action.DROP_NAMESPACE, NamespaceRecord("b", ("s",)), OutcomeState.FAILED),
        (Action.CREATE_NAMESPACE, None, OutcomeState.FAILED),
        (Action.CREATE_NAMESPACE, NamespaceRecord("b", ("s",)), OutcomeState.SKIPPED),
    ],
)
def test_an_observation_resolves_the_call_on_a_namespace(
    action: Action, observation: NamespaceRecord | None, expected: OutcomeState
) -> None:
    assert resolve_namespace(change(action, None, None, namespace=NamespaceRecord("b", ("s",))), observation).state is expected


@pytest.mark.parametrize(
    ("executed", "state", "code", "had_entry", "expected"),
    [
        (change(Action.DEREGISTER_TABLE, OLD, None), OutcomeState.DONE, ApplyCode.ORIGIN_RETURNED, True, "origin_returned"),
        (change(Action.DEREGISTER_TABLE, OLD, None), OutcomeState.DONE, None, False, "already_gone"),
        (change(Action.DEREGISTER_TABLE, OLD, None, pair="r"), OutcomeState.DONE, None, True, "renamed"),
        (change(Action.DEREGISTER_TABLE, OLD, None, pair="r"), OutcomeState.FAILED, 17, False, "17"),
        (change(Action.UPDATE_TABLE), OutcomeState.DONE, None, True, "location_changed"),
        (change(Action.UPDATE_TABLE), OutcomeState.NEEDS_ADOPTION, Reason.NEEDS_ADOPTION, False, "location_changed"),
        (change(Action.UPDATE_TABLE), OutcomeState.SKIPPED, Reason.MOVED, False, "moved"),
        (change(Action.DECLARE_TABLE, None), OutcomeState.SKIPPED, 0, False, "0"),
        (change(Action.UPDATE_TABLE, OLD, OLD), OutcomeState.DONE, None, True, None),
    ],
)
def test_the_code_of_a_journal_line(
    executed: Change, state: OutcomeState, code: OutcomeCode | None, had_entry: bool, expected: str | None
) -> None:
    assert journal_code(executed, state, code, had_entry=had_entry) == expected


def test_the_ledger_has_existing_objects_that_no_user_declared() -> None:
    declared = change(Action.DECLARE_TABLE, None, precondition={"origin": "digest"})
    entry = ledger_entry(RULE, declared, "op", NEW, "target")
    assert entry is not None
    assert (entry.origin_digest, entry.target_digest, entry.location, entry.native_id) == (
        "digest", "target", "s3://x/new", "1",
    )  # fmt: skip
    assert ledger_entry(RULE, change(Action.DEREGISTER_TABLE, OLD, None), "op", None, None) is None
    assert ledger_entry(RULE, replace(declared, origin_source=""), "op", NEW, "target") is None


def test_a_lost_lease_stops_the_write_whichever_it_is() -> None:
    class Lease:
        def __init__(self, *, held: bool) -> None:
            self.held = held

        def require_held(self, _: None) -> None:
            if not self.held:
                raise RuntimeError

        def outlasts(self, _: float) -> bool:
            return self.held

    require_leases([Lease(held=True), Lease(held=True)], None)
    with pytest.raises(RuntimeError):
        require_leases([Lease(held=True), Lease(held=False)], None)
