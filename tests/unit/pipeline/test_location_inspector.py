"""Inspection of locations: the result for each state, also if opening a table hangs or ends its process."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.connector import ConfigError, SourceSpec
from federator.lance.inspection import inspect_location
from federator.pipeline.verify import InspectorProcess, distribute_by_store
from federator.runtime import child_process
from federator.runtime.child_process import ChildProcess
from tests.fixtures.file_capabilities import run_python_bound


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lance") / "t.lance"
    lance.write_dataset(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), str(path))
    lance.write_dataset(pa.table({"id": [4], "name": ["d"]}), str(path), mode="append")
    return path


@pytest.fixture
def table(written: Path, tmp_path: Path) -> Path:
    """A table of its own, to be broken."""
    return Path(shutil.copytree(written, tmp_path / "t.lance"))


def state(location: Path | str, **storage: str) -> str:
    inspection = inspect_location(str(location), storage)
    facts = {value for name, value in asdict(inspection).items() if name not in ("state", "message")}
    assert (None not in facts) if inspection.state == "valid" else (facts == {None})
    assert (inspection.message is None) == (inspection.state == "valid")
    return inspection.state


def test_a_table_is_valid_and_described(table: Path) -> None:
    for location in (str(table), f"file://{table}", f"file:{table}/"):
        inspection = inspect_location(location, {})
        assert (inspection.state, inspection.version, inspection.rows, inspection.fragments) == ("valid", 2, 4, 2)
        assert inspection.schema == (
            '[{"name": "id", "type": "int64", "nullable": true}, {"name": "name", "type": "string", "nullable": true}]'
        )


def test_a_table_without_rows_is_valid(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": pa.array([], pa.int64())}), str(tmp_path / "t.lance"))
    assert inspect_location(str(tmp_path / "t.lance"), {}).rows == 0


def test_a_name_with_every_kind_of_character(tmp_path: Path, written: Path) -> None:
    odd = tmp_path / "a b%20#?é$.lance"
    shutil.copytree(written, odd)
    assert state(odd) == "valid"


def test_nothing_there_is_missing(tmp_path: Path) -> None:
    assert state(tmp_path / "nothing.lance") == "missing"
    assert state(tmp_path / "no" / "such" / "parent.lance") == "missing"


def test_an_empty_directory_is_empty(tmp_path: Path) -> None:
    assert state(tmp_path) == "empty"


def test_a_reserved_name_is_declared_only(tmp_path: Path) -> None:
    (tmp_path / ".lance-reserved").touch()
    assert state(tmp_path) == "declared_only"


def test_something_else_is_not_lance(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    assert state(tmp_path) == "not_lance"
    assert state(tmp_path / "part-0.parquet") == "not_lance"
    for location in ("", "relative/place", "C:\\x", "gopher:/nothing/here"):
        assert state(location) == "not_lance"


def test_a_cut_manifest_is_corrupt(table: Path) -> None:
    for manifest in (table / "_versions").iterdir():
        manifest.write_bytes(manifest.read_bytes()[:20])
    assert state(table) == "corrupt"


def test_no_manifest_is_corrupt(table: Path) -> None:
    for manifest in (table / "_versions").iterdir():
        manifest.unlink()
    assert state(table) == "corrupt"


def test_data_without_manifests_is_corrupt(table: Path) -> None:
    shutil.rmtree(table / "_versions")
    assert state(table) == "corrupt"
    shutil.rmtree(table / "_transactions")
    assert state(table) == "corrupt"


@pytest.mark.parametrize("name", ["403.lance", "timeout not found.lance", "permission denied"])
def test_a_tables_name_is_no_error_of_its_store(written: Path, tmp_path: Path, name: str) -> None:
    table = Path(shutil.copytree(written, tmp_path / name))
    for manifest in (table / "_versions").iterdir():
        manifest.write_bytes(manifest.read_bytes()[:20])
    assert state(table) == "corrupt"


def test_the_newest_manifest_tells_everything(table: Path) -> None:
    lance.dataset(str(table)).create_scalar_index("id", "BTREE")
    lance.dataset(str(table)).delete("id = 1")
    inspection = inspect_location(str(table), {})
    assert (inspection.version, inspection.rows, inspection.fragments, inspection.indices) == (4, 3, 2, 1)
    assert inspection.size == sum(file.stat().st_size for file in (table / "data").iterdir())
    assert abs((inspection.changed_at or 0) - time.time()) < 600
    assert inspection.format.startswith("2.")
    before = inspection.fingerprint
    lance.dataset(str(table)).add_columns({"twice": "id * 2"})
    assert inspect_location(str(table), {}).fingerprint != before
    for manifest in sorted((table / "_versions").iterdir())[1:]:
        manifest.write_bytes(b"older ones are not read")
    assert inspect_location(str(table), {}).version == 5


_INSPECT = """
import sys
from federator.data.process_main import handle_request
from federator.lance.inspection import inspect_location
request = {
    "operation": "count", "location": sys.argv[1], "storage": {}, "allowed_bases": [], "mounts": [], "permitted": [],
    "arguments": {}, "seconds": 9,
}
print(inspect_location(sys.argv[1], {}).state, handle_request(request).get("error", {}).get("code"))
"""


def test_a_directory_that_may_not_be_read_is_denied(table: Path) -> None:
    table.chmod(0)
    try:
        assert run_python_bound(_INSPECT, str(table)) == "denied 15"
    finally:
        table.chmod(0o755)


@pytest.mark.parametrize("unlisted", ["", "data", "_versions"])
def test_nothing_is_read_through_links_that_cannot_be_looked_for(table: Path, tmp_path: Path, unlisted: str) -> None:
    (linked := tmp_path / "linked.lance").mkdir()
    for part in table.iterdir():
        if unlisted == part.name:
            (linked / part.name).mkdir()
            for file in part.iterdir():
                (linked / part.name / file.name).symlink_to(file)
        elif unlisted == "":
            (linked / part.name).symlink_to(part)
        else:
            shutil.copytree(part, linked / part.name)
    (linked / unlisted).chmod(0o311)
    try:
        assert run_python_bound(_INSPECT, str(linked)) == "denied 15"
    finally:
        (linked / unlisted).chmod(0o755)


class TestOpenerProcess:
    """``verify.InspectorProcess``: the child process around it."""

    SPEC = SourceSpec("lake", "federator.testing:CONNECTOR")

    def test_one_process_opens_many(self, table: Path, tmp_path: Path) -> None:
        with InspectorProcess(self.SPEC, 60.0) as opener:
            assert opener.inspect(str(table)).state == "valid"
            first = opener._child
            assert opener.inspect(str(tmp_path / "nothing")).state == "missing"
            assert opener._child is first is not None
        assert not first.is_alive

    def test_a_location_that_hangs_costs_its_time_once_and_its_process(self, silent: str, table: Path) -> None:
        storage = {f"storage.{key}": value for key, value in _S3.items()} | {"storage.aws_endpoint": silent}
        with InspectorProcess(SourceSpec("lake", "federator.testing:CONNECTOR", storage), 0.3) as opener:
            inspection = opener.inspect("s3://bucket/t.lance")
            assert (inspection.state, inspection.message) == ("unreachable", "no response within 0.3 s")
            assert opener._child is None
            opener._timeout = 60.0
            assert opener.inspect(str(table)).state == "valid"
            opener._timeout = 0.3
            for name in ("t2", "t3"):
                assert opener.inspect(f"s3://bucket/{name}.lance").message == "no response within 0.3 s"
            # From here on the store would hang for a minute each time: it is not asked, and no process is begun for it.
            opener._timeout = 60.0
            assert list(opener.inspect_each(["s3a://bucket/t4.lance"], math.inf)) == [None]
            assert opener._child is None
            assert opener.inspect(str(table)).state == "valid"

    def test_a_child_that_dies_is_replaced(self, table: Path) -> None:
        with InspectorProcess(self.SPEC, 60.0) as opener:
            opener.inspect(str(table))
            assert opener._child is not None
            os.kill(opener._child.pid, signal.SIGKILL)
            assert opener.inspect(str(table)).state == "corrupt"
            assert opener.inspect(str(table)).state == "valid"

    def test_locations_are_inspected_in_parallel_and_a_hanging_one_only_once(
        self, silent: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun: list[str] = []

        class Counted(ChildProcess):
            """A process that has imported its libraries before the time of a location counts: a busy machine needs seconds for them."""

            def __init__(self, module: str) -> None:
                begun.append(module)
                super().__init__(module)
                assert self.request({"denied": "not opened"}, 60.0)["state"] == "denied"

        monkeypatch.setattr(child_process, "ChildProcess", Counted)
        (tmp_path / "empty").mkdir()
        hangs = [f"s3://bucket/t{number}.lance" for number in range(5)]
        wanted = [
            str(table),
            hangs[0],
            str(tmp_path / "empty"),
            hangs[1],
            hangs[2],
            str(table),
            hangs[3],
            hangs[4],
            str(tmp_path / "no"),
        ]
        storage = {f"storage.{key}": value for key, value in _S3.items()} | {"storage.aws_endpoint": silent}
        with InspectorProcess(SourceSpec("lake", "federator.testing:CONNECTOR", storage), 3.0) as opener:
            began = time.monotonic()
            found = [None if text is None else json.loads(text) for text in opener.inspect_each(wanted, math.inf)]
            took = time.monotonic() - began
        states = [
            "valid",
            "unreachable",
            "empty",
            "unreachable",
            "unreachable",
            "valid",
            None,
            None,
            "missing",
        ]
        assert [None if each is None else each["state"] for each in found] == states
        assert [each["message"] for each in found if each and each["state"] == "unreachable"] == ["no response within 3 s"] * 3
        assert took >= 3 * 3.0
        # Each of the three that hang ended its process, and none of them a second one.
        assert len(begun) == 4

    def test_more_than_a_pipe_holds_is_asked_at_once(self, tmp_path: Path) -> None:
        wanted = [str(tmp_path / ("x" * 200) / str(number)) for number in range(3000)]
        with InspectorProcess(self.SPEC, 60.0) as opener:
            assert [json.loads(text)["state"] for text in opener.inspect_each(wanted, math.inf)] == ["missing"] * 3000
            assert opener.inspect(str(tmp_path)).state == "empty"

    def test_no_further_one_is_opened_when_the_time_is_over(self, table: Path) -> None:
        with InspectorProcess(self.SPEC, 60.0) as opener:
            assert list(opener.inspect_each([str(table)] * 3, time.time() - 1)) == []
            assert len(list(opener.inspect_each([str(table)] * 20_000, time.time() + 1))) < 20_000
            assert opener.inspect(str(table)).state == "valid"

    def test_results_before_a_death_count(self, tmp_path: Path) -> None:
        with InspectorProcess(self.SPEC, 60.0) as opener:
            asked = opener.inspect_each([str(tmp_path / "nothing")] * 3000, math.inf)
            next(asked)
            assert opener._child is not None
            os.kill(opener._child.pid, signal.SIGKILL)
            states = [json.loads(text)["state"] for text in asked]
        assert len(states) == 2999
        assert states.count("corrupt") == 1

    def test_nothing_is_known_through_a_source_whose_secret_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NOT_SET", raising=False)
        spec = SourceSpec("lake", "federator.testing:CONNECTOR", {"storage.token": "${NOT_SET}"})
        with pytest.raises(ConfigError, match="NOT_SET"):
            InspectorProcess(spec, 60.0)


def test_stores_and_prefixes_are_spread_over_all_hands_in_their_order() -> None:
    # In the order in which they are due, two stores alternate: dealt as they come, each hand would have one store's alone.
    rows = [(f"s3://{'ab'[n % 2]}/p{n % 3}/t{n}", f"s3a://{n}") for n in range(60)] + [("file:///mnt/t", "/mnt/t")]
    order = distribute_by_store(rows, 2)
    assert sorted(order) == sorted(rows)
    for hand in (order[0::2], order[1::2]):
        for group in {canonical.rpartition("/")[0] for canonical, _ in rows[:60]}:
            assert abs(sum(canonical.startswith(group) for canonical, _ in hand) - 5) <= 1
        assert [rows.index(row) for row in hand] == sorted(rows.index(row) for row in hand)
    assert distribute_by_store(rows, 1) == rows
    assert distribute_by_store([], 4) == []


_S3 = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "aws_region": "us-east-1", "allow_http": "true"}


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts and never answers."""
    kept: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()
