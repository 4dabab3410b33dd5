"""A mirror whose origin is replaced behind the same address, run by its commands: Hive 2.3 (no identity), Glue, Unity, Polaris."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from federator.demo.servers import hive as servers
from federator.model import NamespaceRecord, Record, TableRecord
from federator.registry import get_connector
from tests.fixtures.glue import GlueAccount, account
from tests.fixtures.hive import started
from tests.fixtures.polaris import PolarisServer
from tests.fixtures.product import HELD, PARTIAL, Product, guards
from tests.fixtures.relay import Noting
from tests.stubs.polaris import PolarisStub
from tests.stubs.unity import UnityStub

ORIGINAL = {"a": "s3://lake/a", "b": "s3://lake/b"}
STAGING = {"a": "s3://staging/a", "c": "s3://staging/c"}

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]


@pytest.fixture
def product(tmp_path: Path) -> Product:
    (tmp_path / "federator").mkdir()
    return Product(tmp_path / "federator")


def fill(impl: str, properties: Mapping[str, str], namespace: tuple[str, ...], tables: Mapping[str, str]) -> None:
    """A new namespace with tables, by name and location, in the catalog that these properties reach."""
    location = next(iter(tables.values())).rpartition("/")[0] if impl.startswith("hive") else None
    records = [TableRecord("there", (*namespace, name), table_location) for name, table_location in tables.items()]
    declare(impl, properties, [NamespaceRecord("there", namespace, location=location), *records])


def declare(impl: str, properties: Mapping[str, str], records: Sequence[Record]) -> None:
    connector = get_connector(impl)
    with connector.open("there", connector.parse_settings(properties)) as catalog:
        for record in records:
            if isinstance(record, TableRecord):
                catalog.declare_table(record)
            else:
                catalog.create_namespace(record)


def unproven(product: Product, *identities: str) -> None:
    """A sync after the origin was replaced: failed with both identities and the remedy; index and target are as they were."""
    before, known = product.copies(), product.known()
    assert len(before) == 2
    (origin,) = (source for source in product.sync(PARTIAL)["sources"] if source["name"] == "origin")
    assert origin["state"] == "failed"
    assert [text for text in (*identities, "federator sources confirm origin") if text not in origin["message"]] == []
    assert (product.copies(), product.known()) == (before, known)


def confirmed(product: Product, after: dict[str, str], *, rounds: int = 1) -> None:
    """A confirmation approves no plan: what the other catalog lacks or has elsewhere waits for an approval of its own."""
    before = product.copies()
    assert product.json("sources", "confirm", "origin", "--yes")["confirmed"]
    held = product.sync(HELD)
    assert ("half_gone" in guards(held), product.copies()) == (True, before)
    product.approve(held)
    for _ in range(rounds):
        product.sync()
    assert product.copies() == after


def test_hive_2_is_replaced_by_an_empty_and_by_a_smaller_metastore(hive2_uri: str, product: Product, tmp_path: Path) -> None:
    """Nothing tells the metastores apart, and every listing is complete."""
    database = f"sales_{secrets.token_hex(4)}"
    names = ("customers", "items", "orders", "returns")
    fill("hive2", {"uri": hive2_uri}, (database,), {name: f"file:{tmp_path}/lake/{name}" for name in names})
    relay = Noting(hive2_uri)
    product.configure({"impl": "hive2", "uri": relay.uri}, include=[f"{database}$*"])
    product.sync()
    before = product.copies()
    assert sorted(before) == list(names)
    other = started(servers.start_hive2, tmp_path / "other")
    try:
        relay.target = other.uri
        assert guards(product.sync(HELD)) == ["half_gone", "never_empty"]
        assert product.copies() == before
        # Restored with half of the tables, of which one is elsewhere, and with one that was never there.
        some = {"customers": "lake/customers", "orders": "staging/orders", "staged": "staging/staged"}
        fill("hive2", {"uri": other.uri}, (database,), {name: f"file:{tmp_path}/{at}" for name, at in some.items()})
        held = product.sync(HELD)
        assert guards(held) == ["half_gone"]
        assert {change["action"] for change in held["plans"][0]["changes"]} == {
            "declare_table", "deregister_table", "update_table",
        }  # fmt: skip
        assert product.copies() == before, "declaring waits, too"
        product.approve(held)
        product.sync()
        assert product.copies() == {name: f"file:{tmp_path}/{at}" for name, at in some.items()}
    finally:
        other.stop()


def test_other_credentials_lead_to_another_account_of_glue(glue_url: str, product: Product) -> None:
    mine, others = account(glue_url), account(glue_url)
    fill("glue", mine.properties, (mine.account_id, "sales"), ORIGINAL)
    fill("glue", others.properties, (others.account_id, "sales"), STAGING)

    def configure(credentials: GlueAccount, **more: str) -> None:
        product.configure({"impl": "glue", **credentials.properties, **more}, include=["*$sales$*"], namespace="{database}")

    configure(mine)
    product.sync()
    configure(mine, region="eu-west-1")
    unproven(product, "region us-east-1", "region eu-west-1")
    configure(account(glue_url, mine.account_id))
    assert product.sync()["plans"][0]["changes"] == [], "other credentials of the same account reach the same catalog"
    configure(others)
    unproven(product, f"account {mine.account_id}", f"account {others.account_id}")
    # The account is part of the origin's path: a copy of the old one makes way first.
    confirmed(product, STAGING, rounds=2)


def test_a_resource_link_of_glue_gets_another_target(glue_account: GlueAccount, product: Product) -> None:
    """moto does not follow links, so the tables are those of a database of the link's own name, and go with it."""
    client, here = glue_account.client(), glue_account.account_id

    def link(database: str) -> None:
        target = {"CatalogId": "111122223333", "DatabaseName": database}
        client.create_database(DatabaseInput={"Name": "shared", "TargetDatabase": target})

    link("sales")
    fill("glue", glue_account.properties, (here, "own"), {"x": "s3://lake/x"})

    def declare_shared(tables: Mapping[str, str]) -> None:
        records = [TableRecord("there", (here, "shared", name), location) for name, location in tables.items()]
        declare("glue", glue_account.properties, records)

    declare_shared(ORIGINAL)
    product.configure({"impl": "glue", **glue_account.properties}, include=["*$shared$*"], namespace="{database}")
    product.sync()
    client.delete_database(Name="shared")
    link("staging")
    declare_shared(STAGING)
    links = ("shared: link to 111122223333/staging", "shared: link to 111122223333/sales")
    for _ in range(2):
        unproven(product, *links)
    confirmed(product, STAGING)


