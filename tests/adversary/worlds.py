"""Worlds: a real catalog behind a lying proxy, with a few Lance tables, and what its protocol calls things."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import stamina
from botocore.config import Config

from federator.connector import Catalog, Connector, page_tokens
from federator.connector.call_metrics import CallMeter
from federator.connector.opened_catalog import OpenedCatalog
from federator.model import NamespaceRecord, Path, TableRecord
from federator_connectors import glue, hive2, hive3, iceberg, polaris, rest, unity
from federator_connectors._glue import client as glue_client
from federator_connectors._http.client import HttpClient
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import EACH, Action, Raise, Send
from tests.adversary.thrift_proxy import ThriftProxy
from tests.fixtures.glue import account
from tests.fixtures.iceberg import WAREHOUSE, IcebergServer
from tests.fixtures.polaris import PolarisServer
from tests.fixtures.rest import reference_server
from tests.fixtures.unity import UnityServer
from tests.stubs.polaris import PolarisStub
from tests.stubs.unity import UnityStub

TABLES = ("t0", "t1", "t2")
#: seconds; every client of a world gives up a response that does not come within it
PATIENCE = 2


@dataclass(frozen=True)
class Words:
    """What a protocol calls things: the calls of each phase (patterns), where a listing has its items, names and page token."""

    list: str
    observe: str
    create: str
    drop: str
    alter: str | None = None
    items: tuple[Any, ...] = ()
    name: tuple[Any, ...] = ()
    #: what every described table has and no response may lack
    required: tuple[Any, ...] = ()
    token: str | None = None
    #: the catalog's own words for a table that does not exist
    not_found: Action | None = None
    #: where crawling describes each table by itself, the calls that do
    describe: str | None = None


@dataclass
class World:
    """One catalog. ``namespace`` holds ``TABLES``; ``honest`` speaks to the server itself."""

    name: str
    words: Words
    connector: Connector[Any]
    properties: Mapping[str, str]
    proxy: HttpProxy | ThriftProxy
    #: the property that holds the address, and the proxy's own
    address: tuple[str, str]
    namespace: Path
    location: Callable[[str], str]
    #: the address of an empty catalog of the same kind
    other: str | None = None
    honest: Catalog = field(init=False)

    def __post_init__(self) -> None:
        # The first calls of a server that was just started take it seconds.
        patience = (
            {"client.timeout": "60"} if self.words is HIVE else {"read_timeout": "60000"} if self.words is ICEBERG else {}
        )
        self.honest = self._open(patience)

    @property
    def tables(self) -> list[Path]:
        return [(*self.namespace, name) for name in TABLES]

    def open(self) -> Catalog:
        """A new catalog behind the proxy. Its source has a name of its own, so that no limit or breaker is shared."""
        key, url = self.address
        return self._open({key: url})

    def record(self, name: str, **properties: str) -> TableRecord:
        return TableRecord("raw", (*self.namespace, name), self.location(name), properties)

    def prepare(self) -> None:
        """Makes what is missing of ``TABLES``."""
        for name in TABLES:
            if self.honest.observe((*self.namespace, name)).is_absent:
                self.honest.declare_table(self.record(name, k="v"))

    def _open(self, changed: Mapping[str, str]) -> Catalog:
        source = f"s{secrets.token_hex(4)}"
        return OpenedCatalog(
            self.connector.open(source, self.connector.parse_settings({**self.properties, **changed})), CallMeter()
        )


@contextmanager
def impatient() -> Iterator[None]:
    """Short time limits and two attempts at reads, without pauses, for the clients that have no settings for these."""
    defaults: dict[str, Any] = HttpClient.__init__.__kwdefaults__
    before = (glue_client.READ_CONFIG, glue_client.WRITE_CONFIG, dict(defaults), page_tokens.MAX_IDLE_PAGES)
    limits = {"connect_timeout": PATIENCE, "read_timeout": PATIENCE}
    glue_client.READ_CONFIG = Config(**limits, retries={"mode": "standard", "total_max_attempts": 2})
    glue_client.WRITE_CONFIG = Config(**limits, retries={"mode": "standard", "total_max_attempts": 1})
    defaults.update(limits)
    page_tokens.MAX_IDLE_PAGES = 20
    stamina.set_testing(True, attempts=2, cap=True)
    try:
        yield
    finally:
        stamina.set_testing(False)
        glue_client.READ_CONFIG, glue_client.WRITE_CONFIG, kept, page_tokens.MAX_IDLE_PAGES = before
        defaults.update(kept)


_AWS_MISSING = Send(b'{"__type": "EntityNotFoundException", "Message": "Table not found."}', 400, "application/x-amz-json-1.1")
_UNITY_MISSING = Send(b'{"error_code": "TABLE_NOT_FOUND", "message": "Table not found"}', 404)
_ICEBERG_MISSING = Send(b'{"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}', 404)
_LANCE_MISSING = Send(b'{"error": "Table not found", "code": 4}', 404)

GLUE = Words(
    "GetTables", "GetTable", "CreateTable", "DeleteTable", "UpdateTable",
    ("TableList",), ("TableList", EACH, "Name"), ("Table", "Name"), "NextToken", _AWS_MISSING,
)  # fmt: skip
UNITY = Words(
    "GET .*/tables", "GET .*/tables/.+", "POST .*/tables", "DELETE .*/tables/.+", None,
    ("tables",), ("tables", EACH, "name"), ("name",), "next_page_token", _UNITY_MISSING,
)  # fmt: skip
POLARIS = Words(
    "GET .*/generic-tables", "GET .*/generic-tables/.+", "POST .*/generic-tables", "DELETE .*/generic-tables/.+", None,
    ("identifiers",), ("identifiers", EACH, "name"), ("table", "format"), "next-page-token", _ICEBERG_MISSING,
    describe="GET .*/generic-tables/.+",
)  # fmt: skip
ICEBERG = Words(
    "GET .*/tables", "GET .*/tables/.+", "POST .*/tables", "DELETE .*/tables/.+", "POST .*/tables/.+",
    ("identifiers",), ("identifiers", EACH, "name"), ("metadata", "location"), "next-page-token", _ICEBERG_MISSING,
    describe="GET .*/tables/.+",
)  # fmt: skip
REST = Words(
    "GET .*/table/list", "POST .*/table/.*/describe", "POST .*/table/.*/(register|declare)", "POST .*/table/.*/deregister", None,
    ("tables",), ("tables",), ("location",), "page_token", _LANCE_MISSING, describe="POST .*/table/.*/describe",
)  # fmt: skip
HIVE = Words(
    "get_table_names_by_filter|get_all_tables", "get_table_req", "create_table.*", "drop_table.*", "alter_table.*",
    (0,), (0,), (0, 1, 1), None, Raise(2), describe="get_table_objects_by_name_req|get_table_req",
)  # fmt: skip


@contextmanager
def glue_world(url: str) -> Iterator[World]:
    """``url``: moto's Glue."""
    own = account(url)
    properties = {**own.properties, "catalog_id": own.account_id}
    with HttpProxy(url) as proxy:
        yield _prepared(
            World(
                "glue", GLUE, glue.CONNECTOR, properties, proxy, ("endpoint", proxy.url), (own.account_id, "db"),
                lambda name: f"s3://lake/{name}.lance",
            )
        )  # fmt: skip


