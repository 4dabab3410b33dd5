"""Crawls of a real Hive 3.1.3 that follow its notification log: they come to what a full crawl finds, and ask for little.

Two sources read one server: ``lake`` with its catalogs, ``flat`` as a Hive 2 metastore with the default one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.demo.servers import hive
from federator.demo.servers.process import Server
from federator.model import NamespaceRecord, TableRecord
from federator.service import Federator
from federator.settings import parse_settings
from federator.stages.declare import DeclareSpec
from federator.stages.result import RunResult
from federator.testing import MemoryStore
from federator_connectors import hive3
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.hive import started
from tests.fixtures.index_reads import iter_records
from tests.fixtures.relay import Noting
from tests.fixtures.spark import outcomes, refusals

pytestmark = pytest.mark.timeout(900)

DATABASES, TABLES = ("sales", "ops", "quiet"), 5
#: what asking the log takes: is there one, whose is it, how far is it, and what has happened; and which Hive answers
FEED = {"get_config_value", "get_metastore_db_uuid", "get_current_notificationEventId", "get_next_notification", "get_catalogs"}


@dataclass
class Lake:
    """The server, what stands before it, a direct connection, and the index that follows."""

    server: Server
    relay: Noting
    catalog: HiveCatalog
    directory: Path
    federator: Federator

    def crawl(self, **how: Any) -> RunResult:
        result = self.federator.crawl(**how)
        assert (result.state, result.errors) == ("ok", {})
        return result

    def put(self, *path: str) -> TableRecord:
        return self.catalog.declare_table(TableRecord("lake", path, f"file:{self.directory}/{'_'.join(path)}"))

    def database(self, *path: str) -> None:
        self.catalog.create_namespace(NamespaceRecord("lake", path, location=f"file:{self.directory}/{'_'.join(path)}.db"))

    def drop(self, *path: str) -> None:
        self.catalog.deregister_table(self.catalog.describe_table(path))


def _opened(uri: str) -> HiveCatalog:
    opened = hive3.CONNECTOR.open("lake", hive3.CONNECTOR.parse_settings({"uri": uri}))
    assert isinstance(opened, HiveCatalog)
    return opened


def _federator(directory: Path, uri: str, **more: Any) -> Federator:
    sources = {
        "lake": {"impl": "hive3", "uri": uri, "client": {"pool-size": 2}},
        "flat": {"impl": "hive2", "uri": uri, "client": {"pool-size": 2}},
    }
    raw = {"instance": {"id": "i"}, "verify": {"enabled": False}, **more, "sources": {**sources, **more.get("sources", {})}}
    directory.mkdir(exist_ok=True)
    return Federator.open(parse_settings(raw, directory / "federator.toml"))


@pytest.fixture(scope="module")
def lake(spark: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    directory = tmp_path_factory.mktemp("incremental")
    server = started(lambda run_dir: hive.start(hive.HIVE3, run_dir), directory / "server")
    relay = Noting(server.uri)
    made = Lake(server, relay, _opened(server.uri), directory, _federator(directory / "one", relay.uri))
    for database in DATABASES:
        made.database("hive", database)
        for number in range(TABLES):
            made.put("hive", database, f"t{number}")
    made.crawl()
    yield made
    made.catalog.close()
    relay.close()
    made.server.stop()


def known(federator: Federator, source: str) -> dict[tuple[bool, str], str]:
    """Digests of everything that the index has of a source."""
    with federator.index.read() as connection:
        return {(isinstance(record, TableRecord), record.key): record.digest for record in iter_records(connection, source)}


def like_a_full_crawl(lake: Lake, name: str) -> None:
    """What was followed is what an index that starts now finds."""
    other = _federator(lake.directory / name, lake.server.uri)
    assert other.crawl().state == "ok"
    for source in ("lake", "flat"):
        assert known(lake.federator, source) == known(other, source)
    other.index.close()


def test_an_unchanged_metastore_is_asked_for_its_log_and_for_nothing_else(lake: Lake) -> None:
    lake.crawl()
    lake.relay.take()
    found = lake.crawl()
    names, _ = lake.relay.take()
    # Three databases with "default", a catalog with the root; and without the catalog.
    assert {name: published.carried for name, published in found.sources.items()} == {"lake": 6, "flat": 5}
    assert set(names) == FEED
    assert names.count("get_catalogs") == 2, "once a connection"
    assert len(names) <= 2 * 8, "for two sources, however many tables there are"


def test_changed_and_new_tables_are_asked_for_by_name_however_many_their_databases_have(lake: Lake) -> None:
    lake.crawl()
    altered = lake.catalog.describe_table(("hive", "quiet", "t0"))
    lake.catalog.update_table(altered, replace(altered, properties={"team": "ops"}))
    lake.put("hive", "quiet", "made")
    plain = lake.catalog.describe_table(("hive", "ops", "t0"))
    lake.put("hive", "ops", "passing")
    lake.drop("hive", "ops", "passing")
    lake.relay.take()
    found = lake.crawl()
    names, sent = lake.relay.take()
    assert {name: (each.added, each.changed, each.removed) for name, each in found.sources.items()} == {
        "lake": (1, 1, 0), "flat": (1, 1, 0)
    }  # fmt: skip
    assert {name: each.carried for name, each in found.sources.items()} == {"lake": 6, "flat": 5}
    assert set(names) == FEED | {"get_table_objects_by_name_req"}
    assert names.count("get_table_objects_by_name_req") == 2 * 2, "once a database and source"
    assert (b"made" in sent, b"passing" in sent, b"t4" in sent) == (True, True, False)
    like_a_full_crawl(lake, "named")
    # A table of the index that is no Lance table any more is gone, and a listing says so.
    unmarked = lake.catalog._store.get_table(("hive", "ops", "t0"))
    unmarked.parameters = {key: value for key, value in unmarked.parameters.items() if key != "table_type"}
    lake.catalog._store.alter_table(("hive", "ops", "t0"), unmarked)
    lake.relay.take()
    assert lake.crawl().sources["lake"].removed == 1
    names, _ = lake.relay.take()
    assert names.count("get_table_names_by_filter") == 2, "ops, once a source"
    like_a_full_crawl(lake, "unmarked")
    lake.catalog._store.drop_table(("hive", "ops", "t0"))
    lake.catalog.declare_table(plain)
    lake.drop("hive", "quiet", "made")
    lake.crawl()


def test_whatever_happens_in_between_is_followed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.crawl()
    lake.put("hive", "sales", "new")
    altered = lake.catalog.describe_table(("hive", "sales", "t0"))
    lake.catalog.update_table(altered, replace(altered, properties={"team": "ops"}))
    lake.catalog.rename_table(lake.catalog.describe_table(("hive", "sales", "t1")), ("hive", "sales", "renamed"))
    lake.catalog.rename_table(lake.catalog.describe_table(("hive", "sales", "t2")), ("hive", "ops", "moved"))
    lake.drop("hive", "ops", "t3")
    lake.database("hive", "made")
    lake.put("hive", "made", "t")
    lake.catalog.create_namespace(NamespaceRecord("lake", ("second",)))
    lake.database("second", "inside")
    lake.put("second", "inside", "t")
    lake.relay.take()
    found = lake.crawl()
    names, sent = lake.relay.take()
    assert (found.sources["lake"].added, found.sources["lake"].changed, found.sources["lake"].removed) == (9, 1, 3)
    assert found.sources["lake"].carried == 4, "sales, ops, quiet and hive.default"
    # To describe a catalog's databases, each is looked at; the tables of one that no event names are not.
    listed = sent.split(b"get_table_names_by_filter")
    assert not any(b"quiet" in each[:40] for each in listed[1:])
    assert names.count("get_table_names_by_filter") == 5 + 3
    like_a_full_crawl(lake, "after")
    for number in range(TABLES):
        lake.drop("hive", "quiet", f"t{number}")
    lake.catalog.drop_namespace(("hive", "quiet"))
    lake.drop("second", "inside", "t")
    for path in (("second", "inside"), ("second", "default"), ("second",)):
        lake.catalog.drop_namespace(path)
    gone = lake.crawl()
    assert (gone.sources["lake"].removed, gone.sources["flat"].removed) == (TABLES + 1 + 4, TABLES + 1)
    like_a_full_crawl(lake, "gone")


def test_a_mirror_follows_a_table_that_was_dropped_until_it_is_gone(lake: Lake) -> None:
    store = MemoryStore(str(lake.directory / "target.json"))
    federator = _federator(
        lake.directory / "mirror", lake.relay.uri,
        sources={"copy": {"impl": "federator.testing:CONNECTOR", "file": str(lake.directory / "target.json")}},
        mirrors={"m": {"from": "flat", "to": "copy", "include": ["ops$*"], "min_miss_interval": "0s", "max_delete_percent": 100}},
    )  # fmt: skip
    assert set(outcomes(federator.sync(["m"])).values()) == {"done"}
    lake.drop("hive", "ops", "t4")
    first = federator.sync(["m"])
    assert (refusals(first), first.sources["flat"].full_because) == ({"ops$t4": "misses"}, None)
    # The log names it no more, and it is missed a second time.
    lake.relay.take()
    assert outcomes(federator.sync(["m"])) == {"ops$t4": "done"}
    _, sent = lake.relay.take()
    assert b"ops" in sent
    with store.locked_state() as state:
        assert "ops$t4" not in state["tables"]
        assert "ops$t0" in state["tables"]
    assert federator.sync(["m"]).sources["flat"].carried > 0
    federator.index.close()


def test_an_orphan_is_declared_in_the_metastore(lake: Lake) -> None:
    """A metastore makes the directory of what it is told: nothing is declared where there is nothing."""
    directory = lake.directory / "lake" / "ops"
    lance.write_dataset(pa.table({"id": [1, 2]}), str(directory / "orders.lance"))
    wanted = DeclareSpec(
        [str(directory / "orders.lance"), str(directory / "nothing.lance")], ["lake", "flat"], "ops$found_{table}"
    )
    refused = lake.federator.declare(wanted).plans[0]
    assert [refusal.reason.value for refusal in refused.refusals] == ["depth", "depth"], "lake has two levels"
    for source, template in (("lake", "hive$ops$found_{table}"), ("flat", "{1}$found_{table}")):
        (plan,) = lake.federator.declare(replace(wanted, targets=[source], template=template)).plans
        reasons = [refusal.reason.value for refusal in plan.refusals]
        if source == "lake":
            assert reasons == ["not_valid"]
            (outcome,) = lake.federator.apply([(plan, plan.digest)]).outcomes
            assert outcome.state.value == "done"
        else:
            assert reasons == ["location_declared", "not_valid"]
    assert not (directory / "nothing.lance").exists()
    declared = lake.catalog.describe_table(("hive", "ops", "found_orders"))
    assert lance.dataset(declared.location).count_rows() == 2
    # What a person declares is an event like any other.
    assert lake.crawl().sources["flat"].added == 1
    assert (1, "ops$found_orders") in known(lake.federator, "flat")


def test_a_log_that_has_expired_means_a_full_crawl(lake: Lake) -> None:
    """The last test: it restarts the server."""
    lake.crawl()
    lake.put("hive", "ops", "before")
    lake.catalog.close()
    lake.server.stop()
    time.sleep(1.1)
    # The log's cleaner runs at the server's start.
    brief = {"metastore.event.db.listener.timetolive": "1s"}
    lake.server = started(lambda run_dir: hive.start(hive.HIVE3, run_dir, brief), lake.directory / "server")
    lake.relay.target = lake.server.uri
    lake.catalog = _opened(lake.server.uri)
    end = time.monotonic() + 120
    while lake.catalog._store.list_events(0, 10) and time.monotonic() < end:
        time.sleep(0.1)
    expired = lake.crawl().sources["lake"]
    assert "the log has expired" in (expired.full_because or "")
    assert (expired.added, expired.carried) == (1, 0)
    assert lake.crawl().sources["lake"].carried > 0


def test_a_metastore_without_a_log_is_read_in_full_each_time(spark: None, hive2_uri: str, tmp_path: Path) -> None:
    raw = {"verify": {"enabled": False}, "sources": {"old": {"impl": "hive2", "uri": hive2_uri}}}
    federator = Federator.open(parse_settings(raw, tmp_path / "federator.toml"))
    for _ in range(2):
        found = federator.crawl().sources["old"]
        assert (found.carried, found.full_because) == (0, None)
    federator.index.close()
