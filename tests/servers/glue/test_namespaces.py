"""Glue's catalogs and databases through the connector, against a server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from federator.connector import (
    Catalog,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
)
from federator.demo.servers.glue import PARENT_PARAMETER
from federator.model import ROOT, NamespaceRecord
from federator_connectors._glue.catalog import GlueCatalog
from federator_connectors.glue import CONNECTOR
from tests.fixtures.glue import GlueAccount

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def catalog(glue_account: GlueAccount) -> Iterator[GlueCatalog]:
    with CONNECTOR.open("aws", CONNECTOR.parse_settings(glue_account.properties)) as opened:
        yield opened


def create(catalog: Catalog, *path: str, **properties: str) -> NamespaceRecord:
    return catalog.create_namespace(NamespaceRecord("aws", path, properties))


def nest(account: GlueAccount, parent: str, name: str) -> str:
    """A catalog inside a catalog, which the service itself cannot make; returns its id."""
    account.client().create_catalog(Name=name, CatalogInput={"Parameters": {PARENT_PARAMETER: parent}})
    return f"{parent}/{name}"


def test_an_empty_account_has_its_own_catalog(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    account = glue_account.account_id
    assert catalog.list_namespaces(ROOT) == [account]
    assert catalog.list_namespaces((account,)) == []
    assert catalog.list_tables(ROOT) == []
    assert catalog.list_tables((account,)) == []
    assert catalog.describe_namespace(ROOT) == NamespaceRecord("aws", ROOT)
    assert catalog.describe_namespace((account,)) == NamespaceRecord("aws", (account,), native_id=account)
    assert catalog.ping() == ""


def test_a_database_of_the_root_has_one_path_and_a_short_one(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    account = glue_account.account_id
    wanted = NamespaceRecord("aws", (account, "Sales"), {"team": "a"}, "s3://lake/sales", "what we sold")
    created = catalog.create_namespace(wanted)
    assert created.path == (account, "sales")
    assert (created.properties, created.location, created.doc) == ({"team": "a"}, "s3://lake/sales", "what we sold")
    assert created.native_id
    assert catalog.describe_namespace(("SALES",)) == created
    assert catalog.describe_namespace((account, "sales")) == created
    assert catalog.list_namespaces((account,)) == ["sales"]
    assert catalog.list_namespaces(("sales",)) == []
    assert catalog.list_tables(("sales",)) == []
    assert catalog.canonical_path(("Sales",)) == (account, "sales")
    assert catalog.canonical_path(("Sales", "Orders")) == (account, "sales", "orders")
    assert catalog.canonical_path((account, "Sales", "Orders")) == (account, "sales", "orders")
    catalog.drop_namespace(("sales",))
    with pytest.raises(NamespaceNotFound):
        catalog.describe_namespace((account, "sales"))


def test_a_catalog_is_created_with_its_properties_and_dropped_when_empty(
    catalog: GlueCatalog, glue_account: GlueAccount
) -> None:
    made = create(catalog, "lake", tier="gold")
    assert (made.path, made.properties) == (("lake",), {"tier": "gold"})
    assert catalog.list_namespaces(ROOT) == sorted([glue_account.account_id, "lake"])
    create(catalog, "lake", "sales")
    assert catalog.list_namespaces(("lake",)) == ["sales"]
    assert catalog.list_tables(("lake", "sales")) == []
    with pytest.raises(NamespaceNotEmpty, match="sales"):
        catalog.drop_namespace(("lake",))
    catalog.drop_namespace(("lake", "sales"))
    catalog.drop_namespace(("lake",))
    assert catalog.list_namespaces(ROOT) == [glue_account.account_id]


def test_catalogs_nest_to_any_depth(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    create(catalog, "Fed")
    parent, path = f"{glue_account.account_id}:Fed", ["Fed"]
    for level in ("one", "two", "three"):
        parent = nest(glue_account, parent, level)
        path.append(level)
        assert catalog.describe_namespace(tuple(path)).path == tuple(path)
    create(catalog, *path, "db")
    assert catalog.list_namespaces(("Fed", "one")) == ["two"]
    assert catalog.list_namespaces(tuple(path)) == ["db"]
    assert catalog.list_namespaces((*path, "db")) == []
    assert catalog.canonical_path(("fed", "ONE", "two", "three", "DB", "T")) == ("Fed", "one", "two", "three", "db", "t")
    with pytest.raises(NamespaceNotEmpty, match="one"):
        catalog.drop_namespace(("Fed",))
    with pytest.raises(NamespaceAlreadyExists):
        create(catalog, "Fed", "one")


def test_more_catalogs_and_databases_than_a_page(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    client = glue_account.client()
    for number in range(101):
        client.create_catalog(Name=f"cat{number:03}", CatalogInput={})
    for number in range(205):
        client.create_database(DatabaseInput={"Name": f"db{number:03}"})
    assert len(catalog.list_namespaces(ROOT)) == 102
    assert catalog.list_namespaces((glue_account.account_id,)) == [f"db{number:03}" for number in range(205)]


def test_a_catalog_made_by_someone_else_is_seen_at_once(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    assert catalog.list_namespaces(ROOT) == [glue_account.account_id]
    glue_account.client().create_catalog(Name="late", CatalogInput={})
    assert catalog.describe_namespace(("late",)).path == ("late",)
    assert create(catalog, "late", "db").path == ("late", "db")


def test_what_exists_is_not_created_again(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    account = glue_account.account_id
    create(catalog, account, "sales")
    create(catalog, "lake")
    for path in ((account, "sales"), (account, "SALES"), ("sales",), ("lake",), (account,)):
        with pytest.raises(NamespaceAlreadyExists):
            create(catalog, *path)


def test_the_parent_must_exist(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    for path in (("nowhere", "db"), (glue_account.account_id, "db", "deeper"), ("a", "b", "c")):
        with pytest.raises(NamespaceNotFound):
            create(catalog, *path)


@pytest.mark.parametrize("name", ["a.b", "a/b", "a\\b"])
def test_glue_refuses_some_names_of_catalogs(catalog: GlueCatalog, name: str) -> None:
    with pytest.raises(InvalidInput, match="not valid"):
        create(catalog, name)


def test_what_is_missing_is_not_found(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    for path in (("no",), (glue_account.account_id, "no"), ("no", "db"), ("no", "db", "deep")):
        for operation in (catalog.describe_namespace, catalog.list_namespaces, catalog.list_tables, catalog.drop_namespace):
            with pytest.raises(NamespaceNotFound):
                operation(path)


def test_a_database_with_a_table_of_any_kind_stays(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    client = glue_account.client()
    client.create_database(DatabaseInput={"Name": "sales"})
    client.create_table(DatabaseName="sales", TableInput={"Name": "view", "TableType": "VIRTUAL_VIEW"})
    with pytest.raises(NamespaceNotEmpty, match="view"):
        catalog.drop_namespace(("sales",))
    client.delete_table(DatabaseName="sales", Name="view")
    catalog.drop_namespace(("sales",))
    assert client.get_databases()["DatabaseList"] == []


def test_the_root_stays(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    for path in (ROOT, (glue_account.account_id,)):
        with pytest.raises(InvalidInput):
            catalog.drop_namespace(path)


def test_a_child_catalog_can_be_the_root(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    create(catalog, "fed")
    start = nest(glue_account, f"{glue_account.account_id}:fed", "one")
    nest(glue_account, start, "two")
    name = start.replace("/", ":")
    with CONNECTOR.open("sub", CONNECTOR.parse_settings({**glue_account.properties, "catalog_id": start})) as sub:
        assert sub.list_namespaces(ROOT) == [name, "two"]
        sub.create_namespace(NamespaceRecord("sub", (name, "db")))
        sub.create_namespace(NamespaceRecord("sub", ("two", "db")))
        assert sub.list_namespaces((name,)) == ["db"]
        assert sub.describe_namespace(("db",)).path == (name, "db")
    assert catalog.list_namespaces(("fed", "one")) == ["db", "two"]
    assert catalog.list_namespaces(("fed", "one", "two")) == ["db"]
