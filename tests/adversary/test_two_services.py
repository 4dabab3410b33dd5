"""Two services over one index on PostgreSQL: the one that holds the lease is killed, or frozen and woken later, at every moment of its
run, and the other takes over.

As each write arrives at the target, the database is asked how the lease of its process stands. Frozen between its last look at the
lease and the call, a process makes that one call late: no catalog checks our tokens. It is the only one, and changes nothing once the
other is done; what it does while the other is at work is the residue that
docs/development/architecture.md states, and is not tried here.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from federator.connector import SourceSpec
from federator.store import leases, migrations, open_index
from tests.adversary.killing import TARGET, Orders, Site, World, workers

pytestmark = pytest.mark.timeout(900)

# Long enough for a process that gets no processor for a while: nobody loses a lease here but who was struck.
TTL, DEADLINE = 6.0, 0.5
PLAN = ("deregister", "create", "rename", "update", "recreate")
#: as many at once as mostly wait for a lease to end, and as a server has connections for: up to five each
AT_ONCE = 18


@pytest.fixture
def site(tmp_path: Path, postgres_database: Callable[[], str]) -> Site:
    directory = tmp_path / f"w{secrets.token_hex(3)}"
    directory.mkdir()
    url = postgres_database()
    index = open_index(url)
    migrations.upgrade_schema(index)
    index.close()
    return Site(directory, SourceSpec(TARGET, "federator.testing:CONNECTOR", {}), "s3://bucket", url=url)


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    with workers(AT_ONCE) as started:
        yield started


def test_the_second_service_ends_what_the_first_began(site: Site, pool: ProcessPoolExecutor) -> None:
    expected, moments = pool.submit(_calmly, site).result()
    # Four of the journal for each of seven Changes and the bystander, and two of each call; a recreation has two calls.
    assert len(moments) == 4 * 8 + 2 * 9
    ways = ("woken during the second", "woken after the second")
    points = [(at, ways[what.startswith("before call") or at // 2 % 2]) for at, what in enumerate(moments)]
    points += [(at, "killed") for at, what in enumerate(moments) if "call" not in what]
    futures = [pool.submit(_taken_over, site, *point) for point in points]
    found = [future.result() for future in futures]
    assert [struck for struck, _, _ in found] == [moments[at] for at, _ in points]
    assert [(way, struck, wrong) for (_, way), (struck, wrong, _) in zip(points, found, strict=True) if wrong] == []
    assert [(struck, state) for struck, _, state in found if state != expected] == []


def test_a_process_that_freezes_inside_a_transaction_does_not_keep_the_lease(site: Site, pool: ProcessPoolExecutor) -> None:
    assert pool.submit(_frozen_inside, site).result() == (0, True)


def _frozen_inside(site: Site) -> tuple[int, bool]:
    """How the second ended, and whether that was before the first was woken."""
    world = site.world("inside")
    first = multiprocessing.get_context("fork").Process(target=_freeze, args=(world,), daemon=True)
    first.start()
    _until(lambda: _struck(first, signal.SIGSTOP))
    code = world.run(Orders(ttl=TTL, deadline=DEADLINE, wait=240))
    still = _struck(first, signal.SIGSTOP)
    first.kill()
    first.join(240)
    return code, still


def _freeze(world: World) -> None:
    leases.LEASE_TTL_SECONDS, leases.CALL_DEADLINE_SECONDS = TTL, DEADLINE
    with world.index() as index, leases.acquire_lease(index, f"mirror:{world.rule.name}") as lease, index.write() as connection:
        lease.require_held(connection)
        os.kill(os.getpid(), signal.SIGSTOP)


def _calmly(site: Site) -> tuple[dict[str, Any], list[str]]:
    world = site.world("calm", *PLAN)
    assert world.run(Orders(ttl=TTL, deadline=DEADLINE, wait=240)) == 0
    return _end(world), [moment["what"] for moment in world.moments()]


def _taken_over(site: Site, at: int, way: str) -> tuple[str, list[str], dict[str, Any]]:
    """What the first was about when it was struck, what is wrong with the calls of both services, and the end."""
    world = site.world(f"{way.replace(' ', '_')}{at}", *PLAN)
    blow = signal.SIGKILL if way == "killed" else signal.SIGSTOP
    first = world.start(Orders(at, blow, TTL, DEADLINE, wait=240))
    _until(lambda: _struck(first, blow))
    struck = world.moments()[-1]["what"]
    second = world.start(Orders(ttl=TTL, deadline=DEADLINE, wait=240, again=True))
    if way == "woken during the second":
        _until(lambda: any(line["pid"] == second.pid for line in world.log_lines()) or not second.is_alive())
        os.kill(first.pid or 0, signal.SIGCONT)
    second.join(240)
    if way == "woken after the second":
        os.kill(first.pid or 0, signal.SIGCONT)
    first.join(240)
    wrong = [f"the second ended with {second.exitcode}"] if second.exitcode else []
    # Who comes back without a lease ends with LeaseLost, if there was anything left to write.
    if first.exitcode not in ((-signal.SIGKILL,) if way == "killed" else (0, 1)):
        wrong.append(f"the first ended with {first.exitcode}")
    return struck, wrong + _wrong_calls(world, first, struck), _end(world)


def _end(world: World) -> dict[str, Any]:
    """The end, and how often each call happened as the target itself tells it."""
    return {**world.state(), "calls": Counter(world.target_calls())}


def _wrong_calls(world: World, first: BaseProcess, struck: str) -> list[str]:
    begun = [line for line in world.log_lines() if line["what"].startswith("begin call")]
    late = [line for line in begun if not line["ours"] or line["left"] <= 0]
    in_flight = struck.replace("before call", "begin call")
    wrong = [f"without a lease: {line}" for line in late if (line["pid"], line["what"]) != (first.pid, in_flight)]
    return wrong + [f"repeated: {what}" for what in world.repeated()]


def _struck(process: BaseProcess, blow: int) -> bool:
    if blow == signal.SIGKILL:
        return process.exitcode is not None
    state = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    assert process.exitcode is None
    return state == "T"


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
