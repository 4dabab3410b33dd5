"""Full-text search behind one interface: query expressions as conditions for SQLite's FTS5 and for PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Text,
    bindparam,
    cast,
    column,
    func,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import TSQUERY, TSVECTOR

from federator.store import tables as t

# A MATCH condition names the FTS5 table itself.
_ROW: ColumnClause[int] = column("rowid", Integer)
#: the FTS5 table from lexemes to rows; only ``search_entries`` keeps it consistent with ``search_entry``
FTS5_WORDS = table("search_words", _ROW, column("words", Text))

# Two row estimates from one EXPLAIN.
_ESTIMATES = text(
    "EXPLAIN (FORMAT JSON) SELECT 1 FROM search_entry WHERE words @@ CAST(:expression AS tsquery) "
    "UNION ALL SELECT 1 FROM search_entry"
)


def search_entry_source(connection: Connection) -> FromClause:
    """Return the FROM clause that reads ``search_entry`` by its lexemes. On SQLite the FTS5 table is joined."""
    return (
        t.search_entry
        if connection.dialect.name == "postgresql"
        else FTS5_WORDS.join(t.search_entry, t.search_entry.c.id == _ROW)
    )


def matches_words(connection: Connection, words: ColumnElement[str], name: str = "expression") -> ColumnElement[bool]:
    """Return the condition that an entry's ``words`` match the bind parameter ``name``.

    Its value is an expression in the database's query language (``render_expression``).
    """
    expression = bindparam(name, type_=Text)
    if connection.dialect.name == "postgresql":
        return words.op("@@")(cast(expression, TSQUERY))
    return text(f"search_words MATCH :{name}").bindparams(expression)  # type: ignore[return-value]  # a condition


def lacks_words(
    connection: Connection, row_id: ColumnElement[int], words: ColumnElement[str], *, by_entry: bool
) -> ColumnElement[bool]:
    """Return the condition that an entry does not match the bind parameter ``lacking``.

    With ``by_entry`` each entry is read, as in ``matches_entry_words``, and the value is the one of ``render_for_entries``.
    """
    if by_entry or connection.dialect.name == "postgresql":
        matches = matches_entry_words if by_entry else matches_words
        return ~matches(connection, words, "lacking")
    return row_id.not_in(select(_ROW).select_from(FTS5_WORDS).where(matches_words(connection, words, "lacking")))


def matches_entry_words(connection: Connection, words: ColumnElement[str], name: str = "expression") -> ColumnElement[bool]:
    """Return the condition ``matches_words`` in a form that reads each entry, and never the index of words.

    The time of a query then depends only on the entries that its other conditions select. The value of the bind parameter ``name`` is
    ``render_for_entries``.
    """
    expression = bindparam(name, type_=Text)
    if connection.dialect.name == "postgresql":
        return words.op("||")(cast("", TSVECTOR)).op("@@")(cast(expression, TSQUERY))
    return func.has_lexemes(words, expression) == 1


def render_for_entries(connection: Connection, expression: Expression) -> str:
    """Return an expression that can match, as the value for ``matches_entry_words``."""
    return render_tsquery(expression) if connection.dialect.name == "postgresql" else json.dumps(_to_json(expression))


def entry_matcher(expression: Expression) -> Callable[[str], bool]:
    """Return a function that tells whether the lexemes of an entry, with a space before and after each, match an expression."""
    return _compile(_to_json(expression))


def has_lexemes(words: str, expression: str) -> bool:
    """Return whether an entry's ``words`` match an expression of ``render_for_entries``. It is a function in SQLite."""
    return _compile_expression(expression)(f" {words} ")


@lru_cache(maxsize=64)
def _compile_expression(text: str) -> Callable[[str], bool]:
    return _compile(json.loads(text))


def _to_json(expression: Expression) -> list[Any]:
    match expression:
        case Lexeme(text, prefix):
            return ["lexeme", f" {text}" if prefix else f" {text} "]
        case AllOf(parts):
            return ["all", *map(_to_json, parts)]
        case AnyOf(parts):
            return ["any", *map(_to_json, parts)]
        case Excluding(included, excluded):
            return ["excluding", _to_json(included), _to_json(excluded)]


def _compile(expression: list[Any]) -> Callable[[str], bool]:
    """Return a function of a text of lexemes. It is called for each entry, so it does as little as possible."""
    kind, *parts = expression
    if kind == "lexeme":
        return partial(_has_text, parts[0])
    if kind == "any" and all(part[0] == "lexeme" for part in parts):
        return partial(_has_any_text, tuple(part[1] for part in parts))
    compiled = tuple(map(_compile, parts))
    if len(compiled) == 1 and kind != "excluding":
        return compiled[0]
    return partial({"all": _match_all, "any": _match_any, "excluding": _match_excluding}[kind], compiled)


def _has_text(part: str, words: str) -> bool:
    return part in words


def _has_any_text(parts: tuple[str, ...], words: str) -> bool:
    for part in parts:  # noqa: SIM110 - a generator takes twice as long
        if part in words:
            return True
    return False


