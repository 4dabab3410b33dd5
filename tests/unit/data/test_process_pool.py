"""The processes that open tables: reuse, end, replacement, and limits of responses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.connector import Internal, InvalidInput, ServiceUnavailable
from federator.connector.errors import InvalidTableState
from federator.data import DataLimits, PrincipalPool, TableHandle, TableProcessPool
from federator.data.crashes import WINDOW_SECONDS, CrashLog
from federator.data.fair_executor import FairExecutor
from federator.data.process_pool import ProcessTimeout
from federator.runtime.child_process import ChildProcess, ChildProcessDied
from tests.fixtures.data import data_limits

PATIENT = data_limits(max_seconds=120.0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableHandle:
    path = str(tmp_path_factory.mktemp("data") / "t.lance")
    lance.write_dataset(pa.table({"id": range(100), "text": ["x" * 100] * 100}), path)
    return TableHandle(path)


@pytest.fixture(scope="module")
def shared() -> Iterator[TableProcessPool]:
    pool = TableProcessPool(PATIENT, 1)
    yield pool
    pool.close()


@pytest.fixture
def pool(shared: TableProcessPool) -> Iterator[TableProcessPool]:
    """The same for every test, so that few processes are started: whatever a test does to it, the next one finds it at work."""
    yield shared
    shared.limits = PATIENT


@pytest.fixture(scope="module")
def silent() -> Iterator[TableHandle]:
    """A store that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        storage = {
            "aws_endpoint": f"http://127.0.0.1:{listener.getsockname()[1]}", "allow_http": "true", "aws_region": "us-east-1",
            "aws_access_key_id": "key", "aws_secret_access_key": "hidden-secret",
        }  # fmt: skip
        yield TableHandle("s3://bucket/t.lance", storage)


def run(pool: TableProcessPool, operation: str, handle: TableHandle, **arguments: Any) -> Any:
    return PrincipalPool(pool, "").run(operation, handle, **arguments)


def query_rows(pool: TableProcessPool, handle: TableHandle, **query: Any) -> Any:
    with pool.open_file("") as file:
        return run(pool, "query", handle, query=query, output=str(file.path))


def test_one_process_answers_many(pool: TableProcessPool, table: TableHandle) -> None:
    assert run(pool, "count", table) == 100
    first = pool._idle[0].pid
    assert run(pool, "count", table, predicate="id < 7") == 7
    assert [child.pid for child in pool._idle] == [first]


def test_a_store_that_hangs_costs_its_process_and_the_next_request_has_another(
    pool: TableProcessPool, table: TableHandle, silent: TableHandle
) -> None:
    run(pool, "count", table)
    first = pool._idle[0]

    def hang(ask: Any) -> Any:
        pool.limits = data_limits(max_seconds=0.5)
        return ask("count", silent)

    with pytest.raises(ProcessTimeout, match=r"\[serve.data\] max_seconds = 0.5"):
        pool.submit(hang, "").result()
    assert not first.is_alive
    pool.limits = PATIENT
    assert run(pool, "count", table) == 100


def test_all_rounds_of_references_share_one_time_limit(pool: TableProcessPool, tmp_path: Path) -> None:
    """A table with a link, whose target has a link, and so on: each of them is found once the one before may be read."""
    lance.write_dataset(pa.table({"id": [1]}), location := str(tmp_path / "t.lance"))
    directories = [tmp_path / "t.lance" / "data", *(tmp_path / str(number) for number in range(5))]
    for directory, target in pairwise(directories):
        target.mkdir()
        (directory / "next").symlink_to(target)
    rounds = []

    def may_read(*locations: Any) -> bool:
        rounds.append(locations)
        time.sleep(0.3)
        return True

    handle = TableHandle(location, may_read=may_read)
    assert run(pool, "count", handle) == 1
    assert len(rounds) == 5

    def count(ask: Any) -> Any:
        pool.limits = data_limits(max_seconds=1.0)
        return ask("count", handle)

    with pytest.raises(ProcessTimeout, match=r"\[serve.data\] max_seconds = 1"):
        pool.submit(count, "").result()


