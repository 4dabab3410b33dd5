"""What real runs tell (``told_by_runs.py``), in a process of its own: what it looks at is all that one process ever wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STORY = Path(__file__).with_name("told_by_runs.py")


@pytest.mark.timeout(600)
def test_what_runs_tell_and_that_no_secret_comes_out() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--show-capture=no", "-p", "no:cacheprovider", str(STORY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=STORY.parents[2])
    assert done.returncode == 0, done.stdout[-8000:]
    assert "9 passed" in done.stdout
