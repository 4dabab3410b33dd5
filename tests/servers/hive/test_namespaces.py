"""Catalogs and databases of real Hive metastores."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as FilePath

import pytest

from federator.apply import Executor, OutcomeState
from federator.connector import (
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    Unsupported,
)
from federator.model import ROOT, NamespaceRecord, Path, TableRecord, canonical_location, path_key
from federator.planning.changes import Action, Change
from federator.planning.rule import MirrorRule
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.hive import Metastore
from tests.fixtures.journal import Notes
from tests.fixtures.relay import Noting

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def catalog(metastore: Metastore) -> Iterator[HiveCatalog]:
    with metastore.open() as opened:
        yield opened


def _fresh(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(4)}"


def test_a_ping_returns_the_version_that_the_connection_proves(catalog: HiveCatalog, metastore: Metastore) -> None:
    """Doctor prints it behind the word "version"."""
    assert catalog.ping() == ("3 or later" if metastore.levels == 2 else "")


def test_a_database_comes_back_as_it_was_made(catalog: HiveCatalog, metastore: Metastore) -> None:
    path = (*metastore.above, _fresh("full"))
    wanted = NamespaceRecord(
        "lake", path, {"a": "1", "database.owner-type": "ROLE", "emoji": "😀"}, metastore.location("full"), "docs", "admins"
    )
    assert catalog.create_namespace(wanted).digest == wanted.digest
    assert catalog.describe_namespace(path).digest == wanted.digest
    assert path[-1] in catalog.list_namespaces(metastore.above)
    assert catalog.list_namespaces(path) == []
    with pytest.raises(NamespaceAlreadyExists):
        catalog.create_namespace(wanted)


def test_a_database_without_location_goes_below_root_or_into_the_warehouse(metastore: Metastore) -> None:
    path = (*metastore.above, _fresh("below"))
    with metastore.open(root=metastore.location("lake")) as catalog:
        created = catalog.create_namespace(NamespaceRecord("lake", path))
        assert created.location == "/".join([metastore.location("lake"), *path])
        assert catalog.default_location((*path, "T")) == f"{created.location}/t.lance"
        catalog.drop_namespace(path)
    settings = metastore.connector.parse_settings({"uri": metastore.uri})
    with metastore.connector.open("lake", settings) as catalog:
        assert (catalog.create_namespace(NamespaceRecord("lake", path)).location or "").endswith(f"warehouse/{path[-1]}.db")
        catalog.drop_namespace(path)


def test_the_layout_of_the_text_starts_at_the_root_or_the_working_directory(
    metastore: Metastore, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (*metastore.above, _fresh("text"))
    monkeypatch.chdir(tmp_path)
    for properties, root in (({}, tmp_path), ({"root": str(metastore.directory)}, metastore.directory)):
        settings = metastore.connector.parse_settings({"uri": metastore.uri, "default_location": "root", **properties})
        with metastore.connector.open("lake", settings) as catalog:
            created = catalog.create_namespace(NamespaceRecord("lake", path))
            assert canonical_location(created.location or "") == canonical_location(f"file://{root}/{path[-1]}.db")
            default = catalog.default_location((*path, "T")) or ""
            assert canonical_location(default) == canonical_location(f"{created.location}/t")
            catalog.drop_namespace(path)


def test_dropping_a_database_leaves_its_directory(catalog: HiveCatalog, metastore: Metastore) -> None:
    path = metastore.database()
    kept = metastore.directory / path[-1] / "orders.lance" / "data"
    kept.parent.mkdir(parents=True)
    kept.write_text("rows")
    catalog.drop_namespace(path)
    assert kept.read_text() == "rows"
    with pytest.raises(NamespaceNotFound):
        catalog.drop_namespace(path)


def test_a_database_with_any_table_is_not_empty(catalog: HiveCatalog, metastore: Metastore) -> None:
    path = metastore.database()
    metastore.table((*path, "parquet"), {"EXTERNAL": "TRUE"})
    assert catalog.list_tables(path) == []
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace(path)


def test_a_database_that_a_user_makes_where_an_owned_one_is_gone_stays(catalog: HiveCatalog, metastore: Metastore) -> None:
    """It is made between the look and the call, which is not made: the ledger forgets what was gone."""
    path = (*metastore.above, _fresh("again"))
    key = path_key(path)
    gone = Change(
        Action.DROP_NAMESPACE, catalog.source, key, "origin", key, "made by us, and gone", precondition={"target": "absent"}
    )
    notes = Notes(meanwhile=lambda _: catalog.create_namespace(NamespaceRecord(catalog.source, path, {"by": "a user"})))
    executor = Executor(notes, MirrorRule(name="m", origin="origin", target=catalog.source), catalog, catalog)
    assert [outcome.state for outcome in executor.apply("plan", [gone])] == [OutcomeState.DONE]
    assert catalog.describe_namespace(path).properties["by"] == "a user"


def test_the_default_database_stays(catalog: HiveCatalog, metastore: Metastore) -> None:
    with pytest.raises(Unsupported, match="default"):
        catalog.drop_namespace((*metastore.above, "default"))


@pytest.mark.parametrize("name", ["a$b", "a.b", "sp ace", "😀", "ünicode", "@k#x", "sla/sh", "", "x" * 129])
def test_names_that_hive_refuses_are_refused_early(catalog: HiveCatalog, metastore: Metastore, name: str) -> None:
    with pytest.raises((InvalidInput, NamespaceNotFound)):
        catalog.create_namespace(NamespaceRecord("lake", (*metastore.above, name)))


def test_the_longest_name_and_values_are_taken(catalog: HiveCatalog, metastore: Metastore) -> None:
    path = (*metastore.above, secrets.token_hex(64))
    wanted = NamespaceRecord("lake", path, {"k" * 180: "v" * 4000}, metastore.location("long"), "d" * 4000)
    created = catalog.create_namespace(wanted)
    # Hive 4 gives a database without an owner to the user who creates it (test_the_user_of_ugi_owns_what_it_creates).
    assert replace(created, owner=None).digest == wanted.digest
    for properties in ({"k" * 181: ""}, {"k": "v" * 4001}, {"": "v"}):
        with pytest.raises(InvalidInput):
            catalog.create_namespace(NamespaceRecord("lake", (*metastore.above, _fresh("bad")), properties))
    with pytest.raises(InvalidInput, match="ROLE"):
        catalog.create_namespace(NamespaceRecord("lake", (*metastore.above, _fresh("bad")), {"database.owner-type": "ghost"}))


def test_a_storage_that_the_metastore_cannot_reach_is_reported(catalog: HiveCatalog, metastore: Metastore) -> None:
    with pytest.raises(InvalidInput, match="hadoop-aws"):
        catalog.create_namespace(NamespaceRecord("lake", (*metastore.above, _fresh("s3")), location="s3://bucket/x"))


def test_what_is_not_there_is_not_empty(catalog: HiveCatalog, metastore: Metastore) -> None:
    missing: list[Path] = [(*metastore.above, "nowhere"), (*metastore.above, "@hive#default"), ("nowhere",) * metastore.levels]
    for path in missing:
        for look in (catalog.list_namespaces, catalog.list_tables, catalog.describe_namespace):
            with pytest.raises(NamespaceNotFound):
                look(path)
        with pytest.raises(NamespaceNotFound):
            catalog.declare_table(TableRecord("lake", (*path, "t"), "file:/nowhere/t"))
        assert catalog.observe((*path, "t")).is_absent
    if metastore.levels == 2:
        for look in (catalog.list_namespaces, catalog.list_tables, catalog.describe_namespace, catalog.drop_namespace):
            with pytest.raises(NamespaceNotFound):
                look(("nowhere",))
        with pytest.raises(NamespaceNotFound):
            catalog.create_namespace(NamespaceRecord("lake", ("nowhere", "db")))


def test_a_hive_2_metastore_has_no_catalogs(hive2_uri: str, hive3_uri: str) -> None:
    from federator_connectors import hive2, hive3

    with (
        hive3.CONNECTOR.open("lake", hive3.CONNECTOR.parse_settings({"uri": hive2_uri})) as wrong,
        pytest.raises(Unsupported, match="hive2"),
    ):
        wrong.plan_shards()
    # The other way round works: Hive 2's calls see the default catalog.
    with hive2.CONNECTOR.open("lake", hive2.CONNECTOR.parse_settings({"hive.uri": hive3_uri})) as older:
        assert "default" in older.list_namespaces(ROOT)


@pytest.mark.parametrize("metastore", ["hive3"], indirect=True)
class TestCatalogs:
    def test_a_catalog_is_made_found_and_dropped_without_its_directory(
        self, catalog: HiveCatalog, metastore: Metastore
    ) -> None:
        path = (_fresh("cat"),)
        kept = metastore.directory / "cat" / "orders.lance" / "data"
        kept.parent.mkdir(parents=True)
        kept.write_text("rows")
        wanted = NamespaceRecord("lake", path, location=metastore.location("cat"), doc="docs")
        assert catalog.create_namespace(wanted).digest == wanted.digest
        with pytest.raises(NamespaceAlreadyExists):
            catalog.create_namespace(wanted)
        assert path[0] in catalog.list_namespaces(ROOT)
        assert catalog.list_namespaces(path) == ["default"]
        assert catalog.list_tables(path) == []
        catalog.drop_namespace(path)
        assert path[0] not in catalog.list_namespaces(ROOT)
        assert kept.read_text() == "rows"
        assert [entry.name for entry in kept.parents[1].iterdir()] == ["orders.lance"]

    def test_a_catalog_with_a_database_or_a_table_is_not_empty(self, catalog: HiveCatalog, metastore: Metastore) -> None:
        path = (_fresh("cat"),)
        catalog.create_namespace(NamespaceRecord("lake", path))
        assert catalog.describe_namespace(path).location == f"{metastore.location(path[0])}"
        metastore.table((*path, "default", "parquet"), {"EXTERNAL": "TRUE"})
        with pytest.raises(NamespaceNotEmpty):
            catalog.drop_namespace(path)
        calls = metastore.calls()
        calls.drop_table((*path, "default", "parquet"))
        catalog.create_namespace(NamespaceRecord("lake", (*path, "db")))
        with pytest.raises(NamespaceNotEmpty):
            catalog.drop_namespace(path)
        catalog.drop_namespace((*path, "db"))
        catalog.drop_namespace((*path, "default"))
        assert catalog.list_namespaces(path) == []
        catalog.drop_namespace(path)

    def test_a_drop_that_fails_leaves_the_catalog_as_it_was(
        self, catalog: HiveCatalog, metastore: Metastore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = (_fresh("cat"),)
        before = catalog.create_namespace(NamespaceRecord("lake", path))

        def refuse(_: Path) -> None:
            raise NamespaceNotEmpty("somebody was faster")

        with monkeypatch.context() as patched:
            patched.setattr(catalog._store, "drop_catalog", refuse)
            with pytest.raises(NamespaceNotEmpty):
                catalog.drop_namespace(path)
        assert catalog.describe_namespace(path).digest == before.digest
        assert catalog.list_namespaces(path) == ["default"]
        catalog.drop_namespace(path)

    def test_a_catalog_has_no_properties(self, catalog: HiveCatalog) -> None:
        with pytest.raises(InvalidInput, match="team"):
            catalog.create_namespace(NamespaceRecord("lake", (_fresh("cat"),), {"team": "sales"}))

    def test_the_default_catalog_stays(self, catalog: HiveCatalog) -> None:
        with pytest.raises((NamespaceNotEmpty, Unsupported)):
            catalog.drop_namespace(("hive",))


def test_the_user_of_ugi_owns_what_it_creates(metastore: Metastore) -> None:
    path = (*metastore.above, _fresh("ugi"))
    with metastore.open(ugi="alice:team,others") as catalog:
        created = catalog.create_namespace(NamespaceRecord("lake", path, location=metastore.location("ugi")))
        assert created.owner == ("alice" if metastore.version == 4 else None)
        catalog.drop_namespace(path)


def test_each_connection_names_its_user_before_it_is_used(metastore: Metastore) -> None:
    relay = Noting(metastore.uri)
    with replace(metastore, uri=relay.uri).open(ugi="alice:team,others") as catalog:
        for _ in range(2):
            catalog.list_namespaces(metastore.above)
            calls, sent = relay.take()
            assert calls[:2] == ["get_catalogs", "set_ugi"]
            assert calls.count("set_ugi") == calls.count("get_catalogs") == 1
            assert all(text in sent for text in (b"alice", b"team", b"others"))
            relay.reset()
    with replace(metastore, uri=relay.uri).open() as catalog:
        catalog.list_namespaces(metastore.above)
    assert "set_ugi" not in relay.take()[0]
    relay.close()


def test_a_catalog_with_an_owner_is_refused_because_it_cannot_keep_it(metastore: Metastore) -> None:
    if metastore.levels == 1:
        return
    with metastore.open() as catalog, pytest.raises(InvalidInput, match=r"not database\.owner"):
        catalog.create_namespace(NamespaceRecord("lake", (_fresh("owned"),), owner="ann"))
