"""The time of a search shows nothing about hidden tables: a statistical test, with a control that shows its power.

A principal sees 50 tables beside 20,000 hidden ones whose names begin alike. It searches for that beginning and for one that no table
has, in turn. In a sign test of 1,000 pairs with a significance level of 1 %, a beginning that is slower in 56 % of the pairs is found
with a probability of 89 %.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import sqrt
from pathlib import Path

from federator.model.scopes import Scopes
from federator.store import Index
from federator.views.search import engine
from tests.adversary.table import Cell
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, table

PAIRS, HIDDEN, VISIBLE = 1_000, 20_000, 50
#: a search by the index of words is slower in nearly every pair
_CONTROL_PAIRS = 40
#: of the normal distribution, for a two-sided significance level of 1 %
_CRITICAL = 2.576
_SCOPES = Scopes((("lake", "open"),))
_QUERIES = ("zebr*", "quokka")


def build(directory: Path, hidden: int) -> Index:
    """Return an index with hidden tables whose names begin alike, and a few visible ones."""
    index = new_index(directory)
    visible = [table("lake", "open", f"orders_{number}") for number in range(VISIBLE)]
    fill(index, "lake", *visible, *(table("lake", "vault", f"zebra_{number}_quokka") for number in range(hidden)))
    return index


def compare(index: Index, query: str, absent: str, pairs: int) -> float:
    """Return the statistic of a sign test: how often a query is slower than one that no table matches, in standard deviations."""
    slower = 0
    for number in range(-pairs // 20, pairs):
        order = (query, absent) if number % 2 else (absent, query)
        seconds = {text: _measure(index, text) for text in order}
        # The first pairs only fill the caches.
        slower += number >= 0 and seconds[query] > seconds[absent]
    return (slower - pairs / 2) / (sqrt(pairs) / 2)


def _measure(index: Index, text: str) -> float:
    started_at = time.perf_counter()
    assert engine.search_tables(index, text, scopes=_SCOPES).nodes == []
    return time.perf_counter() - started_at


def run(directory: Path) -> Sequence[Cell]:
    index = build(directory, HIDDEN)
    cells = []
    limit = engine.MAX_VISIBLE
    try:
        for name, most, pairs, queries in (
            ("visible entries", limit, PAIRS, _QUERIES),
            ("control: the index of words", 0, _CONTROL_PAIRS, _QUERIES[:1]),
        ):
            engine.MAX_VISIBLE, differs = most, most == 0
            for query in queries:
                statistic = compare(index, query, query.replace("zebr", "yebr").replace("quokka", "xuokka"), pairs)
                found = abs(statistic) > _CRITICAL
                expected = "a difference" if differs else "no difference"
                cells.append(Cell("timing", f"{name}, {query}", f"{statistic:+.1f} sd", expected, found == differs))
    finally:
        engine.MAX_VISIBLE = limit
        index.close()
    return cells
