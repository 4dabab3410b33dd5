"""Clients of the Lance REST protocol, each a script in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fixtures.maven import jars
from tests.interop.environments import ROOT, node_modules, python_of
from tests.interop.servers import ClientServer

_SCENARIOS = Path(__file__).with_name("scenarios")
_TIMEOUT_SECONDS = 900


@dataclass(frozen=True)
class RestClient:
    """A client's name and version, and its script: of Node, if it is no Python.

    ``environment`` is its Python (None: this project's), ``library`` its jars (``tests.fixtures.maven``).
    """

    title: str
    script: str
    environment: str | None = None
    library: str | None = None
    #: whether it is run on pylance's RestAdapter, too
    reference: bool = True

    def prepare(self) -> tuple[str, dict[str, str]]:
        """Return the interpreter and further variables of its environment. What is missing is installed."""
        if self.script.endswith(".cjs"):
            return "node", {"NODE_PATH": str(node_modules())}
        python = str(python_of(self.environment)) if self.environment else sys.executable
        if self.library is None:
            return python, {}
        directory = jars(self.library)
        return python, {f"{self.library.rpartition('-')[0].replace('-', '_').upper()}_JARS": str(directory)}


CLIENTS: Mapping[str, RestClient] = {
    "pylance": RestClient("pylance 14.0.2 (Rust client)", "pylance_rest.py", "impls"),
    "lancedb": RestClient("lancedb 0.40.0 (namespace)", "lancedb_namespace.py", "lancedb"),
    "lancedb-remote": RestClient("lancedb 0.40.0 (remote)", "lancedb_remote.py", "lancedb"),
    "lancedb-node": RestClient("lancedb 0.39.0 for Node (namespace)", "lancedb_node.cjs"),
    # The RestAdapter lacks what LanceDB's remote clients require, as that of "lancedb-remote" shows.
    "lancedb-node-remote": RestClient("lancedb 0.39.0 for Node (remote)", "lancedb_node.cjs", reference=False),
    "java": RestClient("lance-namespace-apache-client 0.7.7 (Java)", "apache_client.py", library="apache-client-0.7.7"),
    "ray": RestClient("lance-ray 0.5.0, Ray 2.60.0", "lance_ray_rest.py", "ray"),
    "daft": RestClient("daft 0.7.26, daft-lance 0.6.0", "daft_rest.py", "daft"),
    "duckdb": RestClient("duckdb 1.5.5, duckdb-extension-lance 1.5.5", "duckdb_rest.py", "duckdb"),
    "spark": RestClient("lance-spark 0.4.0, Spark 3.5.9", "lance_spark_rest.py", "spark", "lance-spark-0.4.0"),
}


@dataclass(frozen=True)
class Outcome:
    """What became of an operation of a client on a server: ``passed``, or the client's error."""

    client: str
    server: str
    operation: str
    text: str


class ClientEnded(Exception):
    """The script of a client did not end as it should."""


def run_client(name: str, servers: Sequence[ClientServer], directory: Path) -> Iterator[Outcome]:
    """Run a client's operations on all servers. Raise ClientEnded with the end of its log."""
    client = CLIENTS[name]
    python, variables = client.prepare()
    config, outcomes, log = (directory / f"{name}.{suffix}" for suffix in ("config.json", "outcomes", "log"))
    config.write_text(
        json.dumps({"client": name, "servers": [server.as_dict() for server in servers], "outcomes": str(outcomes)})
    )
    environment = {
        **os.environ, **variables, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python,
        # Ray reports its use to a public address otherwise, and gives way to every other process of the machine.
        "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "DAFT_ANALYTICS_ENABLED": "0",
    }  # fmt: skip
    with log.open("w") as stream:
        ended = subprocess.run(
            [python, str(_SCENARIOS / client.script), str(config)],
            stdout=stream, stderr=subprocess.STDOUT, env=environment, cwd=directory, timeout=_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    if ended.returncode:
        raise ClientEnded(f"{client.title} ended with {ended.returncode}\n{log.read_text()[-4000:]}")
    for line in outcomes.read_text().splitlines():
        server, operation, text = json.loads(line)
        yield Outcome(name, server, operation, " ".join(text.split()))
