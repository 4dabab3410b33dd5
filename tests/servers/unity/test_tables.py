"""Tables of Unity as the connector makes and reads them: the spec's fields, schemas, marks where properties are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.connector import (
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceNotEmpty,
    PermissionDenied,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.lance.facade import CatalogNamespace
from federator.model import Kind, NamespaceRecord, Path, TableRecord, canonical_json
from federator.testing.contract import MARKER
from federator.testing.contract.base import run_concurrently
from federator_connectors._unity.catalog import UnityCatalog
from federator_connectors.unity import CONNECTOR, UnityNamespace
from tests.fixtures.unity import UnityCatalogOfTest
from tests.stubs.unity import UnityStub

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def catalog(unity_catalog: UnityCatalogOfTest) -> Iterator[UnityCatalog]:
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(unity_catalog.properties)) as opened:
        yield opened


@pytest.fixture
def schema(unity_catalog: UnityCatalogOfTest) -> Path:
    return unity_catalog.schema()


@pytest.fixture
def facade(unity_catalog: UnityCatalogOfTest) -> Iterator[CatalogNamespace]:
    unity_namespace: CatalogNamespace = UnityNamespace(**unity_catalog.properties)
    yield unity_namespace
    unity_namespace.close()


def test_a_declared_table_is_what_the_spec_says(catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    declared = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t", {"team": "sales"}, doc="told"))
    native = unity_catalog.server.call("GET", f"/tables/{'.'.join(declared.path)}").json()
    assert (native["table_type"], native["data_source_format"], native["storage_location"]) == (
        "EXTERNAL",
        "TEXT",
        "s3://lake/t",
    )
    assert native["properties"] == {"table_type": "lance", "team": "sales"}
    assert (native["columns"], native["comment"]) == ([], "told")
    assert (declared.properties, declared.doc, declared.schema, declared.native_id) == (
        {"team": "sales"},
        "told",
        None,
        native["table_id"],
    )


def test_the_whole_native_object_can_be_saved(catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    made = unity_catalog.table(schema, "t", comment="told")
    saved = catalog.read_native((*schema, "t"))
    assert saved == {**made, "grants": []}
    assert catalog.describe_recreate_loss(saved) is None
    assert json.loads(json.dumps(saved)) == saved
    for missing in ((*schema, "u"), (schema[0], "missing", "t"), ("other", "s", "t")):
        with pytest.raises(TableNotFound):
            catalog.read_native(missing)


@pytest.mark.parametrize("marker", ["lance", "LANCE", "Lance"])
def test_the_marker_is_read_in_any_case(
    catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path, marker: str
) -> None:
    unity_catalog.table(schema, "t", properties={"table_type": marker})
    unity_catalog.table(schema, "other", properties={"table_type": "iceberg"})
    unity_catalog.table(schema, "plain", properties={})
    assert catalog.list_tables(schema) == ["t"]
    assert catalog.describe_table((*schema, "t")).properties == {}


def test_a_managed_table_is_found_out(catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    unity_catalog.managed_table(schema, "m")
    with pytest.raises(InvalidInput, match="marked as Lance, but MANAGED"):
        catalog.describe_table((*schema, "m"))
    (record,) = (
        row for shard in catalog.plan_shards() for row in catalog.read_shard(shard) if isinstance(row, TableRecord)
    )  # fmt: skip
    assert record.kind is Kind.MANAGED_TABLE


def test_a_schema_goes_in_and_comes_back(catalog: UnityCatalog, facade: CatalogNamespace, schema: Path) -> None:
    wanted = canonical_json([
        {"name": "id", "type": "bigint", "nullable": False},
        {"name": "vector", "type": "array<float>"},
        {"name": "at", "type": "timestamp", "doc": "when"},
        {"name": "tags", "type": "map<string,struct<weight:decimal(10,2)>>"},
    ])  # fmt: skip
    declared = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t", schema=wanted))
    assert declared.schema == wanted
    (crawled,) = (row for shard in catalog.plan_shards() for row in catalog.read_shard(shard) if isinstance(row, TableRecord))
    assert crawled == declared
    described = facade.describe_table(ln.DescribeTableRequest(id=[*schema, "t"])).var_schema
    assert described is not None
    assert [(field.name, field.type.type, field.nullable) for field in described.fields] == [
        ("id", "int64", False), ("vector", "list", True), ("at", "timestamp", True), ("tags", "map", True),
    ]  # fmt: skip


def test_columns_that_arrow_has_no_like_of_do_not_hide_a_table(
    facade: CatalogNamespace, catalog: UnityCatalog, schema: Path
) -> None:
    columns = json.dumps([{"name": "odd", "type": "uniontype<int,string>"}])
    declared = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t", schema=columns))
    assert declared.schema == '[{"name":"odd","type":"uniontype<int,string>"}]'
    described = facade.describe_table(ln.DescribeTableRequest(id=[*schema, "t"]))
    assert (described.location, described.var_schema) == ("s3://lake/t", None)


def test_a_schema_of_unity_and_its_properties(catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest) -> None:
    path = (unity_catalog.name, "made")
    properties = {"a": "b", "c": "d", "database.owner-type": "GROUP"}
    created = catalog.create_namespace(NamespaceRecord("lake", path, properties, doc="told"))
    assert (created.properties, created.doc, created.location) == (properties, "told", None)
    assert created.native_id is not None
    # Whoever changes a property replaces them all: a client that sends one loses the others.
    unity_catalog.server.call("PATCH", f"/schemas/{'.'.join(path)}", {"properties": {"x": "y"}})
    assert catalog.describe_namespace(path).properties == {"x": "y"}
    assert catalog.describe_namespace((unity_catalog.name,)).path == (unity_catalog.name,)
    catalog.drop_namespace(path)


def test_a_default_location_is_below_the_root(unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    with CONNECTOR.open("lake", CONNECTOR.parse_settings({**unity_catalog.properties, "root": "s3://lake/a/"})) as catalog:
        assert catalog.default_location((*schema, "t")) == f"s3://lake/a/{schema[0]}/{schema[1]}/t.lance"
    bare = {key: value for key, value in unity_catalog.properties.items() if key != "root"}
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(bare)) as catalog:
        assert catalog.default_location((*schema, "t")) == f"{FilePath.cwd().as_uri()}/{schema[0]}/{schema[1]}/t.lance"


def test_a_table_that_was_made_again_is_not_removed(
    catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path
) -> None:
    declared = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    unity_catalog.server.call("DELETE", f"/tables/{'.'.join(declared.path)}")
    again = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    with pytest.raises(ConcurrentModification):
        catalog.deregister_table(declared)
    catalog.deregister_table(again)
    with pytest.raises(TableNotFound):
        catalog.deregister_table(again)


@pytest.mark.parametrize("inside", ["managed", "foreign"])
def test_a_cascade_removes_nothing_where_something_else_is_inside(
    catalog: UnityCatalog, facade: CatalogNamespace, unity_catalog: UnityCatalogOfTest, schema: Path, inside: str
) -> None:
    declared = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    if inside == "managed":
        unity_catalog.managed_table(schema, "m")
    else:
        unity_catalog.table(schema, "m", properties={})
    with pytest.raises(ln.NamespaceNotEmptyError, match="m cannot be removed"):
        facade.drop_namespace(ln.DropNamespaceRequest(id=list(schema), behavior="Cascade"))
    # Not even taken away and put back: it is the same object.
    assert catalog.describe_table(declared.path) == declared


def test_a_cascade_never_asks_the_server_to_force(unity_stub: UnityStub) -> None:
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    facade = UnityNamespace(endpoint=unity_stub.url, catalog="main", root="/nonexistent/lake")
    for name in ("a", "b"):
        facade.declare_table(ln.DeclareTableRequest(id=["main", "s", name]))
    facade.drop_namespace(ln.DropNamespaceRequest(id=["main", "s"], behavior="Cascade"))
    assert unity_stub.world.schemas == unity_stub.world.tables == {}
    deletes = [request for request in unity_stub.seen if request.startswith("DELETE")]
    assert [request.rpartition("/")[2] for request in deletes] == ["main.s.a", "main.s.b", "main.s"]
    facade.close()


def test_a_volume_stops_a_cascade_which_says_what_it_dropped(unity_stub: UnityStub) -> None:
    """No listing of tables shows a volume: the server refuses, and is not forced."""
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    unity_stub.world.volumes.add("main.s")
    facade = UnityNamespace(endpoint=unity_stub.url, catalog="main", root="/nonexistent/lake")
    for name in ("a", "b"):
        facade.declare_table(ln.DeclareTableRequest(id=["main", "s", name], properties={"k": name}))
    with pytest.raises(ln.NamespaceNotEmptyError, match=r"with volumes.*dropped before that: main.s.a at .*, main.s.b at"):
        facade.drop_namespace(ln.DropNamespaceRequest(id=["main", "s"], behavior="Cascade"))
    assert facade.list_tables(ln.ListTablesRequest(id=["main", "s"])).tables == []
    facade.close()


@pytest.mark.parametrize(
    ("location", "stored"),
    [
        ("/lake/my table", "file:///lake/my%20table"),
        ("file:///lake/my table", "file:///lake/my%20table"),
        ("file:/lake/a%20b", "file:/lake/a%20b"),
        ("/lake/a%20b", "file:///lake/a%2520b"),
        ('file:///lake/[x]{y}|"z"^`<>\\', "file:///lake/%5Bx%5D%7By%7D%7C%22z%22%5E%60%3C%3E%5C"),
        ("file:///lake/100%", "file:///lake/100%25"),
        ("file:///lake/ü", "file:///lake/%C3%BC"),
        ("file:///lake/plain=1", "file:///lake/plain=1"),
        ("s3://lake/a%20b", "s3://lake/a%20b"),
    ],
)
def test_a_file_is_declared_where_it_is(
    catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path, location: str, stored: str
) -> None:
    """Unity accepts URIs only, and says of others "Unsupported path"."""
    wanted = TableRecord("lake", (*schema, "t"), location)
    assert CONNECTOR.capabilities.locations.allows(location)
    declared = catalog.declare_table(wanted)
    native = unity_catalog.server.call("GET", f"/tables/{'.'.join(declared.path)}").json()
    assert native["storage_location"] == declared.location == stored
    assert declared.canonical == wanted.canonical


@pytest.mark.parametrize("location", ["s3://lake/a b", "s3://lake/100%", "gs://lake/a|b", "s3://lake/[a]"])
def test_a_location_that_cannot_be_declared_is_known_to_plans(catalog: UnityCatalog, schema: Path, location: str) -> None:
    assert not CONNECTOR.capabilities.locations.allows(location)
    with pytest.raises(InvalidInput, match="Unsupported path"):
        catalog.declare_table(TableRecord("lake", (*schema, "t"), location))


# A server with authorization, which denies what it does not name.


@pytest.fixture
def guarded(unity_stub: UnityStub, monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityCatalog]:
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    unity_stub.world.token = "t0ken"
    settings = CONNECTOR.parse_settings({"endpoint": unity_stub.url, "catalog": "main", "auth_token": "t0ken"})
    with CONNECTOR.open("lake", settings) as opened:
        yield opened


def test_a_denied_declaration_differs_from_a_taken_name(guarded: UnityCatalog, unity_stub: UnityStub) -> None:
    declared = guarded.declare_table(TableRecord("lake", ("main", "s", "t"), "s3://lake/a/t"))
    with pytest.raises(TableAlreadyExists):
        guarded.declare_table(declared)
    for location in ("s3://lake/a/t", "s3://lake/a", "s3://lake/a/t/inside"):
        with pytest.raises(PermissionDenied, match="Access denied") as caught:
            guarded.declare_table(TableRecord("lake", ("main", "s", "u"), location))
        assert "grant" in str(caught.value.hint)
        assert "no table's location may equal, contain or lie inside" in str(caught.value.hint)
    unity_stub.world.denied.add("main.s")
    with pytest.raises(PermissionDenied):
        guarded.declare_table(TableRecord("lake", ("main", "s", "v"), "s3://lake/v"))


def test_a_recreation_that_would_be_denied_is_known_before_anything_is_removed(
    guarded: UnityCatalog, unity_stub: UnityStub
) -> None:
    declared = guarded.declare_table(TableRecord("lake", ("main", "s", "t"), "s3://lake/a/t"))
    unity_stub.world.create_catalog({"name": "other"}, None)
    unity_stub.world.create_schema({"name": "s2", "catalog_name": "other"}, None)
    with CONNECTOR.open("lake", CONNECTOR.parse_settings({"endpoint": unity_stub.url, "auth_token": "t0ken"})) as everything:
        everything.declare_table(TableRecord("lake", ("other", "s2", "u"), "s3://lake/b/u"))
    for taken in ("s3://lake/b/u", "s3a://lake/b", "s3://lake/b/u/inside/"):
        obstacle = guarded.find_recreate_obstacle(declared, replace(declared, location=taken))
        assert obstacle is not None
        assert obstacle.startswith(f"other$s2$u at s3://lake/b/u overlaps with {taken}")
    for free in ("s3://lake/a/t", "s3://lake/a/t/deeper", "s3://lake/b/u2"):
        assert guarded.find_recreate_obstacle(declared, replace(declared, location=free)) is None
    unity_stub.world.denied.add("other.s2")
    assert guarded.find_recreate_obstacle(declared, replace(declared, location="s3://lake/b/u")) is None, "it cannot be seen"


def test_a_server_gives_each_location_to_one_table_only_with_authorization() -> None:
    keys = {"endpoint": "http://unity:8080", "catalog": "main"}
    capabilities = [
        CONNECTOR.capabilities_for(CONNECTOR.parse_settings({**keys, **more})) for more in ({}, {"auth_token": "t"})
    ]
    assert [capability.locations.exclusive_in for capability in capabilities] == [None, "http://unity:8080"]


def test_concurrent_declarations_of_one_name_do_not_break_it(unity_stub: UnityStub) -> None:
    """All of them would succeed, and the name would be an error for ever."""
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    record = TableRecord("lake", ("main", "s", "t"), "s3://lake/t")

    def declare() -> TableRecord:
        # Each with connections of its own, as several requests of a service have.
        settings = CONNECTOR.parse_settings({"endpoint": unity_stub.url, "catalog": "main"})
        with CONNECTOR.open("lake", settings) as catalog:
            return catalog.declare_table(record)

    outcomes = run_concurrently([declare] * 8)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [*["TableAlreadyExists"] * 7, "TableRecord"]
    assert unity_stub.world.broken == set()


# Servers that take no such properties, as Databricks does. Only the stub can be made to.


@pytest.fixture
def strict(unity_stub: UnityStub) -> Iterator[UnityCatalog]:
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    with CONNECTOR.open("lake", CONNECTOR.parse_settings({"endpoint": unity_stub.url, "catalog": "main"})) as opened:
        yield opened


WANTED = TableRecord("lake", ("main", "s", "t"), "s3://lake/t", {**MARKER, "team": "sales"}, doc="told")


def posts(stub: UnityStub) -> list[str]:
    return [request for request in stub.seen if request.startswith("POST")]


def test_lost_grants_of_a_table_are_reported(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    declared = strict.declare_table(WANTED)
    unity_stub.world.grants["main.s.t"] = [{"principal": "analysts", "privileges": ["SELECT", "MODIFY"]}]
    assert (
        strict.describe_recreate_loss(strict.read_native(declared.path)) == "grants on the table: SELECT and MODIFY of analysts"
    )
    unity_stub.script.append((200, {}, json.dumps(unity_stub.world.tables["main", "s", "t"])))
    unity_stub.script.append((403, {}, json.dumps({"error_code": "PERMISSION_DENIED", "message": "no"})))
    with pytest.raises(Unsupported, match="would be lost"):
        strict.read_native(declared.path)


@pytest.mark.parametrize("way", ["refuses", "loses"])
def test_where_marks_are_refused_they_go_into_the_comment(strict: UnityCatalog, unity_stub: UnityStub, way: str) -> None:
    setattr(unity_stub.world, way, ("federator.",))
    declared = strict.declare_table(WANTED)
    native = unity_stub.world.tables["main", "s", "t"]
    assert native["properties"] == {"table_type": "lance", "team": "sales"}
    assert native["comment"].startswith("told\n[federator instance=prod-eu ")
    # Whoever reads it finds the mark where it always is.
    assert (declared.properties, declared.doc) == ({**MARKER, "team": "sales"}, "told")
    (crawled,) = (row for shard in strict.plan_shards() for row in strict.read_shard(shard) if isinstance(row, TableRecord))
    assert crawled == declared
    # Once refused, marks are not tried again, and a table without any is declared as it is.
    asked = len(posts(unity_stub))
    strict.declare_table(replace(WANTED, path=("main", "s", "u")))
    plain = strict.declare_table(replace(WANTED, path=("main", "s", "v"), properties={}))
    assert (len(posts(unity_stub)), plain.doc) == (asked + 2, "told")
    strict.deregister_table(plain)
    strict.deregister_table(strict.describe_table(("main", "s", "u")))
    strict.deregister_table(declared)
    assert unity_stub.world.tables == {}


@pytest.mark.parametrize("way", ["refuses", "loses"])
def test_where_the_marker_itself_is_refused_nothing_is_declared(strict: UnityCatalog, unity_stub: UnityStub, way: str) -> None:
    setattr(unity_stub.world, way, ("table_type", "federator."))
    with pytest.raises(Unsupported, match="nothing was declared, because without the property table_type"):
        strict.declare_table(WANTED)
    assert unity_stub.world.tables == {}
    assert strict.observe(WANTED.path).is_absent


@pytest.mark.parametrize("way", ["refuses", "loses"])
def test_where_a_users_property_is_refused_it_is_not_left_out(strict: UnityCatalog, unity_stub: UnityStub, way: str) -> None:
    setattr(unity_stub.world, way, ("team",))
    for wanted in (WANTED, TableRecord("lake", WANTED.path, "s3://lake/t", {"team": "sales"})):
        with pytest.raises(InvalidInput, match="team"):
            strict.declare_table(wanted)
        assert unity_stub.world.tables == {}


def test_a_table_that_is_there_is_not_taken_for_one_that_lost_properties(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    """What is removed after a lossy declaration is only what that declaration made."""
    strict.declare_table(WANTED)
    unity_stub.world.loses = ("federator.",)
    with pytest.raises(TableAlreadyExists):
        strict.declare_table(WANTED)
    assert strict.describe_table(WANTED.path).properties["team"] == "sales"


def test_what_was_stored_without_its_marks_and_replaced_meanwhile_stays(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    unity_stub.world.loses = ("federator.",)
    read = strict._api.get_table

    def replaced(path: Path) -> object:
        unity_stub.world.tables["main", "s", "t"]["table_id"] = "of somebody else"
        return read(path)

    strict._api.get_table = replaced  # type: ignore[assignment,method-assign]
    with pytest.raises(Internal, match=r"without the properties federator(.|\n)*another table has its name now"):
        strict.declare_table(WANTED)
    assert unity_stub.world.tables["main", "s", "t"]["table_id"] == "of somebody else"


def test_what_reads_back_otherwise_is_an_error(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    create = strict._api.create_table

    def managed(body: Mapping[str, Any]) -> Mapping[str, Any]:
        made = create(body)
        unity_stub.world.tables["main", "s", "t"]["table_type"] = "MANAGED"
        return made

    strict._api.create_table = managed  # type: ignore[method-assign]
    with pytest.raises(Internal, match="cannot be read back"):
        strict.declare_table(WANTED)
    assert len(unity_stub.world.tables) == 1, "a managed table is never removed"


def test_another_refusal_is_not_tried_again(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    body = json.dumps({"error_code": "INVALID_ARGUMENT", "message": "the location is not covered by an external location"})
    unity_stub.script.append((400, {}, body))
    with pytest.raises(InvalidInput, match="not covered"):
        strict.declare_table(WANTED)
    assert len(unity_stub.seen) == 1


def test_pylance_writes_and_reads_through_it(unity_catalog: UnityCatalogOfTest, schema: Path, tmp_path: FilePath) -> None:
    import lance

    facade = UnityNamespace(**{**unity_catalog.properties, "root": str(tmp_path)})
    path = [*schema, "t"]
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), namespace_client=facade, table_id=path)
    assert lance.dataset(namespace_client=facade, table_id=path).count_rows() == 3
    facade.close()


def test_the_official_way_to_connect(unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    prefixed = {f"unity.{key}": value for key, value in unity_catalog.properties.items()}
    facade = ln.connect("federator_connectors.unity.UnityNamespace", prefixed)
    assert facade.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == [unity_catalog.name]
    assert facade.list_namespaces(ln.ListNamespacesRequest(id=[unity_catalog.name])).namespaces == [schema[1]]
    assert facade.list_tables(ln.ListTablesRequest(id=list(schema))).tables == []


def test_not_empty_is_reported_with_the_message_of_the_server(catalog: UnityCatalog, schema: Path) -> None:
    catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    with pytest.raises(NamespaceNotEmpty, match="Cannot delete schema with tables"):
        catalog.drop_namespace(schema)