@contextmanager
def unity_world() -> Iterator[World]:
    with UnityStub() as stub, UnityStub() as other, HttpProxy(stub.url) as proxy:
        UnityServer(stub.url, stub=stub).call("POST", "/catalogs", {"name": "main"})
        UnityServer(other.url, stub=other).call("POST", "/catalogs", {"name": "main"})
        properties = {"endpoint": stub.url, "catalog": "main", "read_timeout": str(PATIENCE), "max_retries": "1"}
        yield _prepared(
            World(
                "unity", UNITY, unity.CONNECTOR, properties, proxy, ("endpoint", proxy.url), ("main", "db"),
                lambda name: f"s3://lake/{name}.lance", other.url,
            )
        )  # fmt: skip


@contextmanager
def polaris_world() -> Iterator[World]:
    with PolarisStub(paging=True) as stub, PolarisStub(paging=True) as other, HttpProxy(stub.url) as proxy:
        for each in (stub, other):
            PolarisServer(each.url, stub=each).catalog("main", "file:///data/wh/main")
        # Tokens of one are good for the other, so that it answers with what it has.
        other._tokens = stub._tokens
        own = PolarisServer(stub.url, stub=stub).properties
        tokens = {
            "token_url": f"{stub.url}/api/catalog/v1/oauth/tokens",
            "read_timeout": str(PATIENCE * 1000),
            "max_retries": "1",
        }
        properties = {**own, **tokens}
        yield _prepared(
            World(
                "polaris", POLARIS, polaris.CONNECTOR, properties, proxy, ("endpoint", proxy.url), ("main", "db"),
                lambda name: f"s3://lake/{name}.lance", other.url,
            )
        )  # fmt: skip


