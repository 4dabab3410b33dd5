"""The processes that open tables: kept, ended and replaced; and no answer beyond a limit."""

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
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.connector import Internal, InvalidInput, ServiceUnavailable
from federator.connector.child import Child, ChildDied
from federator.connector.errors import InvalidTableState
from federator.data import DataLimits, DataPool, Place
from federator.data.pool import NoAnswer

PATIENT = DataLimits(seconds=120.0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Place:
    path = str(tmp_path_factory.mktemp("data") / "t.lance")
    lance.write_dataset(pa.table({"id": range(100), "text": ["x" * 100] * 100}), path)
    return Place(path)


@pytest.fixture(scope="module")
def shared() -> Iterator[DataPool]:
    made = DataPool(PATIENT, 1)
    yield made
    made.close()


@pytest.fixture
def pool(shared: DataPool) -> Iterator[DataPool]:
    """The same for every test, so that few processes are started: whatever a test does to it, the next one finds it at work."""
    yield shared
    shared.limits = PATIENT


@pytest.fixture(scope="module")
def silent() -> Iterator[Place]:
    """A store that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        storage = {
            "aws_endpoint": f"http://127.0.0.1:{listener.getsockname()[1]}", "allow_http": "true", "aws_region": "us-east-1",
            "aws_access_key_id": "key", "aws_secret_access_key": "hidden-secret",
        }  # fmt: skip
        yield Place("s3://bucket/t.lance", storage)


def rows(pool: DataPool, place: Place, **query: Any) -> Any:
    with pool.file() as path:
        return pool.run("query", place, query=query, output=str(path))


def test_one_process_answers_many(pool: DataPool, table: Place) -> None:
    assert pool.run("count", table) == 100
    first = pool._idle[0].pid
    assert pool.run("count", table, predicate="id < 7") == 7
    assert [child.pid for child in pool._idle] == [first]


def test_a_store_that_hangs_costs_its_process_and_the_next_request_has_another(
    pool: DataPool, table: Place, silent: Place
) -> None:
    pool.run("count", table)
    first = pool._idle[0]

    def hang(ask: Any) -> Any:
        pool.limits = DataLimits(seconds=0.5)
        return ask("count", silent)

    with pytest.raises(NoAnswer, match=r"\[serve.data\] max_seconds = 0.5"):
        pool.submit(hang).result()
    assert not first.alive
    pool.limits = PATIENT
    assert pool.run("count", table) == 100


def test_a_process_that_dies_is_an_error_of_that_request_only(pool: DataPool, table: Place, silent: Place) -> None:
    pool.run("count", table)
    asked = pool.submit(lambda ask: ask("count", silent))
    while not pool._busy:
        time.sleep(0.01)
    os.kill(next(iter(pool._busy)).pid, signal.SIGKILL)
    with pytest.raises(Internal, match="ended"):
        asked.result()
    assert pool.run("count", table) == 100


def test_one_that_died_between_requests_is_not_asked(pool: DataPool, table: Place) -> None:
    pool.run("count", table)
    pool._idle[0].kill()
    assert pool.run("count", table) == 100


def test_who_waits_too_long_for_a_process_is_told_so(pool: DataPool) -> None:
    begun, held = threading.Event(), threading.Event()

    def hold(_: Any) -> bool:
        begun.set()
        return held.wait()

    first = pool.submit(hold)
    begun.wait()
    pool.limits = DataLimits(seconds=0.01)
    second = pool.submit(lambda ask: ask("count", Place("/nothing")))
    time.sleep(0.05)
    held.set()
    assert first.result()
    with pytest.raises(ServiceUnavailable, match=r"all 1 processes .* \[serve.data\] max_seconds = 0.01"):
        second.result()


def test_closing_ends_what_hangs(table: Place, silent: Place) -> None:
    pool = DataPool(PATIENT, 1)
    asked = pool.submit(lambda ask: ask("count", silent))
    while not pool._busy:
        time.sleep(0.01)
    child = next(iter(pool._busy))
    spooled = pool.new_file()
    pool.close()
    with pytest.raises(Internal):
        asked.result()
    assert not child.alive
    assert not spooled.parent.exists()


def test_a_process_whose_parent_is_gone_ends_by_itself(silent: Place) -> None:
    """It hangs where it cannot be told that nobody reads; its own clock ends it."""
    child = Child("federator.data.process")
    request = {
        "operation": "count", "location": silent.location, "storage": dict(silent.storage), "arguments": {}, "seconds": -4.9,
    }  # fmt: skip
    with pytest.raises(ChildDied):
        child.ask(request, 120.0)
    child.kill()


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (DataLimits(rows=99, seconds=120.0), r"max_rows = 99"),
        (DataLimits(bytes=10_000, seconds=120.0), r"max_bytes = 10000"),
    ],
)
def test_an_answer_beyond_a_limit_is_an_error_that_names_it(
    pool: DataPool, table: Place, limits: DataLimits, name: str
) -> None:
    pool.limits = limits
    with pytest.raises(InvalidInput, match=rf"\[serve.data\] {name}"):
        rows(pool, table, k=0)
    assert rows(pool, table, k=50, columns={"column_names": ["id"]}) == {"rows": 50, "bytes": 400}


def test_what_no_table_is_has_its_own_error(pool: DataPool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(InvalidTableState, match="without Lance's _versions"):
        pool.run("count", Place(str(tmp_path)))
    with pytest.raises(InvalidInput, match="no location"):
        pool.run("count", Place("not a place"))


def test_a_table_on_s3_is_read_and_written(pool: DataPool, s3_storage_options: dict[str, str]) -> None:
    """moto's server, over HTTP."""
    key = f"data/{uuid.uuid4().hex}.lance"
    place = Place(f"s3://lance-data/{key}", s3_storage_options)
    assert s3_storage_options["aws_secret_access_key"] not in repr(place)
    rows = pa.table({"id": [1, 2, 3]})
    with pool.file() as body:
        with pa.OSFile(str(body), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        assert pool.run("create", place, input=str(body))["version"] == 1
        assert pool.run("insert", place, input=str(body)) == {"num_inserted_rows": 3, "version": 2}
    there = lance.dataset(place.location, storage_options=s3_storage_options)
    assert pool.run("count", place) == there.count_rows() == 6
    paths = [version["manifest_path"] for version in pool.run("versions", place)["versions"]]
    assert [path.rpartition("/")[0] for path in paths] == [f"{key}/_versions"] * 2


def test_the_process_that_serves_imports_neither_lance_nor_arrow() -> None:
    code = "import sys; import federator.data; print({'lance', 'pyarrow', 'pandas'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
