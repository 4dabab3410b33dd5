"""Negated terms and unknown fields of a search, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from federator.connector import InvalidInput
from federator.model.scopes import EVERYTHING, Scopes
from federator.runtime.redaction import register_secret
from federator.store import Index
from federator.views.search import engine
from tests.fixtures.index_content import fill, table
from tests.servers.index.search_support import ids, paged


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders -people", ["copy$sales$orders", "lake$sales$orders", "lake$hr$pre%24orders", "lake$sales$orders_2023"]),
        ("orders NOT namespace:hr NOT source:copy", ["lake$sales$orders", "lake$sales$orders_2023"]),
        ("orders -name:orders", ["lake$hr$people"]),
        ("orders -name:*_2023 -owner:bob -namespace:lake$hr", ["copy$sales$orders", "lake$sales$orders"]),
        ("orders -property:team -state:missing", ["copy$sales$orders", "lake$hr$pre%24orders"] ),
        ('orders -"ops eu" -column:price', ["copy$sales$orders", "lake$hr$pre%24orders", "lake$hr$people"]),
        ("orders -ord*", []),
        # a state that is not known
        ("orders -state:unverified", ["copy$sales$orders", "lake$sales$orders", "lake$hr$people"]),
        ("-location:s3://lake/", ["lake$hr$pre%24orders"]),
        # without a positive word
        ("-namespace:hr -name:orders", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        ("NOT hr NOT order*", []),
        ("-hr -orders -source:copy", ["lake$sales$OrderItems"]),
        ("NOT -orders source:copy", ["copy$sales$orders"]),
        # words of their own
        ("NOT", []), ("not orders", []), ("-", []), ("people -", []), ("orders --", []),
        ("pre-orders", ["lake$hr$pre%24orders"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scopes", [EVERYTHING, Scopes((("lake",), ("copy",)))])
def test_a_negated_term_leaves_out_what_it_matches(search_lake: Index, text: str, expected: list[str], scopes: Scopes) -> None:
    assert ids(search_lake, text, scopes=scopes) == expected
    found: list[str] = []
    for page in paged(search_lake, text, 1, facets=True):
        found += [node.id for node in page.nodes]
        assert page.facets is not None
        assert (page.facets.counted, page.facets.exact) == (len(expected), True)
    assert sorted(found) == sorted(expected)


def test_a_table_without_a_location_matches_the_negation_of_each(make_index: Callable[[], Index]) -> None:
    index = make_index()
    fill(index, "lake", table("lake", "s", "a", location=None), table("lake", "s", "b"))
    assert ids(index, "-location:s3://lake/") == ids(index, "a -location:lake") == ["lake$s$a"]


def test_secrets_of_locations_cannot_be_guessed(make_index: Callable[[], Index]) -> None:
    """Responses mask them, so a pattern that finds them would tell one letter after the other."""
    index = make_index()
    masked = (
        "s3://key:pa55@b/t.lance", "https://pa55@h/t.lance", "abfss://c:pa55@h/t.lance", "https://h/t.lance?sp=r&sig=pa55",
        "az://c/t.lance%3Fsig=pa55",
    )  # fmt: skip
    shown = ("abfss://pa55@account/t.lance", "s3://b/x@pa55/t.lance", "s3://b/sig=pa55/t.lance")
    for namespace, locations in (("masked", masked), ("shown", shown)):
        fill(index, "lake", *(table("lake", namespace, f"t{n}", location=location) for n, location in enumerate(locations)))
    found = [f"lake$shown$t{n}" for n in range(len(shown))]
    # What responses show is found.
    assert ids(index, "location:https://h/t.lance") == ["lake$masked$t3"]
    assert ids(index, "location:h/t.lance") == ["lake$masked$t1", "lake$masked$t2", "lake$masked$t3"]
    assert ids(index, "location:https://h/t.lance?sp=r") == ["lake$masked$t3"]
    assert ids(index, "location:/t.lance source:lake -namespace:shown") == [f"lake$masked$t{n}" for n in range(len(masked))]
    assert ids(index, "location:pa55") == ids(index, "location:pa5 source:lake") == found
    assert ids(index, "-location:pa55") == ids(index, "-location:pa5") == [f"lake$masked$t{n}" for n in range(len(masked))]


def test_a_configured_secret_in_a_location_cannot_be_guessed(make_index: Callable[[], Index]) -> None:
    secret, index = "x9Kq-planted-in-a-location", make_index()
    register_secret(secret)
    locations = (f"s3://b/{secret}/t.lance", f"s3://b/a/{secret}", f"gs://b/k={secret}@h", "s3://b/a/x9Ka/t.lance")
    fill(index, "lake", *(table("lake", "s", f"t{n}", location=location) for n, location in enumerate(locations)))
    for guess in (secret, secret[:5], "planted", "*planted-in-a", "/????-planted", "location"):
        assert ids(index, f"location:{guess}") == [], guess
        assert len(ids(index, f"-location:{guess}")) == len(locations)
    assert ids(index, "location:s3://b/a/") == ["lake$s$t1", "lake$s$t3"]
    assert ids(index, "location:s3://b/a/x9") == ["lake$s$t3"]


def test_a_query_has_a_bounded_number_of_patterns(search_lake: Index) -> None:
    """Each is compared with every table."""
    patterns = [f"location:s3://lake/sales/orders{'*' * n}" for n in range(1, 28)]
    assert ids(search_lake, " ".join(patterns)) == ids(search_lake, patterns[0]) != []
    for term in ("location:{}", "-name:*{}*", "sales$*{}", "namespace:*{}$*"):
        with pytest.raises(InvalidInput, match="more than 8 globs and locations"):
            ids(search_lake, " ".join(term.format(n) for n in range(9)))


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("ownr:ana", "owner"), ("orders Nmae:x", "name"), ("-colum:price", "column"), ("prop:team=ops", "property"),
        ("loc:s3", "location"), ("tags:x", None), ("NOT stat:valid", "state"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_refused_with_the_nearest_one(search_lake: Index, text: str, nearest: str | None) -> None:
    with pytest.raises(InvalidInput) as error:
        engine.search_tables(search_lake, text)
    assert ("did you mean" in error.value.message) == (nearest is not None)
    assert nearest is None or f"did you mean {nearest!r}?" in error.value.message
    assert "fields: name, namespace, column, property, owner, location, source, state" in str(error.value.hint)
