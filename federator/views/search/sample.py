"""Frequent beginnings of words, estimated in a sample of entries that is kept in memory.

An inverted index reads all entries of all words that begin alike before it returns the first one. If these are very many, the entries
that the rest of the query selects, or entries in order, are read and compared one by one instead. The results are equal.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, func, select

from federator.store import fulltext
from federator.store import tables as t
from federator.store.fulltext import Expression, Lexeme
from federator.store.vocabulary import lexemes_text

#: the number of entries in a sample, and the fewest that are one
SAMPLE_SIZE, MIN_SAMPLE_SIZE = 400, 50
#: the entries with a beginning that are worth a comparison
MANY_ENTRIES = 50_000
#: measured on SQLite with 1,000,000 tables: microseconds for an entry that the index reads for a beginning, and that is compared
_READ_COST, _COMPARE_COST = 0.17, 0.65

e = t.search_entry.c

#: of an engine: the revisions of a sample, its entries, and the number of all entries
_samples: WeakKeyDictionary[Engine, tuple[object, list[str], int]] = WeakKeyDictionary()


def list_ignored(connection: Connection, expression: Expression, most: int) -> set[Lexeme]:
    """Return the beginnings that the index had better ignore to find ``most`` entries, because to compare entries costs less."""
    prefixes = fulltext.list_prefixes(expression)
    sample, total = _get_sample(connection) if prefixes else ([], 0)
    if not sample:
        return set()

    def estimate(part: Expression | None) -> float:
        return total if part is None else total * sum(map(fulltext.entry_matcher(part), sample)) / len(sample)

    entries = {prefix: estimate(prefix) for prefix in prefixes}
    many = {prefix for prefix, number in entries.items() if number > MANY_ENTRIES}
    if not many:
        return set()
    narrowed, matching = estimate(fulltext.relax(expression, many)), estimate(expression)
    compared = min(narrowed, most * narrowed / matching) if matching else narrowed
    return many if compared * _COMPARE_COST < sum(entries[prefix] for prefix in many) * _READ_COST else set()


def is_in_sample(connection: Connection, expression: Expression) -> bool:
    """Return whether an entry of the sample matches an expression, whether or not its revision is published."""
    return any(map(fulltext.entry_matcher(expression), _get_sample(connection)[0]))


def _get_sample(connection: Connection) -> tuple[list[str], int]:
    version = tuple(connection.execute(select(func.count(), func.sum(t.source.c.revision)).select_from(t.source)).one())
    known = _samples.get(connection.engine)
    if known is None or known[0] != version:
        known = _samples[connection.engine] = (version, *_read_sample(connection))
    return known[1:]


def _read_sample(connection: Connection) -> tuple[list[str], int]:
    # The ids of entries are those of records, nearly all of which are tables.
    total = connection.execute(select(func.max(e.id))).scalar() or 0
    if total < MANY_ENTRIES:
        return [], total
    ids = [1 + total * number // SAMPLE_SIZE for number in range(SAMPLE_SIZE)]
    texts = connection.execute(select(lexemes_text(connection, e.words)).where(e.id.in_(ids))).scalars().all()
    return ([f" {text} " for text in texts] if len(texts) >= MIN_SAMPLE_SIZE else []), total
