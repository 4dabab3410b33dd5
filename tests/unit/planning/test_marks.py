"""The ownership marker: it is bound to its own path, so a copied marker proves no ownership."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.planning.ownership import (
    OwnershipMarker,
    append_comment_marker,
    describe_unbound_marker,
    find_bound_marker,
    has_comment_marker,
    strip_comment_marker,
    strip_marker_properties,
    with_operation_id,
)
from tests.fixtures.planning import HERE, owned, table


def test_a_mark_is_read_back_as_it_was_set() -> None:
    assert find_bound_marker(owned("s$t")) == HERE


def test_a_mark_survives_names_with_delimiters() -> None:
    record = table("b", "a%24b$t%25", properties=HERE.to_properties(("a$b", "t%")))
    assert find_bound_marker(record) == HERE


def test_a_copy_with_its_properties_is_unmarked() -> None:
    original = owned("s$t")
    assert find_bound_marker(replace(original, path=("s", "copy"))) is None
    assert find_bound_marker(replace(original, path=("s",))) is None


@pytest.mark.parametrize("key", ["federator.instance", "federator.path"])
def test_half_a_mark_is_none(key: str) -> None:
    record = owned("s$t")
    assert find_bound_marker(replace(record, properties={k: v for k, v in record.properties.items() if k != key})) is None
    assert find_bound_marker(replace(record, properties={**record.properties, key: ""})) is None


def test_a_mark_without_an_operation_is_one() -> None:
    record = table("b", "s$t", properties=replace(HERE, op_id="").to_properties(("s", "t")))
    assert "federator.op" not in record.properties
    assert find_bound_marker(record) == replace(HERE, op_id="")


def test_no_mark_is_left_in_unmarked_properties() -> None:
    assert strip_marker_properties({"federator.op": "1", "federator.future": "2", "federators": "3", "team": "x"}) == {
        "federators": "3",
        "team": "x",
    }


def test_a_forwarded_mark_remembers_where_the_table_has_been() -> None:
    mark = OwnershipMarker("me", "m", "a$s$t", via=("b", "c"))
    record = table("d", "s$t", properties=mark.to_properties(("s", "t")))
    assert record.properties["federator.via"] == "b,c"
    assert find_bound_marker(record) == mark
    assert mark.visited_sources == ("a", "b", "c")


class TestInTheComment:
    """Where a catalog refuses properties."""

    MARK = OwnershipMarker("prod-eu", "hive-to-unity", "lake$sales$a%24b c]", "5f0c", ("x", "y"))

    @pytest.mark.parametrize(
        "doc", [None, "orders of the shop", "two\nlines [with brackets]", "federator instance=you path=s$t"]
    )
    def test_it_is_read_back_and_leaves_the_words_as_they_were(self, doc: str | None) -> None:
        record = table("b", "s$t%24 é]", doc=append_comment_marker(doc, self.MARK, ("s", "t$ é]")))
        assert find_bound_marker(record) == self.MARK
        assert has_comment_marker(record)
        assert strip_comment_marker(record.doc) == doc

    def test_it_is_a_line_that_people_can_read(self) -> None:
        mark = OwnershipMarker("prod-eu", "m", "lake$sales$orders", "5f0c")
        line = "[federator instance=prod-eu mirror=m origin=lake$sales$orders path=main$orders op=5f0c]"
        assert append_comment_marker("Orders", mark, ("main", "orders")) == f"Orders\n{line}"

    @pytest.mark.parametrize(
        "doc",
        [
            "[federator instance=me mirror=m origin=a$s$t path=s$other]",
            "[federator mirror=m origin=a$s$t path=s$t]",
            "[federator]",
            "[federator instance=me mirror=m origin=a$s$t path=s$t] and more words",
            "federator instance=me path=s$t",
        ],
        ids=["a copy", "of nobody", "empty", "not the last line", "no brackets"],
    )
    def test_a_similar_text_is_no_marker(self, doc: str) -> None:
        assert find_bound_marker(table("b", "s$t", doc=doc)) is None

    def test_an_operation_is_stamped_where_the_mark_is(self) -> None:
        record = table("b", "s$t", doc=append_comment_marker("words", HERE, ("s", "t")))
        made = with_operation_id(record, "op2")
        assert (find_bound_marker(made), strip_comment_marker(made.doc)) == (replace(HERE, op_id="op2"), "words")
        assert made.properties == {}
        in_properties = with_operation_id(owned("s$t", doc="words"), "op2")
        assert (find_bound_marker(in_properties), in_properties.doc) == (replace(HERE, op_id="op2"), "words")

    def test_without_a_mark_nothing_is_stamped(self) -> None:
        bare = table("b", "s$t", doc="words")
        assert with_operation_id(bare, "op2") == bare


def test_a_refusal_tells_a_missing_marker_from_that_of_another_path() -> None:
    renamed = replace(owned("s$t"), path=("s", "renamed"))
    unmarked = replace(renamed, properties={})
    assert describe_unbound_marker(renamed) == "its ownership marker is that of s$t"
    assert describe_unbound_marker(unmarked) == "its ownership marker is missing"
