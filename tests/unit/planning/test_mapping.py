"""What a mirror selects, how it is called at the target, and what exactly is declared there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from federator.connector import Capabilities, NameRules
from federator.model import Path, parse_key, path_key
from federator.planning.mapping import desire, level_names, target_path
from federator.planning.marks import Mark, bound_mark, plain_doc, with_comment
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule, Relocate, Replace
from federator.planning.selection import selected
from tests.fixtures.planning import ANY, context, ours, table

FOLDING = Capabilities(2, 2, ("catalog", "database"), NameRules(r"[a-z0-9_]+", 10, folds_case=True))
HIVE = ("catalog", "database")


@pytest.mark.parametrize(
    ("include", "exclude", "path", "taken"),
    [
        (["*"], [], "t", True),
        (["hive$sales$*"], [], "hive$sales$t", True),
        (["hive$sales$*"], [], "hive$sales2$t", False),
        (["*$sales$*"], [], "hive$sales$t", True),
        (["*"], ["*$tmp_*"], "hive$s$tmp_1", False),
        (["a$*", "b$*"], [], "b$t", True),
        (["a$*"], ["a$x$*"], "a$x$y", False),
        (["Sales$*"], [], "sales$t", False),
        ([], [], "t", False),
        (["a%24b$*"], [], "a%24b$t", True),
        (["s$t[12]"], [], "s$t3", False),
    ],
)
def test_globs_select_by_the_whole_path(include: list[str], exclude: list[str], path: str, taken: bool) -> None:
    rule = MirrorRule(name="m", origin="a", target="b", include=tuple(include), exclude=tuple(exclude))
    assert selected(rule, parse_key(path)) is taken


class TestNames:
    @pytest.mark.parametrize(
        ("rule", "levels", "origin", "target"),
        [
            ({}, HIVE, "hive$sales$t", "hive$sales$t"),
            ({"namespace": "{database}"}, HIVE, "hive$sales$t", "sales$t"),
            ({"namespace": "lake${catalog}_{database}"}, HIVE, "hive$sales$t", "lake$hive_sales$t"),
            ({"namespace": "fixed"}, HIVE, "hive$sales$t", "fixed$t"),
            ({"namespace": ""}, HIVE, "hive$sales$t", "t"),
            ({"namespace": "{catalog}${database}"}, HIVE, "sales$t", "sales$t"),
            ({"table": "{database}_{table}"}, HIVE, "hive$sales$t", "hive$sales$sales_t"),
            ({"namespace": "{database}"}, HIVE, "hive$a%24b$t", "a%24b$t"),
            ({"namespace": "x", "table": "{table}"}, (), "s$t%24u", "x$t%24u"),
        ],
    )
    def test_templates_fill_in_the_origins_levels(self, rule: dict[str, Any], levels: Path, origin: str, target: str) -> None:
        assert path_key(target_path(context(levels=levels, **rule), parse_key(origin))) == target

    @pytest.mark.parametrize(
        ("levels", "nested", "above", "names"),
        [
            (HIVE, None, ("c", "d"), {"catalog": ("c",), "database": ("d",)}),
            (HIVE, None, ("d",), {"database": ("d",)}),
            (HIVE, None, ("c", "d", "e"), {"catalog": ("c",), "database": ("d", "e")}),
            (HIVE, "catalog", ("c", "d", "e", "f"), {"catalog": ("c", "d", "e"), "database": ("f",)}),
            (("namespace",), None, ("a", "b", "c"), {"namespace": ("a", "b", "c")}),
            (("namespace",), None, (), {}),
            ((), None, ("a", "b"), {}),
        ],
    )
    def test_the_level_that_repeats_takes_what_a_deeper_tree_has_more(
        self, levels: Path, nested: str | None, above: Path, names: dict[str, Path]
    ) -> None:
        assert level_names(levels, nested, (*above, "t")) == names

    @pytest.mark.parametrize(
        ("rule", "origin", "target"),
        [
            ({"namespace": "{catalog}${database}"}, "a$b$db$t", "a$b$db$t"),
            ({"namespace": "{catalog[-1]}${database}"}, "a$b$db$t", "b$db$t"),
            ({"namespace": "{catalog[0]}_{catalog[1]}${database}"}, "a$b$db$t", "a_b$db$t"),
            ({"namespace": "{catalog[5]}${database}"}, "a$b$db$t", "db$t"),
            ({"namespace": "{catalog}.x"}, "a$b$db$t", "a_b.x$t"),
            ({"namespace": "", "table": "{catalog}_{database}_{table}"}, "a$b$db$t", "a_b_db_t"),
            ({"prefix": "p_", "suffix": "_s"}, "a$db$t", "a$db$p_t_s"),
            ({"table": "{database}_{table}", "prefix": "p_"}, "a$db$t", "a$db$p_db_t"),
            ({"replace": (Replace("^tmp_(.*)$", r"\1_tmp"),)}, "a$db$tmp_t", "a$db$t_tmp"),
            ({"replace": (Replace("-", "_", "database"), Replace("o", "0"))}, "a-a$d-b$foo", "a-a$d_b$f00"),
            ({"replace": (Replace("-", "_", "catalog"),)}, "a-a$b-b$d-b$t", "a_a$b_b$d-b$t"),
            ({"replace": (Replace("a", "b"), Replace("b", "c"))}, "a$a$a", "a$a$c"),
            ({"namespace": "{database}", "replace": (Replace("x", r"$", "database"),)}, "a$dxb$t", "d%24b$t"),
        ],
    )
    def test_nested_levels_replacements_prefix_and_suffix(self, rule: dict[str, Any], origin: str, target: str) -> None:
        at = replace(context(levels=HIVE, **rule), nested="catalog")
        assert path_key(target_path(at, parse_key(origin))) == target

    def test_hierarchies_of_any_depth_meet(self) -> None:
        unity = Capabilities(2, 2, ("catalog", "schema"))
        flat = Capabilities(0, 0)
        for to, levels, rule, origin, target in [
            (unity, ("database",), {"namespace": "main${database}"}, "sales$t", "main$sales$t"),
            (unity, ("namespace",), {"namespace": "{namespace[0]}${namespace[-1]}"}, "a$b$c$t", "a$c$t"),
            (flat, HIVE, {"namespace": "", "table": "{catalog}.{database}.{table}"}, "hive$sales$t", "hive.sales.t"),
            (unity, (), {"namespace": "lake$files"}, "t", "lake$files$t"),
        ]:
            made = desire(context(to, levels=levels, **rule), table("a", origin))
            assert made.refusal is None
            assert made.record is not None
            assert made.record.key == target

    def test_a_prefix_makes_no_table_of_an_empty_name(self) -> None:
        at = context(levels=HIVE, prefix="x", replace=(Replace(".*", ""),))
        assert desire(at, table("a", "c$d$t")).refusal is Reason.NAME_NOT_ALLOWED

    def test_the_targets_case_is_applied_before_anything_is_compared(self) -> None:
        assert target_path(context(FOLDING, levels=HIVE), ("Hive", "Sales", "Orders")) == ("hive", "sales", "orders")
        made = desire(context(FOLDING, levels=HIVE), table("a", "Hive$Sales$Orders"))
        assert made.record is not None
        mark = bound_mark(made.record)
        assert mark is not None
        assert (made.record.key, mark.origin) == ("hive$sales$orders", "a$Hive$Sales$Orders")

    def test_a_target_with_a_home_puts_it_before_a_path_without_it(self) -> None:
        glue = Capabilities(1, 5, HIVE)
        at = context(glue, levels=("database",), home=("123",))
        assert target_path(at, ("sales", "t")) == ("123", "sales", "t")
        assert target_path(at, ("child", "sales", "t")) == ("child", "sales", "t")

    def test_a_home_need_not_obey_the_rules_for_names(self) -> None:
        strict = Capabilities(1, 2, HIVE, NameRules("[a-z]+"))
        at = context(strict, levels=("database",), home=("123:x",))
        assert desire(at, table("a", "s$t")).refusal is None
        assert desire(at, table("a", "123:x$s$t")).refusal is None
        assert desire(at, table("a", "456:y$s$t")).refusal is Reason.NAME_NOT_ALLOWED


class TestRefusals:
    @pytest.mark.parametrize("key", ["t", "s$t", "a$b$c$t"])
    def test_a_depth_that_the_target_does_not_take(self, key: str) -> None:
        assert desire(context(FOLDING, levels=HIVE), table("a", key)).refusal is Reason.DEPTH

    @pytest.mark.parametrize("name", ["with space", "a-b", "much_too_long_a_name", "é"])
    def test_a_name_that_the_target_does_not_take(self, name: str) -> None:
        for key in (f"c$d${name}", f"c${name}$t"):
            assert desire(context(FOLDING, levels=HIVE), table("a", key)).refusal is Reason.NAME_NOT_ALLOWED

    def test_a_table_template_that_comes_out_empty(self) -> None:
        at = context(levels=HIVE, table="{catalog}")
        assert desire(at, table("a", "s$t")).refusal is Reason.NAME_NOT_ALLOWED

    @pytest.mark.parametrize("location", [None, "", "relative", "C:\\x"])
    def test_an_origin_without_a_place(self, location: str | None) -> None:
        assert desire(context(), table("a", "s$t", location)).refusal is Reason.NO_LOCATION


class TestMirrorsOfMirrors:
    def test_a_copy_is_no_origin_whoever_made_it(self) -> None:
        for mark in (Mark("me", "m", "z$s$t"), Mark("stranger", "x", "z$s$t")):
            assert desire(context(), ours("s$t", mark=mark)).refusal is Reason.LOOP

    def test_a_mark_of_another_path_makes_no_copy_and_does_not_travel(self) -> None:
        copied = table("a", "s$t", properties={**Mark("x", "y", "z$q").properties(("s", "elsewhere")), "team": "x"})
        made = desire(context(), copied)
        assert made.record is not None
        assert bound_mark(made.record) == Mark("me", "m", "a$s$t")
        assert made.record.properties["team"] == "x"

    def test_forwarding_keeps_the_first_origin(self) -> None:
        made = desire(context(transitive=True), ours("s$t", mark=Mark("me", "first", "z$s$t")))
        assert made.record is not None
        mark = bound_mark(made.record)
        assert mark is not None
        assert (mark.mirror, mark.origin) == ("m", "z$s$t")

    def test_forwarding_never_returns_to_the_first_origin(self) -> None:
        assert desire(context(transitive=True), ours("s$t", mark=Mark("me", "first", "b$s$t"))).refusal is Reason.LOOP


class TestWhatTravels:
    @pytest.mark.parametrize(
        "key",
        [
            "storage.secret_access_key", "aws.session-token", "PASSWORD", "account_key", "client.credential", "azure_sas",
            "endpoint", "aws_endpoint_url", "storage.allow_http", "proxy.url", "transient_lastDdlTime", "numFiles",
            "federator.instance.old",
        ],
    )  # fmt: skip
    def test_secrets_endpoints_statistics_and_marks_stay(self, key: str) -> None:
        made = desire(context(), table("a", "s$t", properties={key: "value", "team": "x", "storage.region": "eu"}))
        assert made.record is not None
        assert {k for k in made.record.properties if not k.startswith("federator.")} == {"team", "storage.region"}
        assert key not in made.record.properties

    @pytest.mark.parametrize(
        ("rule", "kept"),
        [
            ({}, {"team", "storage.region", "storage.x"}),
            ({"deny_properties": ("storage.*",)}, {"team"}),
            ({"allow_properties": ("team",)}, {"team"}),
            ({"allow_properties": ("re:storage\\..*",), "deny_properties": ("*x",)}, {"storage.region"}),
            ({"allow_properties": ("password", "*")}, {"team", "storage.region", "storage.x"}),
            ({"allow_properties": ()}, set()),
        ],
    )
    def test_lists_of_properties_narrow_what_travels(self, rule: dict[str, Any], kept: set[str]) -> None:
        properties = {"team": "x", "storage.region": "eu", "storage.x": "1", "password": "p"}
        made = desire(context(**rule), table("a", "s$t", properties=properties))
        assert made.record is not None
        assert {key for key in made.record.properties if not key.startswith("federator.")} == kept

    @pytest.mark.parametrize(
        ("location", "there"),
        [
            ("s3a://b/t", "s3://b/t"), ("s3://eu/t", "gs://us/t"), ("s3://eu", "gs://us"), ("s3://eu2/t", "s3://eu2/t"),
            ("S3A://b/t", "S3A://b/t"), ("/data/t", "/data/t"),
        ],
    )  # fmt: skip
    def test_a_place_is_exchanged_up_to_a_slash_by_the_first_entry_that_fits(self, location: str, there: str) -> None:
        moves = (Relocate("s3a://", "s3://"), Relocate("s3://eu", "gs://us"), Relocate("s3://", "never://"))
        made = desire(context(location=moves[:2]), table("a", "s$t", location))
        assert made.record is not None
        assert made.record.location == there

    def test_where_properties_are_refused_the_mark_ends_the_comment_and_nothing_else_travels(self) -> None:
        at = context(replace(ANY, keeps_properties=False))
        made = desire(at, table("a", "s$t", doc="orders", properties={"team": "x"}))
        assert made.record is not None
        assert made.record.properties == {}
        assert plain_doc(made.record.doc) == "orders"
        assert bound_mark(made.record) == Mark("me", "m", "a$s$t")

    def test_where_comments_are_refused_as_well_nothing_is_said(self) -> None:
        at = context(replace(ANY, keeps_properties=False, keeps_comment=False))
        made = desire(at, table("a", "s$t", doc="orders", properties={"team": "x"}))
        assert made.record is not None
        assert (made.record.properties, made.record.doc) == ({}, None)

    def test_a_mark_in_the_origins_comment_does_not_travel(self) -> None:
        doc = with_comment("orders", Mark("x", "y", "z$q"), ("s", "elsewhere"))
        made = desire(context(), table("a", "s$t", doc=doc))
        assert made.record is not None
        assert made.record.doc == "orders"

    def test_location_and_doc_travel_as_they_are_written(self) -> None:
        made = desire(context(), table("a", "s$t", "s3a://b/T.lance/", doc="orders", owner="ann", native_id="7", version="3"))
        assert made.record is not None
        assert (made.record.location, made.record.doc) == ("s3a://b/T.lance/", "orders")
        assert (made.record.owner, made.record.native_id, made.record.version) == (None, None, None)
