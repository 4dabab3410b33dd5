"""Writes to a slow metastore: an operation of several calls has one deadline, and an observation decides its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from federator.apply import Executor, Outcome
from federator.connector import Catalog, SourceSpec, call_deadline
from federator.model import TableRecord
from federator.planning.changes import Action, Change
from federator.planning.rule import MirrorRule
from federator.registry import open_catalog
from tests.adversary.lies import Drip, Hang, Late, Lie
from tests.adversary.thrift_proxy import ThriftProxy
from tests.fixtures.hive import Metastore
from tests.fixtures.journal import Notes
from tests.fixtures.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

_DEADLINE = 3
# The limits are the connector's, whatever the server is.
_ONE_VERSION = pytest.mark.parametrize("metastore", ["hive3"], indirect=True)


@pytest.fixture
def proxy(metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThriftProxy]:
    monkeypatch.setattr(call_deadline, "WRITE_SECONDS", _DEADLINE)
    with ThriftProxy(metastore.uri) as proxy:
        yield proxy


@pytest.fixture
def catalog(metastore: Metastore, proxy: ThriftProxy) -> Iterator[Catalog]:
    properties = metastore.properties | {"uri": proxy.uri, "client.timeout": str(_DEADLINE)}
    with open_catalog(SourceSpec("lake", f"hive{metastore.levels + 1}", properties)) as opened:
        yield opened


@pytest.fixture
def orders(metastore: Metastore) -> TableRecord:
    return TableRecord("lake", (*metastore.database(), "orders"), metastore.location("orders.lance"))


def _declaration(record: TableRecord) -> Change:
    condition = {"target": "absent", "origin": "any"}
    return Change(Action.DECLARE_TABLE, "lake", record.key, "a", "s$t", "new", after=record, precondition=condition)


def _apply(catalog: Catalog, proxy: ThriftProxy, change: Change, *lies: Lie) -> tuple[Outcome, Executor, Notes]:
    """Apply a change through a metastore that is slow from the intent on."""
    journal = Notes(meanwhile=lambda _: proxy.lie(*lies))
    executor = Executor(journal, MirrorRule(name="m", origin="a", target="lake"), catalog, catalog)
    (outcome,) = executor.apply("plan", [change])
    return outcome, executor, journal


def test_all_calls_of_a_declaration_have_one_deadline(catalog: Catalog, proxy: ThriftProxy, orders: TableRecord) -> None:
    """Each call takes less than the deadline, and all of them take longer."""
    outcome, executor, journal = _apply(catalog, proxy, _declaration(orders), Lie(".*", Late(0.4 * _DEADLINE)))
    assert "alter_table" not in " ".join(proxy.calls), "a call was sent after the deadline of its operation"
    proxy.truthful()
    if journal.list_open_intents():
        (outcome,) = executor.resolve_open_intents()
    assert (outcome.state, outcome.code) == ("failed", "not_made")
    assert catalog.observe(orders.path).is_absent
    assert catalog.declare_table(orders).location == orders.location


@_ONE_VERSION
def test_waiting_for_the_rate_limit_does_not_count(metastore: Metastore, proxy: ThriftProxy, orders: TableRecord) -> None:
    """The calls of a declaration are fast, and the source's own limit spreads them over more than the deadline."""
    properties = metastore.properties | {"uri": proxy.uri, "client.timeout": str(_DEADLINE)}
    properties["limit.requests-per-second"] = str(1.5 / _DEADLINE)
    with open_catalog(SourceSpec("lake", f"hive{metastore.levels + 1}", properties)) as catalog:
        outcome, _, _ = _apply(catalog, proxy, _declaration(orders))
        assert (outcome.state, outcome.code) == ("done", None)
        assert catalog.observe(orders.path).record is not None


@_ONE_VERSION
def test_waiting_for_a_slot_of_the_source_does_not_count(metastore: Metastore, proxy: ThriftProxy, orders: TableRecord) -> None:
    """Slow reads have the only slot of the source for longer than the deadline of a write."""
    properties = metastore.properties | {"uri": proxy.uri, "client.timeout": str(_DEADLINE), "limit.concurrent-requests": "1"}
    spec = SourceSpec("lake", f"hive{metastore.levels + 1}", properties)
    with open_catalog(spec) as catalog, ThreadPoolExecutor(3) as readers:
        reads: list[Future[object]] = []

        def take_slot(_: object) -> None:
            proxy.lie(Lie("get_(catalogs|all_databases|databases)", Late(0.8 * _DEADLINE)))
            reads.extend(readers.submit(catalog.list_namespaces, ()) for _ in range(3))
            wait_until(lambda: proxy.met > 0, "a read that has the slot")

        executor = Executor(Notes(meanwhile=take_slot), MirrorRule(name="m", origin="a", target="lake"), catalog, catalog)
        (outcome,) = executor.apply("plan", [_declaration(orders)])
        assert (outcome.state, outcome.code) == ("done", None)
        assert all(read.result() for read in reads)


def test_without_an_observation_the_outcome_stays_open(catalog: Catalog, proxy: ThriftProxy, orders: TableRecord) -> None:
    lies = Lie("create_table.*", Drip(0.1 * _DEADLINE)), Lie("get_table.*", Hang())
    outcome, executor, journal = _apply(catalog, proxy, _declaration(orders), *lies)
    assert (outcome.state, outcome.code) == ("unknown", 17)
    assert (len(journal.list_open_intents()), journal.outcomes) == (1, {})
    proxy.truthful()
    (outcome,) = executor.resolve_open_intents()
    assert (outcome.state, outcome.code) == ("failed", "not_made")
    assert catalog.observe(orders.path).is_absent


def test_a_removal_that_took_effect_after_its_deadline_is_done(
    catalog: Catalog, proxy: ThriftProxy, orders: TableRecord
) -> None:
    declared = catalog.declare_table(orders)
    condition = {"target": declared.digest}
    change = Change(
        Action.DEREGISTER_TABLE, "lake", orders.key, "lake", orders.key, "gone", before=declared, precondition=condition
    )
    outcome, _, _ = _apply(catalog, proxy, change, Lie("drop_table.*", Drip(0.1 * _DEADLINE)))
    assert proxy.met == 1
    assert (outcome.state, outcome.code) == ("done", None)
    assert catalog.observe(orders.path).is_absent
