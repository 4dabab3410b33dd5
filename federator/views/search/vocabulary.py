"""Words near a word with typos: those of all names, kept in memory, or those of the entries in the scopes of a restricted principal.

Words of the index may belong to hidden or removed tables. A caller shows only words with which a search in the scopes found a table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, func, select

from federator.model.scopes import Scopes
from federator.store import tables as t
from federator.store import vocabulary
from federator.store.visibility import is_covered
from federator.views.search.spelling import allowed_typos, edit_distance

#: the most words in memory, and the most that are near one word
MAX_WORDS, MAX_NEAR = 200_000, 8

e = t.search_entry.c


class Vocabulary:
    """Words by their length, each with the set of its letters as bits."""

    def __init__(self, words: Iterable[str]) -> None:
        self._by_length: dict[int, list[str]] = defaultdict(list)
        self._letters: dict[int, list[int]] = {}
        for word in words:
            self._by_length[len(word)].append(word)

    def list_near(self, text: str) -> list[tuple[int, str]]:
        """Return up to ``MAX_NEAR`` other words with as many typos as allowed, each with their number; the fewest first."""
        most = allowed_typos(text)
        if not most or not vocabulary.is_vocabulary_word(text):
            return []
        letters = _letter_bits(text)
        near: list[tuple[int, str]] = []
        for length in range(len(text) - most, len(text) + most + 1):
            # A typo changes at most two letters of the set: the one that it replaces, and the new one.
            alike = (
                word
                for word, bits in zip(self._by_length.get(length, ()), self._bits(length), strict=True)
                if (bits ^ letters).bit_count() <= 2 * most
            )
            near += ((typos, word) for word in alike if (typos := edit_distance(text, word, most)))
        return sorted(near)[:MAX_NEAR]

    def _bits(self, length: int) -> list[int]:
        if length not in self._letters:
            self._letters[length] = [_letter_bits(word) for word in self._by_length.get(length, ())]
        return self._letters[length]


_vocabularies: WeakKeyDictionary[Engine, tuple[object, Vocabulary]] = WeakKeyDictionary()


def get_vocabulary(connection: Connection) -> Vocabulary:
    """Return the words of all names, at most ``MAX_WORDS``. They are read again after each publication of a revision."""
    version = tuple(connection.execute(select(func.count(), func.sum(t.source.c.revision)).select_from(t.source)).one())
    known = _vocabularies.get(connection.engine)
    if known is None or known[0] != version:
        known = (version, Vocabulary(vocabulary.read_vocabulary(connection, MAX_WORDS)))
        _vocabularies[connection.engine] = known
    return known[1]


def read_visible_vocabulary(connection: Connection, scopes: Scopes, most: int) -> Vocabulary:
    """Return the words of names in the scopes, from at most ``most`` entries, and from no other entry."""
    query = (
        select(vocabulary.lexemes_text(connection, e.words)).where(is_covered(connection, scopes, e.source, e.path)).limit(most)
    )
    return Vocabulary(vocabulary.extract_vocabulary(connection.execute(query).scalars()))


def _letter_bits(text: str) -> int:
    bits = 0
    for letter in text:
        bits |= 1 << (ord(letter) & 63)
    return bits
