"""Run ``outputs_of_runs.py`` in a process of its own, because it checks everything that one process writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STORY = Path(__file__).with_name("outputs_of_runs.py")


@pytest.mark.timeout(600)
def test_the_outputs_of_runs_hold_no_secret() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--show-capture=no", "-p", "no:cacheprovider", str(STORY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=STORY.parents[3])
    assert done.returncode == 0, done.stdout[-8000:]
    assert "9 passed" in done.stdout
