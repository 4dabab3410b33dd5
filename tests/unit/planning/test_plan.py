"""Plans: order of changes, digests of their evidence, one name per location, namespaces before their content."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from federator.connector import StateError
from federator.model import Kind, path_key
from federator.planning.changes import Action, Change, Refusal, record_from_json, record_to_json
from federator.planning.holds import Hold
from federator.planning.namespaces import add_missing_namespaces
from federator.planning.plan import Plan, check_plan, sort_changes
from federator.planning.plan_filters import refuse_duplicate_locations, refuse_missing_locations
from federator.planning.reasons import Reason
from tests.fixtures.planning import ANY, context, owned, table


def declare(path: str, location: str = "s3://x/t.lance", origin: str | None = None) -> Change:
    after = table("b", path, location, properties={"team": "x"})
    return Change(
        Action.DECLARE_TABLE,
        "b",
        path,
        "a",
        origin or path,
        "new",
        after=after,
        precondition={"target": "absent"},
        declared="{}",
    )


def remove(path: str) -> Change:
    return Change(Action.DEREGISTER_TABLE, "b", path, "a", path, "gone", before=owned(path), precondition={"target": "d"})


def move(path: str, old: str, new: str) -> Change:
    return Change(Action.UPDATE_TABLE, "b", path, "a", path, "moved", before=table("b", path, old), after=table("b", path, new))


def plan(*changes: Change, **fields: Any) -> Plan:
    refusals = (Refusal(Reason.NAME_TAKEN, "b", "s$x", "s$x", "there before us"),)
    return Plan(
        **{"mirror": "m", "mirror_digest": "d", "origin_revision": 3, "target_revision": 4, "refusals": refusals} | fields,
        changes=sort_changes(changes),
    )


class TestOrder:
    def test_names_are_freed_first_and_namespaces_precede_their_content(self) -> None:
        namespace = Change(Action.CREATE_NAMESPACE, "b", "s", "a", "s", "holds")
        deep = replace(namespace, target_path="s$deep")
        adopt = replace(move("s$a", "s3://1", "s3://1"), action=Action.ADOPT)
        steps = [remove("s$z"), namespace, deep, adopt, move("s$m", "s3://1", "s3://2"), declare("s$b"), declare("s$c")]
        for mixed in (steps[::-1], steps[3:] + steps[:3]):
            assert list(sort_changes(mixed)) == steps


class TestDigest:
    def test_a_plan_does_not_depend_on_the_order_of_decisions(self) -> None:
        changes = [declare("s$a"), declare("s$b"), remove("s$c"), move("s$d", "s3://1", "s3://2")]
        assert len({plan(*mixed).digest for mixed in permutations(changes)}) == 1

    def test_it_does_not_depend_on_the_revisions_numbers(self) -> None:
        assert plan(declare("s$a")).digest == plan(declare("s$a"), origin_revision=9, target_revision=8).digest

    @pytest.mark.parametrize(
        "fields",
        [{"mirror": "n"}, {"mirror_digest": "e"}, {"refusals": ()}, {"holds": (Hold("max_changes", "2"),)}, {"selected": 7}],
        ids=lambda fields: next(iter(fields)),
    )
    def test_it_covers_everything_else(self, fields: dict[str, Any]) -> None:
        assert plan(declare("s$a")).digest != plan(declare("s$a"), **fields).digest

    def test_it_covers_every_word_of_a_change(self) -> None:
        change = declare("s$a")
        others = [
            replace(change, action=Action.ADOPT), replace(change, target_path="s$b"), replace(change, origin_path="s$b"),
            replace(change, target_source="c"), replace(change, origin_source="c"), replace(change, reason="why"),
            replace(change, before=owned()), replace(change, after=table("b", "s$a", "s3://else")), replace(change, declared=None),
            replace(change, precondition={"target": "other"}),
        ]  # fmt: skip
        assert len({plan(other).digest for other in [change, *others]}) == len(others) + 1


class TestOnDisk:
    def test_a_plan_survives_json(self) -> None:
        made = plan(declare("s$a%24b"), remove("s$c"), holds=(Hold("never_empty", "x"),), selected=3)
        again = Plan.from_json(json.loads(json.dumps(made.to_json())))
        assert again == made
        assert again.digest == made.digest

    def test_a_record_survives_json_with_all_it_has(self) -> None:
        record = table(
            "b", "a%24$t", None, doc="d", owner="o", schema="[]", native_id="1", version="2", kind=Kind.UNDESCRIBED, problem="p"
        )
        assert record_from_json(json.loads(json.dumps(record_to_json(record)))) == record

    def test_an_altered_plan_is_refused(self) -> None:
        made = plan(declare("s$a"))
        body = json.loads(json.dumps(made.to_json()))
        body["changes"][0]["after"]["location"] = "s3://mine/now"
        altered = Plan.from_json(body)
        check_plan(made, digest=made.digest, mirror_digest="d")
        with pytest.raises(StateError, match="altered"):
            check_plan(altered, digest=made.digest, mirror_digest="d")

    def test_a_plan_for_another_configuration_is_refused(self) -> None:
        made = plan(declare("s$a"))
        with pytest.raises(StateError, match=r"configuration of mirror .* has changed"):
            check_plan(made, digest=made.digest, mirror_digest="changed")


class TestOneNamePerLocation:
    def names(
        self, changes: list[Change], declared: dict[str, list[str]], leaving: tuple[str, ...] = ()
    ) -> tuple[set[str], set[str]]:
        kept, refusals = refuse_duplicate_locations(changes, declared, leaving)
        assert {refusal.reason for refusal in refusals} <= {Reason.LOCATION_DECLARED}
        return {change.target_path for change in kept}, {refusal.target_path for refusal in refusals}

    def test_a_location_that_the_target_declares_gets_no_second_name(self) -> None:
        assert self.names([declare("s$a")], {"s3://x/t.lance": ["old$t"]}) == (set(), {"s$a"})
        assert self.names([declare("s$a")], {"s3://x/t.lance": ["s$a"]}) == ({"s$a"}, set())
        assert self.names([declare("s$a")], {"s3://elsewhere": ["old$t"]}) == ({"s$a"}, set())

    def test_spellings_of_one_location_are_one(self) -> None:
        assert self.names([declare("s$a", "s3a://x/t.lance/")], {"s3://x/t.lance": ["old$t"]}) == (set(), {"s$a"})

    def test_of_two_origins_the_first_by_path_gets_the_name(self) -> None:
        one, two = declare("s$b", origin="s$1"), declare("s$a", origin="s$2")
        for mixed in ([one, two], [two, one]):
            assert self.names(mixed, {}) == ({"s$b"}, {"s$a"})

    def test_a_name_that_this_plan_frees_does_not_count(self) -> None:
        assert self.names([declare("s$a")], {"s3://x/t.lance": ["old$t"]}, ("old$t",)) == ({"s$a"}, set())

    def test_a_move_must_not_end_where_another_name_points(self) -> None:
        declared = {"s3://1": ["s$a"], "s3://2": ["s$b"]}
        assert self.names([move("s$a", "s3://1", "s3://2")], declared) == (set(), {"s$a"})
        assert self.names([move("s$a", "s3://1", "s3://3")], declared) == ({"s$a"}, set())

    def test_two_tables_may_swap_locations(self) -> None:
        swap = [move("s$a", "s3://1", "s3://2"), move("s$b", "s3://2", "s3://1")]
        assert self.names(swap, {"s3://1": ["s$a"], "s3://2": ["s$b"]}) == ({"s$a", "s$b"}, set())

    def test_who_waits_for_a_refused_move_is_refused_too(self) -> None:
        chain = [move("s$a", "s3://1", "s3://2"), move("s$b", "s3://2", "s3://3"), declare("s$d", "s3://1")]
        declared = {"s3://1": ["s$a"], "s3://2": ["s$b"], "s3://3": ["s$c"]}
        assert self.names(chain, declared) == (set(), {"s$a", "s$b", "s$d"})

    def test_everything_else_is_let_through(self) -> None:
        changes = [
            remove("s$a"),
            replace(move("s$b", "s3://1", "s3://1"), action=Action.ADOPT),
            move("s$c", "s3://1", "s3://1"),
        ]
        assert self.names(changes, {"s3://1": ["s$z"]}) == ({"s$a", "s$b", "s$c"}, set())


class TestLocationsThatDoNotExist:
    @pytest.mark.parametrize("state", ["valid", "declared_only", "empty", "not_lance", "corrupt"])
    def test_a_location_with_content_may_be_declared(self, state: str) -> None:
        kept, refusals = refuse_missing_locations([declare("s$a")], {"s3://x/t.lance": state}, allowed=False)
        assert (len(kept), refusals) == (1, [])

    @pytest.mark.parametrize("state", ["missing", "denied", "unreachable", None])
    def test_any_other_location_may_not_be_declared(self, state: str | None) -> None:
        states = {"s3://x/t.lance": state} if state else {}
        kept, refusals = refuse_missing_locations([declare("s$a"), remove("s$b")], states, allowed=False)
        assert [change.target_path for change in kept] == ["s$b"]
        assert [refusal.reason for refusal in refusals] == [Reason.LOCATION_MISSING]
        assert "declare_missing" in refusals[0].detail
        assert refuse_missing_locations([declare("s$a")], states, allowed=True)[1] == []


class TestNamespaces:
    def test_each_missing_level_is_created_once(self) -> None:
        changes, refusals = add_missing_namespaces(
            context(), [declare("a$b$t"), declare("a$b$u"), declare("c$t"), declare("t")], {"c"}
        )
        created = [change.target_path for change in sort_changes(changes) if change.action is Action.CREATE_NAMESPACE]
        assert (created, refusals) == (["a", "a$b"], [])

    def test_nothing_is_created_for_anything_but_a_declaration(self) -> None:
        changes, _ = add_missing_namespaces(context(), [remove("a$t"), move("b$t", "s3://1", "s3://2")], set())
        assert [change.action for change in changes] == [Action.DEREGISTER_TABLE, Action.UPDATE_TABLE]

    def test_a_namespace_that_cannot_be_created_refuses_its_content(self) -> None:
        at = context(replace(ANY, creates_namespaces_at=frozenset({2})))
        changes, refusals = add_missing_namespaces(at, [declare("a$b$t"), declare("c$d$t")], {"c"})
        assert {change.target_path for change in changes} == {path_key(("c", "d")), "c$d$t"}
        assert [(refusal.reason, refusal.target_path) for refusal in refusals] == [(Reason.NAMESPACE_MISSING, "a$b$t")]

    def test_refusals_are_handed_on(self) -> None:
        refusal = Refusal(Reason.MISSES, "b", "s$t", "s$t")
        assert add_missing_namespaces(context(), [refusal], set()) == ([], [refusal])