def _match_all(parts: tuple[Callable[[str], bool], ...], words: str) -> bool:
    for part in parts:  # noqa: SIM110
        if not part(words):
            return False
    return True


def _match_any(parts: tuple[Callable[[str], bool], ...], words: str) -> bool:
    for part in parts:  # noqa: SIM110
        if part(words):
            return True
    return False


def _match_excluding(parts: tuple[Callable[[str], bool], ...], words: str) -> bool:
    included, excluded = parts
    return included(words) and not excluded(words)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated number of ``matching`` entries among ``total`` entries."""

    matching: int
    total: int

    def scale_to(self, entries: float) -> float:
        """Return the expected number of matches among this many entries."""
        return entries * self.matching / self.total


def estimate_matches(connection: Connection, expression: Expression) -> Estimate:
    """Return PostgreSQL's row estimate for an expression that can match.

    FTS5 has no statistics and needs none: it streams its matches, so a frequent word costs no more than a rare one. On SQLite every
    expression counts as rare.
    """
    if connection.dialect.name != "postgresql":
        return Estimate(0, 1)
    plan = connection.execute(_ESTIMATES, {"expression": render_tsquery(expression)}).scalar_one()[0]["Plan"]
    matching, total = (part["Plan Rows"] for part in plan["Plans"])
    return Estimate(matching, total)


def render_expression(connection: Connection, expression: Expression) -> str:
    """Return an expression that can match, in the database's query language."""
    return render_tsquery(expression) if connection.dialect.name == "postgresql" else render_fts5(expression)


def can_match(expression: Expression) -> bool:
    """Return whether any entry could match. A term without a word matches nothing."""
    match expression:
        case Lexeme():
            return True
        case AllOf(parts):
            return all(map(can_match, parts))
        case AnyOf(parts):
            return any(map(can_match, parts))
        case Excluding(included):
            return can_match(included)


def list_prefixes(expression: Expression) -> set[Lexeme]:
    """Return the prefixes in an expression."""
    match expression:
        case Lexeme():
            return {expression} if expression.prefix else set()
        case AllOf(parts) | AnyOf(parts):
            return set().union(*map(list_prefixes, parts))
        case Excluding(included):
            return list_prefixes(included)


def relax(expression: Expression, ignored: Collection[Lexeme]) -> Expression | None:
    """Return an expression that matches the same entries and more, without the ignored lexemes. None: it would match every entry."""
    match expression:
        case Lexeme():
            return None if expression in ignored else expression
        case AllOf(parts):
            relaxed = tuple(part for operand in parts if (part := relax(operand, ignored)) is not None)
            return AllOf(relaxed) if relaxed else None
        case AnyOf(parts):
            alternatives = [relax(part, ignored) for part in parts]
            return None if None in alternatives else AnyOf(tuple(part for part in alternatives if part is not None))
        case Excluding(included, excluded):
            rest = relax(included, ignored)
            return Excluding(rest, excluded) if rest is not None else None


def render_fts5(expression: Expression) -> str:
    """Return an expression in FTS5's query language. Lexemes contain no quotes, and FTS5's tokenizer does not split them."""
    match expression:
        case Lexeme(text, prefix):
            return f'"{text}"*' if prefix else f'"{text}"'
        case AllOf(parts):
            return _join_parts(" AND ", [render_fts5(part) for part in parts])
        case AnyOf(parts):
            return _join_parts(" OR ", [render_fts5(part) for part in parts if can_match(part)])
        case Excluding(included, excluded):
            return f"({render_fts5(included)} NOT {render_fts5(excluded)})" if can_match(excluded) else render_fts5(included)


def render_tsquery(expression: Expression) -> str:
    """Return an expression as a tsquery. Lexemes are used as they are, without a dictionary."""
    match expression:
        case Lexeme(text, prefix):
            return f"'{quote_lexeme(text)}'{':*' if prefix else ''}"
        case AllOf(parts):
            return _join_parts(" & ", [render_tsquery(part) for part in parts])
        case AnyOf(parts):
            return _join_parts(" | ", [render_tsquery(part) for part in parts if can_match(part)])
        case Excluding(included, excluded):
            positive = render_tsquery(included)
            return f"({positive} & !{render_tsquery(excluded)})" if can_match(excluded) else positive


def render_tsvector(words: str) -> str:
    """Return lexemes that are separated by spaces as a tsvector."""
    return f"'{quote_lexeme(words)}'".replace(" ", "' '")


def quote_lexeme(lexeme: str) -> str:
    """Escape a lexeme for the quotes of a tsvector or a tsquery."""
    return lexeme.replace("\\", "\\\\").replace("'", "''")


def _join_parts(operator: str, parts: Sequence[str]) -> str:
    return f"({operator.join(parts)})" if len(parts) > 1 else parts[0]


@dataclass(frozen=True, slots=True)
class Lexeme:
    """Matches a lexeme or, with ``prefix``, every lexeme that starts with it."""

    text: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    """Matches if all parts match."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Matches if at least one part matches. Without parts it matches nothing."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Excluding:
    """Matches if ``included`` matches and ``excluded`` does not."""

    included: Expression
    excluded: Expression


Expression = Lexeme | AllOf | AnyOf | Excluding
