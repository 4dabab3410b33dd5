"""``mirror show``: the text of a rule with every possible key."""

from __future__ import annotations

from dataclasses import asdict

from federator.cli.mirrors import _rule_text
from federator.planning.rule import LocationReplacement, MirrorRule, NameReplacement, TableFilter


def test_every_key_of_a_rule_is_shown_as_text() -> None:
    rule = MirrorRule(
        name="m", origin="a", target="b",
        where=TableFilter(owner=("etl", "ops"), properties=(("team", "sales*"),)),
        replace=(NameReplacement("-", "_", "database"),), location=(LocationReplacement("s3a://", "s3://"),),
    )  # fmt: skip
    shown = {key: str(_rule_text(key, value)) for key, value in asdict(rule).items()}
    assert shown["where"] == "owner etl, ops; properties team, sales*"
    assert shown["replace"] == "pattern -; text _; level database"
    assert shown["location"] == "origin s3a://; target s3://"
    assert (shown["exclude"], shown["namespace"], shown["doc"]) == ("(nothing)", "(as at the origin)", "yes")
    assert (shown["prefix"], shown["max_changes"], shown["max_delete_percent"]) == ("(nothing)", "10000", "20 %")
    assert (shown["min_miss_interval"], shown["max_origin_age"], shown["guard_window"]) == ("10 min", "2.0 s", "24 h")
