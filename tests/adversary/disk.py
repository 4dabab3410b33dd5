"""The disk of the index fills up in the middle of a run: SQLite's ``max_page_count`` leaves a few pages, or none."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.adversary.deployment import FORWARD, Deployment, real_servers
from tests.adversary.table import Cell

#: pages of 4 KiB that the database may still grow by
ROOM = (0, 1, 2, 3, 5, 8, 13, 21, 34)
#: the exit code of a sync that had room, and whose plan a guard holds
_HELD = 4
_REMEDY = ("its disk is full", "free space where the index is")


def fill(deployment: Deployment, rooms: Sequence[int], seed: int, size: int) -> tuple[int, list[str]]:
    """Sync with so little room, then with enough. Return how often the disk was full, and everything that is wrong."""
    churn = deployment.churn(FORWARD, seed, size)
    deployment.sync()
    failed, wrong = 0, list[str]()
    for room in rooms:
        for _ in range(size):
            churn.step()
        deployment.environment["ADVERSARY_ROOM"] = str(room)
        log = deployment.directory / "commands.log"
        before = log.stat().st_size if log.exists() else 0
        code = deployment.command("sync").wait(300)
        log_text = log.read_text(encoding="utf-8", errors="replace")[before:]
        if code not in (0, _HELD):
            failed += 1
            wrong += [
                f"{room} pages: {code}, without the text {text!r}: {log_text[-500:]}"
                for text in _REMEDY
                if text not in log_text
            ]
        with sqlite3.connect(deployment.directory / "federator.db") as connection:
            intact = connection.execute("PRAGMA integrity_check").fetchone()[0]
        wrong += [f"{room} pages: the index is damaged: {intact}"] if intact != "ok" else []
    result, _ = deployment.come_to_rest()
    del deployment.environment["ADVERSARY_ROOM"]
    return failed, wrong + deployment.disagreements(result, FORWARD, churn) + deployment.audited()


def run(directory: Path) -> list[Cell]:
    with real_servers(directory) as (metastore, account):
        deployment = Deployment(directory / "deployment", metastore, account, schedule="", back=False)
        try:
            failed, wrong = fill(deployment, ROOM, seed=3, size=30)
        finally:
            deployment.close()
    sys.stderr.write("".join(f"disk: {line}\n" for line in wrong))
    observed = f"full in {failed} of {len(ROOM)} syncs, {len(wrong)} wrong"
    return [Cell("disk", "SQLite, hive 3.1.3 to glue", observed, "remedy, index intact, converges", failed > 0 and not wrong)]
