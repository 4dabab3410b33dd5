"""examples/github_actions: the workflow's commands exist, and its step makes the right comment for each exit code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from tests.docs.test_how_to_docs import parse_command

WORKFLOW = yaml.safe_load((Path(__file__).parents[2] / "examples" / "github_actions" / "plan.yaml").read_text(encoding="utf-8"))
STEPS = WORKFLOW["jobs"]["plan"]["steps"]
(PLAN,) = (step["run"] for step in STEPS if step.get("id") == "plan")
_LAST = STEPS[-1]["run"]


def test_its_commands_exist() -> None:
    commands = [line for step in STEPS for line in re.findall(r"federator (?!\[)[^>\n|]+", step.get("run", ""))]
    assert len(commands) == 2
    for command in commands:
        parse_command([word for word in shlex.split(command)[1:] if word != "--quiet"])


@pytest.mark.parametrize(
    ("code", "comment", "passes"),
    [(0, "No changes", True), (2, "pending", True), (4, "Held", True), (3, "exit code 3", False), (64, "exit code 64", False)],
)
def test_the_comment_says_how_it_ended(tmp_path: Path, code: int, comment: str, passes: bool) -> None:
    program = tmp_path / "federator"
    program.write_text(f"#!/bin/sh\nprintf 'mirror x\\n```\\n'; exit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "GITHUB_OUTPUT": str(tmp_path / "output")}
    # As GitHub runs a step.
    subprocess.run(["bash", "-eo", "pipefail", "-c", PLAN], cwd=tmp_path, env=environment, check=True)
    text = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert comment in text.splitlines()[0]
    assert text.endswith("\n    mirror x\n    ```\n")
    assert (tmp_path / "output").read_text(encoding="utf-8") == f"code={code}\n"
    last = subprocess.run(["bash", "-c", _LAST.replace("${{ steps.plan.outputs.code }}", str(code))], check=False)
    assert (last.returncode == 0) is passes
