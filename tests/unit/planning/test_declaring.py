"""What a person may declare, under which name, and why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.connector import Capabilities, ConfigError, NameRules
from federator.model import TableRecord
from federator.planning.declaring import Candidate, named, plan_declarations, rule_into, target_of
from federator.planning.marks import bound_mark
from federator.planning.plan import Plan, check
from federator.planning.reasons import Reason

HIVE = Capabilities(1, 1, ("database",), NameRules(r"\w+"), creates_namespaces_at=frozenset({1}))
PLACE = "s3://lake/sales/orders.lance"
FOUND = Candidate(("sales", "orders"), "s3a://lake/sales/orders.lance", PLACE, "valid")


def planned(*candidates: Candidate, able: Capabilities = HIVE) -> Plan:
    return plan_declarations("hive", able, candidates, revision=3)


def test_a_table_and_its_namespace_are_declared_and_nothing_says_that_they_are_ours() -> None:
    made = planned(replace(FOUND, missing=[("sales",)]), replace(FOUND, path=("sales", "b"), missing=[("sales",)]))
    assert [(c.action.value, c.target_path) for c in made.changes] == [
        ("create_namespace", "sales"), ("declare_table", "sales$b"), ("declare_table", "sales$orders"),
    ]  # fmt: skip
    table = made.changes[-1].after
    assert table is not None
    assert (table.location, bound_mark(table), made.changes[-1].by_person) == ("s3a://lake/sales/orders.lance", None, True)
    assert target_of(made.mirror) == "hive"
    check(made, digest=Plan.from_json(made.to_json()).digest, mirror_digest=rule_into("hive").digest)


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (replace(FOUND, there=TableRecord("hive", ("sales", "orders"), PLACE)), Reason.LOCATION_DECLARED),
        (replace(FOUND, others=["sales$old"]), Reason.LOCATION_DECLARED),
        (replace(FOUND, there=TableRecord("hive", ("sales", "orders"), "s3://x")), Reason.NAME_TAKEN),
        (replace(FOUND, foreign="a view"), Reason.NAME_TAKEN),
        (replace(FOUND, state="corrupt"), Reason.NOT_VALID),
        (replace(FOUND, path=("orders",)), Reason.DEPTH),
        (replace(FOUND, path=("sales", "or ders")), Reason.NAME_NOT_ALLOWED),
    ],
)
def test_what_is_in_the_way_is_a_reason(candidate: Candidate, reason: Reason) -> None:
    made = planned(candidate)
    assert (made.changes, [refusal.reason for refusal in made.refusals]) == ((), [reason])


def test_a_namespace_that_cannot_be_made_and_a_name_that_is_given_twice() -> None:
    made = planned(FOUND, FOUND, able=replace(HIVE, creates_namespaces_at=frozenset()))
    assert [refusal.reason for refusal in made.refusals] == [Reason.NAME_CLASH]
    made = planned(replace(FOUND, missing=[("sales",)]), able=replace(HIVE, creates_namespaces_at=frozenset()))
    assert [refusal.reason for refusal in made.refusals] == [Reason.NAMESPACE_MISSING]


@pytest.mark.parametrize(
    ("template", "levels", "path"),
    [
        (None, 1, ("sales", "orders")), (None, 0, ("orders",)), (None, 2, ("lake", "sales", "orders")),
        ("found${1}_{table}", 1, ("found", "sales_orders")), ("a$b", 1, ("a", "b")),
    ],
)  # fmt: skip
def test_a_name_comes_from_the_directories(template: str | None, levels: int, path: tuple[str, ...]) -> None:
    assert named(template, PLACE, levels) == path


@pytest.mark.parametrize("template", ["{9}", "{0}", "{other}"])
def test_a_name_that_is_not_there_is_a_mistake(template: str) -> None:
    with pytest.raises(ConfigError, match="no part of"):
        named(template, PLACE, 1)
