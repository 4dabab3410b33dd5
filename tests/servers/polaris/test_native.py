"""Native objects of Polaris: what is saved of a table before a recreate, grants included, and how properties are changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from apache_polaris.sdk.management import models

from federator.connector import Internal, TableNotFound, Unsupported
from federator.model import NamespaceRecord
from federator_connectors.polaris import CONNECTOR
from tests.fixtures.polaris import PolarisServer

PATH = ("main", "a.b", "t")
GRANT = {"type": "table", "namespace": ["a.b"], "tableName": "t", "privilege": "TABLE_READ_DATA"}


def test_a_table_without_grants_is_saved_whole(polaris_server: PolarisServer, polaris_catalog: str) -> None:
    path = (*polaris_server.namespace((polaris_catalog, "ns")), "t")
    polaris_server.table(path, doc="d", properties={"k": "v", "table_type": "lance"})
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(polaris_server.properties)) as catalog:
        native = json.loads(json.dumps(catalog.read_native(path)))
        assert native == {
            "name": "t", "format": "lance", "base-location": "s3://lake/t.lance", "doc": "d",
            "properties": {"k": "v", "table_type": "lance"}, "grants": [],
        }  # fmt: skip
        assert catalog.describe_recreate_loss(native) is None
        with pytest.raises(TableNotFound):
            catalog.read_native((*path[:-1], "missing"))


def test_grants_on_the_table_and_no_others_are_lost(polaris_stub: PolarisServer) -> None:
    stub = polaris_stub.stub
    assert stub is not None
    polaris_stub.table((*polaris_stub.namespace(PATH[:2]), "t"))
    for other in ({"namespace": ["a", "b"]}, {"tableName": "u"}, {"type": "view"}):
        stub.state.add_grant("main", "readers", {**GRANT, **other})
    # Polaris 1.7.0 still has no listing with a grant on a generic table: a later one may.
    stub.state.lists_generic_grants = True
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(polaris_stub.properties)) as catalog:
        assert catalog.describe_recreate_loss(catalog.read_native(PATH)) is None
        stub.state.add_grant("main", "readers", GRANT)
        native = catalog.read_native(PATH)
        assert native["grants"] == [{"role": "readers", **GRANT}]
        assert catalog.describe_recreate_loss(native) == "grants on the table: TABLE_READ_DATA of the catalog role readers"
    # The shapes are those of Polaris's own client.
    assert models.CatalogRoles.from_json(stub.state.list_roles("main").text).roles[1].name == "readers"
    assert models.TableGrant.from_json(json.dumps(GRANT)).table_name == "t"


def test_a_grant_on_any_generic_table_hides_all_grants_of_its_role(polaris_stub: PolarisServer) -> None:
    stub = polaris_stub.stub
    assert stub is not None
    namespace = polaris_stub.namespace(PATH[:2])
    for name in ("t", "u"):
        polaris_stub.table((*namespace, name))
    stub.state.add_grant("main", "readers", {**GRANT, "tableName": "u"})
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(polaris_stub.properties)) as catalog:
        with pytest.raises(Unsupported, match=r"grant on a generic table .*would be lost"):
            catalog.read_native(PATH)
        assert catalog.describe_table(PATH).path == PATH
        stub.answer("GET", "/grants$", 500, "another fault")
        with pytest.raises(Internal, match="another fault"):
            catalog.read_native(PATH)


def test_grants_that_may_not_be_seen_are_not_taken_for_none(polaris_stub: PolarisServer) -> None:
    stub = polaris_stub.stub
    assert stub is not None
    polaris_stub.table((*polaris_stub.namespace(PATH[:2]), "t"))
    stub.forbid("GET", "/catalog-roles", "LIST_CATALOG_ROLES")
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(polaris_stub.properties)) as catalog:
        with pytest.raises(Unsupported, match="would be lost"):
            catalog.read_native(PATH)
        for text in ("{}", '{"grants": ["read"]}'):
            stub.faults.clear()
            stub.answer("GET", "/grants$", 200, text)
            with pytest.raises(Internal):
                catalog.read_native(PATH)


def test_updates_and_removals_of_properties_are_two_requests(polaris_stub: PolarisServer) -> None:
    """In one request Polaris 1.4.1 and 1.7.0 keep the updates, and answer 409 for the removals."""
    stub = polaris_stub.stub
    assert stub is not None
    polaris_stub.namespace(("main", "ns"))
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(polaris_stub.properties)) as catalog:
        before = catalog.create_namespace(NamespaceRecord("lake", ("main", "ns", "made"), {"kept": "1", "old": "2"}))
        stub.requests.clear()
        after = {key: value for key, value in before.properties.items() if key != "old"} | {"new": "3"}
        assert catalog.update_namespace(before, replace(before, properties=after)).properties == after
        sent = [
            json.loads(request.body)
            for request in stub.requests
            if request.method == "POST" and request.path.endswith("/properties")
        ]
        assert sent == [{"removals": [], "updates": {"new": "3"}}, {"removals": ["old"], "updates": {}}]
