"""Object stores of several sources: what one of them has read is not shown in those of another store, or that could not read it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest

from federator.demo.servers.process import Server
from federator.model.scopes import Scopes
from federator.service import Federator
from federator.settings import Settings, parse_settings
from federator.stages.source_stores import record_stores
from federator.store import verifications
from federator.testing import MemoryStore
from federator.testing.contract import unique_name
from federator.views import datasets, drift, extracts
from tests.fixtures.enforcing_s3 import OWNER, EnforcingS3, enforcing_s3, table_policy
from tests.fixtures.glue import REGION, STATIC, client_of
from tests.unit.api.mcp_support import Caller, Running, run_service

CONTENT = {"one": {"orders": pa.table({"id": range(11)})}, "two": {"orders": pa.table({"other": range(99)})}}


@pytest.fixture
def root(glue_url: str, glue_throwaway: Server) -> str:
    """A prefix with a table of one name, and other content, in each of two stores."""
    bucket = unique_name("stores").replace("_", "-")
    for name, url in (("one", glue_url), ("two", glue_throwaway.uri)):
        client_of(url, "s3").create_bucket(Bucket=bucket)
        for table, rows in CONTENT[name].items():
            lance.write_dataset(rows, f"s3://{bucket}/lake/{table}.lance", storage_options=options(url))
    return f"s3://{bucket}/lake"


def options(url: str) -> dict[str, str]:
    return {
        "endpoint": url, "allow_http": "true", "region": REGION, "access_key_id": STATIC["aws_access_key_id"],
        "secret_access_key": STATIC["aws_secret_access_key"],
    }  # fmt: skip


@pytest.fixture
def settings(root: str, glue_url: str, glue_throwaway: Server, tmp_path: Path) -> Settings:
    sources = {}
    for name, url in (("one", glue_url), ("two", glue_throwaway.uri), ("alike", f"{glue_url}/")):
        storage = {f"storage.{key}": value for key, value in options(url).items()}
        for key in ("access_key_id", "secret_access_key"):
            (tmp_path / key).write_text(options(url)[key], encoding="utf-8")
            storage[f"storage.{key}"] = f"file:{tmp_path / key}"
        sources[name] = {"impl": "dir", "root": root, **storage}
    return parse_settings({"sources": sources, "serve": {"auth": "required"}}, tmp_path / "federator.toml")


@pytest.fixture
def federator(spark: None, settings: Settings) -> Iterator[Federator]:
    federator = Federator.open(settings)
    yield federator
    federator.index.close()


@pytest.fixture
def proxy(glue_url: str) -> Iterator[EnforcingS3]:
    with enforcing_s3(glue_url) as running:
        yield running


def declared_with(proxy: EnforcingS3, root: str, folder: Path, **keys: dict[str, str]) -> Settings:
    """One root in one store, as a source for each set of keys."""
    sources = {}
    for name, secrets in keys.items():
        storage = {"storage.endpoint": proxy.url, "storage.allow_http": "true", "storage.region": "us-east-1"}
        for key, text in secrets.items():
            file = folder / f"{key} {text}"
            file.write_text(text, encoding="utf-8")
            storage[f"storage.{key}"] = f"file:{file}"
        catalog = {"impl": "federator.testing:CONNECTOR", "file": str(folder / f"{name}.json")}
        store = MemoryStore(catalog["file"])
        store.add_table(("orders",), f"{root}/orders.lance")
        sources[name] = {**catalog, **storage}
    return parse_settings({"sources": sources, "serve": {"auth": "required"}}, folder / "federator.toml")


def test_a_source_shows_only_what_its_own_keys_read(spark: None, proxy: EnforcingS3, tmp_path: Path) -> None:
    root = f"s3://{proxy.new_bucket()}/lake"
    lance.write_dataset(CONTENT["one"]["orders"], f"{root}/orders.lance", storage_options=proxy.owner_options)
    session, key_id = proxy.mint("other", table_policy(f"{root}/payments.lance", writes=False))
    other = {"access_key_id": key_id, "secret_access_key": session.secret, "session_token": session.token}
    settings = declared_with(proxy, root, tmp_path, owner=OWNER, alike=OWNER, other=other, nobody={})
    federator = Federator.open(settings)
    assert federator.crawl().state == "ok"
    with run_service(federator.index, settings) as running:
        for name in ("owner", "alike"):
            assert facts(of(running, name), name) == ("valid", 11, ["id"])
        for name in ("other", "nobody"):
            assert facts(of(running, name), name) == ("denied", None, None)
        both = of(running, "owner", "other")
        assert both.json("/api/v1/tables/other%24orders")["also_declared"] == ["owner$orders"], "it is one table"
        assert both.json("/api/v1/tables/other%24orders")["dataset"]["state"] == "denied"
    # The newest state is that of other keys, and none of the dataset.
    assert federator.verify(["other$orders"]).state == "ok"
    (dataset,) = datasets.list_datasets(federator.index).datasets
    assert (len(dataset.declarations), dataset.state) == (4, "valid")
    federator.index.close()


def test_a_renewed_key_keeps_the_facts_and_a_lost_one_takes_them(spark: None, proxy: EnforcingS3, tmp_path: Path) -> None:
    root = f"s3://{proxy.new_bucket()}/lake"
    location = f"{root}/orders.lance"
    lance.write_dataset(CONTENT["one"]["orders"], location, storage_options=proxy.owner_options)
    settings = declared_with(proxy, root, tmp_path, lake=OWNER)
    federator = Federator.open(settings)
    assert federator.crawl().state == "ok"

    def state() -> str | None:
        record_stores(federator.index, federator.settings)
        with federator.index.read() as connection:
            verification = verifications.find_verification(connection, "lake", location)
        return verification.state if verification else None

    (secret,) = tmp_path.glob("secret_access_key *")
    secret.write_text("renewed", encoding="utf-8")
    assert state() == "valid"
    federator.settings = declared_with(proxy, root, tmp_path, lake={})
    assert state() is None
    federator.index.close()


def facts(caller: Caller, name: str) -> tuple[Any, ...]:
    """The state, rows and columns of a table as each route tells them, which must agree."""
    table = caller.json(f"/api/v1/tables/{name}%24orders")
    shown = table["dataset"]
    columns = None if shown is None or shown["schema"] is None else [column["name"] for column in shown["schema"]]
    state = shown["state"] if shown is not None else None
    (listed,) = (entry for entry in caller.json("/api/v1/tree", path=name)["nodes"] if entry["name"] == "orders")
    (found,) = (
        hit for hit in caller.json("/api/v1/search", q=f"source:{name} orders")["nodes"] if hit["id"] == f"{name}$orders"
    )
    assert listed["verified"] == found["verified"] == state
    return state, shown["rows"] if shown is not None else None, columns


def of(running: Running, *names: str) -> Caller:
    return running.caller(unique_name("caller"), role="writer", scopes=Scopes.parse(names))


def test_each_store_has_its_own_facts(federator: Federator, settings: Settings, root: str) -> None:
    index = federator.index
    assert federator.crawl().state == "ok"
    with run_service(index, settings) as running:
        assert facts(of(running, "one"), "one") == ("valid", 11, ["id"])
        assert facts(of(running, "two"), "two") == ("valid", 99, ["other"])
        assert facts(of(running, "alike"), "alike") == ("valid", 11, ["id"]), "its endpoint has another spelling"
        everybody = of(running, "one", "two", "alike")
        assert everybody.json("/api/v1/tables/one%24orders")["also_declared"] == ["alike$orders"]
        assert everybody.json("/api/v1/tables/two%24orders")["also_declared"] == []

        body = io.BytesIO()
        with pa.ipc.new_stream(body, CONTENT["two"]["orders"].schema) as stream:
            stream.write_table(CONTENT["two"]["orders"].slice(0, 1))
        writer = of(running, "two")
        written = httpx.post(
            f"{running.url}/v1/table/two%24orders/insert", content=body.getvalue(), headers=writer.headers, timeout=120
        )
        assert written.status_code == 200, written.text
        assert facts(of(running, "two"), "two") == ("valid", 100, ["other"])
        assert facts(of(running, "one"), "one") == ("valid", 11, ["id"])
    found = {frozenset(datasets.list_sources(view.declarations)): view for view in datasets.list_datasets(index).datasets}
    assert {names: (view.location, view.verified and view.verified.rows) for names, view in found.items()} == {
        frozenset({"one", "alike"}): (f"{root}/orders.lance", 11), frozenset({"two"}): (f"{root}/orders.lance", 100),
    }  # fmt: skip
    assert not any(view.disagreements for view in found.values()), "two tables cannot disagree"
    for name, rows in (("two", 100), ("alike", 11)):
        one = datasets.get_dataset(index, f"{root}/orders.lance", settings.location_aliases, declared_in=name)
        assert one.verified is not None
        assert one.verified.rows == rows
    with index.read_consistently() as connection:
        extract = next(each for each in extracts.EXTRACTS if each.name == "datasets")
        exported = [row for batch in extract.batches(connection) for row in batch.to_pylist()]
    assert sorted((row["sources"], row["rows"]) for row in exported) == [(["alike", "one"], 11), (["two"], 100)]


def test_what_is_missing_in_one_store_is_drift_there_only(federator: Federator, root: str, glue_throwaway: Server) -> None:
    assert federator.crawl().state == "ok"
    client, bucket = client_of(glue_throwaway.uri, "s3"), root.split("/")[2]
    for item in client.list_objects_v2(Bucket=bucket)["Contents"]:
        client.delete_object(Bucket=bucket, Key=item["Key"])
    assert federator.verify(["two$orders"]).state == "ok"
    with federator.index.read() as connection:
        states = {name: verifications.find_verification(connection, name, f"{root}/orders.lance") for name in ("one", "two")}
    assert {name: state and state.state for name, state in states.items()} == {"one": "valid", "two": "missing"}
    assert [(one.kind, one.subject) for one in drift.list_drift(federator.index)] == [("missing", "two$orders")]
