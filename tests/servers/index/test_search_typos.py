"""What a search forgives, and what it says of its results, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, event, select

from federator.model.scopes import EVERYTHING, Scopes
from federator.store import Index, migrations
from federator.store import tables as t
from federator.store.fulltext import Expression, Lexeme
from federator.views.search import engine, sample
from federator.views.search import facets as facets_module
from tests.fixtures.index_content import fill, table
from tests.fixtures.index_reads import downgrade_schema
from tests.servers.index.search_support import ids

_EVERY_SOURCE = Scopes((("lake",), ("copy",)))


@pytest.fixture(scope="module")
def divided(make_index: Callable[[], Index]) -> Index:
    """A namespace with hidden names that resemble the visible ones."""
    index = make_index()
    fill(
        index, "lake", table("lake", "open", "invoices"), table("lake", "open", "quarterly_figures"),
        table("lake", "vault", "acquisition"), table("lake", "vault", "layoffs", schema='[{"name":"severance","type":"double"}]'),
        table("lake", "vault", "invoiced"),
    )  # fmt: skip
    return index


@pytest.mark.parametrize("scopes", [EVERYTHING, _EVERY_SOURCE])
@pytest.mark.parametrize(
    ("text", "expected", "suggested"),
    [
        # a letter too many, missing, replaced, two in the wrong order
        ("peoplle", ["lake$hr$people"], ["people"]), ("peple", ["lake$hr$people"], ["people"]),
        ("prople", ["lake$hr$people"], ["people"]), ("poeple", ["lake$hr$people"], ["people"]),
        # two typos in a long word, not in a short one
        ("ordreitesm", ["copy$default$orderitems", "lake$sales$OrderItems"], ["orderitems"]), ("poepel", [], []),
        # words beside it, fields, filters and negations stay
        ("sales peple", [], []), ("hr peple", ["lake$hr$people"], ["hr people"]),
        ("ordres sales owner:ann", ["copy$sales$orders", "lake$sales$orders", "lake$sales$orders_2023"], ["orders sales owner:ann"]),
        ("name:ordres -source:copy -2023", ["lake$hr$pre%24orders", "lake$sales$orders"], ["name:orders -source:copy -2023"]),
        ("namespace:saels ordres", ["copy$sales$orders", "lake$sales$orders", "lake$sales$orders_2023"],
         ["namespace:sales orders"]),
        ("column:prise", ["lake$sales$orders"], ["column:price"]),
        # a word in quotes, a prefix and a glob are as they should be; all words must be near one
        ('"peple"', [], []), ("peple*", [], []), ("*peple", [], []), ("peple xyzzy", [], []),
        # a number is another number
        ("20233", [], []),
    ],
)  # fmt: skip
def test_words_that_no_name_has_find_similar_ones(
    search_lake: Index, scopes: Scopes, text: str, expected: list[str] | None, suggested: list[str]
) -> None:
    page = engine.search_tables(search_lake, text, scopes=scopes, facets=True)
    assert [node.id for node in page.nodes] == expected
    assert {node.match.kind for node in page.nodes} <= {"typo"}
    assert page.total == facets_module.Total(len(expected), exact=True)
    assert list(page.did_you_mean) == suggested


def test_a_typo_ranks_below_whole_words_and_starts_of_words_and_is_paged(make_index: Callable[[], Index]) -> None:
    index = make_index()
    fill(index, "lake", *(table("lake", "s", name) for name in ("users", "usage", "a_user", "user", "z_users_2", "usher")))
    kinds = [(node.name, node.match.kind) for node in engine.search_tables(index, "user").nodes]
    # Only tables with other words are left, so nothing similar is added.
    assert kinds == [("user", "name"), ("a_user", "word"), ("users", "prefix"), ("z_users_2", "prefix")]
    assert engine.search_tables(index, "user").did_you_mean == ()
    first = engine.search_tables(index, "usser", limit=2)
    second = engine.search_tables(index, "usser", limit=2, after=first.next or "")
    # Both are one letter away, and users are two.
    assert [node.name for node in (*first.nodes, *second.nodes)] == ["a_user", "user", "usher"]
    assert (first.did_you_mean, second.did_you_mean, second.next) == (("user", "usher"), (), None)


@pytest.mark.parametrize(
    ("text", "frequent"),
    [
        ("o", True), ("sales o", True), ("orders s", True), ("ord* -source:copy", True), ("p o", True), ("NOT people name:o", True),
        ("zebra o", True), ("xyz*", False),
    ],
)  # fmt: skip
def test_frequent_beginnings_are_compared_with_each_entry_with_the_same_results(
    search_lake: Index, monkeypatch: pytest.MonkeyPatch, text: str, frequent: bool
) -> None:
    expected = engine.search_tables(search_lake, text, facets=True)
    found: list[bool] = []

    def list_ignored(connection: Connection, expression: Expression, most: int) -> set[Lexeme]:
        found.append(bool(result := real(connection, expression, most)))
        return result

    real = sample.list_ignored
    monkeypatch.setattr(sample, "_samples", {})
    for name, value in (("MANY_ENTRIES", 0), ("_COMPARE_COST", 0), ("MIN_SAMPLE_SIZE", 1)):
        monkeypatch.setattr(sample, name, value)
    monkeypatch.setattr(engine, "list_ignored", list_ignored)
    assert engine.search_tables(search_lake, text, facets=True) == expected
    assert any(found) == frequent


def test_few_results_come_with_queries_that_find_more(make_index: Callable[[], Index]) -> None:
    index = make_index()
    fill(index, "lake", table("lake", "s", "paints", doc="by color"), *(table("lake", "s", f"colour_{n}") for n in range(9)))
    page = engine.search_tables(index, "color")
    assert ([(node.name, node.match.kind) for node in page.nodes], page.did_you_mean) == ([("paints", "word")], ("colour",))
    # A complete name was meant, a word in quotes too, and a correction that finds no more is none.
    fill(index, "lake", table("lake", "s", "color"), run="run-2")
    assert [engine.search_tables(index, text).did_you_mean for text in ("color", '"color"', "color paints")] == [(), (), ()]


@pytest.mark.parametrize("most", [engine.MAX_VISIBLE, 0])
@pytest.mark.parametrize("text", ["aquisition", "layofs", "column:severence", "namespace:valt", "vault layofs", "invoced"])
def test_no_hidden_name_is_suggested(divided: Index, monkeypatch: pytest.MonkeyPatch, most: int, text: str) -> None:
    """With few visible tables, no hidden entry is read; with many, the words of some of them are compared."""
    monkeypatch.setattr(engine, "MAX_VISIBLE", most)
    scopes = Scopes((("lake", "open"),))
    everybody = engine.search_tables(divided, text)
    assert everybody.did_you_mean or everybody.nodes
    page = engine.search_tables(divided, text, scopes=scopes)
    assert {node.id for node in page.nodes} <= {"lake$open$invoices"}
    assert set(page.did_you_mean) <= {"invoices"}
    assert {node.id for node in engine.suggest_tables(divided, text, scopes=scopes)} <= {"lake$open$invoices"}
    assert engine.search_tables(divided, "qarterly", scopes=scopes).did_you_mean == ("quarterly",)


@pytest.mark.parametrize("most", [engine.MAX_VISIBLE, 0])
def test_hidden_names_displace_no_visible_one(
    make_index: Callable[[], Index], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(engine, "MAX_VISIBLE", most)
    index = make_index()
    hidden = [table("lake", "vault", f"order{letter}") for letter in "abcdefghijkl"]
    fill(index, "lake", table("lake", "open", "orders"), *hidden)
    assert ids(index, "orderz", scopes=Scopes((("lake", "open"),))) == ["lake$open$orders"]


def test_typos_in_few_visible_tables_read_no_hidden_entry_and_no_shared_word(divided: Index) -> None:
    executed: list[str] = []

    def record(*args: object) -> None:
        executed.append(str(args[2]))

    event.listen(divided.engine, "before_cursor_execute", record)
    try:
        assert ids(divided, "qarterly", scopes=Scopes((("lake", "open"),))) == ["lake$open$quarterly_figures"]
    finally:
        event.remove(divided.engine, "before_cursor_execute", record)
    assert executed
    assert not any(name in statement for name in ("search_words", "words @@", "search_vocabulary") for statement in executed)


def test_words_of_what_was_removed_are_not_suggested(make_index: Callable[[], Index]) -> None:
    index = make_index()
    fill(index, "lake", table("lake", "s", "elephants"), table("lake", "s", "orders"))
    assert engine.search_tables(index, "elefants").did_you_mean == ("elephants",)
    fill(index, "lake", gone=[("s", "elephants")], run="run-2")
    page = engine.search_tables(index, "elefants")
    assert (page.nodes, page.did_you_mean) == ([], ())
    # New names are known after their revision is published.
    fill(index, "lake", table("lake", "s", "giraffes"), run="run-3")
    assert ids(index, "girafes") == ["lake$s$giraffes"]


def test_an_index_from_before_the_vocabulary_has_it_after_its_migration(make_index: Callable[[], Index]) -> None:
    index = make_index()
    columns = '[{"name":"unitPrice","type":"double"}]'
    fill(index, "lake", table("lake", "sales", "OrderItems_2023_00001234", schema=columns, owner="anna", doc="whatever"))
    with index.read() as connection:
        known = set(connection.execute(select(t.search_vocabulary.c.word)).scalars())
    assert known == {"orderitems", "order", "items", "lake", "sales", "unitprice", "unit", "price"}
    downgrade_schema(index, "0018")
    migrations.upgrade_schema(index)
    with index.read() as connection:
        assert set(connection.execute(select(t.search_vocabulary.c.word)).scalars()) == known


def test_a_count_is_exact_or_says_that_there_are_more(search_lake: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def total(text: str, **how: int | bool) -> tuple[int, bool] | None:
        counted = engine.search_tables(search_lake, text, **how).total  # type: ignore[arg-type]
        return (counted.count, counted.exact) if counted is not None else None

    assert total("orders") == total("orders", limit=2, facets=True) == (5, True)
    assert total("orders", limit=2) is None
    monkeypatch.setattr(facets_module, "MAX_COUNTED", 3)
    assert total("source:lake", facets=True) == (3, False)
    assert facets_module.total_of(facets_module.Facets(1001, False, {})) == facets_module.Total(1000, exact=False)
    assert facets_module.total_of(facets_module.Facets(657, False, {})) == facets_module.Total(600, exact=False)
