"""Companion tables on Apache Iceberg's own REST catalog: what they contain, what is foreign, and that data is kept."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import lance
import lance_namespace
import pyarrow as pa
import pytest

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NameNotAllowed,
    NamespaceNotFound,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.model import ROOT, Coverage, CoverageState, NamespaceRecord, Path, TableRecord, path_key
from federator_connectors._iceberg.catalog import IcebergCatalog
from federator_connectors._iceberg.settings import REFUSED_NAMES
from federator_connectors.iceberg import CONNECTOR
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import EACH, Edit, Elsewhere, Endless, Lie, Op, Send
from tests.fixtures.iceberg import WAREHOUSE, IcebergServer
from tests.servers.iceberg.iceberg_support import PurgingProxy, opened, record, written

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def catalog(iceberg_server: IcebergServer) -> Iterator[IcebergCatalog]:
    with opened(iceberg_server.url) as catalog:
        yield catalog


@pytest.fixture
def proxy(iceberg_server: IcebergServer) -> Iterator[HttpProxy]:
    """A proxy before the server, which lies as the test sets it."""
    with HttpProxy(iceberg_server.url) as proxy:
        yield proxy


def files(directory: FilePath) -> set[str]:
    return {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}


def test_a_companion_has_one_column_and_its_metadata_is_beside_the_table(
    catalog: IcebergCatalog, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    table = written(tmp_path)
    before = files(table)
    path = (*iceberg_namespace, "orders")
    created = catalog.declare_table(record(path, table, properties={"team": "sales"}, doc="Orders."))
    assert (created.location, created.properties, created.doc) == (f"file://{table}", {"team": "sales"}, "Orders.")
    native = iceberg_server.read(path)
    assert native["metadata"]["location"] == f"file://{table}"
    assert native["metadata"]["schemas"][0]["fields"] == [{"id": 1, "name": "dummy", "required": False, "type": "string"}]
    assert native["metadata"]["properties"]["table_type"] == "lance"
    assert native["metadata-location"].startswith(f"file:{tmp_path}/_iceberg/orders/")
    moved = catalog.update_table(created, replace(created, location=f"file://{tmp_path}/moved.lance", doc=None))
    assert (moved.location, moved.doc, moved.properties) == (f"file://{tmp_path}/moved.lance", None, {"team": "sales"})
    assert iceberg_server.read(path)["metadata-location"].startswith(f"file:{tmp_path}/_iceberg/moved/")
    catalog.deregister_table(moved)
    assert files(table) == before
    assert not (tmp_path / "moved.lance").exists()
    assert lance.dataset(str(table)).count_rows() == 3


def test_lance_does_not_mind_metadata_inside_a_table(
    catalog: IcebergCatalog, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """Other implementations of the Lance text leave it there. Such a companion is read, and its next metadata is beside the table."""
    table = written(tmp_path)
    path = (*iceberg_namespace, "orders")
    iceberg_server.table(path, f"file://{table}", table_type="LANCE", team="sales")
    inside = {name for name in files(table) if name.startswith("metadata/")}
    assert inside
    described = catalog.describe_table(path)
    assert (described.location, described.properties) == (f"file://{table}", {"team": "sales"})
    lance.write_dataset(pa.table({"id": [4]}), str(table), mode="append")
    dataset = lance.dataset(str(table))
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert lance.dataset(str(table)).to_table().column("id").to_pylist() == [1, 2, 3, 4]
    catalog.update_table(described, replace(described, properties={"team": "ops"}))
    assert {name for name in files(table) if name.startswith("metadata/")} == inside
    assert iceberg_server.read(path)["metadata-location"].startswith(f"file:{tmp_path}/_iceberg/orders/")


def test_iceberg_tables_and_views_are_foreign_and_their_names_taken(
    catalog: IcebergCatalog, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    table, view, companion = ((*iceberg_namespace, name) for name in ("table", "view", "companion"))
    iceberg_server.table(table)
    iceberg_server.view(view)
    catalog.declare_table(record(companion, tmp_path / "companion.lance"))
    for path, kind in ((table, "an Iceberg table"), (view, "a view")):
        assert (catalog.observe(path).foreign or "").startswith(f"{catalog.source}: {path_key(path)} is {kind}")
        with pytest.raises(InvalidInput, match=kind):
            catalog.describe_table(path)
        with pytest.raises(TableAlreadyExists):
            catalog.declare_table(record(path, tmp_path / "new.lance"))
        with pytest.raises(InvalidInput):
            catalog.deregister_table(record(path, tmp_path / "new.lance"))
    assert catalog.list_tables(iceberg_namespace) == ["companion"]
    rows = [row for shard in catalog.plan_shards() for row in catalog.read_shard(shard)]
    assert [row.path for row in rows if isinstance(row, TableRecord) and row.path[:-1] == iceberg_namespace] == [companion]
    coverage = {row.namespace: row for row in rows if isinstance(row, Coverage)}
    assert coverage[iceberg_namespace].complete
    assert coverage[ROOT].presence.state is CoverageState.SKIPPED


def test_a_table_with_a_name_that_the_server_refuses_hides_no_others(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    """Other clients create such names, in the body of a request. They are listed, like tables that the principal may not read."""
    for name in ("per%cent", ".", "good"):
        iceberg_server.table((*iceberg_namespace, name), f"file://{tmp_path}/{name}", table_type="lance")
    with opened(iceberg_server.strict_url, max_retries="3") as catalog:
        assert catalog.list_tables(iceberg_namespace) == [".", "good", "per%cent"]
        assert catalog.list_tables_after(iceberg_namespace, ".", 1) == ["good"]


@pytest.mark.parametrize("refusal", [Send(b"<html>", 302, "text/html"), Send(b"<html>", 400, "text/html")])
def test_a_refused_request_is_no_foreign_object(
    proxy: HttpProxy, iceberg_namespace: Path, tmp_path: FilePath, refusal: Send
) -> None:
    with opened(proxy.url) as catalog:
        table = catalog.declare_table(record((*iceberg_namespace, "t"), tmp_path / "t.lance"))
        proxy.script.set([Lie("GET .*/tables/t", refusal)])
        with pytest.raises(InvalidInput):
            catalog.observe(table.path)
        proxy.script.set([Lie("GET .*/tables/gone", refusal)])
        with pytest.raises(InvalidInput):
            catalog.observe((*iceberg_namespace, "gone"))


def test_a_server_without_properties_of_namespaces(proxy: HttpProxy, iceberg_namespace: Path) -> None:
    """By Iceberg's specification it sends null. Polaris always sends an object."""
    with opened(proxy.url) as catalog:
        for lie in (Edit(("properties",), Op.SET, None), Edit(("properties",), Op.REMOVE)):
            proxy.script.set([Lie(f"GET .*/{iceberg_namespace[1]}", lie)])
            assert catalog.describe_namespace(iceberg_namespace) == NamespaceRecord(catalog.source, iceberg_namespace)
            assert proxy.script.met == 1


