"""The search on both databases: the same tables in the same order for the same query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, func, select

from federator.connector import InvalidInput
from federator.model.rows import RECORD_COLUMNS
from federator.model.scopes import Scopes
from federator.store import Index, migrations, revisions
from federator.store import tables as t
from federator.store.fulltext import AllOf, AnyOf, Expression, Lexeme
from federator.store.leases import acquire_lease
from federator.views.search import engine
from federator.views.search import facets as facets_module
from federator.views.search.query import parse_query
from tests.fixtures.index_content import fill, table
from tests.fixtures.index_reads import downgrade_schema
from tests.servers.index.search_support import ids, paged


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # words: the whole name first, then a word of the name, then anything else
        ("orders", ["copy$sales$orders", "lake$sales$orders", "lake$hr$pre%24orders", "lake$sales$orders_2023", "lake$hr$people"]),
        ("ORDERS sales", ["copy$sales$orders", "lake$sales$orders", "lake$sales$orders_2023"]),
        # and at last what the last word is the start of
        ("order", ["lake$sales$OrderItems", "copy$default$orderitems", "lake$sales$orders", "copy$sales$orders", "lake$hr$people",
                   "lake$hr$pre%24orders", "lake$sales$orders_2023"]),
        ("sales ord", ["copy$default$orderitems", "copy$sales$orders", "lake$sales$OrderItems", "lake$sales$orders",
                       "lake$sales$orders_2023"]),
        ("ord sales", []), ('"ord"', []), ("name:ord owner:ann", []), ("owner:ann name:ord source:copy", []),
        ("source:copy owner:ann name:ord", ["copy$sales$orders"]), ("orders owner:an", ["copy$sales$orders", "lake$sales$orders",
                                                                                         "lake$sales$orders_2023"]),
        ("items", ["lake$sales$OrderItems", "copy$default$orderitems"]),
        ("orderitems", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        ("OrderItems", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        ("order_items", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        # beginnings and globs
        ("peop*", ["lake$hr$people"]),
        ("order* source:lake", ["lake$hr$people", "lake$hr$pre%24orders", "lake$sales$OrderItems", "lake$sales$orders",
                                "lake$sales$orders_2023"]),
        ("*_2023", ["lake$sales$orders_2023"]),
        ("?eople", ["lake$hr$people"]),
        ("sales$*", ["copy$sales$orders", "lake$sales$OrderItems", "lake$sales$orders", "lake$sales$orders_2023"]),
        ("lake$sales$ORD*s", ["lake$sales$OrderItems", "lake$sales$orders"]),
        ("ake$sales$*", []),
        ("*$orders", ["copy$sales$orders", "lake$sales$orders"]),
        # fields
        ("name:people", ["lake$hr$people"]),
        ("name:*s", ["copy$default$orderitems", "copy$sales$orders", "lake$hr$pre%24orders", "lake$sales$OrderItems",
                     "lake$sales$orders"]),
        ("namespace:hr people", ["lake$hr$people"]),
        ("namespace:lake$sales orders", ["lake$sales$orders", "lake$sales$orders_2023"]),
        ("namespace:s* name:orders", ["copy$sales$orders", "lake$sales$orders", "lake$sales$orders_2023"]),
        ("property:team=ops", ["lake$sales$orders"]),
        ("property:team=OPS*", ["lake$sales$orders", "lake$sales$orders_2023"]),
        ("property:team", ["lake$sales$orders", "lake$sales$orders_2023"]),
        ('property:"team=ops eu"', ["lake$sales$orders_2023"]),
        ("column:price", ["lake$sales$orders"]),
        ("column:unitprice", ["lake$sales$orders"]),
        ("column:order_id", ["lake$sales$orders"]),
        ('column:"orders"', []),
        ("owner:bob source:lake", ["lake$hr$people", "lake$sales$OrderItems"]),
        ("location:s3://other/", ["lake$hr$pre%24orders"]),
        ("location:OrderItems.lance", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        ("source:c*", ["copy$default$orderitems", "copy$sales$orders"]),
        ("source:nowhere", []),
        ("state:missing", ["lake$hr$people"]),
        ("state:unverified owner:bob", ["lake$sales$OrderItems"]),
        ("orders state:valid", ["copy$sales$orders", "lake$sales$orders"]),
        # secrets are not found by what they are
        ("hunter2", []),
        ("property:aws.secret_access_key=h*", []),
        ("property:aws.secret_access_key", ["lake$sales$orders"]),
        # texts as they come
        ("GRÖSSE", ["lake$hr$größe", "lake$sales$OrderItems"]),
        ("订单", ["lake$hr$订单"]),
        ("订*", ["lake$hr$订单"]),
        ("🚀", ["lake$hr$🚀"]),
        ("o'brien", ["lake$hr$o'brien AND \"x\" OR NEAR(y)"]),
        ('"NEAR(y)"', ["lake$hr$o'brien AND \"x\" OR NEAR(y)"]),
        ("people NOT orders", []),
        ("s3://other", ["lake$hr$pre%24orders"]),
        ('"', []), ("'", []), ("( OR ) AND *", []), ("--", []), ("\\", []), ("%", []), ("_", []), (":*", []), ("a\0b", []),
        ("name:", []), ('"nope:orders"', []), ("^", []), ("{words} : x", []), ("'x':* & !y", []), ("*" * 8 + "%", []),
    ],
)  # fmt: skip
def test_finds_and_ranks(search_lake: Index, text: str, expected: list[str]) -> None:
    assert ids(search_lake, text) == expected


@pytest.mark.parametrize("text", ["orders", "order*", "*", "name:*", "source:lake", "state:unverified"])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_pages_hold_everything_once_and_in_order(search_lake: Index, text: str, limit: int) -> None:
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = engine.search_tables(search_lake, text, limit=limit, after=after)
        assert len(page.nodes) <= limit
        found += [node.id for node in page.nodes]
        after = page.next
    assert found == ids(search_lake, text, limit=1000)
    assert len(found) == len(set(found)) > 3


@pytest.mark.parametrize("text", ["x" * 10_001, "a " * 33, "*a" * 9, "state:nonsense", "property:*", "column:a*b"])
def test_refuses_what_it_cannot_do(search_lake: Index, text: str) -> None:
    with pytest.raises(InvalidInput):
        engine.search_tables(search_lake, text)


def test_takes_long_words(search_lake: Index) -> None:
    assert ids(search_lake, "é" * 10_000) == []


def test_a_long_name_is_not_another_that_begins_like_it(make_index: Callable[[], Index]) -> None:
    """Whole names are compared by their beginnings alone: their words must match too."""
    index, long = make_index(), "measurements_" * 5
    fill(index, "lake", table("lake", "s", f"{long}2023"), table("lake", "s", f"{long}2024"), table("lake", "s", "!!"))
    assert ids(index, f"{long}2023") == [f"lake$s${long}2023"]
    # A name without a word in it is found by no word.
    assert ids(index, "!!") == []


def test_facets_count_what_matches(search_lake: Index) -> None:
    facets = engine.search_tables(search_lake, "orders", limit=1, facets=True).facets
    assert facets is not None
    assert (facets.counted, facets.exact) == (5, True)
    assert facets.values == {
        "source": [("lake", 4), ("copy", 1)],
        "namespace": [("lake$hr", 2), ("lake$sales", 2), ("copy$sales", 1)],
        "state": [("unverified", 2), ("valid", 2), ("missing", 1)],
        "owner": [("ann", 3), ("bob", 1)],
    }


def test_what_no_scope_covers_is_neither_found_nor_counted(search_lake: Index) -> None:
    scopes = Scopes((("lake", "hr"), ("copy", "default")))
    assert ids(search_lake, "orders", scopes=scopes) == ["lake$hr$pre%24orders", "lake$hr$people"]
    facets = engine.search_tables(search_lake, "order*", scopes=scopes, facets=True).facets
    assert facets is not None
    assert facets.values["namespace"] == [("lake$hr", 2), ("copy$default", 1)]
    assert ids(search_lake, "*", scopes=Scopes()) == []


@pytest.mark.parametrize(
    "text", ["orders", "order*", "ORDERS sales", "property:team=ops", "ake$sales$*", "GRÖSSE", "rders", "订*"]
)
def test_a_search_in_scopes_reads_no_hidden_entry(search_lake: Index, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The results are those of the index of words, which would show in its time whether hidden tables have the words."""
    every_source = Scopes((("lake",), ("copy",)))
    expected = ids(search_lake, text)
    executed: list[str] = []

    def record(_: Any, __: Any, statement: str, *___: Any) -> None:
        executed.append(statement)

    event.listen(search_lake.engine, "before_cursor_execute", record)
    try:
        assert ids(search_lake, text, scopes=every_source) == expected
        read = [statement for statement in executed if "search_entry" in statement]
        assert read
        assert not any("search_words" in statement or "words @@" in statement for statement in read)
        monkeypatch.setattr(engine, "MAX_VISIBLE", 3)
        executed.clear()
        assert ids(search_lake, text, scopes=every_source) == expected
        assert any("search_words" in statement or "words @@" in statement for statement in executed), "too many to read each"
    finally:
        event.remove(search_lake.engine, "before_cursor_execute", record)


