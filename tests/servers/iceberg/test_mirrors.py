"""Mirrors into Apache Iceberg's own REST catalog, by the product's commands."""

from __future__ import annotations

from pathlib import Path as FilePath

import pytest

from federator.model import Path, path_key
from tests.fixtures.iceberg import IcebergServer
from tests.fixtures.product import MEMORY, Product

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]


def test_the_names_of_iceberg_tables_and_views_are_taken_for_as_long_as_they_are_held(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    product = Product(tmp_path)
    names = ("table", "view")
    iceberg_server.table((*iceberg_namespace, "table"))
    iceberg_server.view((*iceberg_namespace, "view"))
    origin = product.store("origin")
    for name in names:
        origin.add_table(("sales", name), f"file://{tmp_path}/lake/{name}.lance")
    product.configure(
        {"impl": MEMORY, "file": str(tmp_path / "origin.json")},
        {"impl": "iceberg", **iceberg_server.properties},
        namespace=path_key(iceberg_namespace),
    )
    taken = {"sales$table": "name_taken", "sales$view": "name_taken"}
    first = product.sync()["outcomes"]
    assert [(outcome["state"], outcome["code"]) for outcome in first] == [("skipped", "moved")] * 2
    for _ in range(2):
        (plan,) = product.sync()["plans"]
        assert plan["changes"] == []
        assert {refusal["origin_path"]: refusal["reason"] for refusal in plan["refusals"]} == taken
    for name in names:
        iceberg_server.drop((*iceberg_namespace, name), f"{name}s")
    assert [outcome["state"] for outcome in product.sync()["outcomes"]] == ["done"] * 2
    assert iceberg_server.read((*iceberg_namespace, "view"))["metadata"]["properties"]["table_type"] == "lance"
