"""Which parts of a table match a query."""

from __future__ import annotations

import json
from typing import Any

import pytest

from federator.runtime.text import nearest_name
from federator.views.search.globs import mark_glob, mark_path_glob, mark_substring
from federator.views.search.matches import MAX_TEXT, Matcher
from federator.views.search.query import parse_query
from federator.views.search.spelling import allowed_typos, edit_distance

_ROW = {
    "source": "lake", "path": "sales$OrderItems_2024", "location": "s3://user:secret@bucket/sales/items", "owner": "Ann Lee",
    "properties": json.dumps({"team": "ops eu", "api_key": "hunter2"}), "doc": "What the Größe of items is",
    "schema": json.dumps([{"name": "unitPrice", "type": "double"}, {"name": "order_id", "type": "bigint"}]),
}  # fmt: skip


def _marked(text: str, *, complete_last: bool = False, corrections: Any = None, **row: Any) -> list[str]:
    match = Matcher(parse_query(text), complete_last=complete_last, corrections=corrections).match({**_ROW, **row}, "word")
    return [f"{part.field} {'|'.join(part.text[start:end] for start, end in part.ranges)}" for part in match.parts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orderitems", ["name OrderItems"]), ("order", ["name Order", "column order"]), ("2024 -items", ["name 2024"]),
        ("orderitems_2024", ["name OrderItems|2024"]),
        ("order_items", ["name OrderItems", "column order", "doc items", "location items"]),
        ("orderitems2024", ["name OrderItems_2024"]),
        ("items", ["name Items", "doc items", "location items"]), ("unitprice", ["column unitPrice"]), ("price", ["column Price"]),
        ("GRÖSSE", ["doc Größe"]), ("gro*", []), ("grö*", ["doc Größe"]), ("orde*", ["name Orde", "column orde"]),
        ("sales ann", ["namespace sales", "owner Ann", "location sales"]), ("lake", ["namespace lake"]),
        ("source:la*", ["namespace la"]),
        ("*_2024", ["name _2024"]), ("Order?tems*", ["name OrderItems"]), ("sales$*2024", ["name 2024", "namespace sales"]),
        ("namespace:lake$sa*", ["namespace sa", "namespace lake"]), ("name:items", ["name Items"]),
        ("property:team=o*", ["property o"]), ("property:team", ["property "]), ("property:ops", ["property ops"]),
        ("property:api_key", ["property "]), ("hunter2", []), ("secret", []), ("bucket", ["location bucket"]),
        ("location:bucket/sales", ["location bucket/sales"]), ("state:valid", []), ('"ann lee"', ["owner Ann|Lee"]),
    ],
)  # fmt: skip
def test_the_parts_that_match_are_marked(text: str, expected: list[str]) -> None:
    assert _marked(text) == expected


def test_the_start_of_the_last_word_and_words_instead_of_typos_are_marked() -> None:
    assert _marked("items ord", complete_last=True) == ["name Ord|Items", "column ord", "doc items", "location items"]
    assert _marked("itms 2024", corrections={"itms": ("items",)}) == ["name Items|2024"]


def test_a_long_text_is_cut_around_its_first_match() -> None:
    match = Matcher(parse_query("needle")).match({**_ROW, "doc": "hay " * 100 + "needle" + " hay" * 100}, "word")
    (part,) = match.parts
    ((start, end),) = part.ranges
    assert (part.field, part.text[start:end], len(part.text)) == ("doc", "needle", MAX_TEXT + 2)


def test_text_that_is_not_normalized_is_marked_with_its_combining_characters() -> None:
    assert _marked("größe", doc="Gro\u0308ße") == ["doc Gro\u0308ße"]
    assert _marked("ﬁle", doc="file") == ["doc file"]
    assert _marked("$", path="sales$pre%24orders", schema="[]") == []
    assert _marked("orders", path="sales$pre%24orders", schema="[]") == ["name orders"]
    assert _marked("sales$*orders", path="sales$pre%24orders", schema="[]") == ["name pre$orders", "namespace sales"]


def test_globs_mark_what_they_name() -> None:
    assert mark_glob("a*b?c", "aXXbYc") == [(0, 1), (3, 6)]
    assert mark_glob("a*b", "ab") == [(0, 1), (1, 2)]
    assert (mark_glob("a*bb", "ab"), mark_glob("ab", "abc"), mark_path_glob("c$*", "a$b")) == (None, None, None)
    assert mark_path_glob("b$*", "a$b$c") == [(2, 4)]
    assert mark_substring("ucke", "bucket") == [(1, 5)]
    # A pattern that a backtracking matcher would not finish.
    assert mark_glob("*a*a*a*a*a*a*a*b", "a" * 5000) is None


@pytest.mark.parametrize(
    ("text", "other", "typos"),
    [
        ("orders", "orders", 0), ("orders", "order", 1), ("orders", "ordders", 1), ("orders", "ordres", 1), ("orders", "orderz", 1),
        ("orders", "rodesr", None), ("customers", "cusotmres", 2), ("", "a", 1), ("abc", "xyz", None), ("ca", "abc", None),
    ],
)  # fmt: skip
def test_typos_are_letters_added_missing_replaced_or_swapped(text: str, other: str, typos: int | None) -> None:
    most = 1 if typos is None else max(1, typos)
    assert edit_distance(text, other, most) == edit_distance(other, text, most) == typos


def test_longer_words_may_have_more_typos_and_a_field_is_named_by_its_start() -> None:
    assert [allowed_typos("x" * length) for length in (2, 3, 7, 8)] == [0, 1, 1, 2]
    fields = ("name", "namespace", "owner")
    assert [nearest_name(name, fields) for name in ("namesp", "nam", "onwer", "zzzz", "names")] == [
        "namespace", "name", "owner", None, "namespace",
    ]  # fmt: skip
