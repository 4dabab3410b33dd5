"""Completion as bash asks for it: sources, the levels of a path, and plans, from the index and without one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from federator.planning.plan import Plan
from federator.store import plans, runs
from tests.unit.cli.conftest import Shell
from tests.unit.cli.conftest import fill as fill
from tests.unit.cli.conftest import filled as filled
from tests.unit.cli.conftest import shell as shell


def complete(shell: Shell, *words: str) -> list[str]:
    """The completions of the last word."""
    program = Path(sys.executable).with_name("federator")
    environment = {
        **os.environ, "_FEDERATOR_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(("federator", *words)),
        "COMP_CWORD": str(len(words)),
    }  # fmt: skip
    done = subprocess.run([program], cwd=shell.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


def test_each_level_of_a_path_is_completed(filled: Shell) -> None:
    assert complete(filled, "ls", "la") == ["lake/"]
    assert "lake/sales/" in complete(filled, "ls", "lake/s")
    assert complete(filled, "show", "lake/sales/ord") == ["lake/sales/orders"]
    assert complete(filled, "explain", "lake/sales/ord") == ["lake/sales/orders"]
    assert complete(filled, "tree", "lake/nothing/") == []


def test_names_that_a_shell_would_interpret_are_left_out(filled: Shell) -> None:
    names = [node["name"] for node in filled.json("ls", "lake/odd")["nodes"]]
    plain = [name for name in names if re.fullmatch(r"[\w.@+=,-]+", name)]
    assert len(plain) < len(names)
    assert [word.rstrip("/") for word in complete(filled, "ls", "lake/odd/")] == [f"lake/odd/{name}" for name in plain]


def test_runs_are_completed_by_their_ids(filled: Shell) -> None:
    index = filled.index()
    run = runs.insert_run(index, "crawl", actor="ann")
    runs.finish_run(index, run, "ok", summary={})
    index.close()
    assert run.id in complete(filled, "runs", "")
    assert complete(filled, "runs", run.id[:-2]) == [run.id]
    assert complete(filled, "runs", "zz") == []


def test_plans_are_completed_by_their_digests(filled: Shell) -> None:
    planned, held = Plan("nightly", "d", 1, 1), Plan("nightly", "e", 1, 1)
    index = filled.index()
    with index.write() as connection:
        for plan, state in ((planned, "planned"), (held, "held")):
            body = json.dumps(plan.to_json())
            plans.save_plan(connection, digest=plan.digest, mirror="nightly", run_id="r", state=state, body=body)
    index.close()
    assert complete(filled, "plans", "show", planned.digest[:3]) == [planned.digest[:12]]
    assert {planned.digest[:12], held.digest[:12]} <= set(complete(filled, "plans", "show", ""))
    decided = complete(filled, "plans", "approve", "")
    assert held.digest[:12] in decided
    assert planned.digest[:12] not in decided
    assert complete(filled, "plans", "approve", "zz") == []


def test_without_an_index_only_names_of_the_configuration_are_completed(shell: Shell) -> None:
    assert complete(shell, "ls", "la") == ["lake/"]
    assert complete(shell, "ls", "lake/") == []
    assert complete(shell, "plans", "show", "a") == []
    assert not list(shell.folder.glob("federator.db"))
