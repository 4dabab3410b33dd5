"""Text in a catalog that no index can store concerns one object: its source is crawled and mirrored."""

from __future__ import annotations

from federator.model import Kind
from tests.fixtures.spark import Worlds, changes, content, refusals


def test_only_the_objects_with_such_text_are_missing(worlds: Worlds) -> None:
    world = worlds(mirrors={"m": {"from": "a", "to": "b"}})
    store = world.store("a")
    for namespace in ("sales", "names"):
        store.add_table((namespace, "sound"), location=f"s3://b/{namespace}")
    for number, bad in enumerate(("\0", "\ud800")):
        store.add_table(("sales", f"location{number}"), location=f"s3://b/{bad}")
        store.add_table(("sales", f"property{number}"), location=f"s3://b/p{number}", properties={"k": bad})
        store.add_table(("names", f"t{bad}"), location=f"s3://b/n{number}")
        store.add_table((f"d{bad}", "t"), location=f"s3://b/d{number}")
    undescribed = {f"sales${field}{number}" for field in ("location", "property") for number in (0, 1)}
    result = world.sync("m")
    assert result.errors == {}
    assert result.sources["a"].state == "partial"
    tables = world.tables("a")
    assert {key for key, table in tables.items() if table.kind is Kind.UNDESCRIBED} == undescribed
    assert set(tables) == {"sales$sound", "names$sound", *undescribed}
    assert world.namespaces("a") == {"sales", "names"}
    evidence = world.evidence("a")
    assert (evidence["sales"], evidence["names"]) == ("complete", "failed")
    assert {path for path, reason in refusals(result).items() if reason == "undescribed"} == undescribed
    assert set(changes(result)) == {"sales", "sales$sound"}
    assert undescribed.isdisjoint(content(world.store("b")))
