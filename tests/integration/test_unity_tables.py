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
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.connector.namespace import CatalogNamespace
from federator.model import Kind, NamespaceRecord, Path, TableRecord
from federator.testing.contract import MARK
from federator_connectors._arrow import schemas
from federator_connectors._unity.catalog import UnityCatalog
from federator_connectors.unity import CONNECTOR, UnityNamespace
from tests.fixtures.unity import UnityCatalogOfTest
from tests.stubs.unity import UnityStub

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def catalog(unity_catalog: UnityCatalogOfTest) -> Iterator[UnityCatalog]:
    with CONNECTOR.open("lake", CONNECTOR.configure(unity_catalog.properties)) as opened:
        yield opened


@pytest.fixture
def schema(unity_catalog: UnityCatalogOfTest) -> Path:
    return unity_catalog.schema()


@pytest.fixture
def face(unity_catalog: UnityCatalogOfTest) -> Iterator[CatalogNamespace]:
    made: CatalogNamespace = UnityNamespace(**unity_catalog.properties)
    yield made
    made.close()


def test_a_declared_table_is_what_the_spec_says(catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    made = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t", {"team": "sales"}, doc="told"))
    native = unity_catalog.server.call("GET", f"/tables/{'.'.join(made.path)}").json()
    assert (native["table_type"], native["data_source_format"], native["storage_location"]) == (
        "EXTERNAL",
        "TEXT",
        "s3://lake/t",
    )
    assert native["properties"] == {"table_type": "lance", "team": "sales"}
    assert (native["columns"], native["comment"]) == ([], "told")
    assert (made.properties, made.doc, made.schema, made.native_id) == ({"team": "sales"}, "told", None, native["table_id"])


def test_the_whole_native_object_can_be_saved(catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    made = unity_catalog.table(schema, "t", comment="told")
    saved = catalog.native((*schema, "t"))
    assert saved == {**made, "grants": []}
    assert catalog.lost_by_recreation(saved) is None
    assert json.loads(json.dumps(saved)) == saved
    for missing in ((*schema, "u"), (schema[0], "missing", "t"), ("other", "s", "t")):
        with pytest.raises(TableNotFound):
            catalog.native(missing)


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
    with pytest.raises(InvalidInput, match="marked lance, but MANAGED"):
        catalog.describe_table((*schema, "m"))
    (record,) = (
        row for shard in catalog.shards() for row in catalog.read(shard) if isinstance(row, TableRecord)
    )  # fmt: skip
    assert record.kind is Kind.MANAGED_TABLE


def test_a_schema_goes_in_and_comes_back(catalog: UnityCatalog, face: CatalogNamespace, schema: Path) -> None:
    wanted = pa.schema([
        pa.field("id", pa.int64(), nullable=False),
        pa.field("vector", pa.list_(pa.float32(), 768)),
        pa.field("at", pa.timestamp("ns", "Europe/Berlin"), metadata={"comment": "when"}),
        pa.field("tags", pa.map_(pa.string(), pa.struct([("weight", pa.decimal128(10, 2))]))),
    ])  # fmt: skip
    made = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t", schema=schemas.record_schema(wanted)))
    assert schemas.arrow_schema(made.schema).equals(wanted, check_metadata=True)
    (crawled,) = (row for shard in catalog.shards() for row in catalog.read(shard) if isinstance(row, TableRecord))
    assert crawled == made
    described = face.describe_table(ln.DescribeTableRequest(id=[*schema, "t"])).var_schema
    assert described is not None
    assert [(field.name, field.type.type, field.nullable) for field in described.fields] == [
        ("id", "int64", False), ("vector", "fixed_size_list", True), ("at", "timestamp", True), ("tags", "map", True),
    ]  # fmt: skip
    assert described.fields[1].type.length == 768


def test_columns_that_arrow_has_no_like_of_do_not_hide_a_table(
    face: CatalogNamespace, catalog: UnityCatalog, schema: Path
) -> None:
    columns = json.dumps([{"name": "odd", "type": "uniontype<int,string>"}])
    made = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t", schema=columns))
    assert made.schema == '[{"name":"odd","type":"uniontype<int,string>"}]'
    described = face.describe_table(ln.DescribeTableRequest(id=[*schema, "t"]))
    assert (described.location, described.var_schema) == ("s3://lake/t", None)


def test_a_schema_of_unity_and_its_properties(catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest) -> None:
    path = (unity_catalog.name, "made")
    made = catalog.create_namespace(NamespaceRecord("lake", path, {"a": "b", "c": "d"}, doc="told"))
    assert (made.properties, made.doc, made.location) == ({"a": "b", "c": "d"}, "told", None)
    assert made.native_id is not None
    # Whoever changes a property replaces them all: a client that sends one loses the others.
    unity_catalog.server.call("PATCH", f"/schemas/{'.'.join(path)}", {"properties": {"x": "y"}})
    assert catalog.describe_namespace(path).properties == {"x": "y"}
    assert catalog.describe_namespace((unity_catalog.name,)).path == (unity_catalog.name,)
    catalog.drop_namespace(path)


def test_a_default_location_is_below_the_root(unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    with CONNECTOR.open("lake", CONNECTOR.configure({**unity_catalog.properties, "root": "s3://lake/a/"})) as catalog:
        assert catalog.default_location((*schema, "t")) == f"s3://lake/a/{schema[0]}/{schema[1]}/t.lance"
    bare = {key: value for key, value in unity_catalog.properties.items() if key != "root"}
    with CONNECTOR.open("lake", CONNECTOR.configure(bare)) as catalog:
        assert catalog.default_location((*schema, "t")) == f"{FilePath.cwd().as_uri()}/{schema[0]}/{schema[1]}/t.lance"


def test_a_table_that_was_made_again_is_not_removed(
    catalog: UnityCatalog, unity_catalog: UnityCatalogOfTest, schema: Path
) -> None:
    made = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    unity_catalog.server.call("DELETE", f"/tables/{'.'.join(made.path)}")
    again = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    with pytest.raises(ConcurrentModification):
        catalog.deregister_table(made)
    catalog.deregister_table(again)
    with pytest.raises(TableNotFound):
        catalog.deregister_table(again)


@pytest.mark.parametrize("inside", ["managed", "foreign"])
def test_a_cascade_removes_nothing_where_something_else_is_inside(
    catalog: UnityCatalog, face: CatalogNamespace, unity_catalog: UnityCatalogOfTest, schema: Path, inside: str
) -> None:
    made = catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    if inside == "managed":
        unity_catalog.managed_table(schema, "m")
    else:
        unity_catalog.table(schema, "m", properties={})
    with pytest.raises(ln.NamespaceNotEmptyError, match="m is not ours to remove"):
        face.drop_namespace(ln.DropNamespaceRequest(id=list(schema), behavior="Cascade"))
    # Not even taken away and put back: it is the same object.
    assert catalog.describe_table(made.path) == made


def test_a_cascade_never_asks_the_server_to_force(unity_stub: UnityStub) -> None:
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    face = UnityNamespace(endpoint=unity_stub.url, catalog="main", root="/nonexistent/lake")
    for name in ("a", "b"):
        face.declare_table(ln.DeclareTableRequest(id=["main", "s", name]))
    face.drop_namespace(ln.DropNamespaceRequest(id=["main", "s"], behavior="Cascade"))
    assert unity_stub.world.schemas == unity_stub.world.tables == {}
    deletes = [request for request in unity_stub.seen if request.startswith("DELETE")]
    assert [request.rpartition("/")[2] for request in deletes] == ["main.s.a", "main.s.b", "main.s"]
    face.close()


def test_a_volume_stops_a_cascade_which_says_what_it_dropped(unity_stub: UnityStub) -> None:
    """No listing of tables shows a volume: the server refuses, and is not forced."""
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    unity_stub.world.volumes.add("main.s")
    face = UnityNamespace(endpoint=unity_stub.url, catalog="main", root="/nonexistent/lake")
    for name in ("a", "b"):
        face.declare_table(ln.DeclareTableRequest(id=["main", "s", name], properties={"k": name}))
    with pytest.raises(ln.NamespaceNotEmptyError, match=r"with volumes.*dropped before that: main.s.a at .*, main.s.b at"):
        face.drop_namespace(ln.DropNamespaceRequest(id=["main", "s"], behavior="Cascade"))
    assert face.list_tables(ln.ListTablesRequest(id=["main", "s"])).tables == []
    face.close()


# Servers that take no such properties, as Databricks does. Only the stub can be made to.


@pytest.fixture
def strict(unity_stub: UnityStub) -> Iterator[UnityCatalog]:
    unity_stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
    with CONNECTOR.open("lake", CONNECTOR.configure({"endpoint": unity_stub.url, "catalog": "main"})) as opened:
        yield opened


WANTED = TableRecord("lake", ("main", "s", "t"), "s3://lake/t", {**MARK, "team": "sales"}, doc="told")


def posts(stub: UnityStub) -> list[str]:
    return [request for request in stub.seen if request.startswith("POST")]


def test_grants_on_a_table_are_said_to_be_lost(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    made = strict.declare_table(WANTED)
    unity_stub.world.grants["main.s.t"] = [{"principal": "analysts", "privileges": ["SELECT", "MODIFY"]}]
    assert strict.lost_by_recreation(strict.native(made.path)) == "grants on the table: SELECT and MODIFY of analysts"
    unity_stub.script.append((200, {}, json.dumps(unity_stub.world.tables["main", "s", "t"])))
    unity_stub.script.append((403, {}, json.dumps({"error_code": "PERMISSION_DENIED", "message": "no"})))
    with pytest.raises(Unsupported, match="would be lost"):
        strict.native(made.path)


@pytest.mark.parametrize("way", ["refuses", "loses"])
def test_where_marks_are_refused_they_go_into_the_comment(strict: UnityCatalog, unity_stub: UnityStub, way: str) -> None:
    setattr(unity_stub.world, way, ("federator.",))
    made = strict.declare_table(WANTED)
    native = unity_stub.world.tables["main", "s", "t"]
    assert native["properties"] == {"table_type": "lance", "team": "sales"}
    assert native["comment"].startswith("told\n[federator instance=prod-eu ")
    # Whoever reads it finds the mark where it always is.
    assert (made.properties, made.doc) == ({**MARK, "team": "sales"}, "told")
    (crawled,) = (row for shard in strict.shards() for row in strict.read(shard) if isinstance(row, TableRecord))
    assert crawled == made
    # Once refused, marks are not tried again, and a table without any is declared as it is.
    asked = len(posts(unity_stub))
    strict.declare_table(replace(WANTED, path=("main", "s", "u")))
    plain = strict.declare_table(replace(WANTED, path=("main", "s", "v"), properties={}))
    assert (len(posts(unity_stub)), plain.doc) == (asked + 2, "told")
    strict.deregister_table(plain)
    strict.deregister_table(strict.describe_table(("main", "s", "u")))
    strict.deregister_table(made)
    assert unity_stub.world.tables == {}


@pytest.mark.parametrize("way", ["refuses", "loses"])
def test_where_the_marker_itself_is_refused_nothing_is_declared(strict: UnityCatalog, unity_stub: UnityStub, way: str) -> None:
    setattr(unity_stub.world, way, ("table_type", "federator."))
    with pytest.raises(Unsupported, match="could not be known as a Lance table, and nothing was declared"):
        strict.declare_table(WANTED)
    assert unity_stub.world.tables == {}
    assert strict.observe(WANTED.path).absent


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
    read = strict._api.table

    def replaced(path: Path) -> object:
        unity_stub.world.tables["main", "s", "t"]["table_id"] = "of somebody else"
        return read(path)

    strict._api.table = replaced  # type: ignore[assignment,method-assign]
    with pytest.raises(Internal, match=r"without the properties federator(.|\n)*another table now"):
        strict.declare_table(WANTED)
    assert unity_stub.world.tables["main", "s", "t"]["table_id"] == "of somebody else"


def test_what_reads_back_otherwise_is_an_error(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    create = strict._api.create_table

    def managed(body: Mapping[str, Any]) -> Mapping[str, Any]:
        made = create(body)
        unity_stub.world.tables["main", "s", "t"]["table_type"] = "MANAGED"
        return made

    strict._api.create_table = managed  # type: ignore[method-assign]
    with pytest.raises(Internal, match="reads back otherwise"):
        strict.declare_table(WANTED)
    assert len(unity_stub.world.tables) == 1, "a managed table is never removed"


def test_another_refusal_is_not_tried_again(strict: UnityCatalog, unity_stub: UnityStub) -> None:
    said = json.dumps({"error_code": "INVALID_ARGUMENT", "message": "the location is not covered by an external location"})
    unity_stub.script.append((400, {}, said))
    with pytest.raises(InvalidInput, match="not covered"):
        strict.declare_table(WANTED)
    assert len(unity_stub.seen) == 1


def test_pylance_writes_and_reads_through_it(unity_catalog: UnityCatalogOfTest, schema: Path, tmp_path: FilePath) -> None:
    import lance

    face = UnityNamespace(**{**unity_catalog.properties, "root": str(tmp_path)})
    path = [*schema, "t"]
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), namespace_client=face, table_id=path)
    assert lance.dataset(namespace_client=face, table_id=path).count_rows() == 3
    face.close()


def test_the_official_way_to_connect(unity_catalog: UnityCatalogOfTest, schema: Path) -> None:
    prefixed = {f"unity.{key}": value for key, value in unity_catalog.properties.items()}
    face = ln.connect("federator_connectors.unity.UnityNamespace", prefixed)
    assert face.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == [unity_catalog.name]
    assert face.list_namespaces(ln.ListNamespacesRequest(id=[unity_catalog.name])).namespaces == [schema[1]]
    assert face.list_tables(ln.ListTablesRequest(id=list(schema))).tables == []


def test_not_empty_is_said_with_the_servers_words(catalog: UnityCatalog, schema: Path) -> None:
    catalog.declare_table(TableRecord("lake", (*schema, "t"), "s3://lake/t"))
    with pytest.raises(NamespaceNotEmpty, match="Cannot delete schema with tables"):
        catalog.drop_namespace(schema)
