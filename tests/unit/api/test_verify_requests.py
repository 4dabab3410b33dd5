"""Verification of single tables on request: real tables, which the worker's runner opens."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator import audit
from federator.api.app import create_app
from federator.model import Kind
from federator.model.scopes import Scopes
from federator.planning.ledger import OwnedObject
from federator.settings import parse_settings
from federator.store import Index, audit_log, ledger, requests, runs
from federator.worker.runner import RequestRunner
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api import worlds
from tests.unit.api.conftest import Api

TABLE = "/api/v1/tables/lake%24sales%24orders"


class World:
    """Two sources that declare tables of one directory, the API over them, and a worker's runner."""

    def __init__(self, folder: Path, **verify: Any) -> None:
        self.orders = folder / "lake" / "orders.lance"
        lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(self.orders))
        sources = {
            name: {"impl": "federator.testing:CONNECTOR", "file": str(folder / f"{name}.json")} for name in ("lake", "copy")
        }
        raw = {"instance": {"id": "i"}, "sources": sources, "serve": {"auth": "required"}, "verify": verify}
        self.settings = parse_settings(raw, folder / "federator.toml")
        self.index: Index = new_index(folder)
        managed = table("lake", "sales", "managed", kind=Kind.MANAGED_TABLE)
        unknown = table("lake", "sales", "unknown", location=None)
        records = [namespace("lake", "sales"), table("lake", "sales", "orders", location=str(self.orders)), managed, unknown]
        fill(self.index, "lake", *records)
        fill(self.index, "copy", namespace("copy", "sales"), table("copy", "sales", "orders", location=str(self.orders)))
        self.app = create_app(self.settings)
        self.runner = RequestRunner(self.settings)

    def close(self) -> None:
        for index in (self.runner.index, self.app.state.index, self.index):
            index.close()

    def caller(self, role: str, *scopes: str) -> Api:
        return worlds.as_caller(self.app, self.index, role, Scopes.parse(scopes), f"{role} {scopes}")

    def queued(self) -> list[requests.Request]:
        with self.index.read() as connection:
            return requests.list_queued(connection, requests.SHORT_RUN_KINDS)

    def work(self) -> None:
        worlds.execute_queued(self.index, self.runner, requests.SHORT_RUN_KINDS)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    created = World(tmp_path)
    yield created
    created.close()


def verify(api: Api, *tables: str) -> Any:
    return api.post("/api/v1/runs", json={"kind": "verify", "tables": [*tables]})


def test_a_table_is_verified_now_and_again_after_its_data_is_gone(world: World) -> None:
    api = world.caller("operator", "lake$sales$orders")
    assert api.json(TABLE)["dataset"] is None
    requested = verify(api, "lake$sales$orders")
    assert (requested.status_code, requested.json()["state"], requested.json()["kind"]) == (202, "queued", "verify")
    world.work()
    request = api.json(requested.headers["location"])
    assert request["state"] == "done"
    run = api.json(f"/api/v1/runs/{request['run_id']}")
    assert (run["kind"], run["state"], run["trigger"]) == ("verify", "ok", "request")
    assert [api.json(TABLE)["dataset"][field] for field in ("state", "rows", "version")] == ["valid", 3, 1]
    # The location is also that of another catalog's table.
    assert world.caller("viewer", "copy").json("/api/v1/tables/copy%24sales%24orders")["dataset"]["state"] == "valid"
    shutil.rmtree(world.orders)
    verify(api, "lake$sales$orders")
    world.work()
    assert api.json(TABLE)["dataset"]["state"] == "missing"
    # Drift is looked for again, so that the missing table needs attention.
    drift = world.caller("viewer", "lake").json("/api/v1/drift?about=lake%24sales%24orders")["drift"]
    assert [each["kind"] for each in drift] == ["missing"]


def test_a_table_that_leads_elsewhere_is_not_read(world: World, tmp_path: Path) -> None:
    shutil.move(world.orders, tmp_path / "elsewhere.lance")
    world.orders.symlink_to(tmp_path / "elsewhere.lance")
    api = world.caller("operator", "lake")
    verify(api, "lake$sales$orders")
    world.work()
    found = api.json(TABLE)["dataset"]
    assert (found["state"], found["rows"], found["schema"]) == ("refers_outside", None, None)


