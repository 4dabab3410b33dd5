"""The crawl of Polaris: records, coverage, failures, and the number of requests."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Iterator

import lance_namespace as lance
import pytest

from federator.connector import PermissionDenied, ServiceUnavailable, Shard, SourceSpec
from federator.model import ROOT, Coverage, CoverageState, Kind, NamespaceRecord, Path, TableRecord, fold_digest
from federator.pipeline import shard_reader
from federator_connectors._polaris.catalog import PolarisCatalog
from federator_connectors.polaris import CONNECTOR, PolarisNamespace
from tests.fixtures.polaris import PolarisServer
from tests.stubs.polaris import PolarisStub

pytestmark = pytest.mark.timeout(60)


class Crawled:
    """Everything that a crawl brought; shards travel as they do to workers."""

    def __init__(self, catalog: PolarisCatalog, shards: list[Shard] | None = None) -> None:
        self.namespaces: dict[Path, NamespaceRecord] = {}
        self.tables: dict[Path, TableRecord] = {}
        self.coverage: dict[Path, Coverage] = {}
        for shard in pickle.loads(pickle.dumps(shards or list(catalog.plan_shards()))):
            digests: dict[Path, list[str]] = {}
            for row in catalog.read_shard(shard):
                if isinstance(row, Coverage):
                    assert row.namespace not in self.coverage
                    self.coverage[row.namespace] = row
                    assert row.records == len(digests.get(row.namespace, []))
                    assert row.digest == fold_digest(digests.get(row.namespace, []))
                    continue
                assert row.path[:-1] not in self.coverage, "records come before their coverage"
                digests.setdefault(row.path[:-1], []).append(row.digest)
                kept: dict[Path, object] = self.tables if isinstance(row, TableRecord) else self.namespaces  # type: ignore[assignment]
                assert row.path not in kept
                kept[row.path] = row
            assert set(shard.namespaces) <= set(self.coverage)

    @property
    def failed(self) -> dict[Path, int | None]:
        """The codes of the namespaces whose presence is not proven."""
        return {path: c.presence.code for path, c in self.coverage.items() if not c.complete}


def _opened(server: PolarisServer, **more: str) -> PolarisCatalog:
    # A source of its own for each server, whose breaker no other test has touched.
    return CONNECTOR.open(f"at {server.url}", CONNECTOR.parse_settings({**server.properties, "max_retries": "0", **more}))


@pytest.fixture
def lake(polaris_stub: PolarisServer) -> Iterator[tuple[PolarisServer, PolarisStub, PolarisCatalog]]:
    """A server with ``main$ns`` and its tables ``a``, ``b``, ``delta`` (which is none), and ``main$ns$deep`` with ``c``."""
    polaris_stub.namespace(("main", "ns"))
    polaris_stub.namespace(("main", "ns", "deep"), {"team": "sales"})
    for name in ("a", "b"):
        polaris_stub.table(("main", "ns", name))
    polaris_stub.table(("main", "ns", "delta"), format="delta")
    polaris_stub.table(("main", "ns", "deep", "c"), doc="told", format="LANCE", properties={"k": "v", "table_type": "lance"})
    assert polaris_stub.stub is not None
    polaris_stub.stub.requests.clear()
    with _opened(polaris_stub) as catalog:
        yield polaris_stub, polaris_stub.stub, catalog


def test_a_whole_server(polaris_server: PolarisServer, polaris_catalog: str) -> None:
    """Also a real one. Three levels, names that hold separators, tables of each kind; and a direct look says the very same."""
    base: Path = (polaris_catalog, "a.b")
    for path in (base, (*base, "c/d"), (*base, "c/d", "e%20$"), (polaris_catalog, "empty")):
        polaris_server.namespace(path, {"team": "sales"})
    for number in range(30):
        polaris_server.table((*base, f"t{number}"), doc="d", properties={"n": str(number)})
    polaris_server.table((*base, "c/d", "e%20$", "deep.t/x"))
    polaris_server.table((*base, "c/d", "delta"), format="delta")
    polaris_server.call("POST", f"/api/catalog/polaris/v1/{polaris_catalog}/namespaces/empty/generic-tables", {"name": "bare", "format": "lance"})  # fmt: skip  # noqa: E501
    with _opened(polaris_server) as catalog:
        crawl = Crawled(catalog)
        mine = {path for path in crawl.coverage if path[:1] == (polaris_catalog,)}
        assert mine == {(polaris_catalog,), base, (*base, "c/d"), (*base, "c/d", "e%20$"), (polaris_catalog, "empty")}
        assert all(crawl.coverage[path].complete and crawl.coverage[path].detail.complete for path in {ROOT, *mine})
        tables = {path for path in crawl.tables if path[:1] == (polaris_catalog,)}
        deep = (*base, "c/d", "e%20$", "deep.t/x")
        assert tables == {(*base, f"t{number}") for number in range(30)} | {deep, (polaris_catalog, "empty", "bare")}
        assert crawl.tables[polaris_catalog, "empty", "bare"].location is None
        assert crawl.namespaces[base].properties == {"team": "sales"}
        assert str(crawl.namespaces[base].location).endswith("/a.b/")
        for path in tables:
            assert catalog.describe_table(path) == crawl.tables[path]
        for path in mine:
            assert catalog.describe_namespace(path) == crawl.namespaces[path]


def test_the_records_of_a_crawl(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    crawl = Crawled(lake[2])
    assert set(crawl.coverage) == {ROOT, ("main",), ("main", "ns"), ("main", "ns", "deep")}
    assert crawl.failed == {}
    assert set(crawl.tables) == {("main", "ns", "a"), ("main", "ns", "b"), ("main", "ns", "deep", "c")}
    table = crawl.tables["main", "ns", "deep", "c"]
    assert (table.location, table.doc, table.properties, table.kind) == ("s3://lake/c.lance", "told", {"k": "v"}, Kind.TABLE)
    assert crawl.namespaces["main",].location == "file:///data/wh/main"
    assert crawl.coverage["main", "ns"].records == 3


@pytest.mark.parametrize("tables", [0, 700])
def test_a_crawl_takes_the_fewest_requests(polaris_stub: PolarisServer, tables: int) -> None:
    stub = polaris_stub.stub
    assert stub is not None
    namespaces: list[Path] = [("main", f"ns{number}") for number in range(40)]
    namespaces += [(*parent, "inside") for parent in namespaces[:20]]
    for path in namespaces:
        stub.state.create_namespace("main", {"namespace": path[1:]})
    for number in range(tables):
        body = {"name": f"t{number}", "format": "lance", "base-location": f"s3://l/{number}"}
        stub.state.create_table("main", namespaces[number % 7][1:], body)
    with _opened(polaris_stub) as catalog:
        crawl = Crawled(catalog)
    assert len(crawl.tables) == tables
    assert crawl.failed == {}
    # Nothing in Polaris names more than children in one answer: one token, one list of catalogs; of each catalog and namespace
    # one list of its namespaces; of each namespace its properties and one list of its tables; and each table.
    least = 1 + 1 + (1 + len(namespaces)) + 2 * len(namespaces) + tables
    assert len(stub.requests) <= 1.05 * least
    assert max(Counter((r.method, r.path, tuple(r.query.items())) for r in stub.requests).values()) == 1, "asked twice"


def test_a_page_of_tables_reads_the_tables_of_a_page(polaris_stub: PolarisServer) -> None:
    """Polaris lists generic tables of any format, all at once: only reading one shows its format."""
    stub = polaris_stub.stub
    assert stub is not None
    polaris_stub.namespace(("main", "ns"))
    for number in range(30):
        kind = "delta" if number % 10 == 3 else "lance"
        stub.state.create_table("main", ("ns",), {"name": f"t{number:02}", "format": kind, "base-location": f"s3://l/{number}"})
    facade = PolarisNamespace(**polaris_stub.properties)
    listed: list[str] = []
    token: str | None = None
    for size, reads in ((5, 7), (20, 23), (2, 2)):
        stub.requests.clear()
        page = facade.list_tables(lance.ListTablesRequest(id=["main", "ns"], limit=20 if listed else 5, page_token=token))
        assert (len(page.tables), sum("/generic-tables/" in r.path for r in stub.requests)) == (size, reads)
        listed, token = [*listed, *page.tables], page.page_token
    assert (token, listed) == (None, [f"t{number:02}" for number in range(30) if number % 10 != 3])
    facade.close()


def test_pages_are_followed_to_their_end(polaris_server: PolarisServer, polaris_catalog: str) -> None:
    names = {f"ns{number}" for number in range(7)}
    for name in names:
        polaris_server.namespace((polaris_catalog, name))
    with _opened(polaris_server, page_size="2") as catalog:
        assert set(catalog.list_namespaces((polaris_catalog,))) == names
        assert {path[-1] for path in Crawled(catalog).namespaces if path[:-1] == (polaris_catalog,)} == names
    if polaris_server.stub:
        lists = [r for r in polaris_server.stub.requests if r.method == "GET" and f"/{polaris_catalog}/namespaces" in r.path]
        assert sum("pageToken" in request.query for request in lists) >= 8, "the stub did not page"


def test_a_server_that_pages_unasked_is_followed(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    _, stub, catalog = lake
    stub.answer("GET", "/namespaces$", 200, '{"namespaces": [["n1"]], "next-page-token": "more"}', times=1)
    assert catalog.list_namespaces(("main",)) == ["n1", "ns"]
    assert stub.requests[-1].query == {"pageToken": "more"}


def test_a_name_on_two_pages_is_one(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    _, stub, catalog = lake
    stub.answer("GET", "/namespaces$", 200, '{"namespaces": [["ns"]], "next-page-token": "more"}', times=1)
    crawl = Crawled(catalog)
    assert crawl.failed == {}
    assert crawl.coverage["main",].records == 1
    text = '{"identifiers": [{"namespace": ["ns"], "name": "a"}], "next-page-token": "more"}'
    stub.answer("GET", "/namespaces/ns/generic-tables$", 200, text, times=1)
    assert Crawled(catalog).coverage["main", "ns"].records == 3


def test_a_page_token_that_repeats_ends_the_listing_with_an_error(
    lake: tuple[PolarisServer, PolarisStub, PolarisCatalog],
) -> None:
    _, stub, catalog = lake
    stub.answer("GET", "/namespaces$", 200, '{"namespaces": [["n1"]], "next-page-token": "again"}')
    assert Crawled(catalog).failed == {("main",): 18}


def test_a_denied_namespace_is_failed_and_its_siblings_are_read(
    lake: tuple[PolarisServer, PolarisStub, PolarisCatalog],
) -> None:
    server, stub, catalog = lake
    server.namespace(("main", "other"))
    stub.forbid("GET", "/namespaces/ns/generic-tables$", "LIST_TABLES")
    crawl = Crawled(catalog)
    assert crawl.failed == {("main", "ns"): 15}
    assert crawl.coverage["main", "ns"].found
    assert set(crawl.tables) == {("main", "ns", "deep", "c")}


def test_namespaces_that_may_not_be_listed_fail_what_holds_them(
    lake: tuple[PolarisServer, PolarisStub, PolarisCatalog],
) -> None:
    _, stub, catalog = lake
    stub.forbid("GET", r"parent=ns$", "LIST_NAMESPACES")
    crawl = Crawled(catalog)
    assert crawl.failed == {("main", "ns"): 15}
    # What may be read of it still is; what is inside was not found, and nothing says that it is gone.
    assert set(crawl.tables) == {("main", "ns", "a"), ("main", "ns", "b")}
    assert ("main", "ns", "deep") not in crawl.coverage


@pytest.mark.parametrize(("status", "code"), [(403, 15), (500, 18), (400, 13), (404, 18)])
def test_a_table_that_cannot_be_described_is_present(
    lake: tuple[PolarisServer, PolarisStub, PolarisCatalog], status: int, code: int
) -> None:
    _, stub, catalog = lake
    stub.answer("GET", "/generic-tables/a$", status, "no")
    crawl = Crawled(catalog)
    assert crawl.failed == {}
    coverage = crawl.coverage["main", "ns"]
    assert (coverage.detail.state, coverage.detail.code) == (CoverageState.FAILED, code)
    assert "'a'" in coverage.detail.reason
    assert (crawl.tables["main", "ns", "a"].kind, crawl.tables["main", "ns", "b"].kind) == (Kind.UNDESCRIBED, Kind.TABLE)
    assert crawl.tables["main", "ns", "a"].problem


def test_a_namespace_that_cannot_be_described_is_present(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    _, stub, catalog = lake
    stub.forbid("GET", "/namespaces/ns\x1fdeep$", "LOAD_NAMESPACE_METADATA")
    crawl = Crawled(catalog)
    assert crawl.failed == {}
    assert crawl.coverage["main", "ns"].detail.code == 15
    assert ("main", "ns", "deep") in crawl.namespaces
    assert ("main", "ns", "deep", "c") in crawl.tables


@pytest.mark.parametrize(("status", "code"), [(503, 17), (429, 21), (401, 16)])
def test_a_server_that_refuses_everyone_fails_the_namespace(
    lake: tuple[PolarisServer, PolarisStub, PolarisCatalog], status: int, code: int
) -> None:
    _, stub, catalog = lake
    stub.answer("GET", "/generic-tables/[ab]$", status)
    crawl = Crawled(catalog)
    assert crawl.failed == {("main", "ns"): code}
    assert crawl.coverage["main", "ns", "deep"].complete


def test_a_table_that_goes_between_list_and_look_is_absent(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    _, stub, catalog = lake
    stub.before("GET", "/generic-tables/a$", lambda: stub.state.drop_table("main", ("ns",), "a"))
    crawl = Crawled(catalog)
    assert crawl.failed == {}
    assert crawl.coverage["main", "ns"].detail.complete
    assert ("main", "ns", "a") not in crawl.tables


def test_a_table_that_is_made_again_meanwhile_is_present(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    """Polaris changes a table by deleting and making it: between the two it is not gone."""
    _, stub, catalog = lake
    body = {"name": "a", "format": "lance", "base-location": "s3://lake/new.lance"}
    stub.before("GET", "/generic-tables/a$", lambda: stub.state.drop_table("main", ("ns",), "a"))
    shards = list(catalog.plan_shards())
    stub.requests.clear()
    # Made again just before the namespace's tables are listed a second time.
    lists = lambda: stub.state.create_table("main", ("ns",), body) if _lists(stub, "ns") == 2 else None  # noqa: E731
    stub.before("GET", "/namespaces/ns/generic-tables$", lists, times=2)
    crawl = Crawled(catalog, shards)
    assert crawl.tables["main", "ns", "a"].location == "s3://lake/new.lance"
    assert crawl.coverage["main", "ns"].detail.complete


def test_a_table_that_is_listed_and_never_found_is_present(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    _, stub, catalog = lake
    text = '{"error":{"message":"Generic table does not exist: ns.a","type":"NoSuchTableException","code":404}}'
    stub.answer("GET", "/generic-tables/a$", 404, text)
    crawl = Crawled(catalog)
    assert crawl.tables["main", "ns", "a"].kind is Kind.UNDESCRIBED
    assert crawl.coverage["main", "ns"].detail.code == 4


def test_a_namespace_that_goes_while_it_is_read_is_gone(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    """Polaris tells of its tables as missing, one by one: an empty namespace it is not."""
    _, stub, catalog = lake

    def drop() -> None:
        stub.state.drop_table("main", ("ns", "deep"), "c")
        stub.state.drop_namespace("main", ("ns", "deep"))

    stub.before("GET", "/generic-tables/c$", drop)
    crawl = Crawled(catalog)
    gone = crawl.coverage["main", "ns", "deep"]
    assert (gone.found, gone.complete, gone.presence.code, gone.records) == (False, False, 1, 0)
    assert crawl.coverage["main", "ns"].complete


def test_a_namespace_that_went_before_it_was_read_is_gone(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    _, stub, catalog = lake
    shards = list(catalog.plan_shards())
    stub.state.drop_table("main", ("ns", "deep"), "c")
    stub.state.drop_namespace("main", ("ns", "deep"))
    crawl = Crawled(catalog, shards)
    assert crawl.failed == {("main", "ns", "deep"): 1}
    assert not crawl.coverage["main", "ns", "deep"].found
    assert ("main", "ns", "deep") not in crawl.namespaces
    assert crawl.coverage["main", "ns"].complete


def test_a_server_that_dies_fails_what_was_not_read(lake: tuple[PolarisServer, PolarisStub, PolarisCatalog]) -> None:
    _, stub, catalog = lake
    shards = list(catalog.plan_shards())
    stub.stop()
    crawl = Crawled(catalog, shards)
    assert crawl.failed == {("main",): 17, ("main", "ns"): 17, ("main", "ns", "deep"): 17}
    assert all(c.found for c in crawl.coverage.values())
    with pytest.raises(ServiceUnavailable):
        catalog.plan_shards()


def test_catalogs_that_are_named_prove_nothing_of_others(polaris_stub: PolarisServer) -> None:
    polaris_stub.catalog("other", "file:///data/wh/other")
    polaris_stub.namespace(("main", "ns"))
    stub = polaris_stub.stub
    assert stub is not None
    stub.forbid("GET", "/management/", "LIST_CATALOGS")
    with _opened(polaris_stub) as catalog, pytest.raises(PermissionDenied):
        catalog.plan_shards()
    with _opened(polaris_stub, catalogs="main, gone") as catalog:
        crawl = Crawled(catalog)
    assert crawl.coverage[ROOT].presence.state is CoverageState.SKIPPED
    assert set(crawl.namespaces) == {("main",), ("main", "ns")}
    assert (crawl.coverage["gone",].found, crawl.coverage["gone",].presence.code) == (False, 1)
    assert crawl.coverage["main",].complete


def test_a_catalog_says_the_same_listed_or_named(polaris_server: PolarisServer, polaris_catalog: str) -> None:
    """By the management API and by the configuration that everyone may read."""
    with _opened(polaris_server) as listed, _opened(polaris_server, catalogs=polaris_catalog) as named:
        assert Crawled(listed).namespaces[(polaris_catalog,)].digest == Crawled(named).namespaces[(polaris_catalog,)].digest


def test_the_pipeline_reads_it_as_a_configured_source(
    polaris_server: PolarisServer, polaris_catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Spark's workers do: by the entry point, from a specification whose secrets are references."""
    monkeypatch.setenv("POLARIS_SECRET", polaris_server.client[1])
    polaris_server.table((*polaris_server.namespace((polaris_catalog, "ns")), "t"))
    keys = {**polaris_server.properties, "client_secret": "${POLARIS_SECRET}", "catalogs": polaris_catalog}
    spec = SourceSpec("lake", "polaris", {f"polaris.{key}": value for key, value in keys.items()})
    slots = pickle.loads(pickle.dumps(shard_reader.plan_crawl_tasks(spec, 2, 30.0)))
    rows = [row for slot in slots for row in shard_reader.read_crawl_task(spec, slot, 30.0)]
    assert {row.path for row in rows if isinstance(row, TableRecord)} == {(polaris_catalog, "ns", "t")}
    covered = {row.namespace: row.complete for row in rows if isinstance(row, Coverage)}
    assert covered == {ROOT: False, (polaris_catalog,): True, (polaris_catalog, "ns"): True}


def test_a_shard_is_read_with_as_many_threads_as_are_set(polaris_stub: PolarisServer) -> None:
    import threading

    stub = polaris_stub.stub
    assert stub is not None
    polaris_stub.namespace(("main", "ns"))
    for number in range(20):
        polaris_stub.table(("main", "ns", f"t{number}"))
    names: set[str] = set()
    with _opened(polaris_stub, threads="3") as catalog:
        asked = catalog._client.get_table
        catalog._client.get_table = lambda path: (names.add(threading.current_thread().name), asked(path))[1]  # type: ignore[method-assign, func-returns-value]
        assert len(Crawled(catalog).tables) == 20
    assert 1 <= len(names) <= 3


def _lists(stub: PolarisStub, namespace: str) -> int:
    return sum(re.search(f"/namespaces/{namespace}/generic-tables$", request.path) is not None for request in stub.requests)
