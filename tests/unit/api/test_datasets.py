"""Datasets and drift over HTTP: the declarations of a location, and their agreement."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from federator.model import LocationAliases
from federator.store import Index, drift_detection, verifications
from tests.fixtures.index_content import fill, table
from tests.unit.api.conftest import Api


@pytest.fixture
def orders(index: Index) -> str:
    """A place that two catalogs declare, and not alike."""
    copies = [
        table("copy", "s", "orders", location="s3a://lake/sales/orders.lance/", schema='[{"name":"key","type":"bigint"}]'),
        table("copy", "s", "again", location="s3n://lake/sales/orders.lance"),
        table("copy", "s", "inside", location="s3://lake/sales/orders.lance/_deep/t.lance"),
    ]
    fill(index, "copy", *copies, run="run-9")
    return "s3://lake/sales/orders.lance"


def test_one_dataset_with_all_its_declarations(api: Api, orders: str) -> None:
    for spelling in (orders, "s3a://lake/sales/orders.lance//"):
        result = api.json(f"/api/v1/datasets/{quote(spelling, safe='')}")
        assert [(d["id"], d["location"]) for d in result["declarations"]] == [
            ("copy$s$again", "s3n://lake/sales/orders.lance"),
            ("copy$s$orders", "s3a://lake/sales/orders.lance/"),
            ("lake$sales$orders", orders),
        ]
        assert result["disagreements"] == [{"field": "schema", "sides": [["copy$s$orders"], ["lake$sales$orders"]]}]
        assert result["duplicates"] == ["copy$s$again", "copy$s$orders"]
        assert (result["location"], result["state"], result["verified"]["rows"]) == (orders, "valid", 10)
        assert (result["inside"], result["holds"]) == ([], [f"{orders}/_deep/t.lance"])
    inside = api.json(f"/api/v1/datasets/{quote(orders, safe='')}%2F_deep%2Ft.lance")
    assert (inside["inside"], inside["holds"], inside["state"], inside["verified"]) == ([orders], [], "unverified", None)


def test_pages_contain_every_dataset_once_in_order(api: Api, orders: str) -> None:
    whole = [result["location"] for result in api.json("/api/v1/datasets?limit=1000")["datasets"]]
    assert whole == sorted(set(whole))
    assert len(whole) == 41
    for limit in (1, 7, 40, 41):
        result, cursor = [], None
        while True:
            page = api.json("/api/v1/datasets", params={"limit": limit, **({"cursor": cursor} if cursor else {})})
            assert len(page["datasets"]) <= limit
            result += [location["location"] for location in page["datasets"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert result == whole


def test_filters(api: Api, orders: str) -> None:
    def list_locations(query: str) -> list[str]:
        return [result["location"] for result in api.json(f"/api/v1/datasets?{query}")["datasets"]]

    assert list_locations("conflicts=true") == list_locations("state=valid") == list_locations("several=true") == [orders]
    assert list_locations("several=true&declared_in=copy") == [orders]
    assert list_locations("declared_in=copy") == [orders, f"{orders}/_deep/t.lance"]
    assert list_locations("declared_in=copy&state=unverified") == [f"{orders}/_deep/t.lance"]
    assert list_locations("state=missing") == []


def test_a_location_with_an_alias_is_one_dataset(api: Api, index: Index, orders: str) -> None:
    fill(index, "copy", table("copy", "s", "behind", location="s3://ap-xyz/sales/orders.lance"), run="run-10")
    with index.write() as connection:
        verifications.refresh_location_aliases(connection, LocationAliases.from_prefixes({"s3://ap-xyz": "s3://lake"}))
    result = api.json(f"/api/v1/datasets/{quote(orders, safe='')}")
    assert "copy$s$behind" in [declared["id"] for declared in result["declarations"]]
    assert len(api.json("/api/v1/datasets?limit=1000")["datasets"]) == api.json("/api/v1/overview")["datasets"] == 41
    with index.write() as connection:
        verifications.refresh_location_aliases(connection, LocationAliases())
    assert len(api.json("/api/v1/datasets?limit=1000")["datasets"]) == 42


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("/api/v1/datasets/s3%3A%2F%2Flake%2Fnothing", 404), ("/api/v1/datasets/nothing", 404), ("/api/v1/datasets?state=odd", 400),
        ("/api/v1/datasets?declared_in=nope", 404), ("/api/v1/drift?source=nope", 404), ("/api/v1/drift?kind=odd", 400),
        ("/api/v1/drift?cursor=x", 400), ("/api/v1/datasets?cursor=x", 400), ("/api/v1/datasets/a%00b", 400),
    ],
)  # fmt: skip
def test_what_is_not_there_or_not_allowed_is_a_problem(api: Api, url: str, status: int) -> None:
    response = api.get(url)
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")


def test_etags_hold_until_something_changes(api: Api, index: Index, orders: str) -> None:
    url = f"/api/v1/datasets/{quote(orders, safe='')}"
    tag = api.get(url).headers["etag"]
    assert api.get(url, headers={"If-None-Match": tag}).status_code == 304
    fill(index, "copy", gone=[("s", "again")], run="run-11")
    assert api.get(url, headers={"If-None-Match": tag}).status_code == 200


def test_drift_in_pages_and_by_kind(api: Api, index: Index, orders: str) -> None:
    assert api.json("/api/v1/drift") == {"drift": [], "next": None, "freshness": []}
    drift_detection.refresh_drift(index, {})
    whole = api.json("/api/v1/drift")["drift"]
    assert [(observed["kind"], observed["subject"], observed["severity"]) for observed in whole] == [
        ("duplicate", "copy$s$orders", "medium"), ("schema_differs", "copy$s$orders", "medium"),
    ]  # fmt: skip
    fill(index, "copy", *(table("copy", "s", name, location="s3://b/x") for name in ("x1", "x2", "x3")), run="run-12")
    drift_detection.refresh_drift(index, {})
    first = api.json("/api/v1/drift?limit=2&kind=duplicate")
    second = api.json("/api/v1/drift", params={"limit": 2, "kind": "duplicate", "cursor": first["next"]})
    assert [observed["subject"] for observed in (*first["drift"], *second["drift"])] == [
        "copy$s$orders",
        "copy$s$x2",
        "copy$s$x3",
    ]
    assert second["next"] is None
    assert first["drift"][0]["first_seen"].endswith("Z")
    assert len(api.json("/api/v1/drift?kind=duplicate&source=copy&severity=medium")["drift"]) == 3
    assert api.json("/api/v1/drift?source=lake")["drift"] == []
    fill(index, "copy", gone=[("s", "again")], run="run-13")
    drift_detection.refresh_drift(index, {})
    assert [observed["subject"] for observed in api.json("/api/v1/drift?resolved=true")["drift"]] == ["copy$s$orders"]
    assert api.get("/api/v1/drift?limit=1", params={"cursor": first["next"]}).status_code == 400
