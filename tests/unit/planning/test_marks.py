"""The ownership mark: bound to its own path, so that a copy is nobody's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.planning.marks import bound_mark, unmarked
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
