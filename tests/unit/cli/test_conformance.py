"""``federator conformance`` on catalogs of this process and on directories: verdicts, output, and what is left afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

from federator.testing import MemoryStore
from tests.unit.cli.conftest import Shell

IMPL = "federator.testing:CONNECTOR"


def conforms(shell: Shell, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report of a run in a process of its own."""
    done = shell.start("conformance", *words, "--output", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def verdicts(report: Mapping[str, Any]) -> dict[str, str]:
    return {operation["operation"]: operation["verdict"] for operation in report["operations"]}


def content(store: MemoryStore) -> dict[str, Any]:
    with store.locked_state() as state:
        return {kind: sorted(state[kind]) for kind in ("namespaces", "tables", "foreign")}


def test_a_catalog_passes_and_is_left_as_it_was(shell: Shell) -> None:
    store = shell.store("live")
    store.add_table(("sales", "orders"))
    before = content(store)
    code, report = conforms(
        shell, IMPL, f"file={shell.folder}/live.json", "--location", "s3://lake/tests", "--crawl", "--races"
    )
    assert (code, report["remaining"], report["interrupted"]) == (0, [], False)
    assert verdicts(report) == {
        **dict.fromkeys(
            ("CreateNamespace", "DescribeNamespace", "ListNamespaces", "DropNamespace", "altering a namespace", "DeclareTable",
             "RegisterTable", "DescribeTable", "ListTables", "ListAllTables", "DeregisterTable", "altering a table", "requests",
             "concurrent use", "crawl", "settings"), "passed",
        ),
        "RenameTable": "not supported", "DropTable": "not supported", "change feed": "not supported", "failures": "not tested",
    }  # fmt: skip
    assert content(store) == before
    writes = [call for call in store.calls() if not call.startswith("declare_table sales")]
    assert len(writes) > 50
    assert all("conformance_" in call for call in writes)


BROKEN = """
from federator.connector import NamespaceNotFound
from federator.testing import MemoryCatalog, MemoryConnector


class Catalog(MemoryCatalog):
    def list_tables(self, namespace):
        try:
            return super().list_tables(namespace)
        except NamespaceNotFound:
            return []

    def drop_namespace(self, path):
        if {stubborn}:
            raise RuntimeError("not today")
        super().drop_namespace(path)


class Broken(MemoryConnector):
    def open(self, source, settings):
        return Catalog(source, settings, self.capabilities)


CONNECTOR = Broken()
"""


def broken(shell: Shell, name: str, *, stubborn: bool = False) -> list[str]:
    (shell.folder / f"{name}.py").write_text(BROKEN.format(stubborn=stubborn))
    return [f"{name}:CONNECTOR", f"file={shell.folder}/live.json", "--location", "s3://lake"]


def test_a_broken_connector_has_failed_and_the_report_says_where(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{shell.folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    code, report = conforms(shell, *broken(shell, "broken"), "--report", "report.md")
    failed = {check["title"]: check["detail"] for check in report["checks"] if check["verdict"] == "failed"}
    assert code == 1
    assert set(failed) == {"a missing namespace is not found"}
    assert "DID NOT RAISE" in failed["a missing namespace is not found"]
    assert verdicts(report)["DescribeTable"] == "failed"
    assert report["remaining"] == []
    page = (shell.folder / "report.md").read_text()
    assert "| DescribeTable | failed | 3 of 4 | a missing namespace is not found: " in page
    assert "| change feed | not supported |  | not supported: capability change_feed = false (7 checks)" in page


def test_what_could_not_be_removed_is_reported(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{shell.folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    done = shell.start("conformance", *broken(shell, "stubborn", stubborn=True), "--output", "json")
    remaining = json.loads(done.stdout)["remaining"]
    assert done.returncode == 1
    assert any("RuntimeError" in text for text in remaining), remaining
    assert "not removed: conformance_" in done.stderr
    assert content(shell.store("live"))["namespaces"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_removes_what_it_made(shell: Shell, number: int) -> None:
    command = [sys.executable, "-c", "from federator.cli import main; main()", "conformance", IMPL,
               f"file={shell.folder}/live.json", "--location", "s3://lake"]  # fmt: skip
    running = subprocess.Popen(command, cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    store = shell.store("live")
    deadline = time.monotonic() + 200
    while len(store.calls()) < 20:
        assert time.monotonic() < deadline, running.stderr
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.02)
    running.send_signal(number)
    output, _ = running.communicate(timeout=200)
    assert running.returncode == 130
    assert content(store) == {"namespaces": [], "tables": [], "foreign": []}
    assert "interrupted" in output


def test_a_directory_gets_a_directory_of_its_own(shell: Shell) -> None:
    lake = shell.folder / "lake"
    (lake / "orders.lance" / "_versions").mkdir(parents=True)
    before = sorted(lake.rglob("*"))
    code, report = conforms(shell, "dir", f"root={lake}", "--crawl", "--races")
    assert (code, report["remaining"]) == (0, [])
    assert verdicts(report)["DeclareTable"] == "passed"
    assert verdicts(report)["CreateNamespace"] == "not supported"
    assert sorted(lake.rglob("*")) == before


def test_a_directory_with_a_manifest_gets_one_of_its_own(shell: Shell) -> None:
    lake = shell.folder / "lake"
    lake.mkdir()
    code, report = conforms(shell, "dir", f"dir.root={lake}", "dir.manifest_enabled=true")
    failed = {check["title"] for check in report["checks"] if check["verdict"] == "failed"}
    assert (code, failed) == (0, set())
    assert list(lake.iterdir()) == []


def test_a_missing_directory_is_not_made(shell: Shell) -> None:
    done = shell.start("conformance", "dir", f"root={shell.folder}/absent")
    assert done.returncode == 1
    assert "absent" in done.stderr
    assert not (shell.folder / "absent").exists()


def test_a_directory_must_be_named(shell: Shell) -> None:
    before = sorted(shell.folder.iterdir())
    done = shell.start("conformance", "dir")
    assert (done.returncode, "root=DIRECTORY" in done.stderr) == (64, True), done.stderr
    assert sorted(shell.folder.iterdir()) == before


def test_what_the_run_will_do_is_printed_first(shell: Shell) -> None:
    done = shell.start(
        "conformance", IMPL, f"file={shell.folder}/live.json", "--location", "s3://lake/x", "--output", "markdown"
    )
    lines = [line.strip() for line in done.stderr.splitlines()]
    first_verdict = next(number for number, line in enumerate(lines) if line.startswith("passed"))
    assert [line.split()[0] for line in lines[1:first_verdict]] == [
        "creates",
        "declares",
        "reads",
        "removes",
        "leaves",
        "changes",
    ]
    assert "s3://lake/x" in lines[2]
    assert "--crawl" in lines[3]
    assert done.stdout.startswith("## memory\n")
    assert "not tested: reads the complete catalog: add --crawl" in done.stdout
    assert "not tested: leaves an unusable table in some servers: add --races" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a connector or --uri is needed"),
        (["dir", "--uri", "http://127.0.0.1:9"], "not both"),
        (["dir", "root"], "'root' is not KEY=VALUE"),
        (["nosuch"], "unknown connector"),
        (["glue", "region=eu-west-1"], "drops namespaces with all their objects"),
        (["--uri", "http://127.0.0.1:9", "auth_token=secret"], "a secret must not stand"),
        (["federator.testing:CONNECTOR", "no=thing"], "unknown key"),
    ],
)
def test_a_mistake_on_the_command_line_is_usage(shell: Shell, words: list[str], message: str) -> None:
    result = shell.run("conformance", *words)
    assert result.exit_code == 64, result.output
    assert message in result.stderr


def test_without_pytest_the_hint_names_the_extra(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "pytest.py").write_text("raise ModuleNotFoundError(\"No module named 'pytest'\", name='pytest')")
    monkeypatch.setenv("PYTHONPATH", f"{shell.folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    done = shell.start("conformance", IMPL, f"file={shell.folder}/live.json")
    assert done.returncode == 64
    assert "the contract suite needs the module 'pytest'" in done.stderr
    assert "lance-federator[conformance]" in done.stderr
