"""Parser of search queries: pure, and independent of the database.

Terms are separated by spaces, and a table must match all of them. A term is a word (``orders``), a prefix (``ord*``), a glob over names
(``*_2024``) or over paths (``sales$*``), or one of these in a field: ``name:``, ``namespace:``, ``property:key=value``, ``column:``,
``location:``, ``owner:``, ``source:``, ``state:``. Quotes allow spaces inside a term. ``-`` or ``NOT`` before a
term leaves out the tables that match it.

The last word may be the start of a word: such matches are a rank of their own, after all others. A word in quotes is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from federator.connector import InvalidInput
from federator.store import lexemes
from federator.store.fulltext import AllOf, AnyOf, Excluding, Expression, Lexeme
from federator.views.search.fields import FIELDS, Conditions, RowFilter, parse_anywhere, words_in_field
from federator.views.search.terms import Term, has_wildcard, split_terms

#: the lexemes' field of a term's words, for terms that consist of words
WORD_FIELDS = {
    None: lexemes.ANYWHERE,
    "name": lexemes.NAME,
    "namespace": lexemes.LEVEL,
    "column": lexemes.COLUMN,
    "owner": lexemes.OWNER,
}
#: the lexemes' fields in which a word with typos is looked up: those of the vocabulary
TYPO_FIELDS = {
    None: (lexemes.NAME, lexemes.LEVEL, lexemes.COLUMN),
    "name": (lexemes.NAME,),
    "namespace": (lexemes.LEVEL,),
    "column": (lexemes.COLUMN,),
}

#: the most different patterns of one query, each of which is compared with every table: at 1,000,000 tables, one takes some seconds
MAX_PATTERNS = 8
#: the words of the vocabulary that stand for a word with typos
Corrections = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. A table matches it by ``expression`` and by all ``filters``.

    Matches are ordered by rank, from 0: a rank for each of ``tiers`` (a complete name, then words in the name), one for all other
    matches of ``expression``, and one for those that match only ``completed``, the expression with the last word as a prefix.

    ``expression`` is None if all terms are filters or negated. Every table that passes the filters matches then, unless it matches
    ``lacking``, the negated terms. With ``one_term`` the query is a single term, so every table in the last tier matches it. This
    does not follow for the first tier, since only the first characters of a long name are compared.
    """

    terms: tuple[Term, ...]
    expression: Expression | None
    filters: tuple[RowFilter, ...]
    tiers: tuple[Expression, ...]
    one_term: bool = False
    lacking: Expression | None = None
    completed: Expression | None = None

    @property
    def rank_count(self) -> int:
        """Return the number of ranks. Each matching table is in one rank."""
        return len(self.tiers) + (1 if self.completed is None else 2)

    def rank_expression(self, number: int, *, without: Sequence[int]) -> Expression | None:
        """Return the expression of a rank that excludes the tables of the ranks ``without``. None if the query has no expression."""
        if self.expression is None:
            return None
        if number > len(self.tiers) and self.completed is not None:
            return Excluding(self.completed, self.expression) if without else self.completed
        if number == len(self.tiers):
            included = self.expression
        else:
            tier_implies_match = self.one_term and number == len(self.tiers) - 1
            included = self.tiers[number] if tier_implies_match else AllOf((self.expression, self.tiers[number]))
        return _exclude(included, [self.tiers[rank] for rank in without])


def parse_query(text: str) -> Query:
    """Parse a query. Raise InvalidInput if it is too long, names an unknown field, or if a value is not allowed in its field."""
    terms = tuple(split_terms(text))
    query = _build_query(terms, _parse_term)
    last = terms[-1] if terms else None
    if last is None or last.quoted or last.negated or not is_word_term(last) or not lexemes.split_words(last.value):
        return query
    completed: Conditions = (words_in_field(WORD_FIELDS[last.field], f"{last.value}*"), [])
    relaxed = _build_query(terms, lambda term: completed if term is last else _parse_term(term))
    return replace(query, completed=relaxed.expression)


def correct_query(query: Query, corrections: Corrections) -> Query:
    """Return a query whose words with typos stand for any of their corrections, in names only. It has one rank."""

    def parse(term: Term) -> Conditions:
        words = lexemes.split_words(term.value) if is_word_term(term) and term.field in TYPO_FIELDS and not term.quoted else []
        if term.negated or not corrections.keys() & words:
            return _parse_term(term)
        return AllOf(tuple(_correct_word(term, word, corrections) for word in words)), []

    return replace(_build_query(query.terms, parse), tiers=())


def is_word_term(term: Term) -> bool:
    """Return whether a term consists of complete words."""
    return term.field in WORD_FIELDS and not has_wildcard(term.value) and not (term.field == "namespace" and "$" in term.value)


def complete_query(text: str) -> str:
    """Return a query for what a user is typing: the last word is a prefix of a table's name, or of the name at the end of a path.

    A last term with a field, a wildcard, a quotation mark or a minus stays as it is.
    """
    before, _, last = text.rstrip().rpartition(" ")
    if not lexemes.split_words(last) or has_wildcard(last) or ":" in last or '"' in last or last.startswith("-"):
        return text
    return f"{before} {last}*" if "$" in last else f"{before} name:{last}*"


def _build_query(terms: tuple[Term, ...], parse: Callable[[Term], Conditions]) -> Query:
    matching: list[Expression] = []
    excluded: list[Expression] = []
    filters: list[RowFilter] = []
    names: list[str] = []
    for term in terms:
        expression, term_filters = parse(term)
        if term.negated:
            # A filter decides on its own; the expression beside it only narrows the candidates.
            filters += (replace(row_filter, negated=True) for row_filter in term_filters)
            excluded += [expression] if expression is not None and not term_filters else []
            continue
        matching += [expression] if expression is not None else []
        filters += term_filters
        if not term.field and not has_wildcard(term.value):
            names.append(term.value)
    filters = list(dict.fromkeys(filters))
    if sum(row_filter.operator == "like" for row_filter in filters) > MAX_PATTERNS:
        raise InvalidInput(
            f"the query has more than {MAX_PATTERNS} globs and locations", hint="use words, or fewer of these terms"
        )
    tiers: tuple[Expression, ...] = ()
    if names:
        tiers = (
            AnyOf(tuple(Lexeme(lexemes.WHOLE + lexemes.fold_whole(name)) for name in names)),
            AnyOf(tuple(words_in_field(lexemes.NAME, name) for name in names)),
        )
    if not matching:
        return Query(terms, None, tuple(filters), tiers, lacking=AnyOf(tuple(excluded)) if excluded else None)
    return Query(terms, _exclude(AllOf(tuple(matching)), excluded), tuple(filters), tiers, one_term=len(terms) == 1)


def _parse_term(term: Term) -> Conditions:
    return FIELDS[term.field](term.value) if term.field else parse_anywhere(term.value)


def _correct_word(term: Term, text: str, corrections: Corrections) -> Expression:
    if text not in corrections:
        return Lexeme(WORD_FIELDS[term.field] + text)
    return AnyOf(tuple(Lexeme(field + correction) for correction in corrections[text] for field in TYPO_FIELDS[term.field]))


def _exclude(included: Expression, excluded: Iterable[Expression]) -> Expression:
    excluded = tuple(excluded)
    return Excluding(included, AnyOf(excluded)) if excluded else included