def test_a_process_that_dies_is_an_error_of_that_request_only(
    pool: TableProcessPool, table: TableHandle, silent: TableHandle
) -> None:
    run(pool, "count", table)
    future = pool.submit(lambda ask: ask("count", silent), "")
    while not pool._busy:
        time.sleep(0.01)
    os.kill(next(iter(pool._busy)).pid, signal.SIGKILL)
    with pytest.raises(Internal, match="ended"):
        future.result()
    assert run(pool, "count", table) == 100


def test_one_that_died_between_requests_is_not_asked(pool: TableProcessPool, table: TableHandle) -> None:
    run(pool, "count", table)
    pool._idle[0].kill()
    assert run(pool, "count", table) == 100


def test_waiting_too_long_for_a_process_is_an_error(pool: TableProcessPool) -> None:
    begun, held = threading.Event(), threading.Event()

    def hold(_: Any) -> bool:
        begun.set()
        return held.wait()

    first = pool.submit(hold, "")
    begun.wait()
    pool.limits = data_limits(max_seconds=0.01)
    second = pool.submit(lambda ask: ask("count", TableHandle("/nothing")), "")
    time.sleep(0.05)
    held.set()
    assert first.result()
    with pytest.raises(ServiceUnavailable, match=r"all 1 processes .* \[serve.data\] max_seconds = 0.01"):
        second.result()


def test_closing_ends_hanging_processes(table: TableHandle, silent: TableHandle) -> None:
    pool = TableProcessPool(PATIENT, 1)
    future = pool.submit(lambda ask: ask("count", silent), "")
    while not pool._busy:
        time.sleep(0.01)
    child = next(iter(pool._busy))
    spooled = pool.open_file("").path
    pool.close()
    with pytest.raises(Internal):
        future.result()
    assert not child.is_alive
    assert not spooled.parent.exists()


def test_a_process_ends_after_its_parent(silent: TableHandle) -> None:
    """It hangs where it cannot be told that nobody reads; its own clock ends it."""
    child = ChildProcess("federator.data.process_main")
    request = {
        "operation": "count", "location": silent.location, "storage": dict(silent.storage), "arguments": {}, "seconds": -4.9,
    }  # fmt: skip
    with pytest.raises(ChildProcessDied):
        child.request(request, 120.0)
    child.kill()


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (data_limits(max_rows=99, max_seconds=120.0), r"max_rows = 99"),
        (data_limits(max_bytes=10_000, max_seconds=120.0), r"max_bytes = 10000"),
    ],
)
def test_an_answer_beyond_a_limit_is_an_error_that_names_it(
    pool: TableProcessPool, table: TableHandle, limits: DataLimits, name: str
) -> None:
    pool.limits = limits
    with pytest.raises(InvalidInput, match=rf"\[serve.data\] {name}"):
        query_rows(pool, table, k=0)
    assert query_rows(pool, table, k=50, columns={"column_names": ["id"]}) == {"rows": 50, "bytes": 400}


