"""Two workers and commands at once over one index on PostgreSQL, while both catalogs are busy. Whoever makes a write, or holds a
mirror's lease, is frozen until another has the lease, and woken.

As each write arrives, the system says which process sent it, and the database which process has the mirror's lease.
"""

from __future__ import annotations

import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from federator.demo.servers import hive
from federator.store import Index, migrations, open_index
from federator.store import tables as t
from tests.adversary.deployment import BACK, FORWARD, Deployment, end, real_servers
from tests.adversary.killing import Orders
from tests.adversary.table import Cell
from tests.fixtures.postgres import postgres_server
from tests.fixtures.sockets import process_of_port
from tests.fixtures.waiting import wait_until

FREEZES = int(os.environ.get("ADVERSARY_FREEZES", "8"))
SEED = int(os.environ.get("ADVERSARY_SEED", "1"))
#: the leases' own times, in seconds
ORDERS = Orders(ttl=6.0, deadline=2.0)
_MIRRORS = {"glue": FORWARD, "hive": BACK}
#: seconds after waking in which the calls may come that were frozen between the look at the lease and themselves: one for each
#: connection of the process, and each had its intent in the journal before. A process that wakes on a busy machine needs more than 5 s.
_LATE = 15.0
#: requests of one call: a declaration in Hive makes a view first, and then the table of it
_REQUESTS = {"glue": 1, "hive": 2}
#: seconds; a bound for a machine that is busy with other things
_PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a mirror's lease: the process, and the fencing token."""

    mirror: str
    pid: int
    token: int


@dataclass
class Woken:
    """A process that was frozen beyond its lease: when it was woken (monotonic seconds), and the calls that may still come of it."""

    at: float
    calls: int
    requests: int = 0

    def may_write(self, requests_of_call: int) -> bool:
        self.requests += 1
        return time.monotonic() - self.at < _LATE and self.requests <= self.calls * requests_of_call


@dataclass
class Witness:
    """Judges each write as it arrives, and freezes its caller once ``armed`` is set. ``processes``: those that may write."""

    index: Index
    processes: set[int] = field(default_factory=lambda: {os.getpid()})
    armed: threading.Event = field(default_factory=threading.Event)
    struck: queue.Queue[Holder] = field(default_factory=queue.Queue)
    woken: dict[int, Woken] = field(default_factory=dict)
    late: int = 0
    wrong: list[str] = field(default_factory=list)

    def holder(self, mirror: str) -> Holder | None:
        """Who has the lease of a mirror now; None if nobody has."""
        with self.index.read() as connection:
            query = select(t.lease.c.holder, t.lease.c.token, t.lease.c.expires_at).where(t.lease.c.name == f"mirror:{mirror}")
            row = connection.execute(query).one_or_none()
        return Holder(mirror, int(row.holder.split(":")[-2]), row.token) if row is not None and row.expires_at > 0 else None

    def arrived(self, catalog: str, port: int) -> None:
        mirror = _MIRRORS[catalog]
        holder, pid = self.holder(mirror), process_of_port(port, list(self.processes))
        if holder is None or holder.pid != pid:
            if pid in self.woken and self.woken[pid].may_write(_REQUESTS[catalog]):
                self.late += 1
            else:
                self.wrong.append(f"process {pid} writes by {mirror}, whose lease {holder or 'nobody'} has")
        elif pid != os.getpid() and self.armed.is_set():
            self.armed.clear()
            os.killpg(pid, signal.SIGSTOP)
            self.struck.put(holder)


