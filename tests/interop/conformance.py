"""``federator conformance`` on the connectors of ``lance-namespace-impls``, behind ``tests.interop.namespace_server``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.catalog_clients import CATALOGS, IMPLS, SharedCatalog
from tests.interop.environments import python_of

_SERVER = Path(__file__).with_name("namespace_server.py")


def run_conformance(name: str, report: Path) -> int:
    """Run the contract suite on a connector with a catalog of its own, and write a report in Markdown. Return the exit code."""
    with CATALOGS[name]() as shared, _served(name, shared) as url:
        # Locations with a scheme are compared, and none is written to.
        command = [
            sys.executable, "-m", "federator", "conformance", "--uri", url, "--location", f"{shared.directory}/conformance",
            "--report", str(report), "--title", f"{IMPLS}: {name}", "keeps_properties=true",
        ]  # fmt: skip
        parent = "$".join(shared.above[shared.hidden :])
        return subprocess.run([*command, *(["--parent", parent] if parent else [])], timeout=900, check=False).returncode


@contextmanager
def _served(name: str, shared: SharedCatalog) -> Iterator[str]:
    process = subprocess.Popen(
        [str(python_of("impls")), str(_SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"impl": name, "properties": dict(shared.client_properties)}) + "\n")
        process.stdin.flush()
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()
