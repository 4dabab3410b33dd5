"""Mirrors into Unity, by the product's commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.product import FAILED, MEMORY, PARTIAL, Product
from tests.stubs.unity import UnityStub

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]

COLUMNS = '[{"name":"id","type":"bigint","nullable":false},{"name":"at","type":"timestamp"}]'


@pytest.fixture
def product(tmp_path: Path) -> Product:
    (tmp_path / "federator").mkdir()
    return Product(tmp_path / "federator")


def test_a_mirror_declares_columns_and_refuses_what_the_server_would(unity_stub: UnityStub, product: Product) -> None:
    origin = product.store("origin")
    origin.add_table(("sales", "orders"), "/lake/my orders", schema=COLUMNS)
    origin.add_table(("sales", "spaced"), "s3://lake/a b")
    product.configure(
        {"impl": MEMORY, "file": str(product.folder / "origin.json")},
        {"impl": "unity", "endpoint": unity_stub.url},
        namespace="main$sales",
    )
    for changes in (2, 0):
        (plan,) = product.sync()["plans"]
        assert (len(plan["changes"]), [refusal["reason"] for refusal in plan["refusals"]]) == (changes, ["no_location"])
    made = unity_stub.world.tables["main", "sales", "orders"]
    assert made["storage_location"] == "file:///lake/my%20orders"
    assert [(column["name"], column["type_name"], column["nullable"]) for column in made["columns"]] == [
        ("id", "LONG", False), ("at", "TIMESTAMP", True),
    ]  # fmt: skip


def test_a_mirror_within_a_server_that_gives_each_location_to_one_table(unity_stub: UnityStub, product: Product) -> None:
    unity_stub.world.token = "t0ken"
    unity_stub.world.create_catalog({"name": "copy"}, None)
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    row = {
        "name": "t", "catalog_name": "main", "schema_name": "s", "table_type": "EXTERNAL", "columns": [], "data_source_format": "TEXT",
        "storage_location": "s3://lake/t", "properties": {"table_type": "lance"},
    }  # fmt: skip
    unity_stub.world.tables["main", "s", "t"] = unity_stub.world._table(row, None)
    sides = [{"impl": "unity", "endpoint": unity_stub.url, "auth_token": "t0ken", "catalog": name} for name in ("main", "copy")]
    product.configure(*sides, namespace="copy$s")
    (plan,) = product.sync()["plans"]
    assert (plan["changes"], [refusal["reason"] for refusal in plan["refusals"]]) == ([], ["location_declared"])


def test_a_recreate_that_the_server_denied_is_not_repeated(unity_stub: UnityStub, product: Product) -> None:
    """The table that has the location is in a schema that the source may not read."""
    world = unity_stub.world
    world.token = "t0ken"
    world.create_schema({"name": "s", "catalog_name": "main"}, None)
    world.create_schema({"name": "hidden", "catalog_name": "main"}, None)
    row = {
        "name": "u", "catalog_name": "main", "schema_name": "hidden", "table_type": "EXTERNAL", "columns": [],
        "data_source_format": "TEXT", "storage_location": "s3://lake/taken", "properties": {"table_type": "lance"},
    }  # fmt: skip
    world.tables["main", "hidden", "u"] = world._table(row, None)
    world.denied.add("main.hidden")
    origin = product.store("origin")
    origin.add_table(("sales", "t"), "s3://lake/t")
    product.configure(
        {"impl": MEMORY, "file": str(product.folder / "origin.json")},
        {"impl": "unity", "endpoint": unity_stub.url, "auth_token": "t0ken"},
        namespace="main$s", update_by_recreate=True,
    )  # fmt: skip
    assert [outcome["state"] for outcome in product.sync(PARTIAL)["outcomes"]] == ["done"]
    origin.add_table(("sales", "t"), "s3://lake/taken/inside")
    (outcome,) = product.sync(FAILED)["outcomes"]
    assert (outcome["state"], outcome["code"]) == ("failed", "restored")
    assert world.tables["main", "s", "t"]["storage_location"] == "s3://lake/t", "the former table is there again"
    unity_stub.seen.clear()
    (plan,) = product.sync(PARTIAL)["plans"]
    assert (plan["changes"], [refusal["reason"] for refusal in plan["refusals"]]) == ([], ["drifted"])
    assert not [request for request in unity_stub.seen if not request.startswith("GET")]
    # Another location is another change.
    origin.add_table(("sales", "t"), "s3://lake/free")
    assert [outcome["state"] for outcome in product.sync(PARTIAL)["outcomes"]] == ["done"]
    assert world.tables["main", "s", "t"]["storage_location"] == "s3://lake/free"
