"""Mapping: selected tables, their paths at the target, and the exact records that are declared there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from federator.connector import Capabilities, LocationRules, NameRules
from federator.model import Path, parse_path_key, path_key
from federator.planning.mapping import MirrorContext, map_path, map_table, names_by_level
from federator.planning.ownership import OwnershipMarker, append_comment_marker, find_bound_marker, strip_comment_marker
from federator.planning.reasons import Reason
from federator.planning.rule import LocationReplacement, MirrorRule, NameReplacement
from federator.planning.selection import is_selected
from tests.fixtures.planning import ANY, context, owned, table

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
    assert is_selected(rule, parse_path_key(path)) is taken


class TestLocations:
    def test_a_location_that_the_target_does_not_accept_is_refused(self) -> None:
        target = replace(ANY, locations=LocationRules(r"[^ ]+"))
        mapped = map_table(context(target), table("a", "s$t", location="s3://lake/a b"))
        assert (mapped.refusal, mapped.record) == (Reason.NO_LOCATION, None)
        assert "s3://lake/a b" in mapped.detail
        assert map_table(context(target), table("a", "s$t", location="s3://lake/a%20b")).refusal is None

    @pytest.mark.parametrize(
        ("path", "location", "allowed"),
        [
            ("t", "file:/lake/t.lance", True),
            ("t", "file:///lake/t", True),
            ("a b", "file:///lake/a%20b.lance", True),
            ("t", "file:///lake/other.lance", False),
            ("t", "file:///lake/s/t.lance", False),
            ("s$t", "file:///lake/other.lance", True),
            ("s$t", "file:///lake/x/y", True),
            ("s$t", "file:///lake", False),
            ("s$t", "file:///lake2/t.lance", False),
            ("s$t", "file:///lake/../t.lance", False),
            ("s$t", "s3://lake/t.lance", False),
        ],
    )
    def test_a_directory_declares_only_what_is_below_it(self, path: str, location: str, allowed: bool) -> None:
        target = replace(ANY, min_depth=0, locations=LocationRules(directory="file:///lake"))
        mapped = map_table(context(target), table("a", path, location=location))
        assert (mapped.refusal, mapped.record is not None) == (None if allowed else Reason.NO_LOCATION, allowed)

    @pytest.mark.parametrize(
        ("origin", "target", "refusal"),
        [("x", "x", Reason.LOCATION_DECLARED), ("x", "y", None), (None, None, None), ("x", None, None)],
    )
    def test_a_server_that_gives_a_location_to_one_table_only(
        self, origin: str | None, target: str | None, refusal: Reason | None
    ) -> None:
        """Every copy within one such server would be denied, unless the mirror gives it another location."""
        rule = MirrorRule(name="m", origin="a", target="b")
        first, second = (replace(ANY, locations=LocationRules(exclusive_in=server)) for server in (origin, target))
        for moved, expected in (
            (rule, refusal),
            (replace(rule, location=(LocationReplacement("s3://lake", "s3://copy"),)), None),
        ):
            mapped = map_table(
                MirrorContext.from_rule(moved, "me", first, second, (), [rule]), table("a", "s$t", location="s3://lake/t")
            )
            assert mapped.refusal == expected


def test_columns_are_declared_where_the_target_keeps_them() -> None:
    origin = table("a", "s$t", schema='[{"name":"id","type":"bigint"}]')
    for keeps_columns, expected in ((True, origin.schema), (False, None)):
        mapped = map_table(context(replace(ANY, keeps_columns=keeps_columns)), origin)
        assert mapped.record is not None
        assert mapped.record.schema == expected


class TestRefusedNames:
    RULES = NameRules(r"[^\x00]+", refusals=(r".*/.*", r".*[:/].*"))

    @pytest.mark.parametrize(
        ("refused", "allowed", "not_allowed"),
        [
            ((), ["a/b", "a:b", "a b"], []),
            (("a/b",), ["ab", "x:y", "a b"], ["a/b", "x/y", "/"]),
            (("a:b",), ["ab", "a b"], ["a:b", "x:y", "x/y"]),
            (("a b", "(x)"), ["ab", "x y", "x:y", "x"], ["a b", "(x)"]),
            (("a b", "a/b"), ["x y", "x:y"], ["a b", "x/y"]),
        ],
    )
    def test_a_refused_name_shows_the_mildest_rule_that_refuses_it(
        self, refused: tuple[str, ...], allowed: list[str], not_allowed: list[str]
    ) -> None:
        rules = self.RULES.restricted_by(refused)
        assert [name for name in (*allowed, *not_allowed) if rules.allows(name)] == allowed

    def test_names_of_namespaces_and_of_tables_are_learned_apart(self) -> None:
        learned = replace(ANY, names=self.RULES).restricted_by({"a:b"}, {"a/b"})
        assert learned.name_rules(namespace=False).allows("x:y")
        assert not learned.name_rules(namespace=False).allows("x/y")
        assert not learned.name_rules(namespace=True).allows("x:y")
        mapped = map_table(context(learned), table("a", "s$x/y"))
        assert mapped.refusal == Reason.NAME_NOT_ALLOWED
        assert ANY.restricted_by((), ()) == ANY


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
        assert path_key(map_path(context(levels=levels, **rule), parse_path_key(origin))) == target

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
        assert names_by_level(levels, nested, (*above, "t")) == names

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
            ({"replace": (NameReplacement("^tmp_(.*)$", r"\1_tmp"),)}, "a$db$tmp_t", "a$db$t_tmp"),
            ({"replace": (NameReplacement("-", "_", "database"), NameReplacement("o", "0"))}, "a-a$d-b$foo", "a-a$d_b$f00"),
            ({"replace": (NameReplacement("-", "_", "catalog"),)}, "a-a$b-b$d-b$t", "a_a$b_b$d-b$t"),
            ({"replace": (NameReplacement("a", "b"), NameReplacement("b", "c"))}, "a$a$a", "a$a$c"),
            ({"namespace": "{database}", "replace": (NameReplacement("x", r"$", "database"),)}, "a$dxb$t", "d%24b$t"),
        ],
    )
    def test_nested_levels_replacements_prefix_and_suffix(self, rule: dict[str, Any], origin: str, target: str) -> None:
        at = replace(context(levels=HIVE, **rule), repeating_level="catalog")
        assert path_key(map_path(at, parse_path_key(origin))) == target

    def test_hierarchies_of_any_depth_meet(self) -> None:
        unity = Capabilities(2, 2, ("catalog", "schema"))
        flat = Capabilities(0, 0)
        for to, levels, rule, origin, target in [
            (unity, ("database",), {"namespace": "main${database}"}, "sales$t", "main$sales$t"),
            (unity, ("namespace",), {"namespace": "{namespace[0]}${namespace[-1]}"}, "a$b$c$t", "a$c$t"),
            (flat, HIVE, {"namespace": "", "table": "{catalog}.{database}.{table}"}, "hive$sales$t", "hive.sales.t"),
            (unity, (), {"namespace": "lake$files"}, "t", "lake$files$t"),
        ]:
            mapping = map_table(context(to, levels=levels, **rule), table("a", origin))
            assert mapping.refusal is None
            assert mapping.record is not None
            assert mapping.record.key == target

    def test_a_prefix_makes_no_table_of_an_empty_name(self) -> None:
        at = context(levels=HIVE, prefix="x", replace=(NameReplacement(".*", ""),))
        assert map_table(at, table("a", "c$d$t")).refusal is Reason.NAME_NOT_ALLOWED

    def test_the_targets_case_is_applied_before_anything_is_compared(self) -> None:
        assert map_path(context(FOLDING, levels=HIVE), ("Hive", "Sales", "Orders")) == ("hive", "sales", "orders")
        mapping = map_table(context(FOLDING, levels=HIVE), table("a", "Hive$Sales$Orders"))
        assert mapping.record is not None
        mark = find_bound_marker(mapping.record)
        assert mark is not None
        assert (mapping.record.key, mark.origin) == ("hive$sales$orders", "a$Hive$Sales$Orders")

    def test_a_target_with_a_home_puts_it_before_a_path_without_it(self) -> None:
        glue = Capabilities(1, 5, HIVE)
        at = context(glue, levels=("database",), home=("123",))
        assert map_path(at, ("sales", "t")) == ("123", "sales", "t")
        assert map_path(at, ("child", "sales", "t")) == ("child", "sales", "t")

    def test_a_home_need_not_obey_the_rules_for_names(self) -> None:
        strict = Capabilities(1, 2, HIVE, NameRules("[a-z]+"))
        at = context(strict, levels=("database",), home=("123:x",))
        assert map_table(at, table("a", "s$t")).refusal is None
        assert map_table(at, table("a", "123:x$s$t")).refusal is None
        assert map_table(at, table("a", "456:y$s$t")).refusal is Reason.NAME_NOT_ALLOWED


class TestRefusals:
    @pytest.mark.parametrize("key", ["t", "s$t", "a$b$c$t"])
    def test_a_depth_that_the_target_does_not_take(self, key: str) -> None:
        assert map_table(context(FOLDING, levels=HIVE), table("a", key)).refusal is Reason.DEPTH

    @pytest.mark.parametrize("name", ["with space", "a-b", "much_too_long_a_name", "é"])
    def test_a_name_that_the_target_does_not_take(self, name: str) -> None:
        for key in (f"c$d${name}", f"c${name}$t"):
            assert map_table(context(FOLDING, levels=HIVE), table("a", key)).refusal is Reason.NAME_NOT_ALLOWED

    def test_a_table_template_that_comes_out_empty(self) -> None:
        at = context(levels=HIVE, table="{catalog}")
        assert map_table(at, table("a", "s$t")).refusal is Reason.NAME_NOT_ALLOWED

    @pytest.mark.parametrize("location", [None, "", "relative", "C:\\x"])
    def test_an_origin_without_a_location(self, location: str | None) -> None:
        assert map_table(context(), table("a", "s$t", location)).refusal is Reason.NO_LOCATION


class TestMirrorsOfMirrors:
    def test_a_mirrors_table_is_no_origin_of_another_mirror(self) -> None:
        for mark in (OwnershipMarker("me", "m", "z$s$t"), OwnershipMarker("stranger", "x", "z$s$t")):
            mapping = map_table(context(), owned("s$t", mark=mark))
            assert mapping.refusal is Reason.LOOP
            assert mapping.detail.endswith("; transitive = true forwards copies")

    def test_a_copy_from_the_target_itself_has_no_remedy(self) -> None:
        assert "transitive" not in map_table(context(), owned("s$t", mark=OwnershipMarker("me", "m", "b$s$t"))).detail

    def test_a_mark_of_another_path_makes_no_copy_and_does_not_travel(self) -> None:
        copied = table(
            "a", "s$t", properties={**OwnershipMarker("x", "y", "z$q").to_properties(("s", "elsewhere")), "team": "x"}
        )
        mapping = map_table(context(), copied)
        assert mapping.record is not None
        assert find_bound_marker(mapping.record) == OwnershipMarker("me", "m", "a$s$t")
        assert mapping.record.properties["team"] == "x"

    @pytest.mark.parametrize("key", ["other$s$t", "other$main$s$t", "t"])
    def test_a_copy_that_is_read_with_more_or_fewer_levels_is_no_origin(self, key: str) -> None:
        """Through another federator, or one metastore by Hive 2 and Hive 3."""
        copy = table("a", key, properties=OwnershipMarker("other", "x", "z$s$t").to_properties(("s", "t")))
        assert map_table(context(), copy).refusal is Reason.LOOP
        commented = table("a", key, doc=append_comment_marker("orders", OwnershipMarker("other", "x", "z$s$t"), ("s", "t")))
        assert map_table(context(), commented).refusal is Reason.LOOP
        assert find_bound_marker(copy) is None, "it is not owned"

    def test_forwarding_keeps_the_first_origin(self) -> None:
        mapping = map_table(context(transitive=True), owned("s$t", mark=OwnershipMarker("me", "first", "z$s$t")))
        assert mapping.record is not None
        mark = find_bound_marker(mapping.record)
        assert mark is not None
        assert (mark.mirror, mark.origin) == ("m", "z$s$t")

    def test_forwarding_never_returns_to_the_first_origin(self) -> None:
        assert (
            map_table(context(transitive=True), owned("s$t", mark=OwnershipMarker("me", "first", "b$s$t"))).refusal
            is Reason.LOOP
        )


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
        mapping = map_table(context(), table("a", "s$t", properties={key: "value", "team": "x", "storage.region": "eu"}))
        assert mapping.record is not None
        assert {k for k in mapping.record.properties if not k.startswith("federator.")} == {"team", "storage.region"}
        assert key not in mapping.record.properties

    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            ({}, {"team", "storage.region", "storage.x"}),
            ({"deny_properties": ("storage.*",)}, {"team"}),
            ({"allow_properties": ("team",)}, {"team"}),
            ({"allow_properties": ("re:storage\\..*",), "deny_properties": ("*x",)}, {"storage.region"}),
            ({"allow_properties": ("password", "*")}, {"team", "storage.region", "storage.x"}),
            ({"allow_properties": ()}, set()),
        ],
    )
    def test_property_lists_select_the_mirrored_properties(self, rule: dict[str, Any], expected: set[str]) -> None:
        properties = {"team": "x", "storage.region": "eu", "storage.x": "1", "password": "p"}
        mapping = map_table(context(**rule), table("a", "s$t", properties=properties))
        assert mapping.record is not None
        assert {key for key in mapping.record.properties if not key.startswith("federator.")} == expected

    @pytest.mark.parametrize(
        ("location", "replaced"),
        [
            ("s3a://b/t", "s3://b/t"), ("s3://eu/t", "gs://us/t"), ("s3://eu", "gs://us"), ("s3://eu2/t", "s3://eu2/t"),
            ("S3A://b/t", "S3A://b/t"), ("/data/t", "/data/t"),
        ],
    )  # fmt: skip
    def test_a_location_prefix_is_replaced_up_to_a_slash_by_the_first_entry_that_fits(
        self, location: str, replaced: str
    ) -> None:
        moves = (
            LocationReplacement("s3a://", "s3://"),
            LocationReplacement("s3://eu", "gs://us"),
            LocationReplacement("s3://", "never://"),
        )
        mapping = map_table(context(location=moves[:2]), table("a", "s$t", location))
        assert mapping.record is not None
        assert mapping.record.location == replaced

    def test_where_properties_are_refused_the_mark_ends_the_comment_and_nothing_else_travels(self) -> None:
        at = context(replace(ANY, keeps_properties=False))
        mapping = map_table(at, table("a", "s$t", doc="orders", properties={"team": "x"}))
        assert mapping.record is not None
        assert mapping.record.properties == {}
        assert strip_comment_marker(mapping.record.doc) == "orders"
        assert find_bound_marker(mapping.record) == OwnershipMarker("me", "m", "a$s$t")

    def test_a_target_that_keeps_no_comments_either_gets_no_marker(self) -> None:
        at = context(replace(ANY, keeps_properties=False, keeps_comment=False))
        mapping = map_table(at, table("a", "s$t", doc="orders", properties={"team": "x"}))
        assert mapping.record is not None
        assert (mapping.record.properties, mapping.record.doc) == ({}, None)

    def test_a_mark_in_the_origins_comment_does_not_travel(self) -> None:
        doc = append_comment_marker("orders", OwnershipMarker("x", "y", "z$q"), ("s", "elsewhere"))
        mapping = map_table(context(), table("a", "s$t", doc=doc))
        assert mapping.record is not None
        assert mapping.record.doc == "orders"

    def test_location_and_doc_travel_as_they_are_written(self) -> None:
        mapping = map_table(
            context(), table("a", "s$t", "s3a://b/T.lance/", doc="orders", owner="ann", native_id="7", version="3")
        )
        assert mapping.record is not None
        assert (mapping.record.location, mapping.record.doc) == ("s3a://b/T.lance/", "orders")
        assert (mapping.record.owner, mapping.record.native_id, mapping.record.version) == (None, None, None)
