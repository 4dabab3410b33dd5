"""Declarations in real Hive metastores: two calls, neither of which creates or removes a directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from federator.apply import Executor, Intent, Outcome
from federator.connector import (
    CatalogError,
    Internal,
    InvalidInput,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
)
from federator.connector.errors import UnfinishedDeclaration
from federator.connector.operation import attribute_calls
from federator.model import Path, TableRecord
from federator.planning.changes import Action, Change
from federator.planning.rule import MirrorRule
from federator_connectors._hive import records
from federator_connectors._hive.catalog import HiveCatalog
from tests.fixtures.hive import Metastore
from tests.fixtures.journal import Notes

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def catalog(metastore: Metastore) -> Iterator[HiveCatalog]:
    with metastore.open() as opened:
        yield opened


@pytest.fixture
def orders(metastore: Metastore) -> TableRecord:
    path = (*metastore.database(), "orders")
    return TableRecord("lake", path, metastore.location("orders.lance"), {"a": "1"})


def _native_table(catalog: HiveCatalog, path: Path) -> Any:
    return catalog._store.get_table(path)


def _interrupt(catalog: HiveCatalog, record: TableRecord, op_id: str) -> None:
    """Declare as a process does that ends between its two calls."""
    catalog._store.create_table(
        record.path, records.unfinished_table(record, catalog._store.catalog_of(record.path[:-1]), op_id)
    )


def test_no_directory_is_made(catalog: HiveCatalog, metastore: Metastore, orders: TableRecord) -> None:
    declared = catalog.declare_table(orders)
    assert not (metastore.directory / "orders.lance").exists()
    native = _native_table(catalog, orders.path)
    assert (native.tableType, native.sd.location) == ("EXTERNAL_TABLE", declared.location)
    assert not any(key.startswith("federator.") for key in native.parameters)
    assert (native.viewOriginalText, native.viewExpandedText) == (None, None)


def test_an_unfinished_declaration_is_no_table(catalog: HiveCatalog, metastore: Metastore, orders: TableRecord) -> None:
    _interrupt(catalog, orders, "op-1")
    assert catalog.list_tables(orders.path[:-1]) == []
    records = [row for shard in catalog.plan_shards() for row in catalog.read_shard(shard) if isinstance(row, TableRecord)]
    assert orders.path not in {row.path for row in records}
    observation = catalog.observe(orders.path)
    assert (observation.record, observation.unfinished, bool(observation.foreign)) == (None, "op-1", True)
    with pytest.raises(UnfinishedDeclaration):
        catalog.describe_table(orders.path)
    with pytest.raises(InvalidInput):
        catalog.deregister_table(orders)
    with pytest.raises(TableAlreadyExists, match="op-1") as caught:
        catalog.declare_table(orders)
    assert "DROP VIEW" in (caught.value.hint or "")
    assert not (metastore.directory / "orders.lance").exists()


def test_only_its_own_operation_removes_or_finishes_it(catalog: HiveCatalog, orders: TableRecord) -> None:
    _interrupt(catalog, orders, "op-1")
    assert not catalog.remove_unfinished(orders.path, "op-2")
    with attribute_calls("op-2"), pytest.raises(TableAlreadyExists):
        catalog.declare_table(orders)
    assert catalog.observe(orders.path).unfinished == "op-1"
    with attribute_calls("op-1"):
        declared = catalog.declare_table(orders)
    assert (declared.location, declared.properties["a"]) == (orders.location, "1")
    assert not catalog.remove_unfinished(orders.path, "op-1"), "a finished declaration is not removed"
    catalog.deregister_table(declared)
    _interrupt(catalog, orders, "op-3")
    assert catalog.remove_unfinished(orders.path, "op-3")
    assert catalog.observe(orders.path).is_absent


def test_a_refused_alteration_leaves_nothing(
    catalog: HiveCatalog, orders: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise Internal("refused by the test")

    monkeypatch.setattr(catalog._store, "alter_table", refuse)
    with pytest.raises(Internal, match="refused by the test"):
        catalog.declare_table(orders)
    assert catalog.observe(orders.path).is_absent


def test_a_lost_response_of_the_alteration_is_a_success(
    catalog: HiveCatalog, orders: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_alter = catalog._store.alter_table

    def lose(*arguments: Any, **named: Any) -> None:
        real_alter(*arguments, **named)
        raise ServiceUnavailable("lost by the test")

    monkeypatch.setattr(catalog._store, "alter_table", lose)
    assert catalog.declare_table(orders).location == orders.location


@pytest.mark.parametrize("error", [Internal("refused by the test"), ServiceUnavailable("lost by the test")])
def test_what_cannot_be_removed_is_reported_as_unknown(
    catalog: HiveCatalog, orders: TableRecord, monkeypatch: pytest.MonkeyPatch, error: CatalogError
) -> None:
    """The journal then keeps the intent open and removes the entry later."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    for name in ("alter_table", "drop_table"):
        monkeypatch.setattr(catalog._store, name, fail)
    with attribute_calls("op-1"), pytest.raises(ServiceUnavailable):
        catalog.declare_table(orders)
    assert catalog.observe(orders.path).unfinished == "op-1"


