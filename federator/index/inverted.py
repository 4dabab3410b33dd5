"""The inverted index behind one interface: a Query's expression as a condition in FTS5's and in PostgreSQL's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnClause, ColumnElement, Connection, FromClause, Integer, Text, bindparam, cast, column, table, text
from sqlalchemy.dialects.postgresql import TSQUERY

from federator.index import tables as t
from federator.index.query import Both, Either, Expression, Without, Word

# FTS5's table is named by itself in a MATCH.
_ROW: ColumnClause[int] = column("rowid", Integer)
#: what leads from a word to its rows; nothing but ``search_entries`` keeps the two together
WORDS = table("search_words", _ROW, column("words", Text))

# Two estimates in one question.
_ESTIMATES = text(
    "EXPLAIN (FORMAT JSON) SELECT 1 FROM search_entry WHERE words @@ CAST(:said AS tsquery) UNION ALL SELECT 1 FROM search_entry"
)


def entries(connection: Connection) -> FromClause:
    """What holds ``search_entry`` where it is gone to from the words: FTS5's table leads there."""
    return (
        t.search_entry if connection.dialect.name == "postgresql" else WORDS.join(t.search_entry, t.search_entry.c.id == _ROW)
    )


def said(connection: Connection, words: ColumnElement[str]) -> ColumnElement[bool]:
    """That an entry's ``words`` say what the bind parameter ``said`` holds, an expression in the database's own words (``spoken``)."""
    if connection.dialect.name == "postgresql":
        return words.op("@@")(cast(bindparam("said", type_=Text), TSQUERY))
    return text("search_words MATCH :said").bindparams(bindparam("said", type_=Text))  # type: ignore[return-value]  # a condition


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many entries say something, ``saying``, of ``every`` one."""

    saying: int
    every: int

    def among(self, entries: float) -> float:
        """How many of so many do, if they are like the rest."""
        return entries * self.saying / self.every


def estimate(connection: Connection, expression: Expression) -> Estimate:
    """What PostgreSQL's statistics say of an expression that is possible. FTS5 has none, and needs none: it gives what it finds one by
    one, so that a frequent word costs no more than another. There everything is rare."""
    if connection.dialect.name != "postgresql":
        return Estimate(0, 1)
    plan = connection.execute(_ESTIMATES, {"said": tsquery(expression)}).scalar_one()[0]["Plan"]
    saying, every = (part["Plan Rows"] for part in plan["Plans"])
    return Estimate(saying, every)


def spoken(connection: Connection, expression: Expression) -> str:
    """An expression that is possible, in the database's own words."""
    return tsquery(expression) if connection.dialect.name == "postgresql" else fts5(expression)


def possible(expression: Expression) -> bool:
    """Whether anything could match: a term without a word in it is nowhere."""
    match expression:
        case Word():
            return True
        case Both(parts):
            return all(map(possible, parts))
        case Either(parts):
            return any(map(possible, parts))
        case Without(wanted):
            return possible(wanted)


def fts5(expression: Expression) -> str:
    """In FTS5's query language. Lexemes hold no quote and nothing that its tokenizer would part."""
    match expression:
        case Word(text, prefix):
            return f'"{text}"*' if prefix else f'"{text}"'
        case Both(parts):
            return _joined(" AND ", [fts5(part) for part in parts])
        case Either(parts):
            return _joined(" OR ", [fts5(part) for part in parts if possible(part)])
        case Without(wanted, unwanted):
            return f"({fts5(wanted)} NOT {fts5(unwanted)})" if possible(unwanted) else fts5(wanted)


def tsquery(expression: Expression) -> str:
    """In the text form of a tsquery, each lexeme as it is: no dictionary has a say."""
    match expression:
        case Word(text, prefix):
            return f"'{quoted(text)}'{':*' if prefix else ''}"
        case Both(parts):
            return _joined(" & ", [tsquery(part) for part in parts])
        case Either(parts):
            return _joined(" | ", [tsquery(part) for part in parts if possible(part)])
        case Without(wanted, unwanted):
            return f"({tsquery(wanted)} & !{tsquery(unwanted)})" if possible(unwanted) else tsquery(wanted)


def tsvector(words: str) -> str:
    """Lexemes with spaces between them in the text form of a tsvector."""
    return f"'{quoted(words)}'".replace(" ", "' '")


def quoted(lexeme: str) -> str:
    """A lexeme inside the quotes of a tsvector or a tsquery."""
    return lexeme.replace("\\", "\\\\").replace("'", "''")


def _joined(operator: str, parts: Sequence[str]) -> str:
    return f"({operator.join(parts)})" if len(parts) > 1 else parts[0]
