"""Mirrors from and into Polaris, by the product's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.polaris import PolarisServer
from tests.fixtures.product import MEMORY, Product
from tests.stubs.polaris import PolarisStub

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]


@pytest.fixture
def product(tmp_path: Path) -> Product:
    (tmp_path / "federator").mkdir()
    return Product(tmp_path / "federator")


@pytest.fixture
def stub(polaris_stub: PolarisServer) -> PolarisStub:
    assert polaris_stub.stub is not None
    return polaris_stub.stub


def source(server: PolarisServer, **more: str) -> dict[str, Any]:
    return {"impl": "polaris", **server.properties, **more}


def refusals(document: Any) -> dict[str, str]:
    (plan,) = document["plans"]
    return {refusal["origin_path"]: refusal["reason"] for refusal in plan["refusals"]}


def test_what_the_server_refuses_is_refused_by_the_next_plans(
    polaris_stub: PolarisServer, stub: PolarisStub, product: Product
) -> None:
    """Names by the rule of the server's version, learned from the first refusal, and the name of an Iceberg table."""
    stub.state.version = (1, 6)
    polaris_stub.namespace(("main", "sales"))
    stub.state.add_iceberg("main", ("sales",), "ice", "table")
    origin = product.store("origin")
    for name in ("plain", "a:b", "ice"):
        origin.add_table(("sales", name), f"s3://lake/{name}")
    product.configure(
        {"impl": MEMORY, "file": str(product.folder / "origin.json")}, source(polaris_stub), namespace="main$sales"
    )
    assert (len(product.sync()["plans"][0]["changes"]), sorted(stub.state.names("main", ("sales",)))) == (3, ["plain"])
    origin.add_table(("sales", "c*d"), "s3://lake/c")
    later = product.sync()
    assert later["plans"][0]["changes"] == []
    assert refusals(later) == {"sales$a:b": "name_not_allowed", "sales$c*d": "name_not_allowed", "sales$ice": "name_taken"}
    # What the first plan skipped was not carried out.
    (part,) = product.json("explain", "origin$sales$ice")["parts"]
    assert part["reason"] == "name_taken"


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_name_that_an_iceberg_object_holds_is_taken_for_as_long_as_it_is_held(
    polaris_stub: PolarisServer, stub: PolarisStub, product: Product, kind: str
) -> None:
    """No listing of generic tables has it. One refused declaration, then plans without a change, then the table."""
    polaris_stub.namespace(("main", "sales"))
    stub.state.add_iceberg("main", ("sales",), "t", kind)
    product.store("origin").add_table(("sales", "t"), "s3://lake/t")
    product.configure(
        {"impl": MEMORY, "file": str(product.folder / "origin.json")}, source(polaris_stub), namespace="main$sales"
    )
    (outcome,) = product.sync()["outcomes"]
    assert (outcome["state"], outcome["code"]) == ("skipped", "moved")
    stub.requests.clear()
    for _ in range(3):
        later = product.sync()
        assert (later["plans"][0]["changes"], later["outcomes"]) == ([], [])
        assert refusals(later) == {"sales$t": "name_taken"}
        assert f"an Iceberg {kind}" in later["plans"][0]["refusals"][0]["detail"]
    assert [request.path for request in stub.requests if request.method == "POST" and "generic-tables" in request.path] == []
    stub.state.remove_iceberg("main", ("sales",), "t")
    assert [outcome["state"] for outcome in product.sync()["outcomes"]] == ["done"]
    assert stub.state.names("main", ("sales",)) == ["t"]


def test_a_recreate_that_would_lose_grants_is_refused_while_it_would(
    polaris_stub: PolarisServer, stub: PolarisStub, product: Product
) -> None:
    """One grant on a generic table keeps Polaris from listing any grant of its role."""
    polaris_stub.namespace(("main", "sales"))
    origin = product.store("origin")
    origin.add_table(("sales", "t"), "s3://lake/t", properties={"v": "1"})
    keys = {"namespace": "main$sales", "update_by_recreate": True}
    product.configure({"impl": MEMORY, "file": str(product.folder / "origin.json")}, source(polaris_stub), **keys)
    product.sync()
    grant = {"type": "table", "namespace": ["sales"], "tableName": "t", "privilege": "TABLE_READ_DATA"}
    stub.state.add_grant("main", "readers", grant)
    origin.add_table(("sales", "t"), "s3://lake/t", properties={"v": "2"})
    first = product.sync()
    assert [outcome["code"] for outcome in first["outcomes"]] == ["not_restorable"]
    (plan,) = product.sync()["plans"]
    assert (plan["changes"], [refusal["reason"] for refusal in plan["refusals"]]) == ([], ["drifted"])
    assert "a grant on a generic table" in plan["refusals"][0]["detail"]
    stub.state.remove_grants("main", "readers")
    assert [outcome["state"] for outcome in product.sync()["outcomes"]] == ["done"]
    assert stub.state.load_table("main", ("sales",), "t").body["table"]["properties"]["v"] == "2"


def test_a_principal_who_may_not_list_catalogs_has_a_whole_crawl_of_those_it_names(
    polaris_stub: PolarisServer, stub: PolarisStub, product: Product
) -> None:
    polaris_stub.catalog("other", "file:///data/wh/other")
    for catalog in ("main", "other"):
        polaris_stub.table((*polaris_stub.namespace((catalog, "sales")), catalog))
    stub.forbid("GET", "/management/", "LIST_CATALOGS")
    # What names no other catalogs proves nothing about them: the copy of a table of one stays.
    for named in ("main,other", "main"):
        product.configure(source(polaris_stub, catalogs=named), namespace="{namespace}")
        (origin,) = (each for each in product.sync()["sources"] if each["name"] == "origin")
        assert (origin["state"], origin["message"]) == ("ok", None)
        assert sorted(product.copies()) == ["main", "other"]
