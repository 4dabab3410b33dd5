"""The packages of ``lance-federator[glue]`` suffice for its connector, also on an executor."""

from __future__ import annotations

import subprocess
import sys

_WITHOUT_REQUESTS = """
import sys
sys.modules["requests"] = None
import federator_connectors._glue.client
"""


def test_glue_is_imported_without_requests() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT_REQUESTS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
