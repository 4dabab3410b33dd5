"""CASCADE in real metastores: foreign objects are detected before anything is dropped, and nothing is declared again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lance_namespace as ln
import pytest

from federator.connector import NamespaceNotEmpty
from federator.lance.cascade import drop_cascade
from federator.model import Path, TableRecord
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.hive import Metastore
from tests.unit.api.lance.conftest import served

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def catalog(metastore: Metastore) -> Iterator[HiveCatalog]:
    with metastore.open() as opened:
        yield opened


def declared(metastore: Metastore, catalog: HiveCatalog, *names: str) -> Path:
    """A database with Lance tables, each with a retention, which no declaration of ours would give it."""
    database = metastore.database()
    calls = metastore.calls()
    for name in names:
        path = (*database, name)
        catalog.declare_table(TableRecord("lake", path, metastore.location(name)))
        table = calls.get_table(path)
        table.retention = 77
        calls.alter_table(path, table)
    calls.close()
    return database


def native(metastore: Metastore, path: Path) -> Any:
    calls = metastore.calls()
    try:
        return calls.get_table(path)
    finally:
        calls.close()


@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "VIRTUAL_VIEW"])
def test_an_object_that_is_not_owned_refuses_a_cascade_before_anything_is_touched(
    metastore: Metastore, catalog: HiveCatalog, kind: str
) -> None:
    database = declared(metastore, catalog, "a", "b")
    metastore.table((*database, "other"), {"x": "y"}, kind)
    with pytest.raises(NamespaceNotEmpty, match="other cannot be removed"):
        drop_cascade(catalog, database, max_depth=metastore.levels)
    for name in ("a", "b"):
        assert native(metastore, (*database, name)).retention == 77, "declared again: what only the catalog had is lost"


def test_what_appears_later_stops_a_cascade_where_it_is(
    metastore: Metastore, catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = declared(metastore, catalog, "a", "b")
    deregister = HiveCatalog.deregister_table

    def meanwhile(self: HiveCatalog, expected: TableRecord) -> None:
        deregister(self, expected)
        if expected.path[-1] == "a":
            metastore.table((*database, "late"), {"x": "y"})

    monkeypatch.setattr(HiveCatalog, "deregister_table", meanwhile)
    with pytest.raises(NamespaceNotEmpty) as stopped:
        drop_cascade(catalog, database, max_depth=metastore.levels)
    for name in ("a", "b"):
        assert f"${name} at {metastore.location(name)}" in stopped.value.message
        assert catalog.observe((*database, name)).is_absent, "declared again"
    assert [record.path[-1] for record in stopped.value.dropped] == ["a", "b"]


def test_v1_says_what_a_stopped_cascade_dropped(
    metastore: Metastore, catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    database = declared(metastore, catalog, "a")
    impl = f"hive{metastore.levels + 1}"
    with served(tmp_path_factory.mktemp("served"), {"shop": {"impl": impl, **metastore.properties}}, bare=True) as service:
        service.crawl("shop")
        facade: Any = ln.connect("rest", {"uri": service.url})
        path = ["shop", *database]
        assert facade.list_tables(ln.ListTablesRequest(id=path)).tables == ["a"]
        drop = HiveCatalog.drop_namespace

        def meanwhile(self: HiveCatalog, path: Path) -> None:
            metastore.table((*database, "late"), {"x": "y"})
            drop(self, path)

        monkeypatch.setattr(HiveCatalog, "drop_namespace", meanwhile)
        response = service.post(f"/v1/namespace/{'$'.join(path)}/drop", {"behavior": "Cascade"})
        assert (response.status_code, response.json()["code"]) == (409, 3), response.text
        assert f"$a at {metastore.location('a')}" in response.json()["error"]
        # The index knows it at once, too.
        assert facade.list_tables(ln.ListTablesRequest(id=path)).tables == []
