"""Another catalog behind the same address: real metastores, and Glue accounts, exchanged between two syncs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from federator.demo.servers import hive as servers
from federator.index import records
from federator.model import NamespaceRecord, TableRecord
from federator.registry import open_catalog
from federator.settings import Settings, parse
from federator.sync import Federator, confirming
from federator.sync.deciding import decide
from federator.testing import MemoryStore
from federator_connectors import hive3
from tests.fixtures.hive import started
from tests.fixtures.relay import Noting

MEMORY = "federator.testing:CONNECTOR"
DATABASE = "sales"


@pytest.fixture
def pair(tmp_path: Path, hive3_uri: str) -> Iterator[tuple[str, str]]:
    """Two metastores: ``hive3_uri`` and one of the test's own."""
    server = started(servers.start_hive3, tmp_path / "other")
    yield hive3_uri, server.uri
    server.stop()


def fill(uri: str, impl: str, namespace: tuple[str, ...], tables: dict[str, Path]) -> None:
    """A new namespace of a metastore with declared tables, by name and location."""
    settings = parse({"sources": {"there": {"impl": impl, f"{impl}.uri": uri}}}, Path("federator.toml"))
    with open_catalog(settings.source("there").spec) as catalog:
        location = next(iter(tables.values())).parent.as_uri() if tables else None
        catalog.create_namespace(NamespaceRecord("there", namespace, location=location))
        for name, place in tables.items():
            place.mkdir(parents=True, exist_ok=True)
            catalog.declare_table(TableRecord("there", (*namespace, name), place.as_uri()))


def configured(place: Path, origin: dict[str, str], **mirror: object) -> Settings:
    """One mirror from ``origin`` into a memory catalog, which deletes with the first miss."""
    return parse(
        {
            "instance": {"id": "test"}, "verify": {"enabled": False},
            "index": {"url": f"sqlite:///{place / 'index.db'}"},
            "sources": {"origin": origin, "target": {"impl": MEMORY, "file": str(place / "target.json")}},
            "mirrors": {"copy": {
                "from": "origin", "to": "target", "misses_before_delete": 1, "min_miss_interval": "0s", **mirror,
            }},
        },
        place / "federator.toml",
    )  # fmt: skip


def declared(place: Path) -> dict[str, str]:
    """The target's tables: name and location."""
    with MemoryStore(str(place / "target.json")).state() as state:
        return {row["path"][-1]: row["location"] for row in state["tables"].values()}


def indexed(federator: Federator) -> dict[str, str]:
    """The origin's tables as the index has them: path and location."""
    with federator.index.read() as connection:
        return {row["path"]: row["location"] for row in records.subtree(connection, "origin", is_table=True)}


def identity_of(uri: str) -> str:
    with hive3.CONNECTOR.open("raw", hive3.CONNECTOR.configure({"uri": uri})) as catalog:
        identity = catalog.identity()
    assert identity is not None
    return str(identity)


@pytest.mark.usefixtures("spark")
def test_another_metastore_behind_the_same_address(pair: tuple[str, str], tmp_path: Path) -> None:
    first, second = pair
    database = f"sales_{secrets.token_hex(4)}"
    fill(first, "hive3", ("hive", database), {"orders": tmp_path / "orders", "customers": tmp_path / "customers"})
    fill(second, "hive3", ("hive", database), {"orders": tmp_path / "staging/orders", "staged": tmp_path / "staging/staged"})
    relay = Noting(first)
    settings = configured(tmp_path, {"impl": "hive3", "hive3.uri": relay.uri}, include=[f"hive${database}$*"])
    federator = Federator.open(settings)
    assert federator.sync().state == "ok"
    before = declared(tmp_path)
    assert sorted(before) == ["customers", "orders"]
    known = indexed(federator)
    relay.target = second
    for _ in range(2):
        result = federator.sync()
        assert (result.state, result.sources["origin"].state) == ("partial", "failed"), result
        message = result.sources["origin"].message or ""
        assert identity_of(first) in message
        assert identity_of(second) in message
        assert "federator sources confirm origin" in message
        assert (declared(tmp_path), indexed(federator)) == (before, known)
    confirmed = confirming.confirm(federator.index, settings, "origin", actor="test")
    tables = [row["origin_path"] for row in confirmed.entries if row["is_table"]]
    assert tables == [f"hive${database}$customers", f"hive${database}$orders"]
    # The new catalog is known now, and has lost more than half of what the old one had: that waits for an approval of its own.
    held = federator.sync()
    assert (held.state, declared(tmp_path)) == ("held", before)
    assert [hold.guard for plan in held.plans for hold in plan.holds] == ["half_gone"]
    decide(federator.index, held.plans[0].digest, "approved", actor="test")
    assert federator.sync().state == "ok"
    assert declared(tmp_path) == {name: f"file:{tmp_path}/staging/{name}" for name in ("orders", "staged")}
    relay.target = first
    # Two replicas are accepted: going back needs no confirmation, only an approval again.
    assert federator.sync().state == "held"
