"""Connections to both catalogs fail in the ways of toxiproxy, at random, while tables come and go at the origin and at the target."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.adversary.deployment import FORWARD, Deployment, real_servers
from tests.adversary.table import Cell
from tests.adversary.toxiproxy import Toxic, Toxiproxy

ROUNDS = 60
PROXIES = ("hive", "glue")
#: values of each type's attributes: milliseconds, KB/s (bandwidth), bytes (limit_data, slicer's size), microseconds (slicer's delay)
_ATTRIBUTES: dict[str, dict[str, Sequence[int]]] = {
    "latency": {"latency": (50, 500), "jitter": (0, 100)},
    "bandwidth": {"rate": (1, 20, 200)},
    "slow_close": {"delay": (100, 3000)},
    "timeout": {"timeout": (10, 2000)},
    "reset_peer": {"timeout": (0, 50, 1000)},
    "slicer": {"average_size": (1, 50), "size_variation": (0,), "delay": (10, 1000)},
    "limit_data": {"bytes": (10, 200, 1000, 4000, 16000, 64000)},
}


# In the first round, so that one sync certainly fails.
_CERTAIN = Toxic("reset_peer", "downstream", {"timeout": 0}, 1.0)


def draw(chance: random.Random) -> Toxic:
    """Return a random toxic."""
    kind = chance.choice([*_ATTRIBUTES, "limit_data"])
    attributes = {name: chance.choice(values) for name, values in _ATTRIBUTES[kind].items()}
    return Toxic(kind, chance.choice(("upstream", "downstream")), attributes, chance.choice((0.3, 0.7, 1.0)))


def poison(deployment: Deployment, proxies: Toxiproxy, rounds: int, seed: int, size: int) -> tuple[Counter[str], list[str]]:
    """Sync with toxics in each round, then without. Return the states of the syncs, and everything that is wrong."""
    chance, states = random.Random(seed), Counter[str]()
    churn = deployment.churn(FORWARD, seed, size)
    deployment.sync()
    for number in range(rounds):
        for _ in range(size // 10):
            churn.step()
        for name in PROXIES:
            drawn = [draw(chance) for _ in range(chance.choice((0, 1, 2)))] if number else [_CERTAIN]
            for toxic in {toxic.type: toxic for toxic in drawn}.values():
                proxies.add(name, toxic)
        states[deployment.sync().state] += 1
        proxies.clear()
    result, _ = deployment.come_to_rest()
    return states, deployment.disagreements(result, FORWARD, churn) + deployment.audited()


def run(directory: Path) -> list[Cell]:
    with Toxiproxy() as proxies, real_servers(directory) as (metastore, account):
        deployment = Deployment(
            directory / "deployment", metastore, account, schedule="", back=False, through=proxies.add_proxy
        )
        try:
            states, wrong = poison(deployment, proxies, ROUNDS, seed=11, size=40)
        finally:
            deployment.close()
    sys.stderr.write("".join(f"toxics: {line}\n" for line in wrong))
    observed = f"{ROUNDS} syncs: {dict(states)}; {len(wrong)} wrong"
    return [Cell("toxics", "hive 3.1.3 to glue", observed, "nothing wrong, converges", len(states) > 1 and not wrong)]