def test_the_audit_log_names_the_tables_and_who_asked(world: World) -> None:
    verify(world.caller("operator", "lake"), "lake$sales$orders")
    world.work()
    audit.seal_pending(world.index)
    (event,) = audit_log.list_recent_events(world.index, audit_log.AuditFilter(kind="table_verified"))
    assert (event.subject, event.actor, event.detail) == (
        "lake$sales$orders", "token:operator ('lake',)", {"state": "valid"},
    )  # fmt: skip
    assert event.run_id == runs.list_recent_runs(world.index)[0].id


def test_a_copy_is_opened_through_the_source_that_can(world: World) -> None:
    """Only the source of the origin may have credentials for the storage: the other one must not change the state."""
    api = world.caller("operator", "*")
    entry = OwnedObject(
        mirror="m", origin_source="lake", origin_path="sales$orders", target_source="copy", target_path="sales$orders", is_table=1,
        op_id="op", canonical=f"file://{world.orders}",
    )  # fmt: skip
    with world.index.write() as connection:
        ledger.upsert_entry(connection, entry)
    verify(api, "lake$sales$orders")
    world.work()
    verify(api, "copy$sales$orders")
    world.work()
    found = api.json("/api/v1/tables/copy%24sales%24orders")["dataset"]
    assert (found["state"], found["checked_through"]) == ("valid", "lake")
    shutil.rmtree(world.orders)
    verify(api, "copy$sales$orders")
    world.work()
    verify(api, "copy$sales$orders")
    world.work()
    assert api.json("/api/v1/tables/copy%24sales%24orders")["dataset"]["checked_through"] == "copy"


def test_a_location_is_opened_with_the_credentials_of_its_own_source(world: World, tmp_path: Path) -> None:
    """Whoever sets a location in one source sees what its own credentials open, and changes nothing that others found."""
    viewer = world.caller("viewer", "*")
    verify(world.caller("operator", "lake"), "lake$sales$orders")
    world.work()
    lance.write_dataset(pa.table({"id": [4]}), str(world.orders), mode="append")
    api = world.caller("operator", "copy")
    # As a source without keys: it may not open what is declared.
    copy = world.settings.sources["copy"]
    closed = copy.model_copy(update={"properties": {**copy.properties, "schemes": "s3"}})
    runner = RequestRunner(world.settings.model_copy(update={"sources": {**world.settings.sources, "copy": closed}}))
    requested = verify(api, "copy$sales$orders")
    worlds.execute_queued(world.index, runner, requests.SHORT_RUN_KINDS)
    runner.index.close()
    run = api.json(f"/api/v1/runs/{api.json(requested.headers['location'])['run_id']}")
    assert run["state"] == "failed"
    found = viewer.json(TABLE)["dataset"]
    assert (found["state"], found["checked_through"], found["version"]) == ("valid", "lake", 1)
    verify(api, "copy$sales$orders")
    world.work()
    found = viewer.json(TABLE)["dataset"]
    assert (found["state"], found["checked_through"], found["version"]) == ("valid", "copy", 2)


def test_requests_of_one_principal_are_bounded_and_equal_ones_are_one(world: World) -> None:
    names = [f"t{number}" for number in range(7)]
    fill(world.index, "lake", *(table("lake", "more", name, location=str(world.orders)) for name in names))
    api, other = world.caller("operator", "lake"), world.caller("operator", "*")
    answers = [verify(api, f"lake$more${name}") for name in names]
    assert [answer.status_code for answer in answers] == [202] * 5 + [429] * 2
    assert (answers[5].headers["retry-after"], answers[5].json()["code"]) == ("5", 21)
    assert verify(api, "lake$more$t0").json()["id"] == answers[0].json()["id"]
    assert verify(other, "lake$more$t0").json()["id"] != answers[0].json()["id"]
    assert len(world.queued()) == 6
    world.work()
    assert verify(api, "lake$more$t6").status_code == 202
    many = [f"lake$more${name}" for name in names] * 3
    assert verify(api, *many).status_code == 400


