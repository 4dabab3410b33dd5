"""The ownership marker in a comment: it is read back unchanged, and other text stays text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.model import TableRecord
from federator.planning.ownership import find_bound_marker, strip_comment_marker
from federator.testing.contract import MARKER
from federator_connectors._unity.records import append_comment_marker, marker_properties, split_comment_marker

texts = st.text(st.characters(exclude_categories=["Cs"]))
marks = st.dictionaries(st.from_regex(r"federator\.[a-z]+", fullmatch=True), texts, min_size=1)


@given(doc=texts, mark=marks)
def test_text_and_mark_come_back(doc: str, mark: dict[str, str]) -> None:
    assert split_comment_marker(append_comment_marker(doc, mark)) == (doc or None, mark)


def test_a_mark_alone() -> None:
    assert split_comment_marker(append_comment_marker(None, MARKER)) == (None, MARKER)
    assert marker_properties({**MARKER, "team": "sales"}) == MARKER


def test_the_line_is_what_planning_reads_in_any_comment() -> None:
    record = TableRecord("lake", ("sales", "orders"), doc=append_comment_marker("told", MARKER))
    mark = find_bound_marker(record)
    assert mark is not None
    assert mark.to_properties(record.path) == MARKER
    assert strip_comment_marker(record.doc) == "told"


@pytest.mark.parametrize(
    "comment",
    ["told", "[federator]", "[federator op]", "[federator op=x] and more", "[federator op=x]\nand more", "a [federator op=x]",
     "[federator OP=x]", "[federator op=[x]]"],
)  # fmt: skip
def test_other_comments_are_text(comment: str) -> None:
    assert split_comment_marker(comment) == (comment, {})


def test_no_comment_is_no_text() -> None:
    assert split_comment_marker(None) == split_comment_marker("") == (None, {})
