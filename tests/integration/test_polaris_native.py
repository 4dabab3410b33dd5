"""A table of Polaris saved whole, grants included, before it may be declared anew."""

from __future__ import annotations

import json

import pytest
from apache_polaris.sdk.management import models

from federator.connector import Internal, TableNotFound, Unsupported
from federator_connectors.polaris import CONNECTOR
from tests.fixtures.polaris import PolarisServer

PATH = ("main", "a.b", "t")
GRANT = {"type": "table", "namespace": ["a.b"], "tableName": "t", "privilege": "TABLE_READ_DATA"}


def test_a_table_without_grants_is_saved_whole(polaris_server: PolarisServer, polaris_catalog: str) -> None:
    path = (*polaris_server.namespace((polaris_catalog, "ns")), "t")
    polaris_server.table(path, doc="d", properties={"k": "v", "table_type": "lance"})
    with CONNECTOR.open("lake", CONNECTOR.configure(polaris_server.properties)) as catalog:
        native = json.loads(json.dumps(catalog.native(path)))
        assert native == {
            "name": "t", "format": "lance", "base-location": "s3://lake/t.lance", "doc": "d",
            "properties": {"k": "v", "table_type": "lance"}, "grants": [],
        }  # fmt: skip
        assert catalog.lost_by_recreation(native) is None
        with pytest.raises(TableNotFound):
            catalog.native((*path[:-1], "missing"))


def test_grants_on_the_table_and_no_others_are_lost(polaris_stub: PolarisServer) -> None:
    stub = polaris_stub.stub
    assert stub is not None
    polaris_stub.table((*polaris_stub.namespace(PATH[:2]), "t"))
    for other in ({"namespace": ["a", "b"]}, {"tableName": "u"}, {"type": "view"}):
        stub.state.add_grant("main", "readers", {**GRANT, **other})
    with CONNECTOR.open("lake", CONNECTOR.configure(polaris_stub.properties)) as catalog:
        assert catalog.lost_by_recreation(catalog.native(PATH)) is None
        stub.state.add_grant("main", "readers", GRANT)
        native = catalog.native(PATH)
        assert native["grants"] == [{"role": "readers", **GRANT}]
        assert catalog.lost_by_recreation(native) == "grants on the table: TABLE_READ_DATA of the catalog role readers"
    # The shapes are those of Polaris's own client.
    assert models.CatalogRoles.from_json(stub.state.list_roles("main").text).roles[1].name == "readers"
    assert models.TableGrant.from_json(json.dumps(GRANT)).table_name == "t"


def test_grants_that_may_not_be_seen_are_not_taken_for_none(polaris_stub: PolarisServer) -> None:
    stub = polaris_stub.stub
    assert stub is not None
    polaris_stub.table((*polaris_stub.namespace(PATH[:2]), "t"))
    stub.forbid("GET", "/catalog-roles", "LIST_CATALOG_ROLES")
    with CONNECTOR.open("lake", CONNECTOR.configure(polaris_stub.properties)) as catalog:
        with pytest.raises(Unsupported, match="would be lost"):
            catalog.native(PATH)
        for text in ("{}", '{"grants": ["read"]}'):
            stub.faults.clear()
            stub.answer("GET", "/grants$", 200, text)
            with pytest.raises(Internal):
                catalog.native(PATH)
