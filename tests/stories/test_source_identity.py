"""Another catalog behind the same address: real metastores and Glue accounts, exchanged between two syncs."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from federator.apply.plan_decisions import decide_plan
from federator.apply.source_identity import opened_as_known
from federator.connector import IdentityChanged
from federator.demo.servers import hive as servers
from federator.demo.servers.process import Server
from federator.model import NamespaceRecord, TableRecord
from federator.registry import open_catalog
from federator.service import Federator
from federator.settings import Settings, parse_settings
from federator.stages import confirm_source
from federator.testing import MemoryStore
from federator_connectors import hive3
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.hive import started
from tests.fixtures.index_reads import iter_records
from tests.fixtures.product import HELD, PARTIAL, Product, guards
from tests.fixtures.relay import Balancing, Noting

pytestmark = pytest.mark.timeout(600)

MEMORY = "federator.testing:CONNECTOR"
DATABASE = "sales"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A metastore of this module's own."""
    server = started(servers.start_hive3, tmp_path_factory.mktemp("other"))
    yield server
    server.stop()


@pytest.fixture
def pair(hive3_uri: str, other: Server) -> tuple[str, str]:
    """Two metastores: ``hive3_uri``, and ``other``, which is empty in the module's first test."""
    return hive3_uri, other.uri


def fill(uri: str, impl: str, namespace: tuple[str, ...], tables: dict[str, Path]) -> None:
    """A new namespace of a metastore with declared tables, by name and location."""
    settings = parse_settings({"sources": {"there": {"impl": impl, f"{impl}.uri": uri}}}, Path("federator.toml"))
    with open_catalog(settings.source("there").spec) as catalog:
        location = next(iter(tables.values())).parent.as_uri() if tables else None
        catalog.create_namespace(NamespaceRecord("there", namespace, location=location))
        for name, directory in tables.items():
            directory.mkdir(parents=True, exist_ok=True)
            catalog.declare_table(TableRecord("there", (*namespace, name), directory.as_uri()))


def configured(directory: Path, origin: dict[str, str], **mirror: object) -> Settings:
    """One mirror from ``origin`` into a memory catalog, which deletes with the first miss."""
    return parse_settings(
        {
            "instance": {"id": "test"}, "verify": {"enabled": False},
            "index": {"url": f"sqlite:///{directory / 'index.db'}"},
            "sources": {"origin": origin, "target": {"impl": MEMORY, "file": str(directory / "target.json")}},
            "mirrors": {"copy": {
                "from": "origin", "to": "target", "misses_before_delete": 1, "min_miss_interval": "0s", **mirror,
            }},
        },
        directory / "federator.toml",
    )  # fmt: skip


def declared(directory: Path) -> dict[str, str]:
    """The target's tables: name and location."""
    with MemoryStore(str(directory / "target.json")).locked_state() as state:
        return {row["path"][-1]: row["location"] for row in state["tables"].values()}


def indexed(federator: Federator) -> dict[str, str]:
    """The origin's tables as the index has them: path and location."""
    with federator.index.read() as connection:
        return {table.key: table.location or "" for table in iter_records(connection, "origin", is_table=True)}


def identity_of(uri: str) -> str:
    with hive3.CONNECTOR.open("raw", hive3.CONNECTOR.parse_settings({"uri": uri})) as catalog:
        identity = catalog.identity()
    assert identity is not None
    return str(identity)


@pytest.mark.usefixtures("spark")
def test_another_metastore_behind_the_same_address(pair: tuple[str, str], tmp_path: Path) -> None:
    first, second = pair
    database = f"sales_{secrets.token_hex(4)}"
    fill(first, "hive3", ("hive", database), {"orders": tmp_path / "orders", "customers": tmp_path / "customers"})
    relay = Noting(first)
    settings = configured(tmp_path, {"impl": "hive3", "hive3.uri": relay.uri}, include=[f"hive${database}$*"])
    federator = Federator.open(settings)
    assert federator.sync().state == "ok"
    before = declared(tmp_path)
    assert sorted(before) == ["customers", "orders"]
    known = indexed(federator)
    relay.target = second
    # Empty at first, then with other tables.
    for tables in ({}, {name: tmp_path / "staging" / name for name in ("orders", "staged")}):
        if tables:
            fill(second, "hive3", ("hive", database), tables)
        result = federator.sync()
        assert (result.state, result.sources["origin"].state) == ("partial", "failed"), result
        message = result.sources["origin"].message or ""
        assert identity_of(first) in message
        assert identity_of(second) in message
        assert "federator sources confirm origin" in message
        assert (declared(tmp_path), indexed(federator)) == (before, known)
    confirmed = confirm_source.confirm(federator.index, settings, "origin", actor="test")
    paths = [owned.origin_path for owned in confirmed.entries if owned.is_table]
    assert paths == [f"hive${database}$customers", f"hive${database}$orders"]
    # The new catalog is known now, and has lost more than half of what the old one had: that waits for an approval of its own.
    held = federator.sync()
    assert (held.state, declared(tmp_path)) == ("held", before)
    assert [hold.guard for plan in held.plans for hold in plan.holds] == ["half_gone"]
    decide_plan(federator.index, held.plans[0].digest, "approved", actor="test")
    assert federator.sync().state == "ok"
    assert declared(tmp_path) == {name: f"file:{tmp_path}/staging/{name}" for name in ("orders", "staged")}
    relay.target = first
    # Two replicas are accepted: going back needs no confirmation, only an approval again.
    assert federator.sync().state == "held"


