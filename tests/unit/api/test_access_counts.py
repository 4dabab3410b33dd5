"""What is counted or cut off for a principal depends on visible objects only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import insert, select

from federator.model.scopes import Scopes
from federator.settings import Settings
from federator.store import Index
from federator.store import tables as t
from tests.fixtures.index import new_index
from tests.unit.api import worlds
from tests.unit.api.worlds import IN_PART, SEEN


def test_writes_of_hidden_mirrors_displace_none_in_an_explanation(
    sqlite_index: Index, settings_of: Callable[..., Settings]
) -> None:
    worlds.build(sqlite_index)
    api = worlds.api(sqlite_index, worlds.settings(settings_of))
    before = api.json("/api/v1/explain/copy$s$orders")["history"]
    assert [event["mirror"] for event in before if event["mirror"]] == ["open", "open"]
    with sqlite_index.write() as connection:
        visible = connection.execute(select(t.journal).where(t.journal.c.mirror == "open").limit(1)).mappings().one()
        hidden = {**visible, "mirror": "hidden", "target_source": "copy", "intent_at": 99.0}
        connection.execute(insert(t.journal), [hidden | {"op_id": f"hidden-{number}"} for number in range(60)])
    assert api.json("/api/v1/explain/copy$s$orders")["history"] == before


def test_counts_of_a_plan_are_those_of_its_own_index(tmp_path: Path, settings_of: Callable[..., Settings]) -> None:
    """A plan has the same digest in services that hold different parts of it, as tests compare them."""
    counts = []
    for name, visible in (("more", SEEN), ("less", Scopes.parse(["lake$sales$eu", "copy"]))):
        index = new_index(tmp_path, f"{name}.db")
        worlds.build(index, visible=visible)
        settings = worlds.settings(lambda name=name, **raw: settings_of(index={"url": f"sqlite:///{name}.db"}, **raw))
        plans = worlds.api(index, settings).json("/api/v1/plans?mirror=half")["plans"]
        counts += [plan["changes"] for plan in plans if plan["digest"] == IN_PART]
        index.close()
    assert counts == [{"declare_table": 2}, {"declare_table": 1}]
