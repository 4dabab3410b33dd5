"""Declarations by users: names, and the reasons for which a declaration is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.connector import Capabilities, ConfigError, LocationRules, NameRules
from federator.model import TableRecord
from federator.planning.ownership import find_bound_marker
from federator.planning.plan import Plan, check_plan
from federator.planning.reasons import Reason
from federator.planning.user_declarations import (
    DeclarationCandidate,
    build_user_rule,
    derive_path,
    plan_user_declarations,
    user_plan_target,
)

HIVE = Capabilities(1, 1, ("database",), NameRules(r"\w+"), creates_namespaces_at=frozenset({1}))
LOCATION = "s3://lake/sales/orders.lance"
CANDIDATE = DeclarationCandidate(("sales", "orders"), "s3a://lake/sales/orders.lance", LOCATION, "valid")


def planned(*candidates: DeclarationCandidate, able: Capabilities = HIVE) -> Plan:
    return plan_user_declarations("hive", able, candidates, revision=3)


def test_a_table_and_its_namespace_are_declared_without_an_ownership_marker() -> None:
    made = planned(
        replace(CANDIDATE, missing_namespaces=[("sales",)]),
        replace(CANDIDATE, path=("sales", "b"), missing_namespaces=[("sales",)]),
    )
    assert [(c.action.value, c.target_path) for c in made.changes] == [
        ("create_namespace", "sales"), ("declare_table", "sales$b"), ("declare_table", "sales$orders"),
    ]  # fmt: skip
    table = made.changes[-1].after
    assert table is not None
    assert (table.location, find_bound_marker(table), made.changes[-1].is_user_declaration) == (
        "s3a://lake/sales/orders.lance",
        None,
        True,
    )
    assert user_plan_target(made.mirror) == "hive"
    check_plan(made, digest=Plan.from_json(made.to_json()).digest, mirror_digest=build_user_rule("hive").digest)


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (replace(CANDIDATE, existing=TableRecord("hive", ("sales", "orders"), LOCATION)), Reason.LOCATION_DECLARED),
        (replace(CANDIDATE, other_paths=["sales$old"]), Reason.LOCATION_DECLARED),
        (replace(CANDIDATE, existing=TableRecord("hive", ("sales", "orders"), "s3://x")), Reason.NAME_TAKEN),
        (replace(CANDIDATE, foreign="a view"), Reason.NAME_TAKEN),
        (replace(CANDIDATE, state="corrupt"), Reason.NOT_VALID),
        (replace(CANDIDATE, path=("orders",)), Reason.DEPTH),
        (replace(CANDIDATE, path=("sales", "or ders")), Reason.NAME_NOT_ALLOWED),
    ],
)
def test_what_is_in_the_way_is_a_reason(candidate: DeclarationCandidate, reason: Reason) -> None:
    made = planned(candidate)
    assert (made.changes, [refusal.reason for refusal in made.refusals]) == ((), [reason])


def test_a_location_outside_a_directory_is_refused() -> None:
    able = replace(HIVE, locations=LocationRules(directory="s3://lake/other"))
    (refusal,) = planned(CANDIDATE, able=able).refusals
    assert (refusal.reason, "below s3://lake/other" in refusal.detail) == (Reason.NO_LOCATION, True)


def test_a_namespace_that_cannot_be_made_and_a_name_that_is_given_twice() -> None:
    made = planned(CANDIDATE, CANDIDATE, able=replace(HIVE, creates_namespaces_at=frozenset()))
    assert [refusal.reason for refusal in made.refusals] == [Reason.NAME_CLASH]
    made = planned(replace(CANDIDATE, missing_namespaces=[("sales",)]), able=replace(HIVE, creates_namespaces_at=frozenset()))
    assert [refusal.reason for refusal in made.refusals] == [Reason.NAMESPACE_MISSING]


@pytest.mark.parametrize(
    ("template", "levels", "path"),
    [
        (None, 1, ("sales", "orders")), (None, 0, ("orders",)), (None, 2, ("lake", "sales", "orders")),
        ("found${1}_{table}", 1, ("found", "sales_orders")), ("a$b", 1, ("a", "b")),
    ],
)  # fmt: skip
def test_a_name_comes_from_the_directories(template: str | None, levels: int, path: tuple[str, ...]) -> None:
    assert derive_path(template, LOCATION, levels) == path


@pytest.mark.parametrize("template", ["{9}", "{0}", "{other}"])
def test_a_name_that_is_not_there_is_a_mistake(template: str) -> None:
    with pytest.raises(ConfigError, match="names no directory of"):
        derive_path(template, LOCATION, 1)
