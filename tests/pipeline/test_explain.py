"""Explain: one table's story, told after each turn of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from federator.connector import InvalidInput, NamespaceNotFound
from federator.model import parse_key
from federator.sync.explaining import Explanation, explain
from tests.fixtures.spark import World, Worlds


@dataclass
class Story:
    world: World
    told: dict[str, Explanation] = field(default_factory=dict)

    def tell(self, name: str, key: str) -> None:
        federator = self.world.federator
        self.told[name] = explain(federator.settings, federator.index, parse_key(key))


@pytest.fixture(scope="module")
def story(worlds: Worlds) -> Story:
    policy: dict[str, Any] = {"from": "a", "to": "b", "min_miss_interval": "1h", "exclude": ["sales$tmp"]}
    told = Story(worlds(mirrors={"m": policy}))
    world, a, b = told.world, told.world.store("a"), told.world.store("b")
    for name in ("orders", "tmp", "taken"):
        a.add_table(("sales", name), f"s3://a/sales/{name}")
    b.add_table(("sales", "taken"), "s3://b/other")
    world.federator.crawl()
    told.tell("before any plan", "a$sales$orders")
    world.federator.plan()
    told.tell("planned", "a$sales$orders")
    world.sync()
    for key in ("a$sales$orders", "b$sales$orders", "a$sales$tmp", "b$sales$taken", "a$sales$never"):
        told.tell(key, key)
    a.remove(("sales", "orders"))
    world.sync()
    told.tell("gone once", "b$sales$orders")
    told.tell("gone at the origin", "a$sales$orders")
    world.age(7200)
    world.sync()
    told.tell("deregistered", "b$sales$orders")
    a.faults("fail:sales")
    world.sync()
    told.tell("not readable", "a$sales$never")
    return told


def test_before_a_plan_it_says_that_there_is_none(story: Story) -> None:
    (part,) = story.told["before any plan"].parts
    assert part.next == "no plan of this mirror was made yet: federator plan m"


def test_a_plan_says_what_the_next_sync_does(story: Story) -> None:
    (part,) = story.told["planned"].parts
    assert (part.role, part.other) == ("origin", "b$sales$orders")
    assert part.next == "declare_table: new at the origin; the next sync of m carries it out"


def test_a_mirrored_table_names_its_origin_run_and_evidence(story: Story) -> None:
    found = story.told["b$sales$orders"]
    assert found.summary == "b has it since mirror m declared it from a$sales$orders"
    assert (found.evidence.namespace, found.evidence.state, found.evidence.proves) == ("sales", "complete", True)
    (part,) = found.parts
    assert (part.role, part.other, part.in_ledger) == ("target", "a$sales$orders", True)
    write = next(event for event in found.history if event.mirror == "m")
    assert (write.what, write.detail) == ("declare_table b$sales$orders: done", "new at the origin")
    assert "appeared" in [event.what for event in found.history]


def test_what_a_mirror_leaves_out_or_leaves_alone_has_its_reason(story: Story) -> None:
    (part,) = story.told["a$sales$tmp"].parts
    assert part.next == "nothing: the mirror's include and exclude leave it out"
    (part,) = story.told["b$sales$taken"].parts
    assert part.reason == "name_taken"
    assert "s3://b/other" in part.next
    assert story.told["b$sales$taken"].summary == "b has it, and no mirror of ours put it there"


def test_absence_is_told_from_not_knowing(story: Story) -> None:
    never, unread = story.told["a$sales$never"], story.told["not readable"]
    assert never.summary == "a never had it: the listing of sales is complete and does not name it"
    assert never.kind is None
    assert unread.summary.startswith("it is not known whether a has it: the listing of sales is failed (")
    assert not unread.evidence.proves


def test_a_missed_origin_says_how_often_and_what_is_waited_for(story: Story) -> None:
    (part,) = story.told["gone once"].parts
    assert (part.reason, part.misses) == ("misses", 1)
    assert "missed 1 of 2 times" in part.next
    origin = story.told["gone at the origin"]
    assert origin.summary == "a had it and has it no more: the listing of sales is complete and does not name it"
    assert [event.what for event in origin.history if not event.mirror] == ["appeared", "gone"]


def test_a_deregistered_table_says_why_it_went(story: Story) -> None:
    found = story.told["deregistered"]
    assert found.kind is None
    last = [event for event in found.history if event.mirror][-1]
    assert last.what == "deregister_table b$sales$orders: done"
    assert last.detail == "gone at the origin, and missed often enough"


@pytest.mark.parametrize(("key", "error"), [("a", InvalidInput), ("nowhere$x", NamespaceNotFound)])
def test_what_names_no_object_is_refused(story: Story, key: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        story.tell("", key)
