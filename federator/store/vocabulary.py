"""The vocabulary of the search: the distinct words of the names of tables, namespaces and columns, which typos are compared with.

Words are inserted with the entries and stay when their last entry leaves. So a word proves nothing about what exists, or about what a
principal may see: a search has to find a table with it before the word is shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, func, select
from sqlalchemy.dialects import sqlite

from federator.store import tables as t
from federator.store.lexemes import ANYWHERE, COLUMN, LEVEL, NAME

#: a word needs so many letters, and has at most so many characters and digits: nobody mistypes a counter or a digest
MIN_LETTERS, MAX_LENGTH, MAX_DIGITS = 3, 32, 4
_FIELDS = (NAME, LEVEL, COLUMN)


def is_vocabulary_word(text: str) -> bool:
    """Return whether a word may be in the vocabulary."""
    if len(text) < MIN_LETTERS or len(text) > MAX_LENGTH:
        return False
    if text.isalpha():
        return True
    letters = sum(map(str.isalpha, text))
    return letters >= MIN_LETTERS and len(text) - letters <= MAX_DIGITS


def extract_vocabulary(texts: Iterable[str]) -> set[str]:
    """Return the words of names in the lexemes of entries."""
    lexemes: set[str] = set()
    for text in texts:
        lexemes.update(text.split(" "))
    return {lexeme[1:] for lexeme in lexemes if lexeme.startswith(_FIELDS) and is_vocabulary_word(lexeme[1:])}


def extract_new_vocabulary(texts: Iterable[str]) -> set[str]:
    """Return the words of names in the lexemes of new entries, in the order of ``lexemes.row_lexemes``."""
    # The lexemes for any field repeat the others, and follow them.
    return extract_vocabulary(text.partition(f" {ANYWHERE}")[0] for text in texts)


def insert_vocabulary(connection: Connection, vocabulary: Iterable[str]) -> None:
    """Insert words that are not known yet, in the caller's transaction."""
    # In one order, so that two crawls that insert the same words do not wait for each other in a circle.
    words = sorted(vocabulary)
    if not words:
        return
    if connection.dialect.name == "sqlite":
        connection.execute(sqlite.insert(t.search_vocabulary).on_conflict_do_nothing(), [{"word": word} for word in words])
        return
    connection.exec_driver_sql(
        "INSERT INTO search_vocabulary (word) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", (words,)
    )


def read_vocabulary(connection: Connection, most: int) -> list[str]:
    """Return up to ``most`` words."""
    return list(connection.execute(select(t.search_vocabulary.c.word).limit(most)).scalars())


def lexemes_text(connection: Connection, words: ColumnElement[str]) -> ColumnElement[str]:
    """Return the lexemes of an entry as one text, separated by spaces, in any order."""
    return func.array_to_string(func.tsvector_to_array(words), " ") if connection.dialect.name == "postgresql" else words