@dataclass
class Storm:
    """The processes of a deployment, and what is done to them."""

    deployment: Deployment
    witness: Witness
    rng: random.Random
    happened: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _ending: threading.Event = field(default_factory=threading.Event)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        process = self.deployment.command(*arguments, orders=ORDERS)
        self.witness.processes.add(process.pid)
        return process

    @contextmanager
    def processes(self) -> Iterator[None]:
        """Two workers, and one ``federator sync`` after the other."""
        workers = [self.start("serve", "--role", "worker") for _ in range(2)]
        with ThreadPoolExecutor(1) as pool:
            commands = pool.submit(self._commands)
            try:
                yield
            finally:
                self._ending.set()
                for worker in workers:
                    if worker.poll() is not None:
                        self.wrong.append(f"a worker ended by itself with {worker.returncode}")
                    with suppress(ProcessLookupError):
                        os.killpg(worker.pid, signal.SIGCONT)
                codes = [end(worker) for worker in workers]
            commands.result()
        self.wrong += [f"a worker ended with {code}" for code in codes if code]

    def _commands(self) -> None:
        while not self._ending.is_set():
            process = self.start("sync")
            while process.poll() is None:
                time.sleep(0.1)
            self.happened[f"command ended with {process.returncode}"] += 1

    def freeze(self, *, in_call: bool) -> None:
        """Freeze one process beyond its lease, until another has it; wake it."""
        holder = self._in_call() if in_call else self._holding()
        intents = self._open_intents(holder.mirror)
        wait_until(lambda: self._taken_over(holder), f"another process has the lease of {holder.mirror}", _PATIENCE)
        time.sleep(self.rng.uniform(0, 3))
        woken_at = time.time()
        self.witness.woken[holder.pid] = Woken(time.monotonic(), len(intents))
        with suppress(ProcessLookupError):
            os.killpg(holder.pid, signal.SIGCONT)
        time.sleep(_LATE)
        self.witness.woken.pop(holder.pid, None)
        self.wrong += [
            f"run {run} wrote an intent without its lease"
            for run in set(intents.values())
            if self._intended(run, holder.mirror, woken_at)
        ]
        self.happened["frozen in mid-call" if in_call else "frozen with a lease"] += 1

    def _in_call(self) -> Holder:
        self.witness.armed.set()
        return self.witness.struck.get(timeout=_PATIENCE)

    def _holding(self) -> Holder:
        found: list[Holder] = []

        def held() -> bool:
            holders = [self.witness.holder(mirror) for mirror in (FORWARD, BACK)]
            found[:] = [holder for holder in holders if holder is not None and holder.pid in self.witness.processes]
            return bool(found)

        while True:
            wait_until(held, "a process has the lease of a mirror", _PATIENCE)
            time.sleep(self.rng.uniform(0, 1))
            if self.witness.holder(found[0].mirror) == found[0]:
                os.killpg(found[0].pid, signal.SIGSTOP)
                if self.witness.holder(found[0].mirror) == found[0]:
                    return found[0]
                os.killpg(found[0].pid, signal.SIGCONT)

    def _taken_over(self, holder: Holder) -> bool:
        now = self.witness.holder(holder.mirror)
        return now is not None and now.token > holder.token

    def _open_intents(self, mirror: str) -> dict[str, str]:
        """The runs of a mirror's open intents, by operation."""
        j = t.journal.c
        with self.witness.index.read() as connection:
            rows = connection.execute(select(j.op_id, j.run_id).where(j.mirror == mirror, j.state == "intent"))
            return {row.op_id: row.run_id for row in rows}

    def _intended(self, run: str, mirror: str, since: float) -> bool:
        """Whether a run wrote intents of a mirror since then. With other mirrors, whose leases it has, it may go on."""
        j = t.journal.c
        query = select(j.op_id).where(j.run_id == run, j.mirror == mirror, j.intent_at > since).limit(1)
        with self.witness.index.read() as connection:
            return connection.execute(query).first() is not None


def storm(deployment: Deployment, freezes: int, seed: int, size: int) -> tuple[Counter[str], list[str]]:
    """Freeze processes ``freezes`` times, then come to rest. Return what happened, and everything that is wrong."""
    churns = {mirror: deployment.churn(mirror, seed + number, size) for number, mirror in enumerate((FORWARD, BACK))}
    deployment.sync()
    with deployment.index() as index:
        witness = Witness(index)
        running = Storm(deployment, witness, random.Random(seed))
        deployment.writes.watch = witness.arrived
        with churns[FORWARD], churns[BACK], running.processes(), deployment.approving():
            for number in range(freezes):
                running.freeze(in_call=number % 2 == 0)
        result, rounds = deployment.come_to_rest()
    running.happened.update({"rounds to rest": rounds, "late calls": witness.late})
    wrong = [line for mirror, churn in churns.items() for line in deployment.disagreements(result, mirror, churn)]
    return running.happened, [*running.wrong, *witness.wrong, *wrong, *deployment.audited()]


def migrated(url: str) -> str:
    """The same URL; its database has the index's tables."""
    index = open_index(url)
    migrations.upgrade_schema(index)
    index.close()
    return url


def run(directory: Path) -> list[Cell]:
    """Hive 2.3 and Glue, mirrored in both directions; the index is on a PostgreSQL of its own."""
    own = Path(tempfile.mkdtemp(prefix="federator-postgres-"))
    try:
        with postgres_server(own) as url, real_servers(directory, hive.HIVE2) as (metastore, account):
            deployment = Deployment(directory / "deployment", metastore, account, url=migrated(url))
            try:
                happened, wrong = storm(deployment, FREEZES, SEED, 30)
            finally:
                deployment.close()
    finally:
        shutil.rmtree(own, ignore_errors=True)
    sys.stderr.write(f"workers: {dict(happened)}\n" + "".join(f"workers: {line}\n" for line in wrong))
    observed = f"{FREEZES} frozen, {happened['late calls']} late calls, {len(wrong)} wrong"
    return [
        Cell(
            "workers",
            "PostgreSQL, hive 2.3 and glue, both ways",
            observed,
            "nothing without a lease, everything agrees",
            not wrong,
        )
    ]
