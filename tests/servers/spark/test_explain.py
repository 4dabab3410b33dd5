"""Explain: the explanation of one table, recorded after each of its changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from federator.connector import InvalidInput, NamespaceNotFound
from federator.model import parse_path_key
from federator.views.explain import Explanation, explain_object
from tests.fixtures.spark import World, Worlds


@dataclass
class Story:
    world: World
    explanations: dict[str, Explanation] = field(default_factory=dict)

    def explain(self, name: str, key: str) -> None:
        federator = self.world.federator
        self.explanations[name] = explain_object(federator.settings, federator.index, parse_path_key(key))


@pytest.fixture(scope="module")
def story(worlds: Worlds) -> Story:
    policy: dict[str, Any] = {"from": "a", "to": "b", "min_miss_interval": "1h", "exclude": ["sales$tmp"]}
    result = Story(worlds(mirrors={"m": policy}))
    world, a, b = result.world, result.world.store("a"), result.world.store("b")
    for name in ("orders", "tmp", "taken"):
        a.add_table(("sales", name), f"s3://a/sales/{name}")
    b.add_table(("sales", "taken"), "s3://b/other")
    world.federator.crawl()
    result.explain("before any plan", "a$sales$orders")
    world.federator.plan()
    result.explain("planned", "a$sales$orders")
    world.sync()
    for key in ("a$sales$orders", "b$sales$orders", "a$sales$tmp", "b$sales$taken", "a$sales$never"):
        result.explain(key, key)
    a.remove(("sales", "orders"))
    world.sync()
    result.explain("gone once", "b$sales$orders")
    result.explain("gone at the origin", "a$sales$orders")
    world.age(7200)
    world.sync()
    result.explain("deregistered", "b$sales$orders")
    a.faults("fail:sales")
    world.sync()
    result.explain("not readable", "a$sales$never")
    a.faults("")
    b.faults("refuse:sales$late")
    a.add_table(("sales", "late"), "s3://a/sales/late")
    world.sync()
    result.explain("refused", "a$sales$late")
    return result


def test_before_a_plan_it_says_that_there_is_none(story: Story) -> None:
    (part,) = story.explanations["before any plan"].parts
    assert part.next == "no plan of this mirror was made yet: federator plan m"


def test_a_plan_shows_the_changes_of_the_next_sync(story: Story) -> None:
    (part,) = story.explanations["planned"].parts
    assert (part.role, part.other) == ("origin", "b$sales$orders")
    assert part.next == "declare_table: new at the origin; the next sync of m carries it out"


def test_a_mirrored_table_names_its_origin_run_and_evidence(story: Story) -> None:
    found = story.explanations["b$sales$orders"]
    assert found.summary == "b has it since mirror m declared it from a$sales$orders"
    assert (found.evidence.namespace, found.evidence.state, found.evidence.proves) == ("sales", "complete", True)
    (part,) = found.parts
    assert (part.role, part.other, part.in_ledger) == ("target", "a$sales$orders", True)
    write = next(event for event in found.history if event.mirror == "m")
    assert (write.what, write.detail) == ("declare_table b$sales$orders: done", "new at the origin")
    assert "appeared" in [event.what for event in found.history]


def test_unselected_and_refused_tables_have_a_reason(story: Story) -> None:
    (part,) = story.explanations["a$sales$tmp"].parts
    assert part.next == "nothing: the mirror's include and exclude leave it out"
    (part,) = story.explanations["b$sales$taken"].parts
    assert part.reason == "name_taken"
    assert "s3://b/other" in part.next
    assert story.explanations["b$sales$taken"].summary == "b has it, and no mirror of this instance declared it"


def test_a_change_that_failed_was_not_carried_out(story: Story) -> None:
    (part,) = story.explanations["refused"].parts
    assert part.reason == "18"
    assert part.next.startswith("declare_table: new at the origin; failed by plan ")
    assert part.next.endswith("; the next sync of m decides again")


def test_absence_differs_from_not_knowing(story: Story) -> None:
    never, unread = story.explanations["a$sales$never"], story.explanations["not readable"]
    assert never.summary == "a never had it: the listing of sales is complete and does not name it"
    assert never.kind is None
    assert unread.summary.startswith("it is not known whether a has it: the listing of sales is failed (")
    assert not unread.evidence.proves


def test_a_missed_origin_says_how_often_and_what_is_waited_for(story: Story) -> None:
    (part,) = story.explanations["gone once"].parts
    assert (part.reason, part.misses) == ("misses", 1)
    assert "missed 1 of 2 times" in part.next
    origin = story.explanations["gone at the origin"]
    assert origin.summary == "a had it before and no longer has it: the listing of sales is complete and does not name it"
    assert [event.what for event in origin.history if not event.mirror] == ["appeared", "gone"]


def test_a_deregistered_table_says_why_it_went(story: Story) -> None:
    found = story.explanations["deregistered"]
    assert found.kind is None
    last = [event for event in found.history if event.mirror][-1]
    assert last.what == "deregister_table b$sales$orders: done"
    assert last.detail == "absent at the origin, with enough misses"


@pytest.mark.parametrize(("key", "error"), [("a", InvalidInput), ("nowhere$x", NamespaceNotFound)])
def test_an_id_without_an_object_is_refused(story: Story, key: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        story.explain("", key)