def test_what_no_table_is_has_its_own_error(pool: TableProcessPool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(InvalidTableState, match="without Lance's _versions"):
        run(pool, "count", TableHandle(str(tmp_path)))
    with pytest.raises(InvalidInput, match="not a location"):
        run(pool, "count", TableHandle("not a place"))


def test_a_table_on_s3_is_read_and_written(pool: TableProcessPool, s3_storage_options: dict[str, str]) -> None:
    """moto's server, over HTTP."""
    key = f"data/{uuid.uuid4().hex}.lance"
    handle = TableHandle(f"s3://lance-data/{key}", s3_storage_options)
    assert s3_storage_options["aws_secret_access_key"] not in repr(handle)
    rows = pa.table({"id": [1, 2, 3]})
    with pool.open_file("") as body:
        with pa.OSFile(str(body.path), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        assert run(pool, "create", handle, input=str(body.path))["version"] == 1
        assert run(pool, "insert", handle, input=str(body.path)) == {"num_inserted_rows": 3, "version": 2}
    dataset = lance.dataset(handle.location, storage_options=s3_storage_options)
    assert run(pool, "count", handle) == dataset.count_rows() == 6
    paths = [version["manifest_path"] for version in run(pool, "versions", handle)["versions"]]
    assert [path.rpartition("/")[0] for path in paths] == [f"{key}/_versions"] * 2


def test_the_process_that_serves_imports_neither_lance_nor_arrow() -> None:
    code = "import sys; import federator.data; print({'lance', 'pyarrow', 'pandas'} & set(sys.modules))"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "set()"


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_work_beyond_the_memory_is_ended_and_the_next_request_is_served(
    pool: TableProcessPool, table: TableHandle, tmp_path: Path
) -> None:
    large = str(tmp_path / "large.lance")
    # One value, because rows that are read one after the other may never need the memory at the moment of a check.
    lance.write_dataset(pa.table({"text": ["x" * (512 << 20)]}), large)
    pool.limits = data_limits(max_seconds=120.0, max_bytes=1 << 40, max_memory=128 << 20)
    with pytest.raises(InvalidInput, match="max_memory = 134217728"):
        query_rows(pool, TableHandle(large), columns={"column_names": ["text"]})
    assert run(pool, "count", table) == 100
    pool.limits = PATIENT
    assert run(pool, "count", TableHandle(large)) == 1


def test_a_location_that_crashes_its_process_twice_is_left_alone(
    pool: TableProcessPool, table: TableHandle, silent: TableHandle
) -> None:
    crashing = replace(silent, location="s3://bucket/crashing.lance")
    for _ in range(2):
        future = pool.submit(lambda ask: ask("count", crashing), "")
        while not pool._busy:
            time.sleep(0.01)
        os.kill(next(iter(pool._busy)).pid, signal.SIGKILL)
        with pytest.raises(Internal, match="the process that opened the table ended"):
            future.result()
    with pytest.raises(ServiceUnavailable, match="is not opened for"):
        run(pool, "count", crashing)
    assert run(pool, "count", table) == 100


def test_an_expression_that_crashes_the_process_closes_the_table_for_its_principal_only(
    pool: TableProcessPool, table: TableHandle
) -> None:
    deep = "+".join(["1"] * 30_000) + " > 0"
    for _ in range(2):
        with pytest.raises(Internal, match="the process that opened the table ended"):
            pool.submit(lambda ask: ask("count", table, predicate=deep), "viewer").result()
    with pytest.raises(ServiceUnavailable, match="is not opened for"):
        pool.submit(lambda ask: ask("count", table), "viewer").result()
    assert pool.submit(lambda ask: ask("count", table), "writer").result() == 100


def test_crashes_are_forgotten_after_a_while() -> None:
    now = [0.0]
    crashes = CrashLog(clock=lambda: now[0])
    crashes.record("x", "s3://a")
    crashes.require_few("x", "s3://a")
    now[0] = WINDOW_SECONDS - 1
    crashes.record("x", "s3://a")
    crashes.require_few("x", "s3://b")
    crashes.require_few("y", "s3://a")
    with pytest.raises(ServiceUnavailable, match="for 1 s"):
        crashes.require_few("x", "s3://a")
    now[0] = WINDOW_SECONDS + 1
    crashes.require_few("x", "s3://a")


def test_a_principal_with_many_slow_requests_delays_no_other(table: TableHandle, silent: TableHandle) -> None:
    pool = TableProcessPool(PATIENT, 2)
    try:
        slow = [pool.submit(lambda ask: ask("count", silent), "busy") for _ in range(12)]
        assert pool.submit(lambda ask: ask("count", table), "another").result(60) == 100
        assert not any(future.done() for future in slow)
        assert len(pool._busy) == 1
    finally:
        pool.close()
    assert all(future.done() for future in slow)


def test_of_several_waiting_principals_none_is_served_twice_in_a_row() -> None:
    executor, begun, order = FairExecutor(1, "test"), threading.Event(), []
    release = threading.Event()
    first = executor.submit("a", lambda: (begun.set(), release.wait(60)))
    assert begun.wait(60)
    waiting = [executor.submit(principal, partial(order.append, principal)) for principal in "aaabbc"]
    release.set()
    first.result(60)
    for future in waiting:
        future.result(60)
    executor.shutdown()
    assert order == ["a", "b", "c", "a", "b", "a"]