@pytest.mark.parametrize(
    ("role", "scope", "body", "status"),
    [
        ("viewer", "*", {"tables": ["lake$sales$orders"]}, 403), ("operator", "copy", {"tables": ["lake$sales$orders"]}, 404),
        ("operator", "*", {"tables": ["lake$sales$none"]}, 404), ("operator", "*", {"tables": ["lake$sales"]}, 404),
        ("operator", "*", {"tables": ["lake$sales$managed"]}, 409), ("operator", "*", {"tables": ["lake$sales$unknown"]}, 409),
        ("operator", "*", {}, 400), ("operator", "*", {"tables": ["lake$sales$orders"], "sources": ["lake"]}, 400),
        ("operator", "*", {"tables": ["\0"]}, 400),
    ],
)  # fmt: skip
def test_what_may_not_be_verified_is_refused_at_once(
    world: World, role: str, scope: str, body: dict[str, Any], status: int
) -> None:
    response = world.caller(role, scope).post("/api/v1/runs", json={"kind": "verify", **body})
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), response.text
    assert world.queued() == []


def test_a_table_says_why_it_is_not_verified_before_somebody_asks(world: World) -> None:
    api = world.caller("operator", "*")
    for name in ("managed", "unknown"):
        reason = api.json(f"/api/v1/tables/lake%24sales%24{name}")["unverifiable"]
        assert reason == verify(api, f"lake$sales${name}").json()["detail"]
    assert api.json("/api/v1/tables/lake%24sales%24orders")["unverifiable"] is None


def test_a_hidden_table_is_like_an_absent_one_and_so_is_the_request(world: World) -> None:
    api = world.caller("operator", "copy")
    hidden, absent = (verify(api, f"lake$sales${name}") for name in ("orders", "nobody"))
    assert hidden.text.replace("orders", "nobody") == absent.text
    location = verify(world.caller("operator", "lake"), "lake$sales$orders").headers["location"]
    assert world.caller("viewer", "copy").get(location).status_code == 404
    assert world.caller("viewer", "lake$sales").json(location)["state"] == "queued"


def test_a_table_that_vanished_since_the_request_is_an_error_of_the_run(world: World) -> None:
    api = world.caller("operator", "*")
    location = verify(api, "lake$sales$orders").headers["location"]
    fill(world.index, "lake", gone=[("sales", "orders")])
    world.work()
    run = api.json(f"/api/v1/runs/{api.json(location)['run_id']}")
    assert (run["state"], run["summary"]["errors"]) == (
        "failed", {"lake$sales$orders": "there is no table lake$sales$orders"},
    )  # fmt: skip


def test_tables_that_do_not_respond_keep_the_requests_of_others_waiting_for_two_timeouts_at_most(tmp_path: Path) -> None:
    world = World(tmp_path, timeout="1s")
    names = [f"t{number}" for number in range(6)]
    for name in names:
        manifests = tmp_path / "lake" / f"{name}.lance" / "_versions"
        manifests.mkdir(parents=True)
        os.mkfifo(manifests / "1.manifest")
    fill(
        world.index, "lake", *(table("lake", "more", name, location=str(tmp_path / "lake" / f"{name}.lance")) for name in names)
    )
    api = world.caller("operator", "*")
    location = verify(api, *(f"lake$more${name}" for name in names)).headers["location"]
    world.work()
    errors = api.json(f"/api/v1/runs/{api.json(location)['run_id']}")["summary"]["errors"]
    states = [api.json(f"/api/v1/tables/lake%24more%24{name}")["dataset"] for name in names]
    opened = [state for state in states if state is not None]
    assert 1 <= len(opened) <= 2
    assert {state["state"] for state in opened} == {"unreachable"}
    assert len(errors) == len(names) - len(opened)
    assert all(error.startswith("the time of this request is over") for error in errors.values())
    world.close()