def test_a_hive_3_at_the_address_of_a_hive_2_is_another_catalog(hive2_uri: str, hive3_uri: str, tmp_path: Path) -> None:
    """The first identity is trusted, and a metastore without an id has said so."""
    relay = Noting(hive2_uri)
    settings = configured(tmp_path, {"impl": "hive2", "hive2.uri": relay.uri})
    federator = Federator.open(settings)
    spec = settings.source("origin").spec
    with opened_as_known(federator.index, spec):
        pass
    relay.target = hive3_uri
    with pytest.raises(IdentityChanged, match="known is metastore without an id"), opened_as_known(federator.index, spec):
        pass
    relay.target = hive2_uri
    with opened_as_known(federator.index, spec):
        pass


@pytest.mark.usefixtures("spark")
def test_a_load_balancer_between_two_metastores(pair: tuple[str, str], tmp_path: Path) -> None:
    """Two catalogs in one crawl prove nothing, be the second one accepted or not."""
    first, second = pair
    database = f"sales_{secrets.token_hex(4)}"
    fill(first, "hive3", ("hive", database), {"orders": tmp_path / "orders", "customers": tmp_path / "customers"})
    product, balancer = Product(tmp_path), Balancing(first, second)
    product.configure({"impl": "hive3", "uri": first}, include=[f"hive${database}$*"])
    product.sync()
    before, known = product.copies(), product.known()
    assert sorted(before) == ["customers", "orders"]
    # The address changes, and so does the configuration's digest: the feed's cursor is not used.
    product.configure({"impl": "hive3", "uri": balancer.uri}, include=[f"hive${database}$*"])
    result = product.sync(PARTIAL)
    (origin,) = (source for source in result["sources"] if source["name"] == "origin")
    for text in ("two catalogs responded for origin during one crawl", "federator sources confirm origin"):
        assert (origin["state"], text in origin["message"]) == ("failed", True), origin["message"]
    assert (product.copies(), product.known()) == (before, known)
    product.json("sources", "confirm", "origin", "--yes")
    result = product.sync(PARTIAL)
    assert [source["state"] for source in result["sources"] if source["name"] == "origin"] == ["failed"]
    assert (product.copies(), product.known()) == (before, known)


def test_a_connection_to_another_metastore_fails_the_reading_that_follows(pair: tuple[str, str]) -> None:
    first, second = pair
    relay = Noting(first)
    with hive3.CONNECTOR.open("raw", hive3.CONNECTOR.parse_settings({"uri": relay.uri, "client.pool-size": "2"})) as catalog:
        assert isinstance(catalog, HiveCatalog)
        known = catalog.identity()
        client = catalog._store._client
        busy = client._acquire()
        relay.target = second
        with pytest.raises(IdentityChanged, match="two metastores answer"):
            catalog.list_namespaces(())
        client._idle.append(busy)
        # A crawl ends with this: whatever it read, a part of it met another metastore.
        with pytest.raises(IdentityChanged, match="two metastores answer"):
            catalog.identity()
        assert catalog.identity() == known


def test_the_next_endpoint_of_a_source_may_not_be_another_metastore(pair: tuple[str, str]) -> None:
    """One source with two addresses: a first server that goes away in mid-crawl does not make the second one's listing its own."""
    first, second = pair
    relay = Noting(first)
    settings = hive3.CONNECTOR.parse_settings({"uri": f"{relay.uri},{second}"})
    with hive3.CONNECTOR.open("raw", settings) as catalog:
        known = catalog.identity()
        relay.target = "thrift://127.0.0.1:1"
        relay.reset()
        for _ in range(2):
            with pytest.raises(IdentityChanged, match="two metastores answer"):
                catalog.list_namespaces(("hive",))
        # A crawl task ends with this.
        with pytest.raises(IdentityChanged, match="two metastores answer"):
            catalog.identity()
        relay.target = first
        assert catalog.identity() == known
        assert "default" in catalog.list_namespaces(("hive",))


@pytest.mark.usefixtures("spark")
def test_a_metastore_restored_from_a_backup_holds_its_mirrors(other: Server, tmp_path: Path) -> None:
    """The same metastore by its id, with fewer events in its log: every listing is complete, and older than what was mirrored.

    It was away while it was restored, and the first crawl afterwards reads everything.
    """
    database = f"sales_{secrets.token_hex(4)}"
    names = ("a", "b", "c", "d", "e")
    fill(other.uri, "hive3", ("hive", database), {name: tmp_path / name for name in names})
    # A metastore makes its id when it is first asked for it: the backup would get another one.
    known = identity_of(other.uri)
    # Nothing writes to it now: a copy of its database is what a snapshot of its disk would be.
    shutil.copytree(Path(other.run_dir) / "metastore_db", tmp_path / "backup" / "metastore_db")
    with hive3.CONNECTOR.open("raw", hive3.CONNECTOR.parse_settings({"uri": other.uri})) as catalog:
        catalog.declare_table(TableRecord("raw", ("hive", database, "f"), (tmp_path / "f").as_uri()))
    relay, product = Noting(other.uri), Product(tmp_path)
    product.configure({"impl": "hive3", "uri": relay.uri}, include=[f"hive${database}$*"])
    product.sync()
    before = product.copies()
    assert sorted(before) == [*names, "f"]
    restored = started(servers.start_hive3, tmp_path / "backup")
    try:
        assert identity_of(restored.uri) == known
        relay.target = "thrift://127.0.0.1:1"
        relay.reset()
        product.sync(PARTIAL)
        relay.target = restored.uri
        for _ in range(2):
            held = product.sync(HELD)
            assert (guards(held), product.copies()) == (["feed_went_back"], before)
        (text,) = held["plans"][0]["held"]
        assert "revision" in text
        product.approve(held)
        product.sync()
        assert sorted(product.copies()) == list(names)
    finally:
        restored.stop()
