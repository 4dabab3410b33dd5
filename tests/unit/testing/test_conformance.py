"""The confinement of a conformance run, and the verdicts of its report."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from federator.connector import CatalogError
from federator.model import NamespaceRecord, TableRecord
from federator.registry import get_connector
from federator.testing import CONNECTOR, FEEDING, PLAIN, MemoryConnector, get_memory_store
from federator.testing.conformance.report import Check, Report, Verdict
from federator.testing.conformance.scope import OutOfScope, Scope, ScopedConnector
from federator.testing.conformance.suite import build_contract, list_omitted, list_tests, operation_of
from federator.testing.conformance.target import Target
from federator.testing.contract import unique_name

PASSED, FAILED, UNSUPPORTED, UNTESTED = Verdict


def test_a_write_outside_the_scope_does_not_reach_the_catalog() -> None:
    store = unique_name("store")
    settings = CONNECTOR.parse_settings({"store": store})
    table = get_memory_store(store).add_table(("sales", "orders"))
    scoped = pickle.loads(pickle.dumps(ScopedConnector(CONNECTOR, CONNECTOR.capabilities, Scope("conformance_1"))))
    catalog = scoped.open("contract", settings)
    own = replace(table, path=("conformance_1_ns", "t"))
    for write in (
        lambda: catalog.create_namespace(NamespaceRecord("contract", ("other",))),
        lambda: catalog.drop_namespace(("sales",)),
        lambda: catalog.update_namespace(NamespaceRecord("contract", ("sales",)), NamespaceRecord("contract", ("sales",))),
        lambda: catalog.declare_table(TableRecord("contract", ("sales", "items"), "s3://b/items")),
        lambda: catalog.update_table(table, table),
        lambda: catalog.update_table(own, table),
        lambda: catalog.deregister_table(table),
        lambda: catalog.rename_table(table, own.path),
        lambda: catalog.rename_table(own, table.path),
        lambda: catalog.remove_unfinished(table.path, "1"),
    ):
        with pytest.raises(OutOfScope):
            write()
    assert get_memory_store(store).calls() == []
    catalog.create_namespace(NamespaceRecord("contract", ("conformance_1_ns",)))
    assert get_memory_store(store).calls() == ["create_namespace conformance_1_ns"]


@pytest.mark.parametrize("connector", [CONNECTOR, PLAIN, FEEDING])
def test_every_test_of_the_suite_runs_or_is_omitted_with_a_reason(connector: MemoryConnector) -> None:
    contract = build_contract(Target(connector, {"store": unique_name("store")}))
    running = {name for name in list_tests() if getattr(contract, name) is not None}
    omitted = list_omitted(contract)
    assert all(check.detail for check in omitted)
    titles = {check.title for check in omitted}
    assert not titles & {name.removeprefix("test_").replace("_", " ") for name in running}
    assert {check.verdict for check in omitted} <= {UNSUPPORTED, UNTESTED}
    assert "reads the complete catalog: add --crawl" in {check.detail for check in omitted}


def test_a_missing_capability_is_named_and_its_opposite_is_left_out() -> None:
    details = {check.title: check.detail for check in list_omitted(build_contract(Target(PLAIN, {})))}
    assert details["cascade removes the declarations inside"] == "capability cascade = false"
    assert details["an update changes what it is given"] == "capability can_alter = false"
    assert details["a namespaces properties can be altered"] == "capability alters_namespaces_at = none"
    assert "cascade is unsupported" not in details
    assert "tables without data are found by opening their location" not in details


def test_a_server_with_a_fixed_depth_gets_namespaces_of_this_depth_only() -> None:
    options = {"server_only": True, "depth": 2}
    target = Target(get_connector("rest"), {"uri": "http://127.0.0.1:9"}, **options)
    capabilities = target.scoped_connector.capabilities
    assert (capabilities.min_depth, capabilities.max_depth, capabilities.creates_namespaces_at) == (2, 2, {1, 2})
    target.namespace = ("hive", target.scope.name)
    assert not target.nests
    contract = build_contract(target)
    assert not contract.has_complete_name_rules, "the server may refuse names that the client can send"
    unlimited = Target(get_connector("rest"), {"uri": "http://127.0.0.1:9"}, server_only=True)
    unlimited.namespace = (unlimited.scope.name,)
    assert unlimited.nests


def test_every_test_is_about_an_operation() -> None:
    assert [name for name in list_tests() if not operation_of(name)] == []


@pytest.mark.parametrize(
    ("verdicts", "overall", "passed"),
    [
        ([PASSED, FAILED, UNSUPPORTED], FAILED, "1 of 2"),
        ([PASSED, UNSUPPORTED, UNTESTED], PASSED, "1 of 1"),
        ([UNSUPPORTED, UNTESTED], UNSUPPORTED, ""),
        ([UNTESTED], UNTESTED, ""),
    ],
)
def test_an_operation_passed_only_if_no_check_of_it_failed(verdicts: list[Verdict], overall: Verdict, passed: str) -> None:
    checks = [Check("DropTable", str(number), verdict, "a|b <c>") for number, verdict in enumerate(verdicts)]
    report = Report("memory", "", [], "ns", {}, "now", checks)
    (operation,) = report.operations
    assert (operation.verdict, operation.passed_ratio) == (overall, passed)
    assert report.has_failed == (FAILED in verdicts)
    assert "a\\|b &lt;c>" in report.to_markdown()


def test_a_catalog_that_cannot_give_a_namespace_is_refused() -> None:
    class ReadOnly(MemoryConnector):
        capabilities = replace(CONNECTOR.capabilities, creates_namespaces_at=frozenset())

    with pytest.raises(Exception, match="namespace of its own"):
        Target(ReadOnly(), {})
    assert issubclass(OutOfScope, CatalogError)
