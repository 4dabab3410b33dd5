"""The crawl of Unity: complete paging, the number of requests, and failures."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence

import pytest

from federator.connector import Internal, NamespaceNotFound, PermissionDenied, ServiceUnavailable, Shard
from federator.model import ROOT, Coverage, NamespaceRecord, Path, TableRecord, fold_digest
from federator_connectors._unity.catalog import UnityCatalog
from federator_connectors.unity import CONNECTOR
from tests.fixtures.unity import UnityCatalogOfTest
from tests.stubs.unity import UnityStub
from tests.stubs.unity.world import PAGE

pytestmark = pytest.mark.timeout(60)


class Crawled:
    """Everything that a crawl brought; shards travel as they do to workers."""

    def __init__(self, catalog: UnityCatalog, shards: Sequence[Shard] | None = None) -> None:
        self.namespaces: dict[Path, NamespaceRecord] = {}
        self.tables: dict[Path, TableRecord] = {}
        self.coverage: dict[Path, Coverage] = {}
        for shard in pickle.loads(pickle.dumps(list(shards or catalog.plan_shards()))):
            digests: list[str] = []
            for row in catalog.read_shard(shard):
                if isinstance(row, Coverage):
                    assert row.namespace not in self.coverage
                    assert (row.records, row.digest) == (len(digests), fold_digest(digests))
                    self.coverage[row.namespace], digests = row, []
                    continue
                digests.append(row.digest)
                kept: dict[Path, object] = self.tables if isinstance(row, TableRecord) else self.namespaces  # type: ignore[assignment]
                assert row.path not in kept
                kept[row.path] = row


def opened(stub: UnityStub, **more: str) -> UnityCatalog:
    settings = CONNECTOR.parse_settings({"endpoint": stub.url, "catalog": "main", "max_retries": "0", **more})
    return CONNECTOR.open("lake", settings)


@pytest.fixture
def catalog(unity_stub: UnityStub) -> Iterator[UnityCatalog]:
    with opened(unity_stub) as made:
        yield made


def fill(stub: UnityStub, schema: str, count: int) -> None:
    stub.world.create_schema({"name": schema, "catalog_name": "main"}, None)
    for number in range(count):
        body = {
            "name": f"t{number:04}", "catalog_name": "main", "schema_name": schema, "table_type": "EXTERNAL", "columns": [],
            "data_source_format": "TEXT", "storage_location": f"s3://lake/{schema}/{number}", "properties": {"table_type": "lance"},
        }  # fmt: skip
        stub.world.create_table(json.dumps(body), None)


@pytest.mark.parametrize("count", [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE])
def test_no_page_is_lost_and_none_is_asked_for_in_vain(unity_stub: UnityStub, catalog: UnityCatalog, count: int) -> None:
    """A full last page carries a token, too, so that one more, empty page has to be asked for."""
    fill(unity_stub, "s", count)
    crawl = Crawled(catalog)
    assert len(crawl.tables) == count
    assert crawl.coverage["main", "s"].complete
    assert crawl.coverage["main", "s"].records == count
    pages = [request for request in unity_stub.seen if request.startswith("GET /api/2.1/unity-catalog/tables?")]
    assert len(pages) == count // PAGE + 1
    assert all("catalog_name=main" in page and "schema_name=s" in page and "max_results=100" in page for page in pages)
    assert ["page_token" in page for page in pages] == [False] + [True] * (len(pages) - 1)


def test_a_crawl_asks_as_seldom_as_can_be(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    sizes = {f"s{number:03}": number % 7 * 40 for number in range(130)}
    for schema, count in sizes.items():
        fill(unity_stub, schema, count)
    crawl = Crawled(catalog)
    assert len(crawl.tables) == sum(sizes.values())
    assert len(crawl.coverage) == len(sizes) + 2
    assert all(coverage.complete for coverage in crawl.coverage.values())
    # A page holds 100 tables at most, of one schema, and a full one always has another after it; the catalog itself and its
    # schemas have to be read as well.
    least = 1 + (len(sizes) // PAGE + 1) + sum(count // PAGE + 1 for count in sizes.values())
    assert len(unity_stub.seen) <= 1.05 * least
    assert all(request.startswith("GET ") for request in unity_stub.seen)


def test_more_schemas_than_a_page_holds(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    for number in range(2 * PAGE):
        unity_stub.world.create_schema({"name": f"s{number}", "catalog_name": "main"}, None)
    assert len(catalog.list_namespaces(("main",))) == 2 * PAGE
    crawl = Crawled(catalog)
    assert len(crawl.namespaces) == 2 * PAGE + 1
    assert crawl.coverage["main",].records == 2 * PAGE


def test_every_catalog_of_a_server(unity_stub: UnityStub) -> None:
    """Without a configured catalog the root has all of them, on as many pages as it takes."""
    fill(unity_stub, "s", 2)
    for number in range(PAGE):
        unity_stub.world.create_catalog({"name": f"c{number:03}"}, None)
    unity_stub.world.create_schema({"name": "s", "catalog_name": "c000"}, None)
    names = ["main", *(f"c{number:03}" for number in range(PAGE))]
    with CONNECTOR.open("lake", CONNECTOR.parse_settings({"endpoint": unity_stub.url, "max_retries": "0"})) as catalog:
        assert catalog.list_namespaces(ROOT) == sorted(names)
        crawl = Crawled(catalog)
        assert {path for path in crawl.namespaces if len(path) == 1} == {(name,) for name in names}
        assert set(crawl.tables) == {("main", "s", "t0000"), ("main", "s", "t0001")}
        assert all(coverage.complete for coverage in crawl.coverage.values())
        assert crawl.coverage[ROOT].records == len(names)
        declared = catalog.declare_table(TableRecord("lake", ("c000", "s", "t"), "s3://lake/t"))
        assert catalog.observe(declared.path).record == declared
        # A catalog that the server does not have has no tables, either; there is none whose absence would be a mistake.
        assert catalog.observe(("missing", "s", "t")).is_absent
        with pytest.raises(NamespaceNotFound):
            catalog.create_namespace(NamespaceRecord("lake", ("missing", "s")))
        identity = catalog.identity()
        assert identity is not None
        assert set(names) < set(identity.by_scope)
        # One that is dropped during the crawl is gone, and the others are whole.
        listed = {"catalogs": [unity_stub.world.catalogs["main"], {"name": "gone"}], "next_page_token": None}
        unity_stub.script.append((200, {}, json.dumps(listed)))
        again = Crawled(catalog)
        assert (again.coverage["gone",].found, again.coverage["main",].complete) == (False, True)
        unity_stub.script.append((200, {}, "{}"))
        with pytest.raises(Internal, match="no list of catalogs"):
            catalog.list_namespaces(ROOT)


def test_a_direct_look_gives_the_same_records(unity_catalog: UnityCatalogOfTest) -> None:
    schema = unity_catalog.schema()
    unity_catalog.table(schema, "t", comment="told", properties={"table_type": "LANCE", "k": "v"})
    with CONNECTOR.open("lake", CONNECTOR.parse_settings(unity_catalog.properties)) as catalog:
        crawl = Crawled(catalog)
        assert catalog.describe_table((*schema, "t")) == crawl.tables[(*schema, "t")]
        for path in (schema, schema[:1]):
            assert catalog.describe_namespace(path) == crawl.namespaces[path]
    assert set(crawl.coverage) == {ROOT, schema[:1], schema}


def test_a_denied_schema_is_failed_and_the_others_are_read(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    for schema in ("a", "b", "c"):
        fill(unity_stub, schema, 2)
    unity_stub.world.denied.add("main.b")
    crawl = Crawled(catalog)
    denied = crawl.coverage["main", "b"]
    assert (denied.complete, denied.found, denied.presence.code, denied.records) == (False, True, PermissionDenied.code, 0)
    assert "Access denied" in denied.presence.reason
    assert [crawl.coverage["main", name].complete for name in "ac"] == [True, True]
    with pytest.raises(PermissionDenied):
        catalog.observe(("main", "b", "t0000"))


def test_a_schema_that_is_dropped_between_two_pages_is_gone_and_not_short(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    fill(unity_stub, "s", PAGE + 1)
    (shard,) = (shard for shard in catalog.plan_shards() if ("main", "s") in shard.namespaces)
    rows = catalog.read_shard(shard)
    first = next(rows)
    unity_stub.world.drop_schema("main.s", {"force": "true"})
    read = [first, *rows]
    coverage = read[-1]
    assert isinstance(coverage, Coverage)
    assert (coverage.found, coverage.complete, coverage.presence.code) == (False, False, NamespaceNotFound.code)
    assert coverage.records == len(read) - 1 == PAGE


def test_a_catalog_that_vanishes_proves_nothing_gone(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    """It may be that somebody started the server with an empty database."""
    fill(unity_stub, "s", 1)
    shards = catalog.plan_shards()
    unity_stub.world.drop_catalog("main", {"force": "true"})
    lost = Crawled(catalog, shards).coverage["main", "s"]
    assert (lost.complete, lost.found, lost.presence.code) == (False, True, NamespaceNotFound.code)
    with pytest.raises(NamespaceNotFound):
        catalog.plan_shards()


def test_a_page_that_fails_makes_the_listing_incomplete(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    fill(unity_stub, "s", PAGE + 1)
    (shard,) = (shard for shard in catalog.plan_shards() if ("main", "s") in shard.namespaces)
    rows = catalog.read_shard(shard)
    first = next(rows)
    unity_stub.script.append((503, {}, ""))
    *_, coverage = [first, *rows]
    assert isinstance(coverage, Coverage)
    assert (coverage.found, coverage.complete, coverage.presence.code) == (True, False, ServiceUnavailable.code)
    unity_stub.script.extend([(200, {}, json.dumps({"tables": [], "next_page_token": "t0099"})), (503, {}, "")])
    with pytest.raises(ServiceUnavailable):
        catalog.list_tables(("main", "s"))


@pytest.mark.parametrize(
    "answer",
    ["", "null", "[]", "<html>a proxy</html>", '{"message": "try again"}', '{"tables": null}', '{"tables": {}}', '{"tables": [{}]}',
     '{"tables": [{"name": "", "table_type": "EXTERNAL", "properties": {"table_type": "lance"}}]}',
     '{"tables": [{"name": "t", "catalog_name": "main", "schema_name": "other", "table_type": "EXTERNAL"}]}',
     '{"tables": [{"name": "t", "catalog_name": "other", "schema_name": "s", "table_type": "EXTERNAL"}]}',
     '{"tables": [], "error_code": "INTERNAL"}', '{"error_code": "INTERNAL"}', '{"tables": [], "tables": []}'],
)  # fmt: skip
def test_a_success_that_is_no_listing_is_never_an_empty_one(unity_stub: UnityStub, catalog: UnityCatalog, answer: str) -> None:
    fill(unity_stub, "s", 1)
    shards = [shard for shard in catalog.plan_shards() if ("main", "s") in shard.namespaces]
    unity_stub.script.append((200, {}, answer))
    assert [coverage.presence.code for coverage in Crawled(catalog, shards).coverage.values()] == [Internal.code]


def test_a_schema_of_another_catalog_is_no_child(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    fill(unity_stub, "s", 1)
    unity_stub.script.append((200, {}, json.dumps({"schemas": [{"name": "s", "catalog_name": "other"}]})))
    with pytest.raises(Internal, match="has a row with the catalog_name 'other'"):
        catalog.list_namespaces(("main",))


def test_a_listing_without_end_is_an_error(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    fill(unity_stub, "s", 1)
    again = (200, {}, json.dumps({"tables": [], "next_page_token": "same"}))
    unity_stub.script.extend([again] * 5)
    with pytest.raises(Internal, match="repeats a page token"):
        catalog.list_tables(("main", "s"))
    assert len(unity_stub.seen) == 2


def test_databricks_leaves_an_empty_listing_out(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    unity_stub.script.append((200, {}, "{}"))
    assert catalog.list_tables(("main", "s")) == []
    unity_stub.script.extend([(200, {}, '{"next_page_token": "x"}'), (200, {}, '{"tables": []}')])
    assert catalog.list_tables(("main", "s")) == []


def test_schemas_that_cannot_be_listed_fail_the_catalog_and_nothing_more(unity_stub: UnityStub, catalog: UnityCatalog) -> None:
    fill(unity_stub, "s", 1)
    listing = catalog._api.get_catalog

    def then_denied(name: str) -> object:
        found = listing(name)
        unity_stub.script.append((403, {}, json.dumps({"error_code": "PERMISSION_DENIED", "message": "no"})))
        return found

    catalog._api.get_catalog = then_denied  # type: ignore[assignment,method-assign]
    crawl = Crawled(catalog)
    failed = crawl.coverage["main",]
    assert (failed.complete, failed.found, failed.presence.code) == (False, True, PermissionDenied.code)
    assert crawl.coverage[ROOT].complete
    assert set(crawl.coverage) == {ROOT, ("main",)}


def test_a_server_that_dies_fails_its_schemas() -> None:
    with UnityStub() as stub:
        stub.world.create_catalog({"name": "main"}, None)
        fill(stub, "a", 1)
        catalog = opened(stub)
        shards = catalog.plan_shards()
    crawl = Crawled(catalog, shards)
    dead = crawl.coverage["main", "a"]
    assert (dead.complete, dead.found, dead.presence.code) == (False, True, ServiceUnavailable.code)
    with pytest.raises(ServiceUnavailable):
        catalog.plan_shards()
    catalog.close()
