"""Scopes as values and as SQL conditions are equivalent, on both databases, for any names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, Table, Text, insert, select

from federator.model import Path, parse_path_key, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import Index, open_index, visibility

# Neighbours of the delimiter in every order, case, marks of patterns, quotes, what folds or expands in some collation.
NAMES = ("a", "A", "a$", "a%", "a#", "a ", "ab", "%24", "$", "a'b", "_", "ä", "aͤ", "ss", "ß", "😀", "a\x01", "\\")
SOURCES = ("lake", "lake2", "Lake")
PATHS: list[Path] = [
    (source, *rest) for source in SOURCES for depth in (1, 2) for rest in product(NAMES, repeat=depth)
] + [(source, "a", name, leaf) for source in SOURCES for name in NAMES for leaf in ("a", "a$", "A")]  # fmt: skip

found = Table(
    "found", MetaData(),
    Column("n", Integer, primary_key=True), Column("source", Text), Column("path", Text), Column("is_table", Integer),
    Column("whole", Text),
)  # fmt: skip
rows = [
    {"n": n, "source": path[0], "path": path_key(path[1:]), "is_table": n % 2, "whole": path_key(path)}
    for n, path in enumerate(PATHS)
]

names = st.sampled_from(NAMES)
prefixes = st.builds(lambda source, rest: (source, *rest), st.sampled_from((*SOURCES, "nope")), st.lists(names, max_size=4))
scopes = st.builds(lambda chosen: Scopes(tuple(chosen)), st.lists(prefixes, max_size=4))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    if request.param == "sqlite":
        opened = open_index("sqlite:///scopes.db", base=tmp_path_factory.mktemp("scopes"))
    else:
        opened = open_index(request.getfixturevalue("postgres_url"))
    with opened.write() as connection:
        found.create(connection)
        connection.execute(insert(found), rows)
    yield opened
    with opened.write() as connection:
        found.drop(connection)
    opened.close()


@given(scopes=scopes)
@settings(max_examples=60, deadline=None)
def test_what_a_query_finds_is_what_the_scope_covers(index: Index, scopes: Scopes) -> None:
    c = found.c
    with index.read() as connection:
        inside = set(
            connection.execute(select(c.n).where(visibility.is_covered(connection, scopes, c.source, c.path))).scalars()
        )
        shown = visibility.is_visible(connection, scopes, c.source, c.path, c.is_table)
        shown_rows = set(connection.execute(select(c.n).where(shown)).scalars())
        by_id = set(connection.execute(select(c.n).where(visibility.is_covered_id(connection, scopes, c.whole))).scalars())
        sources = set(
            connection.execute(select(c.source).where(visibility.is_visible_source(scopes, c.source)).distinct()).scalars()
        )
    covered = {n for n, path in enumerate(PATHS) if scopes.covers(path)}
    assert inside == covered
    assert by_id == covered
    assert shown_rows == covered | {n for n, path in enumerate(PATHS) if scopes.is_visible(path) and n % 2 == 0}
    assert sources == {source for source in SOURCES if scopes.is_visible((source,))}


def test_the_scope_of_everything_covers_all_and_an_empty_one_nothing(index: Index) -> None:
    c = found.c
    with index.read() as connection:
        for scopes, number in ((EVERYTHING, len(PATHS)), (Scopes(), 0)):
            conditions = (
                visibility.is_covered(connection, scopes, c.source, c.path), visibility.is_covered_id(connection, scopes, c.whole),
                visibility.is_visible(connection, scopes, c.source, c.path, c.is_table), visibility.is_visible_source(scopes, c.source),
            )  # fmt: skip
            for condition in conditions:
                assert len(connection.execute(select(c.n).where(condition)).all()) == number


@given(scopes=scopes)
def test_texts_are_read_as_they_were_written(scopes: Scopes) -> None:
    assert Scopes.parse(scopes.texts) == Scopes(tuple(sorted(set(scopes.prefixes))))
    assert all(parse_path_key(text) in scopes.prefixes for text in scopes.texts)


@given(scopes=scopes, path=prefixes)
def test_what_is_covered_covers_all_below_and_is_reached_through_all_above(scopes: Scopes, path: Path) -> None:
    if scopes.covers(path):
        assert scopes.covers((*path, "below"))
        assert all(scopes.is_visible(path[:depth]) for depth in range(len(path)))
    assert not scopes.covers(()) or scopes.covers_all


@pytest.mark.parametrize("text", ["", "$", "a$", "$a", "a$$b", "a\0", "a$\ud800"])
def test_what_could_mean_more_than_it_says_is_no_scope(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid scope"):
        Scopes.parse(["lake", text])
