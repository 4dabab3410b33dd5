"""Metastores with a real filter hook: which of their responses omit a hidden table."""

from __future__ import annotations

from pathlib import Path

import pytest

from federator.demo.servers import hive
from federator.model import NamespaceRecord, TableRecord
from federator_connectors import hive3
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.filter_hook import READER, filtering_metastore

pytestmark = pytest.mark.timeout(120)

_SALES = ("hive", "sales")


def _open(uri: str, user: str) -> HiveCatalog:
    opened = hive3.CONNECTOR.open("lake", hive3.CONNECTOR.parse_settings({"uri": uri, "ugi": user}))
    assert isinstance(opened, HiveCatalog)
    return opened


def _crawl(catalog: HiveCatalog) -> list[str]:
    rows = (row for shard in catalog.plan_shards() for row in catalog.read_shard(shard))
    return sorted(row.path[-1] for row in rows if isinstance(row, TableRecord))


@pytest.mark.parametrize(("version", "listed"), [(hive.HIVE3, ["a", "b"]), (hive.HIVE4, ["b"])])
def test_only_hive_4_filters_and_only_listings(version: str, listed: list[str], tmp_path: Path) -> None:
    """In Hive 3 the hook belongs to Java's client. A read by the table's name is not filtered in Hive 4 either."""
    with (
        filtering_metastore(version, tmp_path) as metastore,
        _open(metastore.uri, READER) as reader,
        _open(metastore.uri, "writer") as writer,
    ):
        writer.create_namespace(NamespaceRecord("lake", _SALES, location=f"file:{tmp_path}/sales"))
        for name in ("a", "b"):
            writer.declare_table(TableRecord("lake", (*_SALES, name), f"file:{tmp_path}/{name}"))
        assert reader.list_tables(_SALES) == ["a", "b"]
        metastore.hide("sales.a")
        assert reader.list_tables(_SALES) == listed
        assert _crawl(reader) == listed
        assert _crawl(writer) == ["a", "b"]
        assert reader.describe_table((*_SALES, "a")).location == f"file:{tmp_path}/a"
