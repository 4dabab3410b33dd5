"""The ownership mark: bound to its own path, so that a copy is nobody's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.planning.marks import Mark, bound_mark, marked_in_comment, plain_doc, stamped, unmarked, with_comment
from tests.fixtures.planning import HERE, ours, table


def test_a_mark_is_read_back_as_it_was_set() -> None:
    assert bound_mark(ours("s$t")) == HERE


def test_a_mark_survives_names_with_delimiters() -> None:
    record = table("b", "a%24b$t%25", properties=HERE.properties(("a$b", "t%")))
    assert bound_mark(record) == HERE


def test_a_copy_with_its_properties_is_unmarked() -> None:
    original = ours("s$t")
    assert bound_mark(replace(original, path=("s", "copy"))) is None
    assert bound_mark(replace(original, path=("s",))) is None


@pytest.mark.parametrize("key", ["federator.instance", "federator.path"])
def test_half_a_mark_is_none(key: str) -> None:
    record = ours("s$t")
    assert bound_mark(replace(record, properties={k: v for k, v in record.properties.items() if k != key})) is None
    assert bound_mark(replace(record, properties={**record.properties, key: ""})) is None


def test_a_mark_without_an_operation_is_one() -> None:
    record = table("b", "s$t", properties=replace(HERE, op_id="").properties(("s", "t")))
    assert "federator.op" not in record.properties
    assert bound_mark(record) == replace(HERE, op_id="")


def test_no_mark_is_left_in_unmarked_properties() -> None:
    assert unmarked({"federator.op": "1", "federator.future": "2", "federators": "3", "team": "x"}) == {
        "federators": "3",
        "team": "x",
    }


def test_a_forwarded_mark_remembers_where_the_table_has_been() -> None:
    mark = Mark("me", "m", "a$s$t", via=("b", "c"))
    record = table("d", "s$t", properties=mark.properties(("s", "t")))
    assert record.properties["federator.via"] == "b,c"
    assert bound_mark(record) == mark
    assert mark.passed == ("a", "b", "c")


class TestInTheComment:
    """Where a catalog refuses properties."""

    MARK = Mark("prod-eu", "hive-to-unity", "lake$sales$a%24b c]", "5f0c", ("x", "y"))

    @pytest.mark.parametrize(
        "doc", [None, "orders of the shop", "two\nlines [with brackets]", "federator instance=you path=s$t"]
    )
    def test_it_is_read_back_and_leaves_the_words_as_they_were(self, doc: str | None) -> None:
        record = table("b", "s$t%24 é]", doc=with_comment(doc, self.MARK, ("s", "t$ é]")))
        assert bound_mark(record) == self.MARK
        assert marked_in_comment(record)
        assert plain_doc(record.doc) == doc

    def test_it_is_a_line_that_people_can_read(self) -> None:
        mark = Mark("prod-eu", "m", "lake$sales$orders", "5f0c")
        line = "[federator instance=prod-eu mirror=m origin=lake$sales$orders path=main$orders op=5f0c]"
        assert with_comment("Orders", mark, ("main", "orders")) == f"Orders\n{line}"

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
    def test_what_only_looks_like_one_is_none(self, doc: str) -> None:
        assert bound_mark(table("b", "s$t", doc=doc)) is None

    def test_an_operation_is_stamped_where_the_mark_is(self) -> None:
        record = table("b", "s$t", doc=with_comment("words", HERE, ("s", "t")))
        made = stamped(record, "op2")
        assert (bound_mark(made), plain_doc(made.doc)) == (replace(HERE, op_id="op2"), "words")
        assert made.properties == {}
        in_properties = stamped(ours("s$t", doc="words"), "op2")
        assert (bound_mark(in_properties), in_properties.doc) == (replace(HERE, op_id="op2"), "words")

    def test_without_a_mark_nothing_is_stamped(self) -> None:
        bare = table("b", "s$t", doc="words")
        assert stamped(bare, "op2") == bare
