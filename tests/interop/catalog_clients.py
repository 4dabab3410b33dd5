"""``lance-namespace-impls`` and the connector of the same name on one catalog: each uses what the other declared."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath

from federator.connector import Catalog, CatalogError, InvalidInput
from federator.demo.servers import glue, hive
from federator.model import NamespaceRecord, Path, TableRecord, canonical_location
from federator.registry import get_connector
from tests.fixtures import iceberg
from tests.fixtures.glue import account
from tests.fixtures.polaris import PolarisServer
from tests.interop.iceberg_prefix import prefix_relay
from tests.interop.namespace_client import ClientError, ForeignClient
from tests.stubs.polaris import PolarisStub
from tests.stubs.unity import UnityStub

IMPLS = "lance-namespace-impls 0.4.2"


@dataclass(frozen=True)
class SharedCatalog:
    """A catalog that a connector and a client use. ``above`` is the parent of databases, ``hidden`` its part that the client omits."""

    impl: str
    properties: Mapping[str, str]
    client_properties: Mapping[str, str]
    above: Path
    hidden: int
    directory: str
    #: whether tables that the client declares are read-only for the connector
    read_only: bool


@contextmanager
def hive_catalog(version: str) -> Iterator[SharedCatalog]:
    with tempfile.TemporaryDirectory(prefix="interop-") as directory:
        server = (hive.start_hive2 if version == "hive2" else hive.start_hive3)(FilePath(directory, "server"))
        try:
            root = f"file:{directory}/lake"
            properties = {"uri": server.uri, "root": root}
            client = {"uri": server.uri, "root": root}
            above: Path = () if version == "hive2" else ("hive",)
            yield SharedCatalog(version, properties, client, above, 0, root, read_only=True)
        finally:
            server.stop()


@contextmanager
def glue_catalog() -> Iterator[SharedCatalog]:
    with tempfile.TemporaryDirectory(prefix="interop-") as directory:
        server = glue.start_glue(FilePath(directory, "server"))
        try:
            own = account(server.uri)
            root = f"file://{directory}/lake"
            properties = {**own.properties, "root": root, "drop_cascades": "confirmed"}
            client = {key: value for key, value in own.properties.items() if key != "sts_endpoint"}
            yield SharedCatalog("glue", properties, {**client, "root": root}, (own.account_id,), 1, root, read_only=False)
        finally:
            server.stop()


@contextmanager
def iceberg_catalog() -> Iterator[SharedCatalog]:
    with tempfile.TemporaryDirectory(prefix="interop-") as directory, iceberg.start(FilePath(directory, "server")) as server:
        root = f"file://{directory}/lake"
        properties = {**server.properties, "root": root}
        with prefix_relay(server.url, iceberg.WAREHOUSE) as url:
            client = {"endpoint": url, "root": root}
            yield SharedCatalog("iceberg", properties, client, (iceberg.WAREHOUSE,), 0, root, read_only=False)


@contextmanager
def unity_stub() -> Iterator[SharedCatalog]:
    with tempfile.TemporaryDirectory(prefix="interop-") as directory, UnityStub() as stub:
        stub.world.create_catalog({"name": "main"}, None)
        root = f"file://{directory}/lake"
        properties = {"unity.endpoint": stub.url, "unity.root": root}
        yield SharedCatalog("unity", properties, properties, ("main",), 0, root, read_only=False)


@contextmanager
def polaris_stub() -> Iterator[SharedCatalog]:
    with tempfile.TemporaryDirectory(prefix="interop-") as directory, PolarisStub() as stub:
        server = PolarisServer(stub.url, stub=stub)
        server.catalog("main", f"file://{directory}/warehouse")
        root = f"file://{directory}/lake"
        client = {"polaris.endpoint": stub.url, "polaris.auth_token": server.token(), "polaris.root": root}
        yield SharedCatalog("polaris", {**server.properties, "root": root}, client, ("main",), 0, root, read_only=False)


#: ``-stub``: no package registry has the server; the stub is compared with recordings
CATALOGS: Mapping[str, Callable[[], AbstractContextManager[SharedCatalog]]] = {
    "hive2": lambda: hive_catalog("hive2"),
    "hive3": lambda: hive_catalog("hive3"),
    "glue": glue_catalog,
    "iceberg": iceberg_catalog,
    "unity-stub": unity_stub,
    "polaris-stub": polaris_stub,
}


def steps(shared: SharedCatalog, catalog: Catalog, client: ForeignClient) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each operation with a function that fails unless both sides agree."""
    database = (*shared.above, f"db_{secrets.token_hex(4)}")
    theirs, own = (*database, "theirs"), (*database, "own")
    locations = {path: f"{shared.directory}/{path[-1]}.lance" for path in (theirs, own)}

    def named(path: Path) -> list[str]:
        return list(path[shared.hidden :])

    def same(actual: str | None, path: Path) -> None:
        assert actual is not None
        assert canonical_location(actual) == canonical_location(locations[path]), f"the location is {actual}"

    def describes_theirs() -> None:
        record = catalog.describe_table(theirs)
        same(record.location, theirs)
        assert record.schema is None, f"the client declared no columns, but the record has {record.schema}"

    def lists_own() -> None:
        names = client.call("list_tables", id=named(database))["tables"]
        assert "own" in names, f"listed: {names}"

    def removes_theirs() -> None:
        if not shared.read_only:
            catalog.deregister_table(catalog.describe_table(theirs))
            client.call("declare_table", id=named(theirs), location=locations[theirs])
            return
        try:
            catalog.deregister_table(catalog.describe_table(theirs))
        except InvalidInput:
            return
        raise AssertionError("a table that is managed was deregistered")

    def removed(path: Path) -> None:
        client.call("deregister_table", id=named(path))
        assert catalog.observe(path).is_absent, "still there"

    yield (
        "connector creates a namespace, client describes it",
        lambda: (
            (
                catalog.create_namespace(NamespaceRecord("interop", database)),
                client.call("describe_namespace", id=named(database)),
            )[0]
            and None
        ),
    )
    yield "client declares a table", lambda: client.call("declare_table", id=named(theirs), location=locations[theirs])
    yield "connector lists the client's table", lambda: _require("theirs" in catalog.list_tables(database), "not listed")
    yield "connector describes the client's table", describes_theirs
    yield "connector deregisters the client's table, or refuses it as read-only", removes_theirs
    yield "client deregisters its own table", lambda: removed(theirs)
    yield "connector declares a table", lambda: catalog.declare_table(TableRecord("interop", own, locations[own]))
    yield "client lists the connector's table", lists_own
    yield "client describes the connector's table", lambda: same(client.call("describe_table", id=named(own))["location"], own)
    yield "client deregisters the connector's table", lambda: removed(own)
    yield "client drops the namespace", lambda: client.call("drop_namespace", id=named(database))


def _require(condition: bool, message: str) -> None:
    assert condition, message


def run_impls(name: str) -> Iterator[tuple[str, str]]:
    """Run all steps on a catalog of its own. Yield each operation with ``passed`` or its error."""
    with CATALOGS[name]() as shared:
        connector = get_connector(shared.impl)
        with (
            connector.open("interop", connector.parse_settings(shared.properties)) as catalog,
            ForeignClient("impls", shared.impl, shared.client_properties) as client,
        ):
            for operation, step in steps(shared, catalog, client):
                yield operation, run_step(step)


def run_step(step: Callable[[], object]) -> str:
    """Return ``passed``, or the error of the step."""
    try:
        step()
    except (AssertionError, CatalogError, ClientError) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())
    return "passed"
