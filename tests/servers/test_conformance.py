"""Conformance runs on real servers: Hive, Glue, Iceberg, and pylance's RestAdapter as a server given by URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from federator.connector import Catalog, Connector
from federator.model import ROOT
from federator.registry import get_connector
from federator.testing.conformance.report import Check, Report, Verdict
from federator.testing.conformance.run import run_conformance
from federator.testing.conformance.target import Target
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore
from tests.fixtures.iceberg import IcebergServer
from tests.fixtures.rest import RestServer

pytestmark = pytest.mark.timeout(600)


def run(impl: str, properties: Mapping[str, str], **options: Any) -> Report:
    """A report, with nothing left in the catalog and nothing outside of the run's namespace changed."""
    connector: Connector[Any] = get_connector(impl)
    target = Target(connector, properties, **options)
    before = _namespaces(connector, properties)
    report = run_conformance(target, _ignore)
    assert report.remaining == []
    assert not report.interrupted
    assert _namespaces(connector, properties) == before
    return report


def _ignore(check: Check) -> None:
    pass


def _namespaces(connector: Connector[Any], properties: Mapping[str, str]) -> dict[str, list[str]]:
    def below(catalog: Catalog, depth: int) -> dict[str, list[str]]:
        names = {"": catalog.list_namespaces(ROOT)}
        return names if depth == 1 else {name: catalog.list_namespaces((name,)) for name in names[""]}

    with connector.open("before", connector.parse_settings(properties)) as catalog:
        return below(catalog, len(connector.capabilities.levels))


def failures(report: Report) -> dict[str, str]:
    return {check.title: check.detail for check in report.checks if check.verdict is Verdict.FAILED}


def verdicts(report: Report) -> dict[str, Verdict]:
    return {operation.operation: operation.verdict for operation in report.operations}


@pytest.mark.parametrize("metastore", ["hive2"], indirect=True)
def test_hive(metastore: Metastore) -> None:
    report = run(metastore.connector.impl, metastore.properties, location=metastore.location("conformance"))
    assert failures(report) == {}
    assert verdicts(report)["CreateNamespace"] is verdicts(report)["altering a table"] is Verdict.PASSED
    # The connector can read a change feed, and this server has none.
    assert verdicts(report)["change feed"] is Verdict.UNSUPPORTED


def test_glue(glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {**glue_account.properties, "drop_cascades": "confirmed"}
    for key in ("access_key_id", "secret_access_key", "session_token"):
        monkeypatch.setenv(f"CONFORMANCE_{key}", properties[key])
        properties[key] = f"${{CONFORMANCE_{key}}}"
    report = run("glue", properties, location="file:///nonexistent/lake")
    assert failures(report) == {}
    assert verdicts(report)["DeclareTable"] is verdicts(report)["failures"] is Verdict.PASSED


def test_iceberg(iceberg_server: IcebergServer, tmp_path: Any) -> None:
    report = run("iceberg", iceberg_server.properties, location=f"file://{tmp_path}")
    assert failures(report) == {}
    assert verdicts(report)["CreateNamespace"] is Verdict.PASSED


def test_a_server_by_url(own_rest_server: RestServer) -> None:
    report = run("rest", own_rest_server.properties, server_only=True, crawls_everything=True, races_for_names=True)
    # The reference server puts names into its queries as they are.
    assert set(failures(report)) == {"every namespace name is kept or refused"}
    assert "tokenizing" in failures(report)["every namespace name is kept or refused"]
    details = {check.title: (check.verdict, check.detail) for check in report.checks}
    verdict, detail = details["a rename keeps the declaration or is unsupported"]
    assert verdict is Verdict.UNSUPPORTED
    assert "rename_table not implemented" in detail
    # What the client refuses is no merit of the server.
    assert details["what needs the data is unsupported"][0] is Verdict.UNTESTED
    assert verdicts(report)["DeclareTable"] is verdicts(report)["crawl"] is Verdict.PASSED
