"""The observation of the origin immediately before a call, over catalogs in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from federator.apply import Executor
from federator.connector import Catalog, Internal, ServiceUnavailable, SourceSpec
from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.rule import MirrorRule
from federator.registry import open_catalog
from federator.testing.memory_store import MemoryStore
from tests.fixtures.journal import Notes

RULE = MirrorRule(name="m", origin="a", target="b", max_origin_age=2.0)
WRITES = ("deregister_table", "update_table", "declare_table")


class Mirrored:
    """An origin ``a`` and a target ``b`` with a namespace ``s`` each.

    ``order`` records the observations of the origin and the writes at the target; ``then`` is called after each, with its name.
    """

    def __init__(self, directory: Path) -> None:
        self.stores = {name: MemoryStore(str(directory / f"{name}.json")) for name in "ab"}
        for store in self.stores.values():
            store.add_namespace(("s",))
        self.origin, self.target = (self._open(directory, name) for name in "ab")
        self.notes = Notes()
        self.order: list[str] = []
        self.then: Callable[[str], None] = lambda _: None
        self._note(self.origin, "observe")
        for name in WRITES:
            self._note(self.target, name)

    @staticmethod
    def _open(directory: Path, name: str) -> Catalog:
        return open_catalog(SourceSpec(name, "federator.testing:CONNECTOR", {"file": str(directory / f"{name}.json")}))

    def _note(self, catalog: Catalog, name: str) -> None:
        call = getattr(catalog, name)

        def noting(first: Any, *rest: Any, **options: Any) -> Any:
            result = call(first, *rest, **options)
            about = f"{name} {'$'.join(first if isinstance(first, tuple) else first.path)}"
            self.order.append(about)
            self.then(about)
            return result

        setattr(catalog, name, noting)

    def apply(self, *changes: Change, **fields: Any) -> list[str]:
        self.outcomes = Executor(self.notes, RULE, self.origin, self.target, **fields).apply("plan", changes)
        return [f"{o.change.target_path} {o.state.value} {o.code_text or ''}".rstrip() for o in self.outcomes]

    def own(self, name: str, location: str) -> TableRecord:
        """A table at the origin, which the index has as it is."""
        self.stores["a"].add_table(("s", name), location)
        described = self.origin.describe_table(("s", name))
        self.notes.origins[described.key] = described.digest
        return described

    def remove(self, name: str, origin: str = "absent", **fields: Any) -> Change:
        self.stores["b"].add_table(("s", name), f"s3://x/{name}")
        before = self.target.describe_table(("s", name))
        condition = {"target": before.digest, "origin": origin}
        change = Change(Action.DEREGISTER_TABLE, "b", f"s${name}", "a", f"s${name}", "gone", before, precondition=condition)
        return replace(change, **fields)

    def move(self, name: str, action: Action = Action.UPDATE_TABLE) -> Change:
        self.stores["b"].add_table(("s", name), "s3://x/old")
        before, origin = self.target.describe_table(("s", name)), self.own(name, "s3://x/new")
        condition = {"target": before.digest, "origin": origin.digest}
        after = replace(before, location=origin.location)
        return Change(action, "b", f"s${name}", "a", f"s${name}", "moved", before, after, condition)

    def rename(self, old: str, new: str) -> list[Change]:
        first, origin = self.remove(old, pair="r"), self.own(new, f"s3://x/{old}")
        condition = {"target": "absent", "origin": origin.digest}
        after = TableRecord("b", ("s", new), origin.location)
        second = Change(Action.DECLARE_TABLE, "b", f"s${new}", "a", f"s${new}", "renamed", None, after, condition, pair="r")
        return [first, second]


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    return Mirrored(tmp_path)


def clock(*gaps: float) -> Callable[[], float]:
    """A monotonic clock: each observation takes the next of some seconds."""
    times = [time for start, gap in zip(range(0, 1000, 100), gaps, strict=False) for time in (start, start + gap)]
    return lambda: times.pop(0)


def test_the_origin_is_observed_right_before_the_call_and_once_more_after_it(mirrored: Mirrored) -> None:
    assert mirrored.apply(mirrored.remove("t")) == ["s$t done"]
    assert mirrored.order == ["observe s$t", "deregister_table s$t", "observe s$t"]


def test_an_origin_that_returns_once_the_intent_is_durable_keeps_its_copy(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    intend = Notes.record_intent

    def returning(self: Notes, intent: Any) -> None:
        intend(self, intent)
        mirrored.stores["a"].add_table(("s", "t"))

    monkeypatch.setattr(Notes, "record_intent", returning)
    assert mirrored.apply(mirrored.remove("t")) == ["s$t skipped still_there"]
    assert mirrored.stores["b"].calls() == []
    assert mirrored.notes.list_open_intents() == []


def test_a_copy_that_somebody_removed_is_forgotten_on_the_same_condition(mirrored: Mirrored) -> None:
    removal = mirrored.remove("t")
    mirrored.stores["b"].remove(("s", "t"))
    mirrored.stores["a"].add_table(("s", "t"))
    assert mirrored.apply(removal) == ["s$t skipped still_there"]
    mirrored.stores["a"].remove(("s", "t"))
    assert mirrored.apply(removal) == ["s$t done"]


@pytest.mark.parametrize("action", [Action.UPDATE_TABLE, Action.RECREATE_TABLE])
def test_a_move_goes_to_where_the_origin_is_now_or_nowhere(mirrored: Mirrored, action: Action) -> None:
    kept, moved = mirrored.move("kept", action), mirrored.move("t", action)
    mirrored.stores["a"].remove(("s", "t"))
    mirrored.stores["a"].add_table(("s", "t"), "s3://x/elsewhere")
    assert mirrored.apply(kept, moved) == ["s$kept done", "s$t skipped moved"]
    assert mirrored.target.describe_table(("s", "t")).location == "s3://x/old"
    writes = ["update_table s$kept"] if action is Action.UPDATE_TABLE else ["deregister_table s$kept", "declare_table s$kept"]
    # A recreation observes the origin before its first half only.
    assert mirrored.order == ["observe s$kept", *writes, "observe s$kept", "observe s$t"]


def test_properties_change_without_another_observation(mirrored: Mirrored) -> None:
    moved = mirrored.move("t")
    assert moved.before is not None
    assert mirrored.apply(replace(moved, after=replace(moved.before, properties={"v": "1"}))) == ["s$t done"]
    assert mirrored.order == ["update_table s$t"]


def test_a_rename_observes_both_names(mirrored: Mirrored) -> None:
    assert mirrored.apply(*mirrored.rename("old", "new")) == ["s$old done", "s$new done"]
    seen = ["observe s$old", "observe s$new"]
    assert mirrored.order == [*seen, "deregister_table s$old", *seen, "declare_table s$new"]


@pytest.mark.parametrize(
    ("meddle", "code"),
    [
        (lambda store: store.add_table(("s", "old")), "still_there"),
        (lambda store: store.remove(("s", "new")), "moved"),
    ],
)
def test_a_rename_keeps_the_old_name_unless_both_are_as_planned(
    mirrored: Mirrored, meddle: Callable[[MemoryStore], None], code: str
) -> None:
    changes = mirrored.rename("old", "new")
    meddle(mirrored.stores["a"])
    assert mirrored.apply(*changes) == [f"s$old skipped {code}", "s$new skipped first_half"]
    assert mirrored.stores["b"].calls() == []


def test_pruning_does_not_depend_on_the_origin(mirrored: Mirrored) -> None:
    mirrored.stores["a"].add_table(("s", "t"))
    assert mirrored.apply(mirrored.remove("t", origin="any")) == ["s$t done"]
    assert mirrored.order == ["deregister_table s$t"]
    assert mirrored.outcomes[0].origin_age is None


@pytest.mark.parametrize(
    ("gaps", "outcome", "age"),
    [
        ((1.5,), "s$t done", 1.5),
        ((2.5, 0.5), "s$t done", 0.5),
        ((2.5, 3.5), "s$t skipped observation_too_old", 3.5),
    ],
)
def test_the_observation_is_repeated_once_and_may_not_be_too_old(
    mirrored: Mirrored, gaps: tuple[float, ...], outcome: str, age: float
) -> None:
    assert mirrored.apply(mirrored.remove("t"), monotonic=clock(*gaps)) == [outcome]
    assert mirrored.outcomes[0].origin_age == age
    assert mirrored.stores["b"].calls() == (["deregister_table s$t"] if outcome.endswith("done") else [])


def test_an_origin_that_does_not_answer_keeps_its_copy(mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(path: Any) -> Any:
        raise ServiceUnavailable("no answer")

    monkeypatch.setattr(mirrored.origin, "observe", silent)
    assert mirrored.apply(mirrored.remove("t")) == ["s$t failed 17"]
    assert mirrored.stores["b"].calls() == []
    assert mirrored.notes.list_open_intents() == []


def test_the_lease_is_asked_again_after_the_observation(mirrored: Mirrored) -> None:
    mirrored.notes.leases = [True, True, False]
    assert mirrored.apply(mirrored.remove("t")) == ["s$t skipped lease"]
    assert mirrored.stores["b"].calls() == []


def test_the_outcome_says_that_the_origin_is_back(mirrored: Mirrored) -> None:
    removal = mirrored.remove("t")
    mirrored.then = lambda about: about.startswith("deregister") and mirrored.stores["a"].add_table(("s", "t"))  # type: ignore[func-returns-value,return-value]
    assert mirrored.apply(removal) == ["s$t done origin_returned"]
    assert mirrored.outcomes[0].message == "after the change: the origin s$t exists: it was observed directly"


def test_the_outcome_says_that_the_origin_moved_on(mirrored: Mirrored) -> None:
    move = mirrored.move("t")
    mirrored.then = lambda about: about.startswith("update") and mirrored.stores["a"].remove(("s", "t"))  # type: ignore[func-returns-value,return-value]
    assert mirrored.apply(move) == ["s$t done origin_changed"]


def test_a_call_whose_response_was_lost_is_followed_by_the_same_observation(mirrored: Mirrored) -> None:
    removal = mirrored.remove("t")

    def lose(about: str) -> None:
        if about.startswith("deregister"):
            mirrored.stores["a"].add_table(("s", "t"))
            raise ServiceUnavailable("the response was lost")

    mirrored.then = lose
    assert mirrored.apply(removal) == ["s$t done origin_returned"]


@pytest.mark.parametrize(("late", "outcome"), [(True, "s$t done"), (False, "s$t failed 18")])
def test_a_call_with_an_unreadable_response_is_resolved_by_its_object(mirrored: Mirrored, late: bool, outcome: str) -> None:
    """Found by the proof (seed 22, run 13716): a removal whose response lacked its fields was not counted by the guard."""
    removal = mirrored.remove("t")

    def lose(about: str) -> None:
        if about == ("deregister_table s$t" if late else "observe s$t"):
            raise Internal("the response lacks what it always has")

    mirrored.then = lose
    if not late:
        mirrored.target.deregister_table = lambda *_, **__: lose("observe s$t")  # type: ignore[method-assign]
    assert mirrored.apply(removal) == [outcome]
