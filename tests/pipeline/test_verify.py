"""Verification on S3 (moto's server over HTTP) with every state planted, and its budgets under Spark."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import lance
import pyarrow as pa
import pytest
from sqlalchemy import update

from federator.connector import SourceSpec
from federator.connector.looking import look
from federator.demo.servers.process import Server
from federator.index import datasets, drift
from federator.index import tables as t
from federator.pipeline.verify import verify
from federator.settings import parse
from federator.sync import Federator, Step
from federator.testing import MemoryStore
from tests.fixtures.glue import client_of, principals

ROWS = pa.table({"id": [1, 2, 3]})


@dataclass
class Recorder:
    """A server that denies everything, and what it was asked."""

    url: str
    paths: list[str]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    paths: list[str] = []

    class Denying(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Denying) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield Recorder(f"http://127.0.0.1:{server.server_port}", paths)
        server.shutdown()


@pytest.fixture
def place(s3_storage_options: dict[str, str]) -> str:
    return f"s3://lance-data/{secrets.token_hex(4)}/404 timeout.lance"


@pytest.fixture
def put(glue_url: str) -> Any:
    """Writes objects below a place, with boto3 and no help of Lance."""
    client = client_of(glue_url, "s3")

    def write(place: str, *names: str) -> None:
        for name in names:
            client.put_object(Bucket="lance-data", Key=place.removeprefix("s3://lance-data/") + name, Body=b"x")

    return write


def test_a_table_on_s3_is_described(place: str, s3_storage_options: dict[str, str]) -> None:
    lance.write_dataset(ROWS, place, storage_options=s3_storage_options)
    found = look(place, s3_storage_options)
    assert (found["state"], found["version"], found["rows"], found["fragments"], found["indices"]) == ("valid", 1, 3, 1, 0)
    assert found["size"] > 0


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3A"])
def test_hadoops_schemes_open_the_same_table(place: str, scheme: str, s3_storage_options: dict[str, str]) -> None:
    lance.write_dataset(ROWS, place, storage_options=s3_storage_options)
    assert look(place.replace("s3", scheme, 1), s3_storage_options)["rows"] == 3
    assert look(place.replace("s3", scheme, 1) + "/nothing", s3_storage_options)["state"] == "missing"


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("gcs://bucket/t.lance", "/bucket?"), ("abfs://c@acct.dfs.core.windows.net/t.lance", "/c?"),
        ("wasbs://c@acct.blob.core.windows.net/t.lance", "/c?"), ("azure://c/t.lance", "/c?"),
    ],
)  # fmt: skip
def test_other_clouds_are_asked_for_the_container_and_the_path(recorder: Recorder, location: str, asked: str) -> None:
    """No server of theirs is at hand: what Lance asks an endpoint is looked at, and its refusal is understood."""
    storage = {
        "google_base_url": recorder.url, "google_skip_signature": "true", "azure_storage_endpoint": recorder.url,
        "account_name": "acct", "account_key": "eA==", "allow_http": "true", "client_max_retries": "0",
    }  # fmt: skip
    assert look(location, storage)["state"] == "denied"
    assert recorder.paths[0].startswith(asked)
    assert "prefix=t.lance%2F_versions%2F" in recorder.paths[0]


@pytest.mark.parametrize(
    ("names", "state"),
    [
        ([], "missing"),
        (["/"], "empty"),
        (["/.lance-reserved"], "declared_only"),
        (["/part-0.parquet"], "not_lance"),
        (["/_versions/18446744073709551614.manifest"], "corrupt"),
        (["/data/x.lance"], "corrupt"),
        (["/_transactions/0-x.txn", "/.lance-reserved"], "corrupt"),
    ],
)
def test_every_state_on_s3(place: str, put: Any, s3_storage_options: dict[str, str], names: list[str], state: str) -> None:
    put(place, *names)
    found = look(place, s3_storage_options)
    assert found["state"] == state, found
    assert found["message"]


def test_a_bucket_that_is_not_there_is_missing(s3_storage_options: dict[str, str]) -> None:
    assert look("s3://no-such-bucket/t.lance", s3_storage_options)["state"] == "missing"


def test_a_store_that_cannot_be_reached(place: str, s3_storage_options: dict[str, str]) -> None:
    away = {**s3_storage_options, "aws_endpoint": "http://127.0.0.1:9", "client_max_retries": "0"}
    assert look(place, away)["state"] == "unreachable"


def test_who_may_not_look_is_denied_and_not_told_that_nothing_is_there(glue_throwaway: Server) -> None:
    client_of(glue_throwaway.uri, "s3").create_bucket(Bucket="lance-data")
    (user,) = principals(glue_throwaway.uri, "glue:GetTables")
    names = ("region", "access_key_id", "secret_access_key")
    storage = {f"aws_{name}": user[name] for name in names} | {"aws_endpoint": glue_throwaway.uri, "allow_http": "true"}
    assert look("s3://lance-data/nothing.lance", storage)["state"] == "denied"
    assert look("s3://lance-data/nothing.lance", {**storage, "aws_access_key_id": "AKIAIOSFODNN7EXAMPLE"})["state"] == "denied"


def test_the_sources_own_options_open_it_and_time_ends_it(
    spark: None, tmp_path: Path, place: str, s3_storage_options: dict[str, str]
) -> None:
    from federator.pipeline.session import session

    lance.write_dataset(ROWS, place, storage_options=s3_storage_options)
    storage = {f"storage.{key}": value for key, value in s3_storage_options.items()}
    running = session(parse({}, tmp_path / "federator.toml"))
    wanted = [{"canonical": place, "location": place}, {"canonical": "file:///nothing", "location": "/nothing"}]
    spec = SourceSpec("lake", "federator.testing:CONNECTOR", storage)
    found = {row["canonical"]: row for row in verify(running, spec, wanted, timeout=60.0, seconds=600.0)}
    assert {name: row["state"] for name, row in found.items()} == {place: "valid", "file:///nothing": "missing"}
    assert (found[place]["rows"], found[place]["checked_through"]) == (3, "lake")
    assert list(verify(running, spec, wanted, timeout=60.0, seconds=0.0)) == []


def test_tasks_open_at_once(spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that answers none of its first two callers until both have called."""
    from federator.pipeline import verify as module
    from federator.pipeline.session import session

    both, callers = Barrier(2, timeout=60), iter(range(2))

    class Together(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if next(callers, None) is not None:
                both.wait()
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setattr(module, "spark_cores", lambda: 2)
    with ThreadingHTTPServer(("127.0.0.1", 0), Together) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        storage = {"aws_endpoint": f"http://127.0.0.1:{server.server_port}", "allow_http": "true", "aws_region": "us-east-1"}
        storage |= {"aws_access_key_id": "a", "aws_secret_access_key": "b", "client_max_retries": "0"}
        spec = SourceSpec("lake", "federator.testing:CONNECTOR", {f"storage.{key}": value for key, value in storage.items()})
        running = session(parse({}, tmp_path / "federator.toml"))
        wanted = [{"canonical": place, "location": place} for place in ("s3://one/t.lance", "s3://two/t.lance")]
        states = [row["state"] for row in verify(running, spec, wanted, timeout=120.0, seconds=600.0)]
        server.shutdown()
    assert states == ["denied", "denied"]
    assert not both.broken


def test_runs_open_what_is_due_find_drift_and_say_what_is_left(spark: None, tmp_path: Path) -> None:
    for name in ("t1", "t2", "t3"):
        MemoryStore(str(tmp_path / "lake.json")).add_table(("s", name), f"{tmp_path}/{name}")
    MemoryStore(str(tmp_path / "lake.json")).add_table(("s", "again"), "/mnt/t1")
    lance.write_dataset(ROWS, f"{tmp_path}/t2")
    raw: dict[str, Any] = {
        "sources": {"lake": {"impl": "federator.testing:CONNECTOR", "file": str(tmp_path / "lake.json")}},
        "locations": {"aliases": {"/mnt": str(tmp_path)}}, "verify": {"max_tables": 3},
    }  # fmt: skip
    steps: list[Step] = []
    federator = Federator.open(parse(raw, tmp_path / "federator.toml"), steps.append)
    assert federator.crawl().state == "ok"
    assert federator.crawl().state == "ok"
    assert [step.detail for step in steps if step.stage == "verify" and step.state] == ["2 missing, 1 valid", "1 missing"]
    states = {view.location: (view.state, len(view.declarations)) for view in datasets.page(federator.index).datasets}
    assert states == {
        f"file://{tmp_path}/t1": ("missing", 2), f"file://{tmp_path}/t2": ("valid", 1), f"file://{tmp_path}/t3": ("missing", 1),
    }  # fmt: skip
    assert [(seen.kind, seen.subject) for seen in drift.page(federator.index)] == [
        ("duplicate", "lake$s$t1"), ("missing", "lake$s$again"), ("missing", "lake$s$t1"), ("missing", "lake$s$t3"),
    ]  # fmt: skip
    # Two hours later, with an hour's max_age: what is worst comes first, and what was valid has to wait.
    with federator.index.write() as connection:
        connection.execute(update(t.dataset).values(checked_at=t.dataset.c.checked_at - 7200))
        connection.execute(update(t.revision).values(published_at=t.revision.c.published_at - 7200))
    raw["verify"]["max_age"] = "1h"
    assert Federator(parse(raw, tmp_path / "federator.toml"), federator.index, steps.append).crawl().state == "ok"
    assert [step.detail for step in steps if step.stage == "verify" and step.state][2:] == ["3 missing"]
    federator.index.close()
