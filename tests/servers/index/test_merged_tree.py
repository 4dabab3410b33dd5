"""The merged tree on both databases: objects with one logical path are one entry."""

from __future__ import annotations

import pytest

from federator.connector import NamespaceNotFound
from federator.model import LocationAliases
from federator.model.scopes import Scopes
from federator.store import Index, verifications
from federator.views import merged_tree
from tests.fixtures.index_content import fill, namespace, table

SKIPPED = {"hive": 1, "aws": 1, "flat": 0}
_LOCATION = "s3://lake/sales/orders.lance"


@pytest.fixture
def index(either_index: Index) -> Index:
    index = either_index
    fill(
        index, "hive", namespace("hive", "hive"), namespace("hive", "hive", "sales"), namespace("hive", "spark"),
        namespace("hive", "spark", "sales"), namespace("hive", "spark", "Zoo"),
        table("hive", "hive", "sales", "orders", location=_LOCATION), table("hive", "hive", "sales", "parted", location="s3://lake/a"),
        table("hive", "spark", "sales", "only", location="s3://lake/only"),
    )  # fmt: skip
    fill(
        index, "aws", namespace("aws", "123"), namespace("aws", "123", "sales"),
        table("aws", "123", "sales", "orders", location="s3a://lake/sales/orders.lance/"),
        table("aws", "123", "sales", "parted", location="s3://lake/b"),
    )  # fmt: skip
    fill(
        index, "flat", namespace("flat", "sales"), table("flat", "sales", location="s3://lake/flat"),
        table("flat", "sales", "parted", location="s3://point/a"), table("flat", "sales", "Orders", location="s3://lake/O"),
    )  # fmt: skip
    return index


def entries(
    index: Index, *path: str, limit: int = 100, scopes: Scopes | None = None
) -> dict[tuple[str, str], merged_tree.MergedEntry]:
    found: dict[tuple[str, str], merged_tree.MergedEntry] = {}
    after: str | None = ""
    while after is not None:
        more = {"scopes": scopes} if scopes is not None else {}
        page = merged_tree.list_merged_children(index, SKIPPED, path, after=after, limit=limit, **more)
        assert not found.keys() & {(node.name, node.kind) for node in page.nodes}
        found |= {(node.name, node.kind): node for node in page.nodes}
        after = page.next
    return found


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_what_is_called_the_same_is_one_entry(index: Index, limit: int) -> None:
    root = entries(index, limit=limit)
    assert list(root) == [("Zoo", "namespace"), ("sales", "namespace"), ("sales", "table")]
    assert [home.id for home in root["sales", "namespace"].homes] == [
        "hive$hive$sales",
        "hive$spark$sales",
        "aws$123$sales",
        "flat$sales",
    ]
    sales = entries(index, "sales", limit=limit)
    assert list(sales) == [("Orders", "table"), ("only", "table"), ("orders", "table"), ("parted", "table")]
    orders = sales["orders", "table"]
    assert ([home.id for home in orders.homes], orders.conflict) == (["hive$hive$sales$orders", "aws$123$sales$orders"], False)
    assert (orders.id, orders.default) == ("sales$orders", "hive$hive$sales$orders")


def test_two_locations_are_a_conflict_that_the_priority_decides(index: Index) -> None:
    parted = entries(index, "sales")["parted", "table"]
    assert parted.conflict
    assert parted.default == "hive$hive$sales$parted"
    turned = {name: SKIPPED[name] for name in ("flat", "aws", "hive")}
    (other,) = [node for node in merged_tree.list_merged_children(index, turned, ("sales",)).nodes if node.name == "parted"]
    assert (other.default, [home.source for home in other.homes]) == ("flat$sales$parted", ["flat", "aws", "hive"])
    # A source that nothing is said of comes last, and with all its levels.
    (named,) = [
        node for node in merged_tree.list_merged_children(index, {"flat": 0}, ("sales",)).nodes if node.name == "parted"
    ]
    assert [home.source for home in named.homes] == ["flat"]


def test_what_a_scope_does_not_cover_is_no_home_and_no_conflict(index: Index) -> None:
    scopes = Scopes((("hive", "hive", "sales", "parted"), ("flat", "sales")))
    sales = entries(index, "sales", scopes=scopes)
    assert list(sales) == [("Orders", "table"), ("parted", "table")]
    assert [home.id for home in sales["parted", "table"].homes] == ["hive$hive$sales$parted", "flat$sales$parted"]
    only = entries(index, "sales", scopes=Scopes((("aws", "123", "sales", "parted"),)))
    assert (len(only), only["parted", "table"].conflict) == (1, False)
    with pytest.raises(NamespaceNotFound):
        merged_tree.list_merged_children(index, SKIPPED, ("Zoo",), scopes=scopes)
    assert merged_tree.list_merged_children(index, SKIPPED, (), scopes=Scopes()).nodes == []


def test_two_names_of_one_location_by_configuration_are_no_conflict(index: Index) -> None:
    with index.write() as connection:
        verifications.refresh_location_aliases(connection, LocationAliases.from_prefixes({"s3://point": "s3://lake"}))
    locations = {home.location for home in entries(index, "sales")["parted", "table"].homes}
    assert locations == {"s3://lake/a", "s3://lake/b", "s3://point/a"}
    two = merged_tree.list_merged_children(index, SKIPPED, ("sales",), scopes=Scopes((("hive",), ("flat",)))).nodes
    assert not next(node for node in two if node.name == "parted").conflict


def test_what_is_not_there_is_not_found(index: Index) -> None:
    for path in (("nope",), ("sales", "nope"), ("hive",)):
        with pytest.raises(NamespaceNotFound):
            merged_tree.list_merged_children(index, SKIPPED, path)
    assert merged_tree.list_merged_children(index, SKIPPED, ("Zoo",)).nodes == []


def test_tables_above_the_levels_that_are_left_out_stay(index: Index) -> None:
    fill(index, "odd", namespace("odd", "cat"), table("odd", "top", location="s3://lake/top"))
    found = merged_tree.list_merged_children(index, {**SKIPPED, "odd": 1}).nodes
    assert "top" in {node.name for node in found}
    assert "cat" not in {node.name for node in found}
