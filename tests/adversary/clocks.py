"""Clocks that jump by days and back, by libfaketime: of the product's processes in mid-run, and of the index's PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import func, select, text

from federator.demo.servers import hive
from federator.store import leases, open_index
from federator.store import tables as t
from federator.store.leases import LeaseHeld, LeaseLost, acquire_lease
from tests.adversary.churn import Churn
from tests.adversary.deployment import BACK, FORWARD, Deployment, end, real_servers
from tests.adversary.table import Cell
from tests.adversary.workers import migrated
from tests.fixtures.availability import fail_or_skip
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore
from tests.fixtures.postgres import postgres_server
from tests.fixtures.waiting import wait_until

DAY = 86_400
#: where the clock jumps to, in seconds from the right time
JUMPS = (DAY, 0, -DAY, 0, 8 * DAY, 0)
#: seconds within which a worker must have ended runs after a jump
PATIENCE = 300.0


def library() -> Path:
    """libfaketime for threads. Where it is missing: a failure in CI, a visible skip elsewhere."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        fail_or_skip("no libfaketime: apt-get install faketime")
    return found[0]


@dataclass
class Clock:
    """A clock that processes read from a file: set it, and it jumps for all of them at once."""

    file: Path

    def __post_init__(self) -> None:
        self._common = {
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
        }
        self.set(0)

    def set(self, seconds: int) -> None:
        """Let the clock be so many seconds ahead of the right time; negative: behind it."""
        draft = self.file.with_suffix(".draft")
        draft.write_text(f"{seconds:+d}\n", encoding="utf-8")
        draft.chmod(0o644)
        draft.replace(self.file)

    def python(self) -> dict[str, str]:
        """The environment of Python programs that have this clock."""
        above = os.environ.get("PYTHONPATH")
        site = str(Path(__file__).parent / "clock_site")
        path = os.pathsep.join([site, above] if above else [site])
        return {**self._common, "ADVERSARY_FAKETIME": str(library()), "PYTHONPATH": path}

    def program(self) -> dict[str, str]:
        """The environment of any other program that has this clock."""
        return {**self._common, "LD_PRELOAD": str(library())}


def jump(deployment: Deployment, clock: Clock, jumps: Sequence[int], *, runs: int = 3) -> list[str]:
    """Let the clock of a worker jump in the middle of its runs. Return after which jump it did no more of them.

    Three ``runs``: one may be under way, and one requested, as the clock jumps; the third has to be scheduled after it.
    """
    wrong, first = list[str](), _ended(deployment)
    deployment.environment.update(clock.python())
    worker = deployment.command("serve", "--role", "worker")
    try:
        wait_until(lambda: _ended(deployment) > first, "the worker ended a run", PATIENCE)
        for seconds in jumps:
            before = deployment.runs()
            wait_until(lambda before=before: deployment.runs() > before, "the worker begins a run", PATIENCE)  # type: ignore[misc]
            clock.set(seconds)
            ended = _ended(deployment)
            try:
                wait_until(lambda ended=ended: _ended(deployment) >= ended + runs, "runs end", PATIENCE)  # type: ignore[misc]
            except AssertionError:
                wrong.append(f"no {runs} runs in {PATIENCE:.0f} s after the clock jumped to {seconds:+d} s")
                break
    finally:
        # libfaketime blocks signals while it takes its lock, and with threads it may leave them blocked: SIGTERM would not arrive.
        end(worker, signal.SIGKILL)
        for name in clock.python():
            deployment.environment.pop(name, None)
        clock.set(0)
    return wrong


def _ended(deployment: Deployment) -> int:
    with deployment.index() as index, index.read() as connection:
        query = select(func.count()).where(t.run.c.finished_at.is_not(None), t.run.c.state.in_(("ok", "partial")))
        return int(connection.execute(query).scalar_one())


def misled(deployment: Deployment, clock: Clock, churn: Churn, seconds: int) -> list[str]:
    """Misses are counted, and tables declared, by a clock that is wrong. Then it is right, and people drop what was declared."""
    deployment.sync()
    before = set(churn.book.locations)
    for _ in range(2):
        churn.drop()
        churn.create()
    clock.set(seconds)
    wrong = jump(deployment, clock, (0,))
    for name in set(churn.book.locations) - before:
        churn.target.drop(name)
    result, _ = deployment.come_to_rest()
    return [*wrong, *deployment.disagreements(result, FORWARD, churn), *deployment.audited()]


