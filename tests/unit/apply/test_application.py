"""The order in which an application applies changes, with an executor and an index that only record calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from federator.apply import Application, Executor, Outcome, OutcomeState
from federator.connector import SourceSpec
from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.holds import Binds, Hold
from federator.planning.plan import Plan
from federator.planning.publication import ObservedObject
from federator.planning.reasons import ApplyCode, Reason
from federator.planning.release import Release, WaitingChange
from federator.planning.rule import MirrorRule
from federator.registry import open_catalog
from tests.fixtures.journal import Notes

RULE = MirrorRule(name="m", origin="a", target="b", misses_before_delete=2, min_miss_interval=10.0)


@dataclass
class Recorded(Executor):
    """Makes no call: changes are done, and ``left`` is what a dead run left."""

    left: list[Outcome] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)

    def resolve_open_intents(self) -> list[Outcome]:
        self.calls.append("resume")
        return self.left

    def apply(self, plan: str, changes: Sequence[Change], *_: Any, any_time: bool = False) -> list[Outcome]:
        self.calls.append(([change.target_path for change in changes], any_time))
        return [Outcome(change, OutcomeState.DONE, record=change.after, observed_at=5.0) for change in changes]


@dataclass
class Recording:
    """``ApplicationIndex``: the misses that count now, and what is stored."""

    missed: dict[str, list[float]] = field(default_factory=dict)
    published: list[list[str]] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)

    def list_misses(self, source: str) -> Mapping[str, Sequence[float]]:
        assert source == "a"
        return self.missed

    def publish(self, source: str, observations: Sequence[ObservedObject]) -> None:
        assert source == "b"
        self.published.append([observation.key[1] for observation in observations])

    def mark_applied(self, digest: str) -> None:
        self.applied.append(digest)


def change(action: Action, name: str) -> Change:
    record = TableRecord("b", ("s", name), f"s3://x/{name}")
    if action is Action.DECLARE_TABLE:
        return Change(action, "b", record.key, "a", record.key, "new", after=record)
    return Change(action, "b", record.key, "a", record.key, "gone", before=record, precondition={"origin": "absent"})


def plan_of(*changes: Change, holds: tuple[Hold, ...] = ()) -> Plan:
    return Plan(mirror="m", mirror_digest="d", origin_revision=1, target_revision=1, changes=changes, refusals=(), holds=holds)


def application(directory: Path, index: Recording, *left: Outcome) -> tuple[Application, Recorded]:
    origin, target = (
        open_catalog(SourceSpec(name, "federator.testing:CONNECTOR", {"file": str(directory / f"{name}.json")}))
        for name in ("a", "b")
    )
    executor = Recorded(Notes(), RULE, origin, target, left=list(left))
    return Application(executor, index), executor


def test_a_removal_whose_origin_was_seen_since_is_left_out(tmp_path: Path) -> None:
    proven, seen, new = (
        change(Action.DEREGISTER_TABLE, "p"),
        change(Action.DEREGISTER_TABLE, "q"),
        change(Action.DECLARE_TABLE, "r"),
    )
    index = Recording({"s$p": [0.0, 20.0], "s$q": [20.0]})
    it, executor = application(tmp_path, index)
    plan = plan_of(proven, seen, new)
    outcomes = it.apply(plan, Release(plan.changes, ()))
    assert executor.calls == ["resume", (["s$p", "s$r"], False)]
    assert [(o.change.target_path, o.state, o.code) for o in outcomes] == [
        ("s$q", OutcomeState.SKIPPED, "not_covered"), ("s$p", OutcomeState.DONE, None), ("s$r", OutcomeState.DONE, None),
    ]  # fmt: skip
    assert index.published == [[], ["s$p", "s$r"]]
    assert index.applied == [plan.digest]


def test_a_plan_of_which_something_waits_is_not_applied(tmp_path: Path) -> None:
    goes, waits = change(Action.DECLARE_TABLE, "p"), change(Action.DECLARE_TABLE, "q")
    hold = Hold("outside_window", "closed", Binds.ALL)
    index = Recording()
    it, executor = application(tmp_path, index)
    it.apply(plan_of(goes, waits, holds=(hold,)), Release((goes,), (WaitingChange(waits, hold),)))
    # What goes of it was approved: no window is asked for again.
    assert executor.calls[1] == (["s$p"], True)
    assert index.applied == []


def test_of_what_a_dead_run_left_only_what_nobody_can_tell_is_this_runs_failure(tmp_path: Path) -> None:
    left = [
        Outcome(change(Action.DECLARE_TABLE, "done"), OutcomeState.DONE),
        Outcome(change(Action.DECLARE_TABLE, "not_made"), OutcomeState.FAILED, ApplyCode.NOT_MADE),
        Outcome(change(Action.DECLARE_TABLE, "restored"), OutcomeState.FAILED, ApplyCode.RESTORED),
        Outcome(change(Action.DECLARE_TABLE, "open"), OutcomeState.UNKNOWN, 17),
        Outcome(change(Action.DECLARE_TABLE, "asked"), OutcomeState.NEEDS_ADOPTION, Reason.NEEDS_ADOPTION),
        Outcome(change(Action.DECLARE_TABLE, "half"), OutcomeState.FAILED, Reason.NAMESPACE_MISSING),
    ]
    index = Recording()
    it, _ = application(tmp_path, index, *left)
    assert [outcome.change.target_path for outcome in it.resume()] == ["s$open", "s$asked", "s$half"]
    assert index.published == [["s$done", "s$restored"]]