def test_a_declaration_that_another_server_took_is_no_success(
    proxy: HttpProxy, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    other, _ = iceberg_server.empty_urls or pytest.skip("needs a second catalog")
    path = (*iceberg_namespace, "t")
    with opened(proxy.url) as catalog:
        proxy.script.set([Lie("POST .*/tables", Elsewhere(other))])
        with pytest.raises(TableNotFound):
            catalog.declare_table(record(path, tmp_path / "t.lance"))
        assert catalog.observe(path).is_absent
    with opened(other) as catalog:
        catalog.deregister_table(catalog.describe_table(path))


def test_a_rename_keeps_the_table(iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath) -> None:
    target = iceberg_server.namespace((WAREHOUSE, f"{iceberg_namespace[1]}_other"))
    with PurgingProxy(iceberg_server.url) as proxy, opened(proxy.url) as catalog:
        before = catalog.declare_table(record((*iceberg_namespace, "t"), written(tmp_path), doc="Orders."))
        renamed = catalog.rename_table(before, (*target, "odd name/%"))
        assert renamed == replace(before, path=(*target, "odd name/%"))
        assert catalog.observe(before.path).is_absent
        iceberg_server.table((*target, "table"))
        iceberg_server.view((*target, "view"))
        for name in ("table", "view"):
            with pytest.raises(TableAlreadyExists):
                catalog.rename_table(renamed, (*target, name))
        with pytest.raises(NamespaceNotFound):
            catalog.rename_table(renamed, (WAREHOUSE, "missing", "t"))
        with pytest.raises(ConcurrentModification):
            catalog.rename_table(replace(renamed, doc="stale"), before.path)
        with pytest.raises(Unsupported, match="one warehouse to another"):
            catalog.rename_table(renamed, ("elsewhere", *before.path[1:]))
        assert [request.path for request in proxy.requests if request.path.endswith("/rename")] == ["/v1/tables/rename"] * 3
        proxy.script.set([Lie("GET .*/config", Edit(("endpoints",), Op.SET, ["GET /v1/config"]))])
        with opened(proxy.url) as without, pytest.raises(Unsupported, match="does not offer"):
            without.rename_table(renamed, before.path)
        assert catalog.describe_table(renamed.path) == renamed


def test_a_rename_of_another_table_is_reported(proxy: HttpProxy, iceberg_namespace: Path, tmp_path: FilePath) -> None:
    """The server does not compare. The table was made again between the last read and the call."""
    path, new_path = ((*iceberg_namespace, name) for name in ("t", "u"))
    with opened(proxy.url) as catalog:
        before = catalog.declare_table(record(path, tmp_path / "t.lance"))
        catalog.deregister_table(before)
        catalog.declare_table(record(path, tmp_path / "t.lance"))
        uuid = Edit(("metadata", "table-uuid"), Op.SET, before.native_id)
        proxy.script.set([Lie("GET .*/tables/t", uuid)])
        with pytest.raises(ConcurrentModification, match="another table"):
            catalog.rename_table(before, new_path)


def test_a_table_that_was_made_again_is_another_one(
    catalog: IcebergCatalog, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    wanted = record((*iceberg_namespace, "t"), tmp_path / "t.lance")
    first = catalog.declare_table(wanted)
    catalog.deregister_table(first)
    second = catalog.declare_table(wanted)
    assert first.native_id != second.native_id
    with pytest.raises(ConcurrentModification):
        catalog.deregister_table(first)


def test_parents_must_exist_although_the_server_does_not_need_them(
    catalog: IcebergCatalog, iceberg_namespace: Path, tmp_path: FilePath
) -> None:
    missing = (WAREHOUSE, f"missing_{secrets.token_hex(4)}")
    with pytest.raises(NamespaceNotFound):
        catalog.declare_table(record((*missing, "t"), tmp_path / "t.lance"))
    with pytest.raises(NamespaceNotFound):
        catalog.create_namespace(NamespaceRecord("x", (*missing, "child")))
    assert catalog.find_namespace(missing) is None


def test_a_bucket_as_a_whole_cannot_have_a_companion(catalog: IcebergCatalog, iceberg_namespace: Path) -> None:
    with pytest.raises(InvalidInput, match="beside the table"):
        catalog.declare_table(TableRecord("x", (*iceberg_namespace, "t"), "s3://bucket"))


@pytest.mark.parametrize("name", ["sla/sh", "back\\slash", "per%cent", "per%2Fcent", "semi;colon", "sp ace", "q?#"])
def test_a_name_that_a_server_refuses_in_a_url_is_not_created(
    iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, name: str
) -> None:
    """Created, it could neither be read nor removed there."""
    path = (*iceberg_namespace, name)
    # Jetty closes the connection after such a refusal, which may meet the next request.
    with opened(iceberg_server.strict_url, max_retries="3") as catalog:
        if re.fullmatch(REFUSED_NAMES, name):
            with pytest.raises(NameNotAllowed):
                catalog.declare_table(record(path, tmp_path / "t.lance"))
            with pytest.raises(NameNotAllowed):
                catalog.create_namespace(NamespaceRecord("x", path))
            assert catalog.list_tables(iceberg_namespace) == catalog.list_namespaces(iceberg_namespace) == []
        else:
            catalog.deregister_table(catalog.declare_table(record(path, tmp_path / "t.lance")))
            catalog.create_namespace(NamespaceRecord("x", path))
            catalog.drop_namespace(path)


@pytest.mark.parametrize(
    ("call", "lie"),
    [
        ("GET .*/config", Send(b"{}")),
        ("GET .*/config", Send(b"<html>Sign in</html>", content_type="text/html")),
        ("GET .*/config", Edit(("overrides", "prefix"), Op.SET, "a b?c")),
        ("GET .*/tables", Send(b"{}")),
        ("GET .*/tables", Send(b"<html>Sign in</html>", content_type="text/html")),
        ("GET .*/tables", Edit(("identifiers",), Op.REMOVE)),
        ("GET .*/tables", Edit(("identifiers", EACH, "namespace"), Op.SET, ["other"])),
        ("GET .*/tables", Endless("next-page-token")),
        ("GET .*/tables/t", Send(b"{}")),
        ("GET .*/tables/t", Edit(("metadata", "location"), Op.REMOVE)),
        ("GET .*/tables/t", Edit(("metadata", "properties"), Op.SET, ["lance"])),
        ("GET .*/tables/t", Send(b"not found", 404, "text/plain")),
    ],
)
def test_an_answer_of_another_shape_is_a_failure_and_proves_nothing(
    proxy: HttpProxy, iceberg_namespace: Path, tmp_path: FilePath, call: str, lie: Any
) -> None:
    path = (*iceberg_namespace, "t")
    with opened(proxy.url) as catalog:
        catalog.declare_table(record(path, tmp_path / "t.lance"))
        (shard,) = (shard for shard in catalog.plan_shards() if iceberg_namespace in shard.namespaces)
    with opened(proxy.url) as catalog:
        proxy.script.set([Lie(call, lie)])
        with pytest.raises(Internal):
            catalog.list_tables(iceberg_namespace)
        rows = list(catalog.read_shard(shard))
    assert proxy.script.met >= 1
    (coverage,) = (row for row in rows if isinstance(row, Coverage) and row.namespace == iceberg_namespace)
    assert coverage.found
    assert not (coverage.complete and coverage.detail.complete)


@pytest.mark.parametrize("separator", ["%1F", None])
def test_levels_are_joined_as_the_server_asks(
    proxy: HttpProxy, iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath, separator: str | None
) -> None:
    """The server asks for ``%2E`` and knows ``%1F``, too. Jetty's default refuses ``%1F``, so there only the first one works."""
    if separator:
        proxy.script.set([Lie("GET .*/config", Edit(("overrides", "namespace-separator"), Op.REMOVE))])
    child = (*iceberg_namespace, "child", "grand child")
    with opened(proxy.url if separator else iceberg_server.strict_url) as catalog:
        for depth in (3, 4):
            catalog.create_namespace(NamespaceRecord("x", child[:depth]))
        declared = catalog.declare_table(record((*child, "do.t"), tmp_path / "t.lance"))
        assert catalog.list_namespaces(child[:-1]) == ["grand child"]
        assert catalog.list_tables(child) == ["do.t"]
        catalog.deregister_table(declared)
    if separator:
        assert f"DELETE /v1/namespaces/{child[1]}%1Fchild%1Fgrand%20child/tables/do.t" in proxy.script.calls


def test_a_prefix_is_part_of_urls_and_identifies_the_catalog(proxy: HttpProxy, iceberg_server: IcebergServer) -> None:
    with opened(iceberg_server.url) as catalog:
        assert catalog.identity() is None
    proxy.script.set([
        Lie("GET .*/config", Edit(("overrides", "prefix"), Op.SET, "7d2f-id"), times=1),
        Lie("GET .*/config", Edit(("defaults", "prefix"), Op.SET, "other"), first=2),
    ])  # fmt: skip
    with opened(proxy.url) as catalog:
        first = catalog.identity()
        # Iceberg's own server has no prefixes.
        with pytest.raises(InvalidInput, match="No route"):
            catalog.list_tables((WAREHOUSE, "ns"))
        assert proxy.script.calls[-1] == "GET /v1/7d2f-id/namespaces/ns/tables"
        second = catalog.identity()
    assert (str(first), str(second)) == ("no identity; main: prefix 7d2f-id", "no identity; main: prefix other")


def test_a_missing_warehouse_is_a_missing_namespace_only_in_icebergs_words(proxy: HttpProxy) -> None:
    response = b'{"error":{"message":"no such warehouse","type":"NotFoundException","code":404}}'
    with opened(proxy.url) as catalog:
        proxy.script.set([Lie("GET .*/config", Send(response, 404))])
        assert catalog.find_namespace((WAREHOUSE,)) is None
        assert catalog.list_namespaces(ROOT) == []
        with pytest.raises(NamespaceNotFound):
            catalog.ping()
        proxy.script.set([Lie("GET .*/config", Send(b"nothing here", 404, "text/plain"))])
        with pytest.raises(Internal):
            catalog.find_namespace((WAREHOUSE,))


@pytest.mark.parametrize("path", ["/v1", "/elsewhere"])
def test_a_wrong_endpoint_has_a_hint(iceberg_server: IcebergServer, path: str) -> None:
    with (
        opened(f"{iceberg_server.url}{path}") as catalog,
        pytest.raises(InvalidInput, match=r"No route .*/v1/config") as refused,
    ):
        catalog.ping()
    assert refused.value.hint == "check iceberg.endpoint, the URL before /v1, and iceberg.warehouses"


def test_the_root_needs_configured_warehouses(iceberg_server: IcebergServer, iceberg_namespace: Path) -> None:
    settings = CONNECTOR.parse_settings({"endpoint": iceberg_server.url})
    with CONNECTOR.open("x", settings) as catalog:
        for call in (lambda: catalog.list_namespaces(ROOT), catalog.plan_shards, catalog.ping):
            with pytest.raises(Unsupported, match=r"iceberg\.warehouses"):
                call()
        assert catalog.list_tables(iceberg_namespace) == []


@pytest.mark.parametrize("login", [{}, {"auth_token": "t0ken"}, {"credential": "me:hunter2"}])
def test_configured_headers_go_with_every_request(iceberg_server: IcebergServer, login: dict[str, str]) -> None:
    """BigLake, for example, wants the project that pays for the requests."""
    more = {"header.x-goog-user-project": "payer", "header.x-api-token": "hidden"}
    with PurgingProxy(iceberg_server.url) as proxy:
        with opened(proxy.url, **login, **more) as catalog:
            catalog.describe_namespace((WAREHOUSE,))
            catalog.list_namespaces((WAREHOUSE,))
            proxy.script.set([Lie("GET .*/namespaces", Send(b'{"error":{"message":"hidden is wrong"}}', 400))])
            with pytest.raises(CatalogError) as refused:
                catalog.list_namespaces((WAREHOUSE,))
        of_catalog = [request for request in proxy.requests if "/tokens" not in request.path]
        assert len(of_catalog) == 2
        for request in of_catalog:
            headers = {name.lower(): value for name, value in request.headers}
            assert (headers["x-goog-user-project"], "authorization" in headers) == ("payer", bool(login))
    assert "hidden" not in str(refused.value)


def test_the_official_interface(iceberg_server: IcebergServer, iceberg_namespace: Path, tmp_path: FilePath) -> None:
    namespace = lance_namespace.connect(
        "federator_connectors.iceberg.IcebergNamespace", {"endpoint": iceberg_server.url, "root": f"file://{tmp_path}"}
    )
    path = [*iceberg_namespace, "orders"]
    table = written(tmp_path)
    namespace.declare_table(lance_namespace.DeclareTableRequest(id=path, location=f"file://{table}"))
    assert namespace.list_tables(lance_namespace.ListTablesRequest(id=path[:-1])).tables == ["orders"]
    described = namespace.describe_table(lance_namespace.DescribeTableRequest(id=path))
    assert lance.dataset(described.location).count_rows() == 3
    for levels in ([], path[:1]):
        with pytest.raises(lance_namespace.InvalidInputError, match="2 levels or more"):
            namespace.list_tables(lance_namespace.ListTablesRequest(id=levels))
    namespace.deregister_table(lance_namespace.DeregisterTableRequest(id=path))
    assert lance.dataset(str(table)).count_rows() == 3


def test_a_crawl_lists_the_next_namespace_while_it_reads_tables(
    catalog: IcebergCatalog, iceberg_server: IcebergServer, iceberg_namespace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = iceberg_server.namespace((*iceberg_namespace[:-1], f"{iceberg_namespace[-1]}_next"))
    iceberg_server.table((*iceberg_namespace, "t"))
    listed = threading.Event()
    list_all_tables, read_table = catalog.list_all_tables, catalog.read_table

    def list_and_note(namespace: Path) -> list[str]:
        names = list_all_tables(namespace)
        if namespace == following:
            listed.set()
        return names

    def wait_and_read(path: Path) -> TableRecord | None:
        assert listed.wait(30)
        return read_table(path)

    monkeypatch.setattr(catalog, "list_all_tables", list_and_note)
    monkeypatch.setattr(catalog, "read_table", wait_and_read)
    shard = Shard((iceberg_namespace, following), {iceberg_namespace: [], following: []})
    rows = [row for row in catalog.read_shard(shard) if isinstance(row, Coverage)]
    assert [(row.namespace, row.complete) for row in rows] == [(iceberg_namespace, True), (following, True)]
