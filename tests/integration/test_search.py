"""The search on both databases: the same tables, in the same order, for the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import func, make_url, select

from federator.connector import InvalidInput
from federator.index import Index, datasets, migrate, open_index, revisions, search
from federator.index import tables as t
from federator.index.leases import hold
from federator.index.query import Both, Either, Expression, Word, parse
from federator.model import Record
from federator.model.rows import RECORD_COLUMNS
from federator.model.scopes import Scopes
from tests.fixtures.postgres import _execute
from tests.integration.index_support import fill, namespace, table

_COLUMNS = '[{"name":"unitPrice","type":"double"},{"name":"order_id","type":"bigint"}]'
LAKE: list[Record] = [
    namespace("lake", "sales"),
    table(
        "lake", "sales", "orders", owner="ann", properties={"team": "ops", "aws.secret_access_key": "hunter2"}, schema=_COLUMNS
    ),
    table("lake", "sales", "orders_2023", owner="ann", properties={"team": "ops eu"}),
    table("lake", "sales", "OrderItems", owner="bob", doc="What was bought: Größe, Stück"),
    table("lake", "hr", "people", owner="bob", doc="who orders what"),
    table("lake", "hr", "pre$orders", location="s3://other/x"),
    table("lake", "hr", "größe"),
    table("lake", "hr", "订单"),
    table("lake", "hr", "🚀"),
    table("lake", "hr", 'o\'brien AND "x" OR NEAR(y)'),
]
COPY: list[Record] = [
    table("copy", "default", "orderitems", location="s3://lake/sales/OrderItems.lance"),
    table("copy", "sales", "orders", owner="ann"),
]
STATES = {"s3://lake/sales/orders.lance": "valid", "s3://lake/hr/people.lance": "missing"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Index]]:
    opened: list[Index] = []

    def make() -> Index:
        if request.param == "sqlite":
            opened.append(open_index("sqlite:///federator.db", base=tmp_path_factory.mktemp("search")))
        else:
            url, name = request.getfixturevalue("postgres_url"), f"search_{len(opened)}"
            _execute(url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            _execute(url, f'CREATE DATABASE "{name}"')
            opened.append(open_index(make_url(url).set(database=name).render_as_string(hide_password=False)))
        migrate.upgrade(opened[-1])
        return opened[-1]

    yield make
    for index in opened:
        index.close()


@pytest.fixture(scope="module")
def filled(make: Callable[[], Index]) -> Index:
    index = make()
    fill(index, "lake", *LAKE)
    fill(index, "copy", *COPY)
    with index.write() as connection:
        checked = {
            "message": None,
            "version": 1,
            "rows": 1,
            "fragments": 1,
            "schema": None,
            "checked_at": 1.0,
            "checked_through": "lake",
        }
        datasets.save(
            connection, [{"canonical": at, "location": at, "state": state, **checked} for at, state in STATES.items()]
        )
    return index


def ids(index: Index, text: str, **how: Any) -> list[str]:
    return [node.id for node in search.find(index, text, **how).nodes]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # words: the whole name first, then a word of the name, then anything else
        ("orders", ["copy$sales$orders", "lake$sales$orders", "lake$hr$pre%24orders", "lake$sales$orders_2023", "lake$hr$people"]),
        ("ORDERS sales", ["copy$sales$orders", "lake$sales$orders", "lake$sales$orders_2023"]),
        ("order", ["lake$sales$OrderItems", "copy$default$orderitems", "lake$sales$orders"]),
        ("items", ["lake$sales$OrderItems", "copy$default$orderitems"]),
        ("orderitems", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        ("OrderItems", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        ("order_items", ["copy$default$orderitems", "lake$sales$OrderItems"]),
        ("rders", []),
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
        ("column:orders", []),
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
        ("name:", []), ("nope:orders", []), ("^", []), ("{words} : x", []), ("'x':* & !y", []), ("*" * 8 + "%", []),
    ],
)  # fmt: skip
def test_finds_and_ranks(filled: Index, text: str, found: list[str]) -> None:
    assert ids(filled, text) == found


@pytest.mark.parametrize("text", ["orders", "order*", "*", "name:*", "source:lake", "state:unverified"])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_pages_hold_everything_once_and_in_order(filled: Index, text: str, limit: int) -> None:
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = search.find(filled, text, limit=limit, after=after)
        assert len(page.nodes) <= limit
        found += [node.id for node in page.nodes]
        after = page.next
    assert found == ids(filled, text, limit=1000)
    assert len(found) == len(set(found)) > 3


@pytest.mark.parametrize("text", ["x" * 10_001, "a " * 33, "*a" * 9, "state:nonsense", "property:*", "column:a*b"])
def test_refuses_what_it_cannot_do(filled: Index, text: str) -> None:
    with pytest.raises(InvalidInput):
        search.find(filled, text)


def paged(index: Index, text: str, limit: int, *, facets: bool = False) -> Iterator[search.Found]:
    after: str | None = ""
    while after is not None:
        page = search.find(index, text, limit=limit, after=after, facets=facets)
        yield page
        after = page.next


def test_takes_long_words(filled: Index) -> None:
    assert ids(filled, "é" * 10_000) == []


def test_a_long_name_is_not_another_that_begins_like_it(make: Callable[[], Index]) -> None:
    """Whole names are compared by their beginnings alone: their words must match too."""
    index, long = make(), "measurements_" * 5
    fill(index, "lake", table("lake", "s", f"{long}2023"), table("lake", "s", f"{long}2024"), table("lake", "s", "!!"))
    assert ids(index, f"{long}2023") == [f"lake$s${long}2023"]
    # A name without a word in it is found by no word.
    assert ids(index, "!!") == []


def test_facets_count_what_matches(filled: Index) -> None:
    facets = search.find(filled, "orders", limit=1, facets=True).facets
    assert facets is not None
    assert (facets.counted, facets.exact) == (5, True)
    assert facets.values == {
        "source": [("lake", 4), ("copy", 1)],
        "namespace": [("lake$hr", 2), ("lake$sales", 2), ("copy$sales", 1)],
        "state": [("unverified", 2), ("valid", 2), ("missing", 1)],
        "owner": [("ann", 3), ("bob", 1)],
    }


def test_what_no_scope_covers_is_neither_found_nor_counted(filled: Index) -> None:
    scopes = Scopes((("lake", "hr"), ("copy", "default")))
    assert ids(filled, "orders", scopes=scopes) == ["lake$hr$pre%24orders", "lake$hr$people"]
    facets = search.find(filled, "order*", scopes=scopes, facets=True).facets
    assert facets is not None
    assert facets.values["namespace"] == [("lake$hr", 2), ("copy$default", 1)]
    assert ids(filled, "*", scopes=Scopes()) == []


def test_facets_say_where_they_stop_to_count(filled: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "COUNTED", 1)
    facets = search.find(filled, "orders", facets=True).facets
    assert facets is not None
    # More than that have it as their whole name: no other rank is counted.
    assert (facets.counted, facets.exact) == (2, False)
    assert facets.values["source"] == [("copy", 1), ("lake", 1)]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_says_where_it_puts_no_more_in_order(filled: Index, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 2)
    monkeypatch.setattr(search, "WALKED", 0)
    pages = list(paged(filled, "order*", limit))
    assert pages[0].capped == (limit < 7)
    assert not pages[-1].capped
    found = [node.id for page in pages for node in page.nodes]
    assert set(found) <= set(ids(filled, "order*", limit=50))
    # Out of two, and the one too many that tells that there are more, the first is shown; the next page is out of what follows it.
    assert found == sorted(set(found))
    assert len(found) >= (7 if limit == 50 else 3)
    assert not search.find(filled, "people", limit=1).capped


@pytest.fixture(scope="module")
def many(make: Callable[[], Index]) -> Index:
    index = make()
    tables = [table("lake", f"s{number % 7}", f"{'orders' if number % 3 else 'late'}_{number:03d}") for number in range(300)]
    fill(index, "lake", *tables, *(table("lake", "zz", f"last_{number:03d}") for number in range(100)))
    if not index.sqlite:
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

        real = search._walked
        monkeypatch.setattr(search, "_walked", walked)
        return found

    @pytest.mark.parametrize("text", ["orders", "orders s3", "last", "late orders"])
    @pytest.mark.parametrize("facets", [False, True])
    @pytest.mark.parametrize("walked", [0, 20, 20_000])
    def test_are_found_by_a_walk_as_by_the_index(
        self, many: Index, monkeypatch: pytest.MonkeyPatch, text: str, facets: bool, walked: int
    ) -> None:
        wanted = search.find(many, text, limit=1_000, facets=facets)
        monkeypatch.setattr(search, "FIRST_WALKED", walked // 2)
        monkeypatch.setattr(search, "WALKED", walked)
        pages = list(paged(many, text, 9, facets=facets))
        assert [node.id for page in pages for node in page.nodes] == [node.id for node in wanted.nodes]
        assert {len(page.nodes) for page in pages[:-1]} <= {9}
        assert all(page.facets == wanted.facets for page in pages)
        assert not any(page.capped for page in pages)

    def test_are_walked_to_in_postgresql_alone(self, many: Index, walks: list[int]) -> None:
        found = ids(many, "orders", limit=9)
        assert found[0] == "lake$s0$orders_007"
        assert len(found) == 9
        assert walks[-1:] == ([] if many.sqlite else [10])

    def test_fill_a_page_whose_candidates_would_not(
        self, many: Index, monkeypatch: pytest.MonkeyPatch, walks: list[int]
    ) -> None:
        monkeypatch.setattr(search, "CANDIDATES", 20)
        pages = list(paged(many, "orders", 9))
        found = [node.id for page in pages for node in page.nodes]
        assert found == sorted(set(found))
        assert pages[0].capped == many.sqlite
        if not many.sqlite:
            # Every page in order, and the last ones out of few enough candidates.
            assert len(found) == 200
            assert 10 in walks

    def test_a_walk_that_finds_too_little_is_given_up(
        self, many: Index, monkeypatch: pytest.MonkeyPatch, walks: list[int]
    ) -> None:
        monkeypatch.setattr(search, "FIRST_WALKED", 40)
        monkeypatch.setattr(search, "WALKED", 100)
        assert ids(many, "last", limit=9)[0] == "lake$zz$last_000"
        assert set(walks) == (set() if many.sqlite else {0})

    def test_are_found_behind_what_is_being_written(self, make: Callable[[], Index], walks: list[int]) -> None:
        index = make()
        fill(index, "lake", *(table("lake", "s", f"orders_{number:03d}") for number in range(30)))
        revisions.register(index, "archive", "memory", "digest")
        with hold(index, "source:archive") as lease:
            draft = revisions.begin(index, lease, "archive", "run-1", 0.0)
            written = [revisions.incoming(table("archive", "s", f"orders_{number:03d}")) for number in range(300)]
            revisions.add_records(index, lease, draft, written)
        assert [len(page.nodes) for page in paged(index, "orders", 9)] == [9, 9, 9, 3]
        # One walk passes them all.
        assert index.sqlite or 10 in walks

    def test_are_counted_in_a_sample(self, many: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        every = search.find(many, "orders", limit=1, facets=True).facets
        monkeypatch.setattr(search, "WALKED", 390)
        monkeypatch.setattr(search, "COUNTED", 150)
        monkeypatch.setattr(search, "CANDIDATES", 150)
        monkeypatch.setattr(search, "SAMPLED", 10)
        facets = search.find(many, "orders", limit=1, facets=True).facets
        assert every is not None
        assert facets is not None
        assert (every.counted, every.exact) == (200, True)
        # FTS5 counts the first ones, and stops at one more than asked for.
        assert (facets.counted == 151) if many.sqlite else (10 <= facets.counted < 200)
        assert not facets.exact
        bounds = dict(every.values["namespace"])
        assert all(count <= bounds[namespace] for namespace, count in facets.values["namespace"])
        assert sum(count for _, count in facets.values["namespace"]) == facets.counted
        assert search.find(many, "orders", limit=9, facets=True).facets == facets

    def test_are_counted_by_the_index_where_a_sample_has_too_few(self, many: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted = search.find(many, "orders", limit=1, facets=True).facets
        monkeypatch.setattr(search, "WALKED", 390)
        monkeypatch.setattr(search, "SAMPLED", 201)
        assert search.find(many, "orders", limit=1, facets=True).facets == wanted

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
    expression = parse(f"name:{glob}").matching
    assert isinstance(expression, Both | None)
    parts = expression.parts if expression is not None else ()
    assert [word for part in parts for word in texts(part) if not word.prefix] == [Word("n" + word) for word in words]


def texts(expression: Expression) -> list[Word]:
    if isinstance(expression, Word):
        return [expression]
    assert isinstance(expression, Either | Both)
    return [word for part in expression.parts for word in texts(part)]


def test_follows_revisions_and_no_draft(make: Callable[[], Index]) -> None:
    index = make()
    fill(index, "lake", table("lake", "s", "a", doc="old"), table("lake", "s", "b"))
    with hold(index, "source:lake") as lease:
        draft = revisions.begin(index, lease, "lake", "run-2", 0.0)
        revisions.close_records(index, lease, draft, [(1, "s$a"), (1, "s$b")])
        revisions.add_records(
            index,
            lease,
            draft,
            [revisions.incoming(table("lake", "s", "a", doc="new")), revisions.incoming(table("lake", "s", "c"))],
        )
        assert (ids(index, "old"), ids(index, "new"), ids(index, "name:*")) == (["lake$s$a"], [], ["lake$s$a", "lake$s$b"])
        # The process died there: the next revision begins with what was published.
        draft = revisions.begin(index, lease, "lake", "run-3", 0.0)
        assert _entries(index) == 2
        revisions.close_records(index, lease, draft, [(1, "s$a"), (1, "s$b")])
        revisions.add_records(index, lease, draft, [revisions.incoming(table("lake", "s", "a", doc="newer"))])
        revisions.publish(index, lease, draft, added=0, changed=1, removed=1, values={})
    assert (ids(index, "old"), ids(index, "newer"), ids(index, "name:*")) == ([], ["lake$s$a"], ["lake$s$a"])
    assert _entries(index) == 1


def test_an_index_from_before_the_search_is_searched_after_its_migration(make: Callable[[], Index]) -> None:
    index = make()
    migrate.downgrade(index, "0006")
    with index.write() as connection:
        connection.execute(
            t.source.insert(), [{"name": "lake", "impl": "x", "config_digest": "x", "state": "ok", "revision": 1}]
        )
        values = dict(zip(RECORD_COLUMNS, revisions.incoming(table("lake", "s", "orders")), strict=False))
        old = {**values, "source": "lake", "valid_from": 0, "valid_to": 1, "path": "s$gone"}
        now = {**values, "source": "lake", "valid_from": 1, "valid_to": None}
        draft = {**values, "source": "lake", "valid_from": 2, "valid_to": None, "path": "s$draft"}
        connection.execute(t.record.insert(), [old, now, draft])
    migrate.upgrade(index)
    assert ids(index, "*") == ids(index, "orders") == ["lake$s$orders"]


def _entries(index: Index) -> int:
    with index.read() as connection:
        return connection.execute(select(func.count()).select_from(t.search_entry)).scalar_one()
