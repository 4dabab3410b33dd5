"""SIGKILL for ``federator sync`` and ``federator serve`` at random and at named moments, while both catalogs are busy."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from tests.adversary.deployment import BACK, FORWARD, Deployment, end, real_servers
from tests.adversary.killing import Orders
from tests.adversary.table import Cell

KILLS = int(os.environ.get("ADVERSARY_KILLS", "100"))
SEED = int(os.environ.get("ADVERSARY_SEED", "1"))
SIZE = 40
_COMMANDS = {"sync": ("sync",), "serve": ("serve", "--role", "worker")}
#: seconds: a start with Spark on a busy machine, and the longest life after the run began
_START = 90.0
LIFE = 8.0


def kill(deployment: Deployment, rng: random.Random, command: str, *, named: bool, life: float) -> str:
    """Start the command, and kill it: at a moment of the journal, or anywhere in a run. Return what happened."""
    orders = Orders(at=rng.randrange(12)) if named else Orders()
    life = life if named else rng.uniform(0, life)
    before = deployment.runs()
    process = deployment.command(*_COMMANDS[command], orders=orders)
    began = time.monotonic()
    while process.poll() is None and deployment.runs() == before:
        assert time.monotonic() - began < _START, f"{command} began no run"
        time.sleep(0.1)
    until = time.monotonic() + life
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    code = end(process, signal.SIGKILL)
    if code != -signal.SIGKILL:
        return f"{command} ended first with {code}"
    return f"{command} at a named moment" if named and time.monotonic() < until else f"{command} at a random moment"


def storm(deployment: Deployment, kills: int, seed: int, size: int, life: float = LIFE) -> tuple[Counter[str], list[str]]:
    """Kill ``kills`` processes, then come to rest. Return what happened, and everything that is wrong."""
    rng, happened = random.Random(seed), Counter[str]()
    churns = {mirror: deployment.churn(mirror, seed + number, size) for number, mirror in enumerate((FORWARD, BACK))}
    deployment.sync()
    with churns[FORWARD], churns[BACK], deployment.approving():
        while happened.total() - _ended_first(happened) < kills:
            number = happened.total()
            happened[kill(deployment, rng, ("serve", "sync")[number % 2], named=number // 2 % 2 == 0, life=life)] += 1
            assert happened.total() < 3 * kills + 10, happened
    result, rounds = deployment.come_to_rest()
    happened["rounds to rest"] = rounds
    wrong = [line for mirror, churn in churns.items() for line in deployment.disagreements(result, mirror, churn)]
    for mirror in churns:
        happened.update(f"{write.kind} by {mirror}" for write in deployment.writes.of(deployment.database(mirror)))
    return happened, wrong + deployment.audited()


def _ended_first(happened: Counter[str]) -> int:
    return sum(count for what, count in happened.items() if "ended first" in what)


def run(directory: Path) -> list[Cell]:
    """Hive 3.1.3 and Glue, mirrored in both directions."""
    with real_servers(directory) as (metastore, account):
        deployment = Deployment(directory / "deployment", metastore, account)
        try:
            happened, wrong = storm(deployment, KILLS, SEED, SIZE)
        finally:
            deployment.close()
    sys.stderr.write(f"kills: {dict(happened)}\n" + "".join(f"kills: {line}\n" for line in wrong))
    observed = f"{KILLS} kills, {happened['delete by forward'] + happened['delete by back']} deregistered, {len(wrong)} wrong"
    return [Cell("kills", "hive 3.1.3 and glue, both ways", observed, "everything agrees, nothing planned", not wrong)]
