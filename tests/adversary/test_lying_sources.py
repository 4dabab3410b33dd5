"""Whole syncs with a source that lies, or whose connector fails, beside healthy ones: it proves nothing, and stops nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from federator.settings import parse_settings
from federator.settings.sections import Settings
from federator.stages import plan
from federator.testing.memory import MemoryCatalog
from tests.adversary.lies import Edit, Lie, Op, Send
from tests.adversary.worlds import TABLES, World, glue_world
from tests.fixtures import spark
from tests.fixtures.spark import MEMORY, Worlds, content, outcomes

HOUR = 3600.0


class _WithGlue(spark.World):
    """A world whose source ``lake`` is Glue behind a lying proxy."""

    glue: World

    @property
    def settings(self) -> Settings:
        key, url = self.glue.address
        lake = {"impl": "glue", **{f"glue.{name}": value for name, value in {**self.glue.properties, key: url}.items()}}
        # Configured secrets are references.
        lake |= {
            name: f"file:{_write_file(self.directory, name, value)}"
            for name, value in lake.items()
            if "key" in name or "token" in name
        }
        memory = {name: {"impl": MEMORY, "file": str(self.directory / f"{name}.json")} for name in "abc"}
        body: dict[str, Any] = {
            "instance": {"id": self.instance}, "verify": {"enabled": False}, "mirrors": self.mirrors,
            "sources": {"lake": lake, **memory},
        }  # fmt: skip
        return parse_settings(json.loads(json.dumps(body)), self.directory / f"{self.instance}.toml")


def _write_file(directory: Path, name: str, value: str) -> Path:
    file = directory / name
    file.write_text(value)
    return file


@pytest.fixture
def with_glue(spark: None, glue_url: str, tmp_path: Path) -> Iterator[_WithGlue]:
    mirrors = {
        "good": {"from": "a", "to": "b"},
        "lied": {"from": "lake", "to": "c", "namespace": "{database}", "min_miss_interval": "1h"},
    }
    with glue_world(glue_url) as glue:
        made = _WithGlue(tmp_path, mirrors)
        made.glue = glue
        yield made
        made.close()


@pytest.mark.parametrize(
    ("lie", "state"),
    [
        (Lie("GetTables", Send(b"{}")), "partial"),
        (Lie("GetTables", Send(b"<html>maintenance</html>", content_type="text/html")), "partial"),
        # The identity of the source includes the links among its databases: without them nothing is proven.
        (Lie("GetDatabases", Send(b"{}")), "failed"),
        (Lie("Get.*", Edit(("TableList",), Op.SET, "none")), "partial"),
    ],
    ids=["no list", "html", "no databases", "wrong type"],
)
def test_a_source_that_lies_is_not_ok_and_the_others_go_on(with_glue: _WithGlue, lie: Lie, state: str) -> None:
    world = with_glue
    world.store("a").add_table(("s", "t0"), "s3://a/t0")
    first = world.sync()
    assert {name: found.state for name, found in first.sources.items()} == {"lake": "ok", "a": "ok", "b": "ok", "c": "ok"}
    copied = {f"db${name}" for name in TABLES}
    assert set(content(world.store("c"))) == copied

    world.glue.proxy.lie(lie)
    world.store("a").add_table(("s", "t1"), "s3://a/t1")
    for _ in range(2):
        world.age(2 * HOUR)
        found = world.sync()
        assert world.glue.proxy.met
        assert found.sources["lake"].state == state
        assert {name: each.state for name, each in found.sources.items() if name != "lake"} == {"a": "ok", "b": "ok", "c": "ok"}
        assert not [path for path in world.misses("lake") if path.endswith(TABLES)]
    assert set(content(world.store("c"))) == copied
    assert set(content(world.store("b"))) == {"s$t0", "s$t1"}
    world.verified()


@pytest.mark.parametrize("call", ["GetTable", "GetDatabase"])
def test_a_target_that_lies_fails_its_changes_alone(with_glue: _WithGlue, call: str) -> None:
    """A response without its object: what reads it by its key raises KeyError."""
    world = with_glue
    world.mirrors = {"bad": {"from": "a", "to": "lake", "namespace": "db"}, "good": world.mirrors["good"]}
    world.store("a").add_table(("s", "t"), "s3://a/t")
    world.glue.proxy.lie(Lie(call, Send(b"{}")))
    result = world.sync()
    assert world.glue.proxy.met
    assert set(content(world.store("b"))) == {"s$t"}
    assert result.state != "ok"
    reported = [*result.errors.values(), *(outcome.message or "" for outcome in result.outcomes)]
    assert [text for text in reported if "is not valid: " in text], reported
    world.glue.proxy.truthful()
    assert world.sync().state == "ok"
    assert "t" in world.glue.honest.list_tables(world.glue.namespace)


def test_a_key_error_out_of_one_catalog_fails_its_changes_alone(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds(
        mirrors={"bad": {"from": "a", "to": "b"}, "good": {"from": "a", "to": "c"}}, sources={"a": {}, "b": {}, "c": {}}
    )
    world.store("a").add_table(("s", "t"), "s3://a/t")
    real = MemoryCatalog.observe

    def observe(catalog: MemoryCatalog, path: tuple[str, ...]) -> Any:
        if catalog.source == "b":
            raise KeyError("TableList")
        return real(catalog, path)

    monkeypatch.setattr(MemoryCatalog, "observe", observe)
    result = world.sync()
    assert set(content(world.store("c"))) == {"s$t"}
    assert content(world.store("b")) == {}
    assert result.state == "failed"
    assert ["b: the connector failed with KeyError" in o.message for o in result.outcomes if o.message] == [True]


def test_a_mirror_that_breaks_in_a_way_that_nobody_foresaw_stops_no_other(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds(
        mirrors={"bad": {"from": "a", "to": "b"}, "good": {"from": "a", "to": "c"}}, sources={"a": {}, "b": {}, "c": {}}
    )
    world.store("a").add_table(("s", "t"), "s3://a/t")
    real = plan._plan_mirror

    def plan_or_break(work: Any, rule: Any, **options: Any) -> Any:
        if rule.name == "bad":
            raise KeyError("secret")
        return real(work, rule, **options)

    monkeypatch.setattr(plan, "_plan_mirror", plan_or_break)
    result = world.sync()
    assert result.errors == {"mirror bad": "an unexpected KeyError; see the log for its traceback"}
    assert result.state != "ok"
    assert outcomes(result)["s$t"] == "done"
    assert set(content(world.store("c"))) == {"s$t"}
