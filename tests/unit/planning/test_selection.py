"""Selection by name, which is permanent, and by fields of a table, which may change."""

from __future__ import annotations

from typing import Any

import pytest

from federator.model import Kind
from federator.planning.cells import LedgerRow
from federator.planning.changes import Action, Change, Refusal
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule, TableFilter
from federator.planning.selection import describe_failed_filter, is_selected, matches_pattern
from tests.fixtures.planning import context, knows, owned, table
from tests.prove.rules_in_memory import decide_all


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("sales$*", "sales$eu$t", True), ("sales$*", "Sales$t", False), ("re:sales\\$(eu|us)\\$.*", "sales$eu$t", True),
        ("re:sales", "sales$t", False), ("re:.*_v\\d+", "t_v12", True), ("re:(?i)SALES.*", "sales", True), ("re:a.b", "a\nb", True),
    ],
)  # fmt: skip
def test_a_pattern_is_a_glob_or_a_regular_expression_over_the_whole_text(pattern: str, text: str, matches: bool) -> None:
    assert matches_pattern(pattern, text) is matches


def test_regular_expressions_select_and_exclude_names() -> None:
    rule = MirrorRule(name="m", origin="a", target="b", include=("re:s\\$.*",), exclude=("re:.*\\$tmp_\\d+",))
    assert [is_selected(rule, ("s", name)) for name in ("t", "tmp_1", "tmp_x")] == [True, False, True]


@pytest.mark.parametrize(
    ("where", "fields", "passes"),
    [
        ({"owner": ("etl*",)}, {"owner": "etl-eu"}, True),
        ({"owner": ("etl*",)}, {"owner": "ann"}, False),
        ({"owner": ("etl*",)}, {}, False),
        ({"owner": ("",)}, {}, True),
        ({"location": ("s3://prod/*",)}, {"location": "s3a://prod/t"}, True),
        ({"location": ("s3a://prod/*",)}, {"location": "s3a://prod/t"}, True),
        ({"location": ("s3://prod/*",)}, {"location": "s3://dev/t"}, False),
        ({"location": ("s3://prod/*",)}, {"location": None}, False),
        ({"properties": (("team", "sales*"),)}, {"properties": {"team": "sales-eu"}}, True),
        ({"properties": (("team", "sales*"),)}, {"properties": {"team": "ops"}}, False),
        ({"properties": (("team", "*"),)}, {"properties": {}}, False),
        ({"properties": (("pii", "!yes"),)}, {"properties": {"pii": "yes"}}, False),
        ({"properties": (("pii", "!yes"),)}, {"properties": {"pii": "no"}}, True),
        ({"properties": (("pii", "!yes"),)}, {"properties": {}}, True),
        ({"properties": (("a", "1"), ("b", "1"))}, {"properties": {"a": "1"}}, False),
        ({"owner": ("etl",), "location": ("s3://x/*",)}, {"owner": "etl"}, True),
        ({"properties": (("team", "x"),)}, {"kind": Kind.UNDESCRIBED}, True),
    ],
)
def test_every_filter_must_let_a_table_through(where: dict[str, Any], fields: dict[str, Any], passes: bool) -> None:
    rule = MirrorRule(name="m", origin="a", target="b", where=TableFilter(**where))
    location = fields.pop("location", "s3://x/t.lance")
    assert (describe_failed_filter(rule, table("a", "s$t", location, **fields)) == "") is passes


class TestAFilterNeverDeregisters:
    AT = context(where=TableFilter(properties=(("team", "sales"),)))
    ROW = LedgerRow(origin_source="a", origin_path="s$t", target_path="s$t", op_id="op1", native_id="n1")
    OTHER = table("a", "s$t", properties={"team": "ops"})

    def test_a_table_that_no_longer_passes_a_filter_is_unselected_and_stays(self) -> None:
        found = decide_all(self.AT, knows(s_t=(0.0, 600.0)), [self.OTHER], [owned()], [self.ROW])
        (refusal,) = found.decisions
        assert isinstance(refusal, Refusal)
        assert refusal.reason is Reason.UNSELECTED
        assert found.selected_count == 0

    def test_unless_the_mirror_prunes(self) -> None:
        at = context(where=self.AT.rule.where, prune_unselected=True)
        (change,) = decide_all(at, knows(), [self.OTHER], [owned()], [self.ROW]).decisions
        assert isinstance(change, Change)
        assert (change.action, change.precondition["origin"]) == (Action.DEREGISTER_TABLE, "any")

    def test_a_table_that_never_passed_a_filter_has_no_decision(self) -> None:
        assert decide_all(self.AT, knows(), [self.OTHER], [], []).decisions == []
        assert decide_all(self.AT, knows(), [self.OTHER], [owned()], []).decisions == []

    def test_an_absent_table_is_absent_whatever_its_properties(self) -> None:
        row = LedgerRow(**{**{f: getattr(self.ROW, f) for f in LedgerRow.__slots__}, "origin_exists": False})
        (change,) = decide_all(self.AT, knows(s_t=(0.0, 600.0)), [], [owned()], [row]).decisions
        assert isinstance(change, Change)
        assert change.action is Action.DEREGISTER_TABLE