@contextmanager
def iceberg_world(server: IcebergServer, directory: FilePath) -> Iterator[World]:
    """``server``: Iceberg's own, which can write to ``directory``. Two of its catalogs are used that no other test uses: they are
    empty before and after.
    """
    url, other = server.empty_urls or (server.url, None)
    properties = {"endpoint": url, "warehouses": WAREHOUSE, "read_timeout": str(PATIENCE * 1000), "max_retries": "1"}
    with HttpProxy(url) as proxy:
        world = World(
            "iceberg", ICEBERG, iceberg.CONNECTOR, properties, proxy, ("endpoint", proxy.url), (WAREHOUSE, "db"),
            lambda name: f"file://{directory}/{name}.lance", other,
        )  # fmt: skip
        try:
            # Each client tests its server before its first declaration. The lies are about the declarations themselves.
            for catalog in (_prepared(world).honest, world._open({"endpoint": proxy.url, "read_timeout": "60000"})):
                warm = catalog.declare_table(world.record("warm"))
                catalog.deregister_table(catalog.update_table(warm, world.record("warm", k="v")))
            yield world
        finally:
            proxy.truthful()
            _empty(world)


def _empty(world: World) -> None:
    """Drop all namespaces of the world's catalog."""
    catalog = world.namespace[0]
    for name in world.honest.list_namespaces((catalog,)):
        for table in world.honest.list_tables((catalog, name)):
            world.honest.deregister_table(world.honest.describe_table((catalog, name, table)))
        world.honest.drop_namespace((catalog, name))


@contextmanager
def rest_world(root: FilePath) -> Iterator[World]:
    """pylance's RestAdapter over ``root``."""
    (root / "own").mkdir()
    (root / "other").mkdir()
    with (
        reference_server(root / "own") as server,
        reference_server(root / "other") as other,
        HttpProxy(server.url) as proxy,
    ):
        yield _prepared(
            World(
                "rest", REST, rest.CONNECTOR, server.properties, proxy, ("uri", proxy.url), ("db",),
                lambda name: f"{server.root}/db/{name}.lance", other.url,
            )
        )  # fmt: skip


@contextmanager
def hive_world(uri: str, version: int, directory: FilePath, other: str | None = None) -> Iterator[World]:
    """``uri``: a metastore; ``directory``: a directory that it can write to."""
    connector, above = (hive2.CONNECTOR, ()) if version == 2 else (hive3.CONNECTOR, ("hive",))
    with ThriftProxy(uri) as proxy:
        # The first writes of a Hive 4 that was just started take it seconds.
        patience = str(5 if version == 4 else PATIENCE)
        properties = {"uri": uri, "client.timeout": patience, "client.pool-size": "2", "root": f"file:{directory}"}
        yield _prepared(
            World(
                f"hive{version}", HIVE, connector, properties, proxy, ("uri", proxy.uri), (*above, f"db_{secrets.token_hex(4)}"),
                lambda name: f"file:{directory}/{name}.lance", other,
            )
        )  # fmt: skip


def _prepared(world: World) -> World:
    location = world.location("db").removesuffix(".lance") if world.name.startswith("hive") else None
    if not world.name.startswith("hive"):
        # Listed before the namespace of the tables: a listing that fails from the second one on fails there.
        world.honest.create_namespace(NamespaceRecord("raw", (*world.namespace[:-1], "aa")))
    world.honest.create_namespace(NamespaceRecord("raw", world.namespace, location=location))
    world.prepare()
    return world