def test_another_metastore_or_catalog_of_unity(product: Product) -> None:
    first, second = UnityStub(), UnityStub()
    with first, second:
        for stub, tables in ((first, ORIGINAL), (second, STAGING)):
            stub.world.create_catalog({"name": "main"}, None)
            fill("unity", {"endpoint": stub.url, "catalog": "main"}, ("main", "sales"), tables)
        relay = Noting(first.url)
        product.configure({"impl": "unity", "endpoint": relay.uri, "catalog": "main"}, include=["main$sales$*"])
        product.sync()
        relay.target = second.url
        metastores = [f"metastore {stub.world.metastore_id}" for stub in (first, second)]
        catalogs = [f"id {stub.world.catalogs['main']['id']}" for stub in (first, second)]
        unproven(product, *metastores, *catalogs)
        confirmed(product, STAGING)


def test_another_server_of_polaris(product: Product) -> None:
    with PolarisStub() as first, PolarisStub() as second:
        for stub, tables in ((first, ORIGINAL), (second, STAGING)):
            # A catalog of the same name, made some milliseconds later.
            (server := PolarisServer(stub.url, stub=stub)).catalog("main", "file:///data/wh/main")
            fill("polaris", server.properties, ("main", "sales"), tables)
        relay = Noting(first.url)
        product.configure({"impl": "polaris", **PolarisServer(relay.uri).properties}, include=["main$sales$*"])
        product.sync()
        relay.target = second.url
        unproven(product, "main: created ")
        confirmed(product, STAGING)


def test_another_directory_with_a_manifest(product: Product, tmp_path: Path) -> None:
    """Another disk is mounted where the first one was."""
    root = tmp_path / "lake"

    def make_directory(name: str, tables: Sequence[str]) -> Path:
        fill("dir", {"root": str(root), "manifest_enabled": "true"}, ("sales",), {table: str(root / table) for table in tables})
        return root.rename(tmp_path / name)

    root.mkdir()
    second = make_directory("second", ("a", "c"))
    root.mkdir()
    make_directory("first", ("a", "b")).rename(root)
    product.configure({"impl": "dir", "root": str(root), "manifest_enabled": "true"}, include=["sales$*"])
    product.sync()
    root.rename(tmp_path / "unmounted")
    second.rename(root)
    unproven(product, "manifest ")


def test_a_confirmation_deletes_the_misses_of_the_old_catalog(product: Product) -> None:
    """One more miss in the new catalog is its first."""
    names = ("a", "b", "c", "d")
    first, second = UnityStub(), UnityStub()
    with first, second:
        for stub, tables in ((first, names), (second, names[1:])):
            stub.world.create_catalog({"name": "main"}, None)
            fill(
                "unity",
                {"endpoint": stub.url, "catalog": "main"},
                ("main", "sales"),
                {name: f"s3://lake/{name}" for name in tables},
            )
        relay = Noting(first.url)
        product.configure(
            {"impl": "unity", "endpoint": relay.uri, "catalog": "main"}, include=["main$sales$*"], misses_before_delete=2
        )
        product.sync()
        del first.world.tables["main", "sales", "a"]
        product.sync()
        relay.target = second.url
        product.sync(PARTIAL)
        product.json("sources", "confirm", "origin", "--yes")
        product.sync()
        assert sorted(product.copies()) == list(names), "missed once in the catalog that was confirmed"
        product.sync()
        assert sorted(product.copies()) == list(names[1:])
