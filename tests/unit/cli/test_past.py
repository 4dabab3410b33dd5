"""History and reports on the command line, without Spark."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from federator.model import NamespaceRecord, TableRecord
from federator.store import Index, reports, runs, verifications
from federator.store.reports import ReportFile, StoredReport
from tests.unit.cli.conftest import Fill, Shell

T = TableRecord("lake", ("sales", "orders"), "s3://lake/orders.lance", {"team": "eu"}, owner="anna")


def run(index: Index, kind: str = "sync") -> str:
    """A run that has ended."""
    handle = runs.insert_run(index, kind, actor="anna")
    runs.finish_run(index, handle, "ok", summary={})
    return handle.id


@pytest.fixture
def two(shell: Shell, fill: Fill) -> tuple[str, str]:
    """Two runs, between which a table of ``lake`` changed, and ``copy`` did not."""
    index = shell.index()
    fill(index, "copy", [NamespaceRecord("copy", ("sales",))])
    fill(index, "lake", [NamespaceRecord("lake", ("sales",)), T])
    first = run(index)
    fill(index, "lake", [replace(T, owner="ben"), TableRecord("lake", ("sales", "items"), "s3://lake/items.lance")])
    second = run(index)
    index.close()
    return first, second


def test_the_past_is_shown_as_it_was(shell: Shell, two: tuple[str, str]) -> None:
    assert "items" not in shell.run("tree", "--as-of", two[0]).stdout
    assert "items" in shell.run("tree", "--as-of", two[1]).stdout
    assert shell.run("ls", "lake$sales", "--as-of", two[0]).stdout == "orders\n"
    assert shell.json("show", "lake$sales$orders", "--as-of", two[0])["owner"] == "anna"
    assert "owner" in shell.run("show", "lake$sales$orders", "--as-of", two[0]).stdout
    (location,) = shell.json("datasets", "--as-of", two[0])["datasets"]
    assert location["location"] == "s3://lake/orders.lance"
    assert shell.json("tree", "--as-of", "-1d") == {"id": "", "children": []}
    refused = shell.run("tree", "--as-of", "noon")
    assert (refused.exit_code, "'noon' is neither a run id nor a time" in refused.stderr) == (64, True)


def test_differences_between_two_runs(shell: Shell, two: tuple[str, str]) -> None:
    shown = shell.run("diff").stdout
    assert "+ lake$sales$items  s3://lake/items.lance" in shown
    assert "    owner: anna → ben\n    by others; seen in run run," in shown
    assert shown.endswith("1 added, 1 changed\n")
    response = shell.json("diff", "--from", two[0], "--to", two[1], "--kind", "changed")
    assert response["totals"] == {"changed": 1}
    assert response["differences"][0]["fields"] == [{"field": "owner", "before": "anna", "after": "ben"}]
    assert shell.json("diff", "--from", two[0], "--source", "copy")["differences"] == []
    assert shell.run("diff", "--kind", "moved").exit_code == 64


def test_past_verification_states_of_locations(shell: Shell, fill: Fill) -> None:
    index = shell.index()
    fill(index, "lake", [NamespaceRecord("lake", ("sales",)), T])
    observed = []
    for state in ("valid", "missing"):
        row = {"canonical": T.location, "location": T.location, "state": state, "message": None if state == "valid" else "gone"}
        nothing = dict.fromkeys(("version", "rows", "fragments", "schema"))
        with index.write() as connection:
            verifications.save_verifications(
                connection, [{**row, **nothing, "checked_at": time.time(), "checked_through": "lake", "access": ""}]
            )
        observed.append(run(index))
    index.close()
    assert "[missing]" in shell.run("tree", "--as-of", observed[1]).stdout
    assert "[missing]" not in shell.run("tree", "--as-of", observed[0]).stdout
    assert shell.run("datasets", "--as-of", observed[0]).stdout.splitlines()[1].split() == [
        T.location,
        "valid",
        "lake$sales$orders",
    ]
    assert shell.json("datasets", "--as-of", observed[0], "--state", "missing")["datasets"] == []
    shown = shell.run("show", "lake$sales$orders", "--as-of", observed[1]).stdout
    assert shown.split("verification")[1].split()[:4] == ["state", "missing", "why", "gone"]
    response = shell.run("diff", "--from", observed[0], "--to", observed[1]).stdout
    assert f"~ {T.location}  (dataset)\n    state: valid → missing\n    found " in response


def test_pruning_wants_a_policy(shell: Shell, two: tuple[str, str]) -> None:
    refused = shell.run("db", "prune")
    assert (refused.exit_code, "keeps everything" in refused.stderr) == (64, True)
    _, source = shell.json("db", "prune", "--keep-days", "0")["sources"]
    assert (source["source"], source["horizon"], source["records"]) == ("lake", 2, 1)
    gone = shell.run("tree", "lake", "--as-of", two[0])
    assert (gone.exit_code, "the history of lake is kept from" in gone.stderr) == (1, True)
    assert "items" in shell.run("tree").stdout


def test_reports_are_listed(shell: Shell) -> None:
    index = shell.index()
    with index.write() as connection:
        reports.insert_report(
            connection, StoredReport("r1", "drift", "weekly", "anna", time.time(), "/somewhere", (ReportFile("drift.csv", 7),))
        )
    index.close()
    assert [created["id"] for created in shell.json("reports", "--name", "weekly")["reports"]] == ["r1"]
    assert shell.json("reports", "--kind", "growth") == {"reports": [], "more": False}
    assert "weekly" in shell.run("reports").stdout
    for words, response in (
        (("report", "nothing"), "unknown report"),
        (("report", "drift", "--format", "pdf"), "is not a format"),
    ):
        refused = shell.run(*words)
        assert (refused.exit_code, response in refused.stderr) == (64, True)
