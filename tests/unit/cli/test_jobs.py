"""``jobs`` and ``explain``."""

from __future__ import annotations

from federator.store import requests
from tests.unit.cli.conftest import Shell


def scheduled(shell: Shell) -> None:
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text() + 'schedule = "@after crawl"\n')


def test_nothing_scheduled_says_how_to(shell: Shell) -> None:
    shell.index().close()
    result = shell.run("jobs", "list")
    assert result.exit_code == 0
    assert 'schedule = "@every 15m"' in result.stderr


def test_jobs_are_listed_and_asked_for(shell: Shell) -> None:
    scheduled(shell)
    shell.index().close()
    (job,) = shell.json("jobs", "list")["jobs"]
    assert (job["name"], job["schedule"], job["paused"]) == ("sync:nightly", "@after crawl", False)
    for kind in ("pause", "resume", "run"):
        assert shell.run("jobs", kind, "sync:nightly").exit_code == 0
    index = shell.index()
    with index.read() as connection:
        request = requests.list_queued(connection, (*requests.CONTROL_KINDS, *requests.RUN_KINDS))
    index.close()
    assert [(r.kind, r.argument["job"]) for r in request] == [(kind, "sync:nightly") for kind in ("pause", "resume", "sync")]


def test_an_unknown_job_is_named_with_those_that_are(shell: Shell) -> None:
    scheduled(shell)
    shell.index().close()
    result = shell.run("jobs", "run", "sync:other")
    assert result.exit_code == 64
    assert "jobs: sync:nightly" in result.stderr


def test_explain_says_what_is_known(filled: Shell) -> None:
    lines = filled.run("explain", "lake/sales/orders").stdout.splitlines()
    assert lines[0] == "lake has it, and no mirror of this instance declared it"
    assert any(line.split() == ["id", "lake$sales$orders"] for line in lines)
    assert filled.json("explain", "lake$sales$nothing")["kind"] is None
