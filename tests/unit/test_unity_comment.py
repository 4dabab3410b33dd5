"""The ownership mark in a comment: it comes back as it was, and what is none of ours stays text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.model import TableRecord
from federator.planning.marks import bound_mark, plain_doc
from federator.testing.contract import MARK
from federator_connectors._unity.comment import marks_of, with_marks, without_marks

texts = st.text(st.characters(exclude_categories=["Cs"]))
marks = st.dictionaries(st.from_regex(r"federator\.[a-z]+", fullmatch=True), texts, min_size=1)


@given(doc=texts, mark=marks)
def test_text_and_mark_come_back(doc: str, mark: dict[str, str]) -> None:
    assert without_marks(with_marks(doc, mark)) == (doc or None, mark)


def test_a_mark_alone() -> None:
    assert without_marks(with_marks(None, MARK)) == (None, MARK)
    assert marks_of({**MARK, "team": "sales"}) == MARK


def test_the_line_is_what_planning_reads_in_any_comment() -> None:
    record = TableRecord("lake", ("sales", "orders"), doc=with_marks("told", MARK))
    mark = bound_mark(record)
    assert mark is not None
    assert mark.properties(record.path) == MARK
    assert plain_doc(record.doc) == "told"


@pytest.mark.parametrize(
    "comment",
    ["told", "[federator]", "[federator op]", "[federator op=x] and more", "[federator op=x]\nand more", "a [federator op=x]",
     "[federator OP=x]", "[federator op=[x]]"],
)  # fmt: skip
def test_other_comments_are_text(comment: str) -> None:
    assert without_marks(comment) == (comment, {})


def test_no_comment_is_no_text() -> None:
    assert without_marks(None) == without_marks("") == (None, {})
