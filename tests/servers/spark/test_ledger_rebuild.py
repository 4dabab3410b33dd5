"""Whole runs with a lost index and with a copied one: owned objects are found again, and a clone writes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from federator.service import Federator
from federator.store import audit_log, notices
from federator.store import tables as t
from tests.fixtures.spark import World, Worlds, changes, content, outcomes, refusals, wrote


def mirrored(worlds: Worlds) -> World:
    """Two tables and their namespace, carried from ``a`` to ``b``."""
    world = worlds(mirrors={"m": {"from": "a", "to": "b"}})
    for name in ("orders", "items"):
        world.store("a").add_table(("sales", name), f"s3://a/sales/{name}", properties={"team": "eu"}, doc=name)
    world.sync()
    return world


def test_a_lost_index_finds_the_owned_objects_again(worlds: Worlds) -> None:
    world = mirrored(worlds)
    before, calls, kept = content(world.store("b")), world.store("b").calls(), world.ledger("m")
    namespaces = world.rows(t.ledger) - len(kept)
    world.close()
    world._open = None
    for file in filter(Path.is_file, world.directory.glob("one.db*")):
        file.unlink()
    assert refusals(world.sync()) == {"sales$items": "unledgered", "sales$orders": "unledgered"}
    listed = world.federator.rebuild_ledger(enter=False)
    assert (listed.state, world.rows(t.ledger)) == ("ok", 0)
    result = world.federator.rebuild_ledger(enter=True)
    assert (result.state, [len(found.entries) for found in result.rebuilt]) == ("ok", [2 + namespaces])
    assert namespaces == 1
    again = world.ledger("m")
    volatile = ("run_id", "updated_at")
    assert [{k: v for k, v in again[path].items() if k not in volatile} for path in sorted(again)] == [
        {k: v for k, v in kept[path].items() if k not in volatile} for path in sorted(kept)
    ]
    planned = world.federator.plan()
    assert (changes(planned), refusals(planned)) == ({}, {})
    assert (content(world.store("b")), world.store("b").calls()) == (before, calls)
    world.store("a").add_table(("sales", "orders"), "s3://a/sales/orders", properties={"team": "us"}, doc="orders")
    assert outcomes(world.sync()) == {"sales$orders": "done"}
    world.verified()


def test_a_clone_plans_and_reads_and_does_not_write(worlds: Worlds, tmp_path: Path) -> None:
    world = mirrored(worlds)
    world.store("a").add_table(("sales", "new"), "s3://a/sales/new")
    written = wrote(world.store("b"))
    world.close()
    world._open = None
    shutil.copytree(world.directory, tmp_path / "copy")
    clone = world.settings.model_copy(
        update={"index": world.settings.index.model_copy(update={"url": f"sqlite:///{tmp_path / 'copy' / 'one.db'}"})}
    )
    federator = Federator.open(clone)
    try:
        planned = federator.plan()
        assert (planned.state, changes(planned)) == ("ok", {"sales$new": "declare_table"})
        synced = federator.sync()
        assert (synced.state, list(synced.errors)) == ("partial", ["mirror m"])
        assert synced.errors["mirror m"].startswith("this index is a clone: it belongs to ")
        with federator.index.read() as connection:
            pending = [
                stored.notice for stored in notices.list_pending_notices(connection) if stored.notice.run_id == synced.run_id
            ]
        assert {(notice.event.value, notice.mirror) for notice in pending} == {("mirror_failed", "m"), ("run_partial", None)}
        assert wrote(world.store("b")) == written
        assert not [
            row for row in audit_log.list_events(federator.index) if row.run_id == synced.run_id and row.kind == "write"
        ]
    finally:
        federator.index.close()
    assert outcomes(world.sync()) == {"sales$new": "done"}


def test_a_killed_run_is_interrupted_when_the_next_begins(worlds: Worlds) -> None:
    world = mirrored(worlds)
    index = world.federator.index
    row: dict[str, Any] = {
        "id": "0dead",
        "kind": "sync",
        "state": "running",
        "trigger": "cli",
        "actor": "ann",
        "started_at": 1.0,
    }
    with index.write() as connection:
        connection.execute(t.run.insert(), [row])
    world.federator.crawl()
    with index.read() as connection:
        state = connection.execute(t.run.select().where(t.run.c.id == "0dead")).mappings().one()["state"]
    assert state == "interrupted"
