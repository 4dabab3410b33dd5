"""The time of a response shows nothing about hidden objects: sign tests over HTTP, with a control that shows their power.

A principal sees 50 tables beside 20,000 hidden ones. It asks for what is hidden and for what is absent, in pairs of random order. With
1,000 pairs and a two-sided significance level of 0.1 % for each question, an object that is slower in 58 % of the pairs is found with
a probability of 96 % (56 %: 69 %). The control asks for a page of 50 entries and a page of one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from statistics import median
from urllib.parse import quote

import httpx

from federator.api.app import create_app
from federator.model.scopes import Scopes
from federator.settings import parse_settings
from federator.store import migrations, open_index, tokens
from tests.adversary.table import Cell
from tests.fixtures.index_content import fill, namespace, table

HIDDEN, VISIBLE = 20_000, 50
#: of the normal distribution, for a two-sided significance level of 0.1 %
CRITICAL = 3.291
_SCOPES = Scopes((("lake", "open"),))
_HIDDEN_TABLE, _ABSENT_TABLE = "lake$vault$zebra_7_quokka", "lake$vaulx$yebra_7_quokka"
_AT = ("s3://lake/vault/zebra_7_quokka.lance", "s3://lake/vaulx/yebra_7_quokka.lance")
#: what is probes for: hidden, and absent
QUESTIONS: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "search, a beginning": (("GET", "/api/v1/search?q=zebr*"), ("GET", "/api/v1/search?q=yebr*")),
    "search, a word": (("GET", "/api/v1/search?q=quokka"), ("GET", "/api/v1/search?q=xuokka")),
    "suggest": (("GET", "/api/v1/suggest?q=zebr"), ("GET", "/api/v1/suggest?q=yebr")),
    "table": (("GET", f"/api/v1/tables/{quote(_HIDDEN_TABLE)}"), ("GET", f"/api/v1/tables/{quote(_ABSENT_TABLE)}")),
    "tree": (("GET", "/api/v1/tree?path=lake%24vault"), ("GET", "/api/v1/tree?path=lake%24vaulx")),
    "explain": (("GET", f"/api/v1/explain/{quote(_HIDDEN_TABLE)}"), ("GET", f"/api/v1/explain/{quote(_ABSENT_TABLE)}")),
    "dataset": (("GET", f"/api/v1/datasets/{quote(_AT[0], safe='')}"), ("GET", f"/api/v1/datasets/{quote(_AT[1], safe='')}")),
    "source": (("GET", "/api/v1/sources/vault"), ("GET", "/api/v1/sources/vaulx")),
    "exists": (("POST", f"/v1/table/{quote(_HIDDEN_TABLE)}/exists"), ("POST", f"/v1/table/{quote(_ABSENT_TABLE)}/exists")),
}  # fmt: skip
CONTROL = (("GET", "/api/v1/search?q=orders&limit=50"), ("GET", "/api/v1/search?q=orders&limit=1"))


def run(url: str, directory: Path, *, pairs: int, hidden: int, seed: int) -> list[Cell]:
    """Return one cell for each question, and the control."""
    directory.mkdir(parents=True, exist_ok=True)
    index = open_index(url)
    migrations.upgrade_schema(index)
    visible = [table("lake", "open", f"orders_{number}") for number in range(VISIBLE)]
    concealed = [table("lake", "vault", f"zebra_{number}_quokka") for number in range(hidden)]
    fill(index, "lake", namespace("lake", "open"), namespace("lake", "vault"), *visible, *concealed)
    fill(index, "vault", namespace("vault", "s"), table("vault", "s", "orders"))
    raw = {
        "instance": {"id": "test"}, "index": {"url": url}, "serve": {"auth": "required", "burst": 10_000_000},
        "sources": {name: {"impl": "federator.testing:CONNECTOR", "store": f"timing-{name}"} for name in ("lake", "vault")},
    }  # fmt: skip
    app = create_app(parse_settings(raw, directory / "federator.toml"))
    secret, _ = tokens.create_token(index, "timing", role="viewer", scopes=_SCOPES, lifetime=86_400, actor="fuzz")
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8042", headers={"Authorization": f"Bearer {secret}"}
    )
    try:
        return asyncio.run(_measure_all(client, pairs, random.Random(seed)))
    finally:
        app.state.index.close()
        index.close()


async def _measure_all(client: httpx.AsyncClient, pairs: int, rng: random.Random) -> list[Cell]:
    cells = []
    for name, probes in {**QUESTIONS, "control": CONTROL}.items():
        statistic, micros = await _compare(client, probes, pairs, rng)
        is_control = name == "control"
        observed = f"{statistic:+.1f} sd, median difference {micros:+.0f} µs"
        expected = "a difference" if is_control else "no difference"
        cells.append(Cell("timing", f"{name} ({pairs} pairs)", observed, expected, (abs(statistic) > CRITICAL) == is_control))
    return cells


async def _compare(
    client: httpx.AsyncClient, probes: tuple[tuple[str, str], tuple[str, str]], pairs: int, rng: random.Random
) -> tuple[float, float]:
    """Return the statistic of the sign test in standard deviations, and the median difference in microseconds."""
    differences = []
    for number in range(-max(pairs // 20, 5), pairs):
        seconds = {}
        for which in rng.sample((0, 1), 2):
            started_at = time.perf_counter()
            method, url = probes[which]
            response = await client.request(method, url, json={} if method == "POST" else None)
            seconds[which] = time.perf_counter() - started_at
            assert response.status_code < 500, response.text
        # The first pairs only fill the caches.
        if number >= 0:
            differences.append(seconds[0] - seconds[1])
    slower = sum(difference > 0 for difference in differences)
    return (slower - pairs / 2) / (sqrt(pairs) / 2), median(differences) * 1e6
