"""Verification on S3 (moto's server over HTTP) with every state planted, and its budgets under Spark."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import lance
import lance_namespace
import pyarrow as pa
import pytest
from sqlalchemy import select, update

from federator.connector import SourceSpec
from federator.demo.servers.process import Server
from federator.lance.inspection import inspect_location
from federator.model.scopes import Scopes
from federator.pipeline.staging_area import StagingArea
from federator.pipeline.verify import verify_locations
from federator.service import Federator
from federator.settings import parse_settings
from federator.stages.result import ProgressEvent
from federator.store import tables as t
from federator.store import verifications
from federator.store.verifications import DueLocation
from federator.testing import MemoryStore
from federator.views import datasets, drift
from tests.fixtures.glue import client_of, principals
from tests.unit.api.mcp_support import run_service

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
def location(s3_storage_options: dict[str, str]) -> str:
    return f"s3://lance-data/{secrets.token_hex(4)}/404 timeout.lance"


@pytest.fixture
def put(glue_url: str) -> Any:
    """Write objects below a location with boto3, without Lance."""
    client = client_of(glue_url, "s3")

    def write(location: str, *names: str) -> None:
        for name in names:
            client.put_object(Bucket="lance-data", Key=location.removeprefix("s3://lance-data/") + name, Body=b"x")

    return write


def test_a_table_on_s3_is_described(location: str, s3_storage_options: dict[str, str]) -> None:
    lance.write_dataset(ROWS, location, storage_options=s3_storage_options)
    result = inspect_location(location, s3_storage_options)
    assert (result.state, result.version, result.rows, result.fragments, result.indices) == ("valid", 1, 3, 1, 0)
    assert result.size


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3A"])
def test_hadoops_schemes_open_the_same_table(location: str, scheme: str, s3_storage_options: dict[str, str]) -> None:
    lance.write_dataset(ROWS, location, storage_options=s3_storage_options)
    assert inspect_location(location.replace("s3", scheme, 1), s3_storage_options).rows == 3
    assert inspect_location(location.replace("s3", scheme, 1) + "/nothing", s3_storage_options).state == "missing"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("gcs://bucket/t.lance", "/bucket?"), ("abfs://c@acct.dfs.core.windows.net/t.lance", "/c?"),
        ("wasbs://c@acct.blob.core.windows.net/t.lance", "/c?"), ("azure://c/t.lance", "/c?"),
    ],
)  # fmt: skip
def test_other_clouds_are_asked_for_the_container_and_the_path(recorder: Recorder, location: str, expected: str) -> None:
    """No server of theirs is at hand: what Lance asks an endpoint is looked at, and its refusal is understood."""
    storage = {
        "google_base_url": recorder.url, "google_skip_signature": "true", "azure_storage_endpoint": recorder.url,
        "account_name": "acct", "account_key": "eA==", "allow_http": "true", "client_max_retries": "0",
    }  # fmt: skip
    assert inspect_location(location, storage).state == "denied"
    assert recorder.paths[0].startswith(expected)
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
def test_every_state_on_s3(location: str, put: Any, s3_storage_options: dict[str, str], names: list[str], state: str) -> None:
    put(location, *names)
    result = inspect_location(location, s3_storage_options)
    assert result.state == state, result
    assert result.message


def test_a_bucket_that_is_not_there_is_missing(s3_storage_options: dict[str, str]) -> None:
    assert inspect_location("s3://no-such-bucket/t.lance", s3_storage_options).state == "missing"


def test_a_store_that_cannot_be_reached(location: str, s3_storage_options: dict[str, str]) -> None:
    away = {**s3_storage_options, "aws_endpoint": "http://127.0.0.1:9", "client_max_retries": "0"}
    assert inspect_location(location, away).state == "unreachable"


def test_a_principal_without_permission_is_denied_and_does_not_learn_that_nothing_exists(glue_throwaway: Server) -> None:
    client_of(glue_throwaway.uri, "s3").create_bucket(Bucket="lance-data")
    (user,) = principals(glue_throwaway.uri, "glue:GetTables")
    names = ("region", "access_key_id", "secret_access_key")
    storage = {f"aws_{name}": user[name] for name in names} | {"aws_endpoint": glue_throwaway.uri, "allow_http": "true"}
    assert inspect_location("s3://lance-data/nothing.lance", storage).state == "denied"
    unknown_key = {**storage, "aws_access_key_id": "AKIAIOSFODNN7EXAMPLE"}
    assert inspect_location("s3://lance-data/nothing.lance", unknown_key).state == "denied"


@pytest.mark.parametrize("collected", [5_000, 0], ids=["collected", "staged"])
def test_the_sources_own_options_open_it_and_time_ends_it(
    spark: None, tmp_path: Path, location: str, s3_storage_options: dict[str, str], collected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from federator.pipeline import verify as module
    from federator.pipeline.session import get_session

    monkeypatch.setattr(module, "_MAX_COLLECTED", collected)
    lance.write_dataset(ROWS, location, storage_options=s3_storage_options)
    storage = {f"storage.{key}": value for key, value in s3_storage_options.items()}
    staging = StagingArea(get_session(parse_settings({}, tmp_path / "federator.toml")), str(tmp_path / "staging"))
    requested = [DueLocation(location, location), DueLocation("file:///nothing", "/nothing")]
    spec = SourceSpec("lake", "federator.testing:CONNECTOR", storage)
    results = {row["canonical"]: row for row in verify_locations(staging, spec, requested, timeout=60.0, seconds=600.0)}
    assert {name: row["state"] for name, row in results.items()} == {location: "valid", "file:///nothing": "missing"}
    assert (results[location]["rows"], results[location]["checked_through"]) == (3, "lake")
    assert (tmp_path / "staging" / "lake.verified").exists() == (not collected)
    assert list(verify_locations(staging, spec, requested, timeout=60.0, seconds=0.0)) == []


def test_tasks_open_at_once(spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that answers none of its first two callers until both have called."""
    from federator.pipeline import verify as module
    from federator.pipeline.session import get_session

    both, callers = Barrier(2, timeout=60), iter(range(2))

    class Together(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if next(callers, None) is not None:
                both.wait()
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setattr(module, "inspection_parallelism", lambda _: 2)
    with ThreadingHTTPServer(("127.0.0.1", 0), Together) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        storage = {"aws_endpoint": f"http://127.0.0.1:{server.server_port}", "allow_http": "true", "aws_region": "us-east-1"}
        storage |= {"aws_access_key_id": "a", "aws_secret_access_key": "b", "client_max_retries": "0"}
        spec = SourceSpec("lake", "federator.testing:CONNECTOR", {f"storage.{key}": value for key, value in storage.items()})
        staging = StagingArea(get_session(parse_settings({}, tmp_path / "federator.toml")), str(tmp_path / "staging"))
        requested = [DueLocation(location, location) for location in ("s3://one/t.lance", "s3://two/t.lance")]
        states = [row["state"] for row in verify_locations(staging, spec, requested, timeout=120.0, seconds=600.0)]
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
    steps: list[ProgressEvent] = []
    federator = Federator.open(parse_settings(raw, tmp_path / "federator.toml"), steps.append)
    assert federator.crawl().state == "ok"
    assert federator.crawl().state == "ok"
    assert [step.detail for step in steps if step.stage == "verify" and step.state] == ["2 missing, 1 valid", "1 missing"]
    states = {view.location: (view.state, len(view.declarations)) for view in datasets.list_datasets(federator.index).datasets}
    assert states == {
        f"file://{tmp_path}/t1": ("missing", 2), f"file://{tmp_path}/t2": ("valid", 1), f"file://{tmp_path}/t3": ("missing", 1),
    }  # fmt: skip
    assert [(seen.kind, seen.subject) for seen in drift.list_drift(federator.index)] == [
        ("duplicate", "lake$s$t1"), ("missing", "lake$s$again"), ("missing", "lake$s$t1"), ("missing", "lake$s$t3"),
    ]  # fmt: skip
    # Two hours later, with an hour's max_age: what is worst comes first, and what was valid has to wait.
    with federator.index.write() as connection:
        connection.execute(update(t.dataset).values(checked_at=t.dataset.c.checked_at - 7200))
        connection.execute(update(t.revision).values(published_at=t.revision.c.published_at - 7200))
    raw["verify"]["max_age"] = "1h"
    assert Federator(parse_settings(raw, tmp_path / "federator.toml"), federator.index, steps.append).crawl().state == "ok"
    assert [step.detail for step in steps if step.stage == "verify" and step.state][2:] == ["3 missing"]
    federator.index.close()


def test_what_is_not_opened_keeps_its_facts_and_is_opened_before_what_hangs(
    spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tables hang. A task then leaves their store alone, in which other tables are."""
    from federator.pipeline import verify as module

    monkeypatch.setattr(module, "inspection_parallelism", lambda _spark: 1)
    for name in ("hangs1", "hangs2", "hangs3", "other1", "other2"):
        MemoryStore(str(tmp_path / "lake.json")).add_table(("s", name), f"{tmp_path}/{name}")
        lance.write_dataset(ROWS, f"{tmp_path}/{name}")
    raw: dict[str, Any] = {
        "sources": {"lake": {"impl": "federator.testing:CONNECTOR", "file": str(tmp_path / "lake.json")}},
        "verify": {"max_age": "1h", "timeout": "5s"},
    }  # fmt: skip
    steps: list[ProgressEvent] = []
    federator = Federator.open(parse_settings(raw, tmp_path / "federator.toml"), steps.append)
    assert federator.crawl().state == "ok"
    for name in ("hangs1", "hangs2", "hangs3"):
        (manifest,) = (tmp_path / name / "_versions").glob("*.manifest")
        manifest.unlink()
        os.mkfifo(manifest)
    with federator.index.write() as connection:
        connection.execute(update(t.dataset).values(checked_at=t.dataset.c.checked_at - 7200))
        connection.execute(update(t.revision).values(published_at=t.revision.c.published_at - 7200))
    others = t.dataset.c.canonical.like("%other%")
    with federator.index.read() as connection:
        known = connection.execute(select(t.dataset).where(others).order_by(t.dataset.c.canonical)).all()
    assert [each.state for each in known] == ["valid", "valid"]
    assert federator.crawl().state == "ok"
    with federator.index.read() as connection:
        assert connection.execute(select(t.dataset).where(others).order_by(t.dataset.c.canonical)).all() == known
    assert federator.crawl().state == "ok"
    details = [step.detail for step in steps if step.stage == "verify" and step.state]
    not_opened = "2 not opened: the time was over, or their store did not respond; the next run opens them"
    assert details == ["5 valid", f"3 unreachable; {not_opened}", "3 unreachable, 2 valid"]
    federator.index.close()


def test_facts_behind_a_link_are_stored_only_if_every_declaring_source_allows_them(spark: None, tmp_path: Path) -> None:
    lance.write_dataset(ROWS, f"{tmp_path}/vault/secret.lance")
    (tmp_path / "linked.lance").symlink_to(tmp_path / "vault" / "secret.lance")
    raw: dict[str, Any] = {"sources": {}}
    for name in ("lake", "copies"):
        MemoryStore(str(tmp_path / f"{name}.json")).add_table(("s", "linked"), f"{tmp_path}/linked.lance")
        raw["sources"][name] = {"impl": "federator.testing:CONNECTOR", "file": str(tmp_path / f"{name}.json")}
    raw["sources"]["lake"]["allowed_bases"] = [f"{tmp_path}/vault"]
    copies = raw["sources"].pop("copies")
    federator = Federator.open(parse_settings(raw, tmp_path / "federator.toml"))

    def crawl() -> str:
        settings = parse_settings(raw, tmp_path / "federator.toml")
        assert Federator(settings, federator.index).crawl().state == "ok"
        with federator.index.read() as connection:
            stored = verifications.find_verification(connection, "lake", f"file://{tmp_path}/linked.lance")
        assert stored is not None
        assert (stored.rows is None) == (stored.schema is None) == (stored.state != "valid")
        return stored.state

    assert crawl() == "valid"
    raw["sources"]["copies"] = copies
    assert crawl() == "refers_outside"
    copies["allowed_bases"] = [f"{tmp_path}/vault/secret.lance", f"{tmp_path}/other"]
    raw["sources"]["lake"]["allowed_bases"] = [f"{tmp_path}/vault/secret.lance"]
    with federator.index.write() as connection:
        connection.execute(update(t.dataset).values(checked_at=t.dataset.c.checked_at - 86_400 * 30))
    assert crawl() == "valid"
    federator.index.close()


@pytest.mark.parametrize("order", [("outer", "inner"), ("inner", "outer")])
def test_facts_behind_a_link_are_shown_only_if_it_is_the_operators_in_every_source(
    spark: None, tmp_path: Path, order: tuple[str, str]
) -> None:
    """For ``inner`` the link is its own root. For ``outer`` it leads to data that is not below its root."""
    lance.write_dataset(ROWS, f"{tmp_path}/vault/secret.lance")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "up").symlink_to(tmp_path / "vault")
    namespace = lance_namespace.connect("dir", {"root": f"{tmp_path}/lake", "manifest_enabled": "true"})
    namespace.create_namespace(lance_namespace.CreateNamespaceRequest(id=["n"]))
    namespace.register_table(lance_namespace.RegisterTableRequest(id=["n", "above"], location="up/secret.lance"))
    sources = {"outer": {"impl": "dir", "root": f"{tmp_path}/lake"}, "inner": {"impl": "dir", "root": f"{tmp_path}/lake/up"}}
    ids = {"outer": "outer$n$above", "inner": "inner$secret"}
    settings = parse_settings({"sources": sources, "serve": {"auth": "required"}}, tmp_path / "federator.toml")
    federator = Federator.open(settings)
    with run_service(federator.index, settings) as running:
        for number, name in enumerate(order):
            assert federator.crawl([name]).state == "ok"
            for crawled in order[: number + 1]:
                shown = running.caller(f"{crawled} {number}", scopes=Scopes.parse([crawled])).json(
                    f"/api/v1/tables/{ids[crawled]}"
                )["dataset"]
                expected = ("valid", 3) if order[: number + 1] == ("inner",) else ("refers_outside", None)
                assert (shown["state"], shown["rows"], shown["schema"] is None) == (*expected, expected[1] is None)
    federator.index.close()
