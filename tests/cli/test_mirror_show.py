"""``mirror show``: a rule with everything that a rule can have, in words."""

from __future__ import annotations

from dataclasses import asdict

from federator.cli.mirrors import _value
from federator.planning.rule import MirrorRule, Relocate, Replace, Where


def test_every_key_of_a_rule_is_shown_as_text() -> None:
    rule = MirrorRule(
        name="m", origin="a", target="b",
        where=Where(owner=("etl", "ops"), properties=(("team", "sales*"),)),
        replace=(Replace("-", "_", "database"),), location=(Relocate("s3a://", "s3://"),),
    )  # fmt: skip
    shown = {key: str(_value(value)) for key, value in asdict(rule).items()}
    assert shown["where"] == "owner etl, ops; properties team, sales*"
    assert shown["replace"] == "pattern -; text _; level database"
    assert shown["location"] == "origin s3a://; target s3://"
    assert (shown["exclude"], shown["namespace"], shown["doc"]) == ("(nothing)", "(as at the origin)", "yes")
