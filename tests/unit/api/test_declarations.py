"""Declarations of orphans: requested over HTTP, planned by the worker, decided and applied like other plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.api.app import create_app
from federator.model.scopes import Scopes
from federator.settings import parse_settings
from federator.store import Index, requests
from federator.testing import MemoryStore
from federator.worker.runner import RequestRunner
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill
from tests.unit.api import worlds
from tests.unit.api.conftest import Api


class World:
    """Two catalogs in memory, and a table below a root that none of them declares."""

    def __init__(self, folder: Path) -> None:
        self.place = f"{folder}/lake/sales/orders.lance"
        lance.write_dataset(pa.table({"id": [1]}), self.place)
        for name in ("one", "two"):
            MemoryStore(str(folder / f"{name}.json")).add_namespace(("sales",))
        sources = {
            name: {"impl": "federator.testing:CONNECTOR", "file": str(folder / f"{name}.json")} for name in ("one", "two")
        }
        # A principal that does not see the storage root declares its paths in a source with that root only.
        sources["one"]["root"] = f"{folder}/lake"
        raw = {"instance": {"id": "i"}, "sources": sources, "roots": {"lake": {"location": f"{folder}/lake"}}}
        raw["locations"] = {"aliases": {"mounted://data": f"{folder}/private"}}
        settings = parse_settings(raw | {"serve": {"auth": "required"}}, folder / "federator.toml")
        self.index: Index = new_index(folder)
        for name in sources:
            fill(self.index, name)
        self.app = create_app(settings)
        self.local_app = create_app(parse_settings(raw, folder / "federator.toml"))
        self.runner = RequestRunner(settings)

    def caller(self, role: str, *scopes: str) -> Api:
        return worlds.as_caller(self.app, self.index, role, Scopes.parse(scopes), f"{role} {scopes}")

    def work(self) -> None:
        worlds.execute_queued(self.index, self.runner, requests.RUN_KINDS)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    created = World(tmp_path)
    yield created
    created.runner.index.close()
    created.app.state.index.close()
    created.local_app.state.index.close()
    created.index.close()


def test_an_orphan_becomes_a_plan_and_the_plan_a_declaration(world: World, tmp_path: Path) -> None:
    api = world.caller("writer", "*")
    requested = api.post(
        "/api/v1/declarations", json={"places": [world.place], "into": ["one", "one"], "name": "sales${table}"}
    )
    assert (requested.status_code, requested.json()["kind"], requested.json()["state"]) == (202, "declare", "queued")
    world.work()
    request = api.json(requested.headers["location"])
    assert request["state"] == "done"
    (plan,) = api.json(f"/api/v1/plans?run={request['run_id']}")["plans"]
    assert (plan["mirror"], plan["changes"], plan["refusals"], plan["partial"]) == (
        "declare:one",
        {"declare_table": 1},
        {},
        False,
    )
    assert [fresh["source"] for fresh in api.json("/api/v1/plans")["freshness"]] == ["one"]
    tag = {"If-Match": f'"{plan["digest"]}"'}
    assert api.post(f"/api/v1/plans/{plan['digest']}/apply", headers=tag).status_code == 202
    world.work()
    assert api.json(f"/api/v1/plans/{plan['digest']}")["state"] == "applied"
    with MemoryStore(str(tmp_path / "one.json")).locked_state() as state:
        assert state["tables"]["sales$orders"]["location"] == world.place
    assert api.json("/api/v1/tables/one%24sales%24orders")["location"] == world.place


def test_who_sees_one_source_declares_there_and_with_what_opens_it(world: World) -> None:
    api = world.caller("writer", "one")
    body = {"places": [world.place], "into": ["one"], "name": "sales$orders"}
    request = api.post("/api/v1/declarations", json=body)
    with world.index.read() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
    assert (queued.argument["roots"], queued.actor) == (False, "token:writer ('one',)")
    world.work()
    assert api.json(request.headers["location"])["state"] == "done"
    assert [plan["changes"] for plan in api.json("/api/v1/plans")["plans"]] == [{"declare_table": 1}]
    assert world.caller("writer", "two").get(request.headers["location"]).status_code == 404


@pytest.mark.parametrize(
    ("role", "scope", "change", "status"),
    [
        ("operator", "*", {}, 403), ("writer", "one$sales", {}, 403), ("writer", "two", {}, 403),
        ("writer", "one", {"into": ["none"]}, 403),
        ("writer", "*", {"into": ["none"]}, 400), ("writer", "*", {"places": ["orders.lance"]}, 400),
        ("writer", "*", {"places": []}, 400),
        ("writer", "*", {"places": [f"s3://lake/{n}.lance" for n in range(51)], "into": ["one", "two"]}, 400),
        ("writer", "*", {"name": "{7}"}, 400), ("writer", "*", {"name": "a\0b"}, 400), ("writer", "*", {"more": 1}, 400),
    ],
)  # fmt: skip
def test_a_forbidden_declaration_queues_no_request(
    world: World, role: str, scope: str, change: dict[str, Any], status: int
) -> None:
    body = {"places": ["s3://lake/new.lance"], "into": ["one"], **change}
    response = world.caller(role, scope).post("/api/v1/declarations", json=body)
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    with world.index.read() as connection:
        assert requests.list_queued(connection, requests.RUN_KINDS) == []


def test_a_location_has_no_control_characters(world: World) -> None:
    callers = [world.caller("writer", "one"), world.caller("admin", "*"), Api(world.local_app)]
    for location in (
        f"{world.place}\n",
        f"{world.place}\r",
        "s3://lake/a\tb.lance",
        "s3://lake/a\x7f",
        "s3://lake/\x85a",
        "\ns3://lake/a",
    ):
        for caller in callers:
            response = caller.post("/api/v1/declarations", json={"places": [world.place, location], "into": ["one"]})
            assert (response.status_code, response.json()["code"]) == (400, 13), (location, response.text)
    with world.index.read() as connection:
        assert requests.list_queued(connection, requests.RUN_KINDS) == []


def test_a_writer_declares_no_path_of_the_host_outside_its_source(world: World, tmp_path: Path) -> None:
    (tmp_path / "lake" / "link").symlink_to(tmp_path / "private")
    private = f"{tmp_path}/private/t.lance"
    encoded = private.replace("/private", "/%70rivate")
    refused = [
        private, f"file:{private}", f"file://{encoded}", f"file://localhost{private}", f"file://x{private}", f"FILE:{private}",
        f"file://127.0.0.1{private}", f"file-object-store://{private}", f"//{private}", "/", "file:/etc",
        f"{tmp_path}/lake/../private/t.lance", f"file:{tmp_path}/lake/%2e%2e/private/t.lance", f"{tmp_path}/lake/link/t.lance",
        f"{tmp_path}/lakes/t.lance", "mounted://data/t.lance", f"mounted://data/../..{private}",
    ]  # fmt: skip
    callers = [world.caller(role, scope) for role in ("writer", "admin") for scope in ("*", "one")]
    for location in refused:
        body = {"places": [world.place, location], "into": ["one"]}
        for caller in callers:
            answer = caller.post("/api/v1/declarations", json=body)
            assert answer.status_code == 403, (location, answer.text)
            assert "root or allowed_bases of one" in answer.text
    both = {"places": [world.place], "into": ["one", "two"]}
    assert world.caller("writer", "one", "two").post("/api/v1/declarations", json=both).status_code == 403, "two has no root"
    with world.index.read() as connection:
        assert requests.list_queued(connection, requests.RUN_KINDS) == []
    # The root of a source is for all of its writers, a storage root for principals with all scopes.
    accepted = [caller.post("/api/v1/declarations", json={"places": [world.place], "into": ["one"]}) for caller in callers]
    accepted.append(callers[0].post("/api/v1/declarations", json=both))
    accepted.append(Api(world.local_app).post("/api/v1/declarations", json={"places": [private], "into": ["one"]}))
    assert [answer.status_code for answer in accepted] == [202] * 6, "the last one: the user of this machine"
