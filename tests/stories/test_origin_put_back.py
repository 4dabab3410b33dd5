"""An origin that returns right after its copy was removed: the outcome says so, and the next run declares it again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select

from federator.connector import Confirm
from federator.model import TableRecord
from federator.store import tables as t
from federator.testing.memory import MemoryCatalog
from tests.fixtures.spark import Worlds, changes, content, outcomes

POLICY: dict[str, Any] = {"from": "a", "to": "b", "misses_before_delete": 1, "min_miss_interval": 0, "max_delete_percent": 100}


def test_an_origin_that_returns_after_the_call_is_put_back(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds(mirrors={"m": POLICY})
    origin = world.store("a")
    origin.add_namespace(("s",))
    for name in ("t", "kept"):
        origin.add_table(("s", name))
    assert outcomes(world.sync()) == {"s": "done", "s$t": "done", "s$kept": "done"}
    origin.remove(("s", "t"))
    deregister = MemoryCatalog.deregister_table

    def deregister_and_return(self: MemoryCatalog, expected: TableRecord, *, confirm: Confirm) -> None:
        deregister(self, expected, confirm=confirm)
        origin.add_table(("s", "t"))

    with monkeypatch.context() as patch:
        patch.setattr(MemoryCatalog, "deregister_table", deregister_and_return)
        removed = world.sync()
    assert outcomes(removed) == {"s$t": "done origin_returned"}
    assert "s$t" not in content(world.store("b"))
    with world.federator.index.read() as connection:
        events = [json.loads(event) for event in connection.execute(select(t.audit_event.c.event)).scalars()]
    (event,) = (e for e in events if e["kind"] == "write" and e["detail"]["action"] == "deregister_table")
    assert (event["detail"]["state"], event["detail"]["code"]) == ("done", "origin_returned")
    assert 0 <= event["detail"]["origin_age_seconds"] < 60
    assert outcomes(world.sync()) == {"s$t": "done"}
    assert "s$t" in content(world.store("b"))
    assert changes(world.sync()) == {}
    # The misses before the return do not count: an origin that is absent again needs new misses.
    origin.remove(("s", "t"))
    assert outcomes(world.sync()) == {"s$t": "done"}
