"""Direct writes whose outcome nobody recorded: found by the next write, unless their process lives. A write needs its lease."""

from __future__ import annotations

from typing import Any

import lance_namespace as lance
import pytest
from sqlalchemy import select, update

from federator.connector import ServiceUnavailable
from federator.lance.facade import CatalogNamespace
from federator.model import path_key
from federator.store import journal
from federator.store import tables as t
from federator.store.journal import NO_MIRROR
from federator.store.leases import WRITER_PREFIX, acquire_lease, is_lease_held
from federator.testing import get_memory_store
from tests.fixtures.index_content import intent
from tests.unit.api.lance.writing_world import World


def _leave_open(world: World, writer: str | None, action: str, name: str, **change: Any) -> None:
    """An intent of a write whose outcome nobody recorded."""
    fields = {"mirror": NO_MIRROR, "target_source": "mem", "target_path": path_key(("ns", name)), "writer": writer}
    with world.index.write() as connection:
        journal.insert_intent(connection, intent(name, **fields, action=action, change={"action": action, **change}))


def test_the_next_write_resolves_the_open_intents_of_a_dead_process(either: World) -> None:
    world = either
    store = get_memory_store(world.name)
    store.add_table(("ns", "there"), "s3://b/there", properties={"a": "1", "b": "2"})
    for name, action, change in (
        ("there", "declare_table", {"request": {"location": "s3://b/there/"}}),
        ("absent", "declare_table", {}),
        ("gone", "deregister_table", {}),
        ("old", "rename_table", {"affected": [["ns$old", True], ["ns$there", True]]}),
        ("rows", "insert", {"affected": []}),
    ):
        _leave_open(world, "writer:dead", action, name, **change)
    world.declare("t")
    by_path = {path: (state, code) for path, state, code in world.journal()}
    assert by_path == {
        "ns$there": ("done", None), "ns$absent": ("failed", "interrupted"), "ns$gone": ("done", None),
        "ns$old": ("done", None), "ns$rows": ("failed", "interrupted"), "ns$t": ("done", None),
    }  # fmt: skip
    assert world.has("ns", "there")
    assert len(world.audit()) == 6


@pytest.mark.parametrize(
    ("action", "request_fields", "state"),
    [
        ("declare_table", {"location": "s3://elsewhere/there"}, "failed"),
        ("declare_table", {}, "done"),
        ("register_table", {"location": "s3://b/there"}, "done"),
        ("deregister_table", {}, "failed"),
        ("drop_table", {}, "failed"),
        ("alter_table", {"updates": {"a": "1"}, "removals": ["c"]}, "done"),
        ("alter_table", {"updates": {"a": "2"}}, "failed"),
        ("alter_table", {"removals": ["b"]}, "failed"),
        ("rename_table", {}, "failed"),
    ],
)
def test_the_outcome_of_a_dead_write_is_what_its_catalog_shows(
    world: World, action: str, request_fields: dict[str, Any], state: str
) -> None:
    get_memory_store(world.name).add_table(("ns", "there"), "s3://b/there", properties={"a": "1", "b": "2"})
    _leave_open(world, None, action, "there", request=request_fields)
    world.declare("t")
    assert [line[1] for line in world.journal() if line[0] == "ns$there"] == [state]


@pytest.mark.parametrize(
    ("action", "name", "request_fields", "state"),
    [
        ("create_namespace", "there", {}, "done"),
        ("create_namespace", "there", {"mode": "Overwrite"}, "failed"),
        ("create_namespace", "absent", {}, "failed"),
        ("drop_namespace", "absent", {}, "done"),
        ("drop_namespace", "there", {}, "failed"),
        ("alter_namespace", "there", {"updates": {"a": "1"}}, "done"),
        ("alter_namespace", "there", {"updates": {"a": "2"}}, "failed"),
        ("alter_namespace", "absent", {"updates": {"a": "2"}}, "failed"),
    ],
)
def test_so_is_that_of_a_dead_write_to_a_namespace(
    world: World, action: str, name: str, request_fields: dict[str, Any], state: str
) -> None:
    get_memory_store(world.name).add_namespace(("ns", "there"), properties={"a": "1"})
    _leave_open(world, None, action, name, request=request_fields)
    world.declare("t")
    assert [line[1] for line in world.journal() if line[0] == f"ns${name}"] == [state]


def test_the_intent_of_a_living_process_is_left_alone(either: World) -> None:
    world = either
    _leave_open(world, "writer:alive", "declare_table", "slow")
    with acquire_lease(world.index, "writer:alive"):
        world.declare("t")
        assert ("ns$slow", "intent", None) in world.journal()
    world.declare("u")
    assert ("ns$slow", "failed", "interrupted") in world.journal()


def test_an_outcome_that_this_process_could_not_record_is_found_by_its_next_write(
    either: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = either
    with monkeypatch.context() as patched:

        def lost(*_: Any, **__: Any) -> bool:
            raise OSError("the index is away")

        patched.setattr(journal, "close_intent", lost)
        with pytest.raises(OSError, match="away"):
            world.declare("t")
    assert world.journal() == [("ns$t", "intent", None)]
    world.declare("u")
    assert world.journal() == [("ns$t", "done", None), ("ns$u", "done", None)]


def test_a_write_whose_lease_was_taken_is_not_made(either: World) -> None:
    world = either
    world.declare("t")
    (name,) = _writers(world)
    taken = update(t.lease).where(t.lease.c.name == name).values(token=7)
    with world.index.write() as connection:
        connection.execute(taken)
    with pytest.raises(ServiceUnavailable, match="may not write any more"):
        world.declare("late")
    assert get_memory_store(world.name).calls() == ["declare_table ns$t"]
    assert world.declare("u").published, "the next write takes a new lease"

    # Between two calls of one write, too.
    def call(facade: CatalogNamespace) -> None:
        facade.declare_table(lance.DeclareTableRequest(id=["ns", "first"]))
        with world.index.write() as connection:
            connection.execute(update(t.lease).where(t.lease.c.name.in_(_writers(world))).values(token=7))
        facade.declare_table(lance.DeclareTableRequest(id=["ns", "second"]))

    with pytest.raises(ServiceUnavailable, match="may not write any more"):
        world.declare("first", call=call)
    assert get_memory_store(world.name).calls()[-1] == "declare_table ns$first"


def test_a_process_that_ends_leaves_no_lease_unless_a_write_is_in_progress(either: World) -> None:
    world = either
    world.declare("t")
    world.writer.close()
    assert _writers(world) == []

    def call(_: CatalogNamespace) -> None:
        world.writer.close()
        with world.index.read() as connection:
            (expires_at,) = connection.execute(
                select(t.lease.c.expires_at).where(t.lease.c.name == _writers(world)[0])
            ).scalars()
        assert expires_at > 0, "a successor waits for the calls"
        assert world.index.is_sqlite is is_lease_held(world.index, _writers(world)[0])

    world.declare("u", call=call)
    assert world.journal() == [("ns$t", "done", None), ("ns$u", "done", None)]


def _writers(world: World) -> list[str]:
    with world.index.read() as connection:
        names = connection.execute(select(t.lease.c.name).order_by(t.lease.c.name)).scalars()
        return [name for name in names if name.startswith(WRITER_PREFIX)]
