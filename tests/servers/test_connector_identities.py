"""The identities of Glue, Unity, Polaris and a directory's manifest. Hive is in test_source_identity.py."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from federator.connector import Connector
from federator.model import Identity, NamespaceRecord
from federator_connectors import dir as directory
from federator_connectors import glue, polaris, unity
from federator_connectors._glue.catalog_tree import CatalogTree
from tests.fixtures.glue import GlueAccount, account
from tests.fixtures.polaris import PolarisServer
from tests.stubs.unity import UnityStub


def identity(connector: Connector[Any], properties: dict[str, str], *, every: bool = False) -> Identity | None:
    with connector.open("lake", connector.parse_settings(properties)) as catalog:
        return catalog.identity(None if every else ())


def test_another_account_of_glue_is_another_identity(glue_url: str, glue_account: GlueAccount) -> None:
    first = identity(glue.CONNECTOR, glue_account.properties)
    assert first is not None
    assert first.by_scope[""] == f"account {glue_account.account_id}, region us-east-1, catalog {glue_account.account_id}"
    assert identity(glue.CONNECTOR, account(glue_url).properties) != first
    assert identity(glue.CONNECTOR, glue_account.properties | {"region": "eu-west-1"}) != first
    assert identity(glue.CONNECTOR, account(glue_url, glue_account.account_id).properties) == first


def test_a_resource_link_of_glue_is_known_by_its_target(glue_account: GlueAccount) -> None:
    client = glue_account.client()
    client.create_database(DatabaseInput={"Name": "own"})
    client.create_database(
        DatabaseInput={"Name": "shared", "TargetDatabase": {"CatalogId": "111122223333", "DatabaseName": "sales"}}
    )
    found = identity(glue.CONNECTOR, glue_account.properties, every=True)
    assert found is not None
    link = f"{glue_account.account_id}$shared"
    assert found.by_scope == {"": found.by_scope[""], link: "link to 111122223333/sales"}
    with glue.CONNECTOR.open("lake", glue.CONNECTOR.parse_settings(glue_account.properties)) as catalog:
        one = catalog.identity([("shared",), ("own",), ("gone",)])
    assert one == found


def test_a_glue_without_sts_and_catalogs_has_no_identity(glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {key: value for key, value in glue_account.properties.items() if key != "sts_endpoint"}
    monkeypatch.setattr(CatalogTree, "_listed_account", lambda _: None)
    assert identity(glue.CONNECTOR, properties | {"catalog_id": "lake"}) is None


def test_another_metastore_or_catalog_of_unity_is_another_identity() -> None:
    with UnityStub() as stub:
        created = stub.world.create_catalog({"name": "main"}, None)
        properties = {"endpoint": stub.url, "catalog": "main"}
        first = identity(unity.CONNECTOR, properties)
        assert first is not None
        assert first.by_scope[""] == f"metastore {stub.world.metastore_id}"
        assert str(created["id"]) in first.by_scope["main"]
        stub.world.metastore_id = "another"
        assert identity(unity.CONNECTOR, properties) == Identity.of("metastore another", {"main": first.by_scope["main"]})
        # Older servers do not have the call; their catalogs still have ids.
        stub.script.extend([(200, {}, '{"name": "main", "id": "1", "created_at": 5}'), (404, {}, "no such page")])
        assert identity(unity.CONNECTOR, properties) == Identity.of("", {"main": "id 1, created_at 5"})


def test_another_catalog_of_that_name_in_polaris_is_another_identity(polaris_stub: PolarisServer) -> None:
    name = f"c_{secrets.token_hex(4)}"
    properties = polaris_stub.properties | {"catalogs": name}
    found = []
    for _ in range(2):
        polaris_stub.catalog(name, "file:///nowhere/lake")
        found.append(identity(polaris.CONNECTOR, properties))
        polaris_stub.call("DELETE", f"/api/management/v1/catalogs/{name}")
    first, second = found
    assert first is not None
    assert first.by_scope[""] == "realm of the server"
    assert first.by_scope[name].startswith("created ")
    assert second != first
    # A principal who may not list the catalogs is not told.
    assert polaris_stub.stub is not None
    polaris_stub.stub.answer("GET", "/api/management/v1/catalogs", 403, "{}")
    assert identity(polaris.CONNECTOR, properties) == Identity.of("realm of the server", {name: ""})


def test_the_manifest_of_a_directory_has_an_id(tmp_path: Path) -> None:
    def identity_of(name: str) -> dict[str, str]:
        (tmp_path / name).mkdir()
        properties = {"root": str(tmp_path / name), "manifest_enabled": "true"}
        with directory.CONNECTOR.open("lake", directory.CONNECTOR.parse_settings(properties)) as catalog:
            catalog.create_namespace(NamespaceRecord("lake", ("sales",)))
        return properties

    first, second = identity_of("first"), identity_of("second")
    known = identity(directory.CONNECTOR, first)
    assert known is not None
    assert identity(directory.CONNECTOR, first) == known
    assert identity(directory.CONNECTOR, second) != known
    plain = tmp_path / "plain"
    plain.mkdir()
    assert identity(directory.CONNECTOR, {"root": str(plain)}) is None
