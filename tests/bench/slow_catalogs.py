"""Catalogs that answer after 20 or 100 ms and have a limit of requests: how near a crawl comes to the limit, as the server counts.

The catalogs are moto's Glue and pylance's server of the Lance REST protocol, behind ``tests.fixtures.limited_server``. Each is crawled
with the limit in the configuration, and without: then the server refuses requests, as a catalog does. Of the first none may be refused.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from federator.demo.servers import process
from federator.model import NamespaceRecord, TableRecord
from federator.pipeline import session
from federator.service import Federator
from federator.settings import parse_settings
from federator_connectors import rest
from tests.bench.measure import Row
from tests.fixtures.glue import SERVER, account
from tests.fixtures.limited_server import LimitedServer
from tests.fixtures.rest import reference_server

_SECONDS = int(os.environ.get("BENCH_SECONDS", "60"))
_LATENCIES = (0.02, 0.1)
#: requests per second: Glue is asked by two connections, and a REST server by as many as it takes
_GLUE_LIMIT, _REST_LIMIT = 10, 50
_LEAST = 0.9
_SECRETS = ("access_key_id", "secret_access_key", "session_token")


def run(directory: Path) -> list[Row]:
    rows: list[Row] = []
    try:
        for made in (_glue, _rest):
            with made(directory) as (name, target, properties, limit, namespaces):
                _warm(directory)
                for latency, configured in itertools.product(_LATENCIES, (True, False)):
                    with LimitedServer(target, latency=latency, per_second=limit, burst=limit / 2) as server:
                        limits = {"limit.requests-per-second": limit} if configured else {}
                        source = properties(server.url) | limits
                        state = _crawl(directory, source, namespaces)
                    rows.append(_row(f"{name}, {latency * 1000:.0f} ms", server, limit, configured, state))
    finally:
        session.stop_session()
    return rows


def _row(name: str, server: LimitedServer, limit: int, configured: bool, state: str) -> Row:
    times = sorted(server.served)
    rate = (len(times) - 1) / (times[-1] - times[0])
    most = max(sum(1 for other in times[number : number + 3 * limit] if other < time + 1) for number, time in enumerate(times))
    how = "with limit.requests-per-second" if configured else "without"
    figure = f"{rate:.1f} per second ({rate / limit:.0%}), at most {most} in one, {len(server.refused)} refused, {state}"
    print(f"  {name}, {how}: {len(times)} requests, {figure} (load {os.getloadavg()[0]:.0f})", file=sys.stderr)
    budget, ok = "", True
    if configured:
        budget, ok = f"{_LEAST:.0%}, none refused", rate >= _LEAST * limit and not server.refused and state == "ok"
    return Row(f"{name}, {how}", f"{limit} per second", "", figure, budget, ok)


@contextmanager
def _glue(directory: Path) -> Iterator[tuple[str, str, Callable[[str], dict[str, Any]], int, int]]:
    server = process.start(SERVER, directory / "glue", timeout=60)
    try:
        owner = account(server.uri)
        client = owner.client()
        for number in range(databases := _SECONDS * _GLUE_LIMIT):
            client.create_database(DatabaseInput={"Name": f"db{number:04d}"})
        for key in _SECRETS:
            (directory / key).write_text(owner.properties[key], encoding="utf-8")
            (directory / key).chmod(0o600)
        common = {"impl": "glue", **owner.properties, **{key: f"file:{directory / key}" for key in _SECRETS}}
        yield "Glue", server.uri, lambda url: {**common, "endpoint": url}, _GLUE_LIMIT, databases + 1
    finally:
        server.stop()


@contextmanager
def _rest(directory: Path) -> Iterator[tuple[str, str, Callable[[str], dict[str, Any]], int, int]]:
    # With the root they are forty, which two tasks read in equal parts.
    namespaces = 39
    tables = max(_SECONDS * _REST_LIMIT // namespaces, 1)
    (directory / "rest").mkdir()
    with reference_server(directory / "rest") as server:
        settings = rest.CONNECTOR.parse_settings(server.properties)
        with rest.CONNECTOR.open("lake", settings) as catalog:
            for number in range(namespaces):
                namespace = (f"n{number:02d}",)
                catalog.create_namespace(NamespaceRecord("lake", namespace))
                for each in range(tables):
                    path = (*namespace, f"t{each:03d}")
                    catalog.declare_table(TableRecord("lake", path, catalog.default_location(path)))
        yield (
            "Lance REST", server.url, lambda url: {"impl": "rest", "uri": url, "root": server.root, "client.pool-size": "16"},
            _REST_LIMIT, namespaces,
        )  # fmt: skip


def _warm(directory: Path) -> None:
    _crawl(directory, {"impl": "federator.testing:CONNECTOR", "tables": 100, "databases": 10}, 10)


_numbers = itertools.count()


def _crawl(directory: Path, source: dict[str, Any], namespaces: int) -> str:
    """Crawl into a new index. Return the state, with the number of namespaces that failed."""
    configuration = {
        "sources": {"lake": source},
        "verify": {"enabled": False},
        "index": {"url": f"sqlite:///{next(_numbers)}.db"},
    }
    federator = Federator.open(parse_settings(json.loads(json.dumps(configuration)), directory / "federator.toml"))
    with closing(federator.index):
        result = federator.crawl().sources["lake"]
    assert result.state != "ok" or result.namespaces == namespaces, result
    return result.state if result.state == "ok" else f"{result.state}: {result.failed_namespaces} namespaces failed"