def test_facets_say_where_they_stop_to_count(search_lake: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facets_module, "MAX_COUNTED", 1)
    facets = engine.search_tables(search_lake, "orders", facets=True).facets
    assert facets is not None
    # More than that have it as their whole name: no other rank is counted.
    assert (facets.counted, facets.exact) == (2, False)
    assert facets.values["source"] == [("copy", 1), ("lake", 1)]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_says_where_it_puts_no_more_in_order(search_lake: Index, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(engine, "MAX_CANDIDATES", 2)
    monkeypatch.setattr(engine, "WALK_SIZE", 0)
    pages = list(paged(search_lake, "order*", limit))
    assert pages[0].capped == (limit < 7)
    assert not pages[-1].capped
    found = [node.id for page in pages for node in page.nodes]
    assert set(found) <= set(ids(search_lake, "order*", limit=50))
    # Out of two, and the one too many that tells that there are more, the first is shown; the next page is out of what follows it.
    assert found == sorted(set(found))
    assert len(found) >= (7 if limit == 50 else 3)
    assert not engine.search_tables(search_lake, "people", limit=1).capped


@pytest.fixture(scope="module")
def many(make_index: Callable[[], Index]) -> Index:
    index = make_index()
    tables = [table("lake", f"s{number % 7}", f"{'orders' if number % 3 else 'late'}_{number:03d}") for number in range(300)]
    fill(index, "lake", *tables, *(table("lake", "zz", f"last_{number:03d}") for number in range(100)))
    if not index.is_sqlite:
        with index.write() as connection:
            connection.exec_driver_sql("ANALYZE search_entry")
    return index


class TestFrequentWords:
    """PostgreSQL walks past tables in order until a page is full; nobody can tell, but by what is not capped."""

    @pytest.fixture
    def walks(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How many tables each walk found."""
        found: list[int] = []

        def walked(*args: Any) -> Any:
            rows = real(*args)
            found.append(len(rows))
            return rows

        real = engine._walk_in_order
        monkeypatch.setattr(engine, "_walk_in_order", walked)
        return found

    @pytest.mark.parametrize("text", ["orders", "orders s3", "last", "late orders"])
    @pytest.mark.parametrize("facets", [False, True])
    @pytest.mark.parametrize("walked", [0, 20, 20_000])
    def test_are_found_by_a_walk_as_by_the_index(
        self, many: Index, monkeypatch: pytest.MonkeyPatch, text: str, facets: bool, walked: int
    ) -> None:
        wanted = engine.search_tables(many, text, limit=1_000, facets=facets)
        monkeypatch.setattr(engine, "FIRST_WALK_SIZE", walked // 2)
        monkeypatch.setattr(engine, "WALK_SIZE", walked)
        pages = list(paged(many, text, 9, facets=facets))
        assert [node.id for page in pages for node in page.nodes] == [node.id for node in wanted.nodes]
        assert {len(page.nodes) for page in pages[:-1]} <= {9}
        assert all(page.facets == wanted.facets for page in pages)
        assert not any(page.capped for page in pages)

    def test_are_walked_to_in_postgresql_alone(self, many: Index, walks: list[int]) -> None:
        found = ids(many, "orders", limit=9)
        assert found[0] == "lake$s0$orders_007"
        assert len(found) == 9
        assert walks[-1:] == ([] if many.is_sqlite else [10])

    def test_fill_a_page_whose_candidates_would_not(
        self, many: Index, monkeypatch: pytest.MonkeyPatch, walks: list[int]
    ) -> None:
        monkeypatch.setattr(engine, "MAX_CANDIDATES", 20)
        pages = list(paged(many, "orders", 9))
        ids = [node.id for page in pages for node in page.nodes]
        assert ids == sorted(set(ids))
        assert pages[0].capped == many.is_sqlite
        if not many.is_sqlite:
            # Every page in order, and the last ones out of few enough candidates.
            assert len(ids) == 200
            assert 10 in walks

    def test_a_walk_that_finds_too_little_is_given_up(
        self, many: Index, monkeypatch: pytest.MonkeyPatch, walks: list[int]
    ) -> None:
        monkeypatch.setattr(engine, "FIRST_WALK_SIZE", 40)
        monkeypatch.setattr(engine, "WALK_SIZE", 100)
        assert ids(many, "last", limit=9)[0] == "lake$zz$last_000"
        assert set(walks) == (set() if many.is_sqlite else {0})

    def test_are_found_behind_what_is_being_written(self, make_index: Callable[[], Index], walks: list[int]) -> None:
        index = make_index()
        fill(index, "lake", *(table("lake", "s", f"orders_{number:03d}") for number in range(30)))
        revisions.register_source(index, "archive", "memory", "digest")
        with acquire_lease(index, "source:archive") as lease:
            draft = revisions.begin_draft(index, lease, "archive", "run-1", 0.0)
            written = [revisions.incoming_row(table("archive", "s", f"orders_{number:03d}")) for number in range(300)]
            revisions.add_records(index, lease, draft, written)
        assert [len(page.nodes) for page in paged(index, "orders", 9)] == [9, 9, 9, 3]
        # One walk passes them all.
        assert index.is_sqlite or 10 in walks

    def test_are_counted_in_a_sample(self, many: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        every = engine.search_tables(many, "orders", limit=1, facets=True).facets
        monkeypatch.setattr(engine, "WALK_SIZE", 390)
        monkeypatch.setattr(facets_module, "MAX_COUNTED", 150)
        monkeypatch.setattr(engine, "MAX_CANDIDATES", 150)
        monkeypatch.setattr(engine, "MIN_SAMPLE_MATCHES", 10)
        facets = engine.search_tables(many, "orders", limit=1, facets=True).facets
        assert every is not None
        assert facets is not None
        assert (every.counted, every.exact) == (200, True)
        # FTS5 counts the first ones, and stops at one more than asked for.
        assert (facets.counted == 151) if many.is_sqlite else (10 <= facets.counted < 200)
        assert not facets.exact
        bounds = dict(every.values["namespace"])
        assert all(count <= bounds[namespace] for namespace, count in facets.values["namespace"])
        assert sum(count for _, count in facets.values["namespace"]) == facets.counted
        assert engine.search_tables(many, "orders", limit=9, facets=True).facets == facets

    def test_are_counted_by_the_index_where_a_sample_has_too_few(self, many: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted = engine.search_tables(many, "orders", limit=1, facets=True).facets
        monkeypatch.setattr(engine, "WALK_SIZE", 390)
        monkeypatch.setattr(engine, "MIN_SAMPLE_MATCHES", 201)
        assert engine.search_tables(many, "orders", limit=1, facets=True).facets == wanted

    @pytest.mark.parametrize("text", ["orders source:lake", "orders state:unverified"])
    def test_what_narrows_a_search_forbids_a_walk(self, many: Index, walks: list[int], text: str) -> None:
        assert len(ids(many, text, limit=9)) == len(ids(many, "orders", limit=9, scopes=Scopes((("lake",),)))) == 9
        assert walks == []


@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("*_2024", ["2024"]),
        ("*2024", []),
        ("*_a_b*", ["a"]),
        ("*_a_b", ["a", "b"]),
        ("a*_b?c_d*e", []),
        ("*_x_*_y", ["x", "y"]),
    ],
)
def test_globs_are_led_to_by_the_whole_words_in_them(glob: str, words: list[str]) -> None:
    expression = parse_query(f"name:{glob}").expression
    assert isinstance(expression, AllOf | None)
    parts = expression.parts if expression is not None else ()
    assert [word for part in parts for word in texts(part) if not word.prefix] == [Lexeme("n" + word) for word in words]


def texts(expression: Expression) -> list[Lexeme]:
    if isinstance(expression, Lexeme):
        return [expression]
    assert isinstance(expression, AnyOf | AllOf)
    return [word for part in expression.parts for word in texts(part)]


def test_follows_revisions_and_no_draft(make_index: Callable[[], Index]) -> None:
    index = make_index()
    fill(index, "lake", table("lake", "s", "a", doc="old"), table("lake", "s", "b"))
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", 0.0)
        revisions.close_records(index, lease, draft, [(1, "s$a"), (1, "s$b")])
        revisions.add_records(
            index,
            lease,
            draft,
            [revisions.incoming_row(table("lake", "s", "a", doc="new")), revisions.incoming_row(table("lake", "s", "c"))],
        )
        assert (ids(index, "old"), ids(index, "new"), ids(index, "name:*")) == (["lake$s$a"], [], ["lake$s$a", "lake$s$b"])
        # The process died there: the next revision begins with what was published.
        draft = revisions.begin_draft(index, lease, "lake", "run-3", 0.0)
        assert _entries(index) == 2
        revisions.close_records(index, lease, draft, [(1, "s$a"), (1, "s$b")])
        revisions.add_records(index, lease, draft, [revisions.incoming_row(table("lake", "s", "a", doc="newer"))])
        revisions.publish_draft(index, lease, draft, added=0, changed=1, removed=1, values={})
    assert (ids(index, "old"), ids(index, "newer"), ids(index, "name:*")) == ([], ["lake$s$a"], ["lake$s$a"])
    assert _entries(index) == 1


def test_an_index_from_before_the_search_is_searched_after_its_migration(make_index: Callable[[], Index]) -> None:
    index = make_index()
    downgrade_schema(index, "0006")
    with index.write() as connection:
        connection.execute(
            t.source.insert(), [{"name": "lake", "impl": "x", "config_digest": "x", "state": "ok", "revision": 1}]
        )
        values = dict(zip(RECORD_COLUMNS, revisions.incoming_row(table("lake", "s", "orders")), strict=False))
        old = {**values, "source": "lake", "valid_from": 0, "valid_to": 1, "path": "s$gone"}
        now = {**values, "source": "lake", "valid_from": 1, "valid_to": None}
        draft = {**values, "source": "lake", "valid_from": 2, "valid_to": None, "path": "s$draft"}
        connection.execute(t.record.insert(), [old, now, draft])
    migrations.upgrade_schema(index)
    assert ids(index, "*") == ids(index, "orders") == ["lake$s$orders"]


def _entries(index: Index) -> int:
    with index.read() as connection:
        return connection.execute(select(func.count()).select_from(t.search_entry)).scalar_one()
