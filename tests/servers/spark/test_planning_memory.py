"""The driver's memory while it plans a mirror does not grow with the mirror's tables."""

from __future__ import annotations

import tracemalloc
from dataclasses import asdict

from sqlalchemy import insert

from federator.store import tables as t
from tests.fixtures.index_content import fill, owned, table
from tests.fixtures.spark import Worlds

FEW, MANY = 6_000, 18_000


def peak(worlds: Worlds, number: int) -> int:
    """The most bytes of Python objects at once while a mirror is planned whose tables are all declared and unchanged."""
    world = worlds(mirrors={"m": {"from": "a", "to": "b"}})
    index, names = world.federator.index, [f"t{each:06}" for each in range(number)]
    records = {source: [table(source, "s", name) for name in names] for source in ("a", "b")}
    for source, content in records.items():
        fill(index, source, *content)
    mapping = world.settings.mirror_rule("m").mapping_digest
    entries = [
        owned("a", origin.key, "b", origin_digest=origin.digest, target_digest=target.digest, mapping_digest=mapping)
        for origin, target in zip(records["a"], records["b"], strict=True)
    ]
    with index.write() as connection:
        connection.execute(insert(t.ledger), [asdict(entry) for entry in entries])
    del records, entries
    # The first run also imports modules and detects the drift of what was filled in.
    world.federator.plan(refresh=False)
    tracemalloc.start()
    try:
        result = world.federator.plan(refresh=False)
        assert result.state == "ok", result.errors
        (plan,) = result.plans
        assert (plan.changes, plan.refusals, plan.selected) == ((), (), number)
        delete_guard = next(each for each in plan.guards if each.guard == "max_delete_percent")
        assert delete_guard.total == number
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_three_times_the_tables_need_the_same_memory(worlds: Worlds) -> None:
    peaks = [peak(worlds, number) for number in (FEW, MANY)]
    assert peaks[1] < 1.2 * peaks[0], peaks