def test_a_lost_response_of_the_creation_leaves_nothing(
    catalog: HiveCatalog, orders: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_create = catalog._store.create_table

    def lose(*arguments: Any) -> None:
        real_create(*arguments)
        raise ServiceUnavailable("lost by the test")

    monkeypatch.setattr(catalog._store, "create_table", lose)
    with pytest.raises(ServiceUnavailable):
        catalog.declare_table(orders)
    assert catalog.observe(orders.path).is_absent


def test_an_entry_that_is_not_its_own_is_not_altered(
    catalog: HiveCatalog, metastore: Metastore, orders: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody removes the view and puts a table of their own there, between the two calls."""
    real_create = catalog._store.create_table

    def replaced(path: Path, table: Any) -> None:
        real_create(path, table)
        catalog._store.drop_table(path)
        metastore.table(path, {"EXTERNAL": "TRUE", "table_type": "lance", "whose": "theirs"})

    monkeypatch.setattr(catalog._store, "create_table", replaced)
    with pytest.raises(CatalogError):
        catalog.declare_table(orders)
    assert catalog.describe_table(orders.path).properties["whose"] == "theirs"


def test_names_that_do_not_exist_have_nothing_to_remove(catalog: HiveCatalog, orders: TableRecord) -> None:
    assert not catalog.remove_unfinished(orders.path, "op-1")
    with pytest.raises(TableNotFound):
        catalog.describe_table(orders.path)


def _resume(catalog: HiveCatalog, record: TableRecord, *, leases: list[bool] | None = None) -> Outcome:
    """Resolve the intent of a declaration ``op-1`` in which the process ended. Return its outcome."""
    condition = {"target": "absent", "origin": "any"}
    change = Change(Action.DECLARE_TABLE, "lake", record.key, "a", "s$t", "new", after=record, precondition=condition)
    journal = Notes(leases=leases or [])
    journal.record_intent(Intent("op-1", "plan", 0, change))
    (outcome,) = Executor(journal, MirrorRule(name="m", origin="a", target="lake"), catalog, catalog).resolve_open_intents()
    return outcome


def test_a_resumed_run_removes_what_it_did_not_finish(catalog: HiveCatalog, orders: TableRecord) -> None:
    _interrupt(catalog, orders, "op-1")
    outcome = _resume(catalog, orders)
    assert (outcome.state, outcome.code) == ("failed", "not_made")
    assert catalog.observe(orders.path).is_absent
    assert catalog.declare_table(orders).location == orders.location


def test_a_resumed_run_leaves_the_entry_of_another_operation(catalog: HiveCatalog, orders: TableRecord) -> None:
    _interrupt(catalog, orders, "op-2")
    outcome = _resume(catalog, orders)
    assert (outcome.state, outcome.code) == ("failed", "not_made")
    assert catalog.observe(orders.path).unfinished == "op-2"


def test_without_time_left_in_its_lease_a_run_removes_nothing(catalog: HiveCatalog, orders: TableRecord) -> None:
    _interrupt(catalog, orders, "op-1")
    outcome = _resume(catalog, orders, leases=[False])
    assert (outcome.state, outcome.code) == ("unknown", "lease")
    assert catalog.observe(orders.path).unfinished == "op-1"