def approvals(deployment: Deployment, clock: Clock, churn: Churn) -> list[str]:
    """A plan is approved; eight days later by the clock its approval has ended, and by the right clock it has not."""
    plan = next(plan for plan in deployment.sync().plans if plan.mirror == FORWARD)
    wrong = [] if plan.held else ["a plan is not held although approval is required"]
    deployment.approve_held()
    deployment.environment.update(clock.python())
    for seconds, expected in ((8 * DAY, set[str]()), (0, set(churn.book.locations))):
        clock.set(seconds)
        deployment.command("sync").wait(300)
        tables = {write.table for write in deployment.writes.of(deployment.database(FORWARD))}
        wrong += [f"at {seconds:+d} s tables were written: {sorted(tables)}"] if tables != expected else []
    return wrong


@contextmanager
def faked_postgres() -> Iterator[tuple[str, Clock]]:
    """A PostgreSQL whose clock can jump."""
    directory = Path(tempfile.mkdtemp(prefix="federator-postgres-"))
    directory.chmod(0o755)
    try:
        (times := Path(tempfile.mkdtemp(prefix="federator-clock-"))).chmod(0o755)
        clock = Clock(times / "clock")
        with postgres_server(directory, **clock.program()) as url:
            yield url, clock
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(times, ignore_errors=True)


_HOLD = """
import sys, time
from federator.store import leases, open_index
leases.LEASE_TTL_SECONDS, leases.CALL_DEADLINE_SECONDS = 1.0, 0.5
with leases.acquire_lease(open_index(sys.argv[1]), "mirror:m") as lease:
    print(lease.token, flush=True)
    time.sleep(600)
"""


def lease(url: str, clock: Clock) -> list[str]:
    """The clock of the database is a day ahead while a process takes a lease and dies, then while one has it and lives."""
    index, wrong = open_index(migrated(url)), list[str]()
    try:
        with patch.multiple(leases, LEASE_TTL_SECONDS=1.0, CALL_DEADLINE_SECONDS=0.5):
            clock.set(DAY)
            with index.read() as connection:
                ahead = connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one() - int(time.time())
            wrong += [] if ahead > DAY - 60 else [f"the clock of the database is {ahead} s ahead"]
            token = _die_holding(url)
            clock.set(0)
            began = time.monotonic()
            with acquire_lease(index, "mirror:m", wait=30) as mine:
                wrong += [] if mine.token == token + 1 else ["the token did not grow by one"]
                spent = time.monotonic() - began
                wrong += [f"a dead process kept its lease for {spent:.0f} s"] if spent > 20 else []
                for seconds in (DAY, 0, -DAY, 0):
                    clock.set(seconds)
                    time.sleep(0.6)
                with index.write() as connection:
                    mine.require_held(connection)
            with acquire_lease(index, "mirror:m", wait=30):
                pass
    except (LeaseHeld, LeaseLost) as error:
        wrong.append(str(error))
    finally:
        index.close()
    return wrong


def _die_holding(url: str) -> int:
    process = subprocess.Popen([sys.executable, "-c", _HOLD, url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    token = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    return token


def run(directory: Path) -> list[Cell]:
    cells, expected = list[Cell](), "never stuck, everything agrees"

    def note(name: str, wrong: Sequence[str]) -> None:
        sys.stderr.write("".join(f"clocks: {name}: {line}\n" for line in wrong))
        cells.append(Cell("clocks", name, f"{len(wrong)} wrong", expected, not wrong))

    clock = Clock(directory / "clock")
    with faked_postgres() as (url, of_database):
        note("the clock of PostgreSQL, leases", lease(url, of_database))
    with real_servers(directory, hive.HIVE3) as (metastore, account):
        with _deployed(directory / "jumps", metastore, account) as deployment:
            churns = {mirror: deployment.churn(mirror, number, 20) for number, mirror in enumerate((FORWARD, BACK))}
            deployment.sync()
            with churns[FORWARD], churns[BACK], deployment.approving():
                wrong = jump(deployment, clock, JUMPS)
            result, _ = deployment.come_to_rest()
            wrong += [line for mirror, churn in churns.items() for line in deployment.disagreements(result, mirror, churn)]
            note("a worker's clock, hive 3.1.3 and glue, both ways", [*wrong, *deployment.audited()])
        for name, seconds in (("ahead", DAY), ("behind", -DAY)):
            with _deployed(directory / name, metastore, account, back=False, min_miss_interval="8s") as deployment:
                churn = deployment.churn(FORWARD, 3, 10)
                note(f"a clock that was a day {name}: misses, declarations", misled(deployment, clock, churn, seconds))
        with _deployed(directory / "approvals", metastore, account, back=False, policy='approval = "required"') as deployment:
            note("approvals that end after 7 days", approvals(deployment, clock, deployment.churn(FORWARD, 4, 5)))
    return cells


@contextmanager
def _deployed(directory: Path, metastore: Metastore, account: GlueAccount, **how: Any) -> Iterator[Deployment]:
    deployment = Deployment(directory, metastore, account, **how)
    try:
        yield deployment
    finally:
        deployment.close()
