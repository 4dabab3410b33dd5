"""The crawl of Glue: records, coverage and failures."""

from __future__ import annotations

import pickle
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.exceptions import ClientError

from federator.connector import Internal, NamespaceNotFound, ServiceUnavailable, Shard
from federator.demo.servers.glue import PARENT_PARAMETER
from federator.demo.servers.process import Server
from federator.model import ROOT, Coverage, Kind, NamespaceRecord, Path, TableRecord, fold_digest
from federator_connectors._glue.catalog import GlueCatalog
from federator_connectors.glue import CONNECTOR
from tests.fixtures.glue import GlueAccount, account

pytestmark = pytest.mark.timeout(60)

LANCE = {"TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "lance"}, "StorageDescriptor": {"Location": "s3://l/t"}}


@pytest.fixture
def catalog(glue_account: GlueAccount) -> Iterator[GlueCatalog]:
    with CONNECTOR.open("aws", CONNECTOR.parse_settings(glue_account.properties)) as opened:
        yield opened


class CrawlResult:
    """Everything that a crawl of some shards returned. Shards are pickled, as on their way to workers."""

    def __init__(self, catalog: GlueCatalog, shards: list[Shard] | None = None) -> None:
        self.namespaces: dict[Path, NamespaceRecord] = {}
        self.tables: dict[Path, TableRecord] = {}
        self.coverage: dict[Path, Coverage] = {}
        for shard in pickle.loads(pickle.dumps(shards or list(catalog.plan_shards()))):
            covered = []
            digests: dict[Path, list[str]] = {}
            for row in catalog.read_shard(shard):
                if isinstance(row, Coverage):
                    assert row.namespace not in self.coverage
                    self.coverage[row.namespace] = row
                    covered.append(row.namespace)
                    assert row.records == len(digests.get(row.namespace, []))
                    assert row.digest == fold_digest(digests.get(row.namespace, []))
                    continue
                assert row.path[:-1] not in covered, "records come before their coverage"
                digests.setdefault(row.path[:-1], []).append(row.digest)
                records: dict[Path, object] = self.tables if isinstance(row, TableRecord) else self.namespaces  # type: ignore[assignment]
                assert row.path not in records
                records[row.path] = row
            assert sorted(covered) == sorted(shard.namespaces)


def test_a_whole_account(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    account_id, client = glue_account.account_id, glue_account.client()
    client.create_catalog(Name="fed", CatalogInput={"Parameters": {"k": "v"}})
    client.create_catalog(Name="one", CatalogInput={"Parameters": {PARENT_PARAMETER: f"{account_id}:fed"}})
    client.create_catalog(Name="empty", CatalogInput={})
    for number in range(120):
        client.create_database(DatabaseInput={"Name": f"db{number:03}"})
    deep = {"CatalogId": f"{account_id}:fed/one"}
    client.create_database(**deep, DatabaseInput={"Name": "db", "Description": "deep", "LocationUri": "s3://l"})
    client.create_table(**deep, DatabaseName="db", TableInput={"Name": "t", **LANCE})
    for number in range(101):
        client.create_table(DatabaseName="db000", TableInput={"Name": f"t{number:03}", **LANCE})
    client.create_table(DatabaseName="db001", TableInput={"Name": "hive", "TableType": "EXTERNAL_TABLE"})
    client.create_table(DatabaseName="db001", TableInput={"Name": "upper", **LANCE, "Parameters": {"table_type": "LANCE"}})
    client.create_table(DatabaseName="db001", TableInput={"Name": "bare", **LANCE, "StorageDescriptor": {}})
    client.create_table(DatabaseName="db001", TableInput={"Name": "none"})
    client.create_table(DatabaseName="db001", TableInput={"Name": "managed", **LANCE, "TableType": "MANAGED_TABLE"})

    crawled = CrawlResult(catalog)
    databases = {(account_id, f"db{number:03}") for number in range(120)}
    catalogs = {(account_id,), ("fed",), ("fed", "one"), ("empty",)}
    assert set(crawled.namespaces) == databases | catalogs | {("fed", "one", "db")}
    assert set(crawled.coverage) == set(crawled.namespaces) | {ROOT}
    assert all(c.complete and c.detail.complete and c.found for c in crawled.coverage.values())
    tables = {(account_id, "db000", f"t{number:03}") for number in range(101)} | {("fed", "one", "db", "t")}
    odd = {(account_id, "db001", name) for name in ("upper", "bare", "managed")}
    assert set(crawled.tables) == tables | odd
    assert crawled.tables[account_id, "db001", "managed"].kind is Kind.MANAGED_TABLE
    assert crawled.tables[account_id, "db001", "bare"].location is None
    # Describing a single object returns the same record.
    for path in (*catalogs, ("fed", "one", "db"), (account_id, "db007")):
        assert catalog.describe_namespace(path) == crawled.namespaces[path]
    for path in (
        ("fed", "one", "db", "t"),
        (account_id, "db000", "t100"),
        (account_id, "db001", "upper"),
        (account_id, "db001", "bare"),
    ):
        assert catalog.describe_table(path) == crawled.tables[path]
        assert catalog.canonical_path(path) == path


@pytest.fixture
def counted(glue_url: str) -> Iterator[tuple[str, Counter[str]]]:
    """The URL of a proxy of Glue, and the number of requests by operation."""
    calls: Counter[str] = Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                calls[self.headers.get("X-Amz-Target", "STS").rpartition(".")[2]] += 1
            with urllib.request.urlopen(urllib.request.Request(glue_url, body, dict(self.headers), method="POST")) as answer:
                content = answer.read()
                self.send_response(answer.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", calls
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_crawl_sends_hardly_more_requests_than_the_least(
    glue_account: GlueAccount, counted: tuple[str, Counter[str]]
) -> None:
    account_id, client = glue_account.account_id, glue_account.client()
    for name in ("one", "two"):
        client.create_catalog(Name=name, CatalogInput={})
        client.create_database(CatalogId=f"{account_id}:{name}", DatabaseInput={"Name": "db"})
    for number in range(110):
        client.create_database(DatabaseInput={"Name": f"db{number:03}"})
    for number in range(201):
        client.create_table(DatabaseName="db000", TableInput={"Name": f"t{number:03}", **LANCE})
    url, calls = counted
    with CONNECTOR.open("aws", CONNECTOR.parse_settings({**glue_account.properties, "endpoint": url})) as catalog:
        assert len(CrawlResult(catalog).tables) == 201
    # No call of Glue answers with databases of several catalogs, tables of several databases, or more than 100 of them.
    least = Counter({
        "GetCatalogs": 1 + 3,  # the account, by IncludeRoot; then what is in the root and in each of its two catalogs
        "GetDatabases": 2 + 1 + 1,  # pages: 110 databases in the root, one in each catalog
        "GetTables": 3 + 109 + 2,  # pages: 201 tables in one database, none in the others
    })  # fmt: skip
    assert calls.total() <= 1.05 * least.total(), f"asked {dict(calls)}, the least is {dict(least)}"
    assert calls - least == Counter({"GetCatalog": 1})


def test_what_moves_to_the_next_page_is_named_once(
    catalog: GlueCatalog, glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table made between two pages pushes the last one of the first page onto the second."""
    account_id, client = glue_account.account_id, glue_account.client()
    client.create_database(DatabaseInput={"Name": "db"})
    for number in range(101):
        client.create_table(DatabaseName="db", TableInput={"Name": f"t{number:03}", **LANCE})
    reads = catalog._clients.reads
    send = reads.get_tables

    def get_tables_after_insert(**request: object) -> object:
        if "NextToken" in request:
            client.create_table(DatabaseName="db", TableInput={"Name": "a_new_one", **LANCE})
        return send(**request)  # type: ignore[arg-type]

    monkeypatch.setattr(reads, "get_tables", get_tables_after_insert)
    expected = [f"t{number:03}" for number in range(101)]
    assert catalog.list_tables((account_id, "db")) == expected
    client.delete_table(DatabaseName="db", Name="a_new_one")
    crawled = CrawlResult(catalog)
    assert sorted(path[-1] for path in crawled.tables) == expected
    assert (crawled.coverage[account_id, "db"].complete, crawled.coverage[account_id, "db"].records) == (True, 101)


def test_a_database_that_is_dropped_meanwhile(catalog: GlueCatalog, glue_account: GlueAccount) -> None:
    account_id, client = glue_account.account_id, glue_account.client()
    for name in ("a", "b"):
        client.create_database(DatabaseInput={"Name": name})
        client.create_table(DatabaseName=name, TableInput={"Name": "t", **LANCE})
    shards = list(catalog.plan_shards())
    client.delete_database(Name="a")
    crawled = CrawlResult(catalog, shards)
    dropped, other = crawled.coverage[account_id, "a"], crawled.coverage[account_id, "b"]
    assert (dropped.found, dropped.complete, dropped.presence.code, dropped.records) == (False, False, 1, 0)
    assert (other.found, other.complete, other.records) == (True, True, 1)


def test_a_catalog_that_is_dropped_meanwhile(
    catalog: GlueCatalog, glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_id, client = glue_account.account_id, glue_account.client()
    client.create_catalog(Name="fed", CatalogInput={})
    client.create_database(DatabaseInput={"Name": "db"})
    # The databases of the root are listed after its catalogs, and before those of the catalogs.
    reads = catalog._clients.reads
    send = reads.get_databases

    def get_databases_after_drop(**request: object) -> object:
        if "CatalogId" not in request:
            client.delete_catalog(CatalogId=f"{account_id}:fed")
        return send(**request)  # type: ignore[arg-type]

    monkeypatch.setattr(reads, "get_databases", get_databases_after_drop)
    crawled = CrawlResult(catalog)
    assert (crawled.coverage["fed",].found, crawled.coverage["fed",].presence.code) == (False, 1)
    assert crawled.coverage[account_id, "db"].complete


def test_a_server_that_dies_fails_its_databases_and_no_more(glue_throwaway: Server) -> None:
    own_account = account(glue_throwaway.uri)
    client = own_account.client()
    for number in range(2):
        client.create_database(DatabaseInput={"Name": f"db{number}"})
    with CONNECTOR.open("aws", CONNECTOR.parse_settings(own_account.properties)) as catalog:
        shards = list(catalog.plan_shards())
        glue_throwaway.stop()
        crawled = CrawlResult(catalog, shards)
        assert [c.presence.code for c in crawled.coverage.values() if len(c.namespace) == 2] == [17, 17]
        assert all(c.found for c in crawled.coverage.values())
        with pytest.raises(ServiceUnavailable, match="cannot be reached"):
            catalog.plan_shards()


def test_a_catalog_id_that_does_not_exist_fails_the_crawl(glue_account: GlueAccount) -> None:
    """It must not look like an account that became empty."""
    settings = CONNECTOR.parse_settings({**glue_account.properties, "catalog_id": f"{glue_account.account_id}:gone"})
    with CONNECTOR.open("aws", settings) as catalog, pytest.raises(NamespaceNotFound):
        catalog.plan_shards()


def test_a_proxy_that_answers_404_is_not_a_service_without_catalogs(
    catalog: GlueCatalog, glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    glue_account.client().create_catalog(Name="fed", CatalogInput={})
    answer = {"Error": {"Code": "404", "Message": "Not Found"}, "ResponseMetadata": {"HTTPStatusCode": 404}}

    def lost(**_: object) -> object:
        raise ClientError(answer, "GetCatalogs")  # type: ignore[arg-type]

    assert catalog.list_namespaces(ROOT)
    monkeypatch.setattr(catalog._clients.reads, "get_catalogs", lost)
    crawled = CrawlResult(catalog)
    assert (crawled.coverage[ROOT].complete, crawled.coverage[ROOT].presence.code, crawled.coverage[ROOT].found) == (
        False,
        18,
        True,
    )
    with pytest.raises(Internal):
        catalog.list_namespaces(ROOT)
