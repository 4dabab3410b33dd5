"""A person's own write: role and scope first, then journal, catalog, look, index, audit."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path as FilePath
from typing import Any

import lance_namespace as lance
import pytest
from sqlalchemy import select

from federator.audit.ledger import ledger_from
from federator.connector import PermissionDenied, ServiceUnavailable, StateError, TableAlreadyExists
from federator.connector.namespace import CatalogNamespace
from federator.index import Index, audit_log, deployment, journal, late, listing, migrate, open_index, records
from federator.index import tables as t
from federator.index.leases import hold
from federator.model import NamespaceRecord, TableRecord
from federator.model.scopes import EVERYTHING
from federator.settings import Settings, parse
from federator.sync import writing
from federator.sync.writing import Order, Touched, Writer
from federator.testing import memory_store
from federator.testing.contract import fresh
from tests.api.lance.conftest import Service
from tests.integration.index_support import fill


class World:
    """A writer over a catalog in memory and an index of its own."""

    def __init__(self, directory: FilePath, index: Index | None = None, **mem: Any) -> None:
        self.name = fresh("writing")
        self.settings: Settings = parse(
            {"sources": {"mem": {"impl": "federator.testing:CONNECTOR", "store": self.name, **mem}}},
            directory / "federator.toml",
        )
        self.index = index or open_index("sqlite:///federator.db", base=directory)
        migrate.upgrade(self.index)
        fill(self.index, "mem")
        memory_store(self.name).add_namespace(("ns",))
        self.writer = Writer(self.index, self.settings)

    def declare(self, name: str, *, actor: str = "ann", call: Any = None) -> writing.Written[Any]:
        order = Order(actor, "mem", "declare_table", ("ns", name), [Touched(("ns", name))], {"secret_key": "hunter2"})

        def made(face: CatalogNamespace) -> Any:
            return face.declare_table(lance.DeclareTableRequest(id=["ns", name]))

        return self.writer.write(order, call or made)

    def has(self, *path: str, is_table: bool = True) -> bool:
        with self.index.read() as connection:
            return records.get(connection, "mem", path, is_table=is_table) is not None

    def journal(self) -> list[tuple[str, str, str | None]]:
        j = t.journal.c
        with self.index.read() as connection:
            rows = connection.execute(select(j.target_path, j.state, j.code).order_by(j.intent_at))
            return [tuple(row) for row in rows]

    def audit(self) -> list[dict[str, Any]]:
        return [{**event, "detail": json.loads(event["event"])["detail"]} for event in audit_log.every_event(self.index)]


@pytest.fixture
def world(tmp_path: FilePath) -> Any:
    made = World(tmp_path)
    yield made
    made.writer.close()
    made.index.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, tmp_path: FilePath) -> Any:
    """A world on each of the two databases."""
    index = request.getfixturevalue("postgres_index")() if request.param == "postgresql" else None
    made = World(tmp_path, index)
    yield made
    made.writer.close()
    made.index.close()


def test_a_write_is_journalled_published_and_audited(either: World) -> None:
    world = either
    made = world.declare("t")
    assert made.published
    assert world.has("ns", "t")
    assert world.journal() == [("ns$t", "done", None)]
    (event,) = world.audit()
    assert (event["kind"], event["actor"], event["subject"], event["run_id"]) == ("own_write", "ann", "mem$ns$t", made.op_id)
    assert event["detail"]["state"] == "done"
    assert "hunter2" not in json.dumps(event)
    with world.index.read() as connection:
        (line,) = connection.execute(select(t.journal)).mappings()
        assert audit_log.unsealed(connection) == []
    assert "hunter2" not in line["change"]
    # The mirrors' ledger is built from the audit, and a person's writes are none of it.
    assert ledger_from(world.audit()) == {}


def test_a_refused_write_is_recorded_with_its_code_and_raised_as_it_is(world: World) -> None:
    world.declare("t")
    with pytest.raises(TableAlreadyExists, match="ns\\$t"):
        world.declare("t")
    assert world.journal() == [("ns$t", "done", None), ("ns$t", "failed", "5")]
    assert [event["detail"]["state"] for event in world.audit()] == ["done", "failed"]


def test_what_stood_in_the_way_is_in_the_index_afterwards(world: World) -> None:
    memory_store(world.name).add_table(("ns", "new"))
    assert not world.has("ns", "new")
    with pytest.raises(TableAlreadyExists):
        world.declare("new")
    assert world.has("ns", "new")


def test_a_call_whose_answer_was_lost_is_looked_for(world: World) -> None:
    def lost(face: CatalogNamespace) -> Any:
        face.declare_table(lance.DeclareTableRequest(id=["ns", "t"]))
        raise ServiceUnavailable("the answer got lost")

    with pytest.raises(ServiceUnavailable):
        world.declare("t", call=lost)
    assert world.journal() == [("ns$t", "failed", "17")]
    assert world.has("ns", "t")


def test_the_intent_is_durable_before_the_call(world: World) -> None:
    seen = []

    def call(face: CatalogNamespace) -> None:
        seen.extend(world.journal())

    world.declare("t", call=call)
    assert seen == [("ns$t", "intent", None)]


def test_a_catalogs_refusal_of_our_sign_in_is_no_401_of_the_callers(tmp_path: FilePath) -> None:
    world = World(tmp_path, faults="refuse:*=16")
    with pytest.raises(PermissionDenied, match="refuses this service's own sign-in"):
        world.declare("t")
    assert world.journal() == [("ns$t", "failed", "16")]
    world.writer.close()
    world.index.close()


def test_a_dropped_namespace_takes_what_it_held_out_of_the_index(either: World) -> None:
    world = either
    fill(
        world.index, "mem", NamespaceRecord("mem", ("ns",)), NamespaceRecord("mem", ("ns", "sub")),
        TableRecord("mem", ("ns", "sub", "t"), "s3://b/t.lance"), TableRecord("mem", ("nsx", "t"), "s3://b/u.lance"),
    )  # fmt: skip
    order = Order("ann", "mem", "drop_namespace", ("ns",), [Touched(("ns",), is_table=False)])
    assert world.writer.write(order, lambda face: face.drop_namespace(lance.DropNamespaceRequest(id=["ns"]))).published
    assert not any(world.has(*path, is_table=table) for *path, table in ((("ns"), False), ("ns", "sub", False)))
    assert not world.has("ns", "sub", "t")
    assert world.has("nsx", "t")


def test_while_a_crawl_holds_the_source_a_write_neither_waits_nor_gets_lost(
    either: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = either
    monkeypatch.setattr(writing, "PATIENCE", 0.0)
    monkeypatch.setattr(writing, "_RETRY", 0.02)
    with hold(world.index, "source:mem"):
        assert not world.declare("one").published
        assert not world.declare("two").published
        assert not world.has("ns", "one")
        # Whoever asks for it here finds it all the same.
        seen = late.get(world.index, "mem", ("ns", "one"), is_table=True)
        assert seen is not None
        assert seen.record is not None
        # What another does to it meanwhile is seen by the later look.
        memory_store(world.name).remove(("ns", "two"))
    _eventually(lambda: world.has("ns", "one"))
    _eventually(lambda: late.get(world.index, "mem", ("ns", "one"), is_table=True) is None)
    assert not world.has("ns", "two")
    assert world.declare("three").published


def test_many_writes_at_once_are_all_made_and_published(either: World) -> None:
    world = either
    made: list[bool] = []
    threads = [threading.Thread(target=lambda n=n: made.append(world.declare(f"t{n}").published)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    _eventually(lambda: all(world.has("ns", f"t{n}") for n in range(6)))


def test_what_a_dead_process_left_open_is_settled_by_the_next_writer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "op_id": "dead", "run_id": "dead", "plan": "", "mirror": writing.NO_MIRROR, "seq": 0, "action": "declare_table",
        "target_source": "mem", "target_path": "ns$dead", "origin_path": None, "change": "{}", "saved": None,
    }  # fmt: skip
    with world.index.write() as connection:
        journal.intend(connection, row)
    world.declare("t")
    assert ("ns$dead", "intent", None) in world.journal(), "it may be another process's call"
    monkeypatch.setattr(writing, "_DEAD_AFTER", -1.0)
    other = Writer(world.index, world.settings)
    order = Order("ann", "mem", "look", ("ns", "t"), [Touched(("ns", "t"))])
    other.write(order, lambda face: None)
    other.close()
    assert ("ns$dead", "failed", "interrupted") in world.journal()


def test_a_clone_of_an_index_writes_to_no_catalog(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def cloned(*_: Any) -> None:
        raise StateError("this index is a clone")

    monkeypatch.setattr(deployment, "check_original", cloned)
    with pytest.raises(StateError):
        world.declare("t")
    assert world.journal() == []


def test_pages_lose_no_name_on_either_database(either: World) -> None:
    names = sorted(["a", "a b", "a$b", "a%b", "B", "b", "ä", "é", "z", "😀"])
    fill(either.index, "mem", *(TableRecord("mem", ("ns", name), f"s3://b/{n}") for n, name in enumerate(names)))
    seen: list[str] = []
    with either.index.read() as connection:
        while page := listing.tables(connection, "mem", ("ns",), after=seen[-1] if seen else "", limit=3, scopes=EVERYTHING):
            assert len(page) <= 3
            seen += page
        assert sorted(seen) == names
        assert len(listing.all_tables(connection, "mem", after=("ns", seen[4]), limit=100, scopes=EVERYTHING)) == len(names) - 5
    if either.index.sqlite:
        assert seen == names, "PostgreSQL orders them by its own collation, and pages by the same"


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_write_is_refused_before_anything_is_looked_up(service: Service, role: str) -> None:
    path = service.namespace()
    for url, body in (
        (f"table/{path[0]}%24{path[1]}%24t/declare", {}), (f"table/{path[0]}%24{path[1]}%24t/deregister", {}),
        (f"table/{path[0]}%24{path[1]}%24t/rename", {"new_table_name": "u"}), (f"namespace/{path[0]}%24{path[1]}/drop", {}),
        (f"namespace/{path[0]}%24{path[1]}%24x/create", {}), (f"table/{path[0]}%24{path[1]}%24t/drop", None),
        ("table/no%24such%24t/register", {"location": "s3://b/t"}),
    ):  # fmt: skip
        answer = service.ask("POST", f"/v1/{url}", body, caller=f"{role} *")
        assert (answer.status_code, answer.json()["code"]) == (403, 15), url
    general = service.post("/RegisterTable", {"name": "t", "namespace": list(path), "location": "s3://b/t"}, caller=f"{role} *")
    assert general.status_code == 403


def _eventually(holds: Any) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it did not become so"
        time.sleep(0.02)
