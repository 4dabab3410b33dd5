"""The runs in one process with one Spark session: each exit code once, and the output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from federator.testing import MemoryStore
from tests.fixtures.signals import signal_other_thread
from tests.unit.cli.conftest import CONFIG

# Reads command lines as JSON, answers with exit code, stdout and stderr: Spark starts with the first one that needs it.
SERVER = """
import json, sys
from typer.testing import CliRunner
from federator.cli.app import app
for line in sys.stdin:
    done = CliRunner().invoke(app, json.loads(line))
    print(json.dumps([done.exit_code, done.stdout, done.stderr]), flush=True)
"""


@dataclass
class Session:
    """A process that carries out command after command."""

    folder: Path
    process: subprocess.Popen[str]

    def run(self, *words: str) -> tuple[int, str, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        code, out, err = json.loads(self.process.stdout.readline())
        return code, out, err

    def json(self, *words: str) -> tuple[int, Any]:
        code, out, _ = self.run(*words, "--output", "json")
        return code, json.loads(out)

    def configure(self, more: str = "") -> None:
        (self.folder / "federator.toml").write_text(CONFIG.format(folder=self.folder, index="sqlite:///federator.db") + more)

    def store(self, name: str) -> MemoryStore:
        return MemoryStore(str(self.folder / f"{name}.json"))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("runs")
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    opened = Session(folder, process)
    opened.configure()
    for name in ("orders", "items", "[b]odd"):
        opened.store("lake").add_table(("sales", name), f"s3://lake/{name.strip('[]')}.lance")
    opened.store("copy").add_namespace(("other",))
    yield opened
    process.communicate()


@pytest.mark.timeout(900)
def test_the_commands_of_a_mirror_in_order(session: Session) -> None:
    """In order, since each step stands on the one before."""
    code, out, err = session.run("crawl")
    assert code == 0, err
    assert out.splitlines()[1].split()[:4] == ["lake", "ok", "3", "1"]
    assert "starting spark" in err
    assert "Traceback" not in err

    code, out, _ = session.run("plan", "--no-refresh", "--detailed-exitcode", "-o", "plans.json")
    assert code == 2
    assert "  + declare     copy$sales$orders  s3://lake/orders.lance  (new at the origin)" in out.splitlines()

    code, done = session.json("apply", "plans.json")
    assert (code, done["state"]) == (0, "ok")
    assert {outcome["state"] for outcome in done["outcomes"]} == {"done"}
    code, again = session.json("apply", "plans.json")
    assert {outcome["state"] for outcome in again["outcomes"]} <= {"done", "skipped"}

    code, out, _ = session.run("plan", "--no-refresh", "--detailed-exitcode")
    assert (code, out) == (0, "mirror nightly: no changes\n")

    _, tree = session.json("tree")
    assert [source["id"] for source in tree["children"]] == ["copy", "lake"]
    assert "[b]odd" in session.run("tree")[1]

    assert "copy$sales$orders  (mirror nightly" in session.run("show", "lake/sales/orders")[1]
    _, shown = session.json("mirror", "show", "nightly")
    assert len([entry for entry in shown["ledger"] if entry["kind"] == "table"]) == 3


@pytest.mark.timeout(900)
def test_a_held_plan_waits_for_an_approval(session: Session) -> None:
    session.configure("max_changes = 0\n")
    session.store("lake").add_table(("sales", "late"), "s3://lake/late.lance")
    code, out, _ = session.run("sync")
    assert code == 4
    assert "none of it was attempted" in out
    digest = out.split("federator plans approve ")[1].split()[0]
    assert session.run("plans", "approve", digest)[0] == 0
    code, out, _ = session.run("sync", "nightly")
    assert code == 0
    assert "1 done" in out.splitlines()
    session.configure()


@pytest.mark.timeout(900)
def test_pruning_is_asked_for(session: Session) -> None:
    session.configure('include = ["sales$o*"]\nmax_delete_percent = 100\n')
    code, out, err = session.run("mirror", "prune", "nightly", "--yes")
    assert code == 0, err
    assert "- deregister  copy$sales$items" in out
    session.configure()


@pytest.mark.timeout(900)
def test_failures_are_loud(session: Session) -> None:
    session.store("lake").faults("fail:sales=17")
    code, out, err = session.run("crawl")
    assert (code, "lake    partial" in out) == (3, True)
    run = err.split("federator runs ")[1].split()[0]
    assert "lake$sales  failed: sales: failed by the test" in session.run("runs", run)[1]
    session.store("lake").faults("fail:/=17")
    assert session.run("crawl", "lake")[0] == 1
    code, _, err = session.run("--quiet", "plan")
    assert (code, "error: lake: " in err) == (3, True), err
    session.store("lake").faults("")


def interrupted_crawl(session: Session, number: int, send: Callable[[int, int], None] = os.kill) -> tuple[int, str, float]:
    """A crawl that hangs and then gets a signal: its exit code, what it said after it, and how many seconds it took to end."""
    session.store("lake").faults("hang:sales=300")
    program = [sys.executable, "-c", "from federator.cli import main; main()", "crawl", "lake"]
    process = subprocess.Popen(program, cwd=session.folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("crawl") and line.rstrip().endswith("..."):
            break
    time.sleep(1)
    began = time.monotonic()
    send(process.pid, number)
    code = process.wait(60)
    seconds = time.monotonic() - began
    rest = process.stderr.read()
    session.store("lake").faults("")
    return code, rest, seconds


@pytest.mark.timeout(900)
@pytest.mark.parametrize("send", [os.kill, signal_other_thread])
def test_sigterm_ends_a_run_that_would_go_on(session: Session, send: Callable[[int, int], None]) -> None:
    code, rest, seconds = interrupted_crawl(session, signal.SIGTERM, send)
    assert (code, rest.partition(":")[0]) == (128 + signal.SIGTERM, "stopping")
    # Five on an idle machine; the rest is a busy one's share. The crawl itself would take minutes.
    assert seconds < 20


@pytest.mark.timeout(900)
def test_the_first_interrupt_ends_a_run_and_says_so(session: Session) -> None:
    code, rest, _ = interrupted_crawl(session, signal.SIGINT)
    assert code == 130
    assert rest.startswith("stopping: ")
    assert "stopped; the next run continues" in rest
    code, data = session.json("runs", "--limit", "1")
    assert (code, data["runs"][0]["state"]) == (0, "interrupted")
