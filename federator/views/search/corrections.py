"""Corrections of queries: words that no visible table has, and queries that would find more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, product

from federator.store import lexemes
from federator.store.fulltext import Expression, Lexeme
from federator.store.vocabulary import is_vocabulary_word
from federator.views.search.query import TYPO_FIELDS, WORD_FIELDS, Corrections, Query, is_word_term
from federator.views.search.spelling import allowed_typos
from federator.views.search.terms import Term
from federator.views.search.vocabulary import Vocabulary

#: a search that finds fewer tables than this is compared with corrected ones
FEW_RESULTS = 5
#: the most corrected queries that are tried, and that are returned
MAX_TRIED, MAX_RETURNED = 6, 3
#: the most words of a query that are corrected
MAX_WORDS = 4

#: for a word, the words near it, each with the number of typos
NearWords = Mapping[str, list[tuple[int, str]]]


def list_correctable(query: Query) -> list[tuple[Term, str]]:
    """Return the words of a query that could be corrected: in names, not in quotes, and neither excluded nor part of a glob."""
    words = [
        (term, word)
        for term in query.terms
        if term.field in TYPO_FIELDS and is_word_term(term) and not term.quoted and not term.negated
        for word in dict.fromkeys(lexemes.split_words(term.value))
        if allowed_typos(word) and is_vocabulary_word(word)
    ]
    return words[:MAX_WORDS]


def list_unknown(query: Query, exists: Callable[[Expression], bool]) -> list[str]:
    """Return the words of a query that no visible table has, not even as the start of a word."""
    return [
        word
        for term, word in list_correctable(query)
        # A complete word is found sooner than the beginning of one.
        if not any(exists(Lexeme(WORD_FIELDS[term.field] + word, prefix)) for prefix in (False, True))
    ]


def iter_levels(near: NearWords) -> Iterator[Corrections]:
    """Yield corrections of all words, first with one typo in each, then with two. Nothing if a word has no correction."""
    previous: Corrections = {}
    for most in (1, 2):
        corrections = {word: tuple(other for typos, other in words if typos <= most) for word, words in near.items()}
        if all(corrections.values()) and corrections != previous:
            yield corrections
            previous = corrections


def iter_corrected_texts(text: str, query: Query, near: NearWords, *, together: bool) -> Iterator[str]:
    """Yield corrected queries, the most similar first: with a correction of every word, or else of one word at a time."""
    words = list(near)
    if together:
        choices = sorted(product(*near.values()), key=lambda chosen: sum(typos for typos, _ in chosen))
        corrections = [dict(zip(words, (other for _, other in chosen), strict=True)) for chosen in choices]
    else:
        singles = sorted((typos, word, other) for word in words for typos, other in near[word])
        corrections = [{word: other} for _, word, other in singles]
    yield from (_correct_text(text, query, chosen) for chosen in islice(corrections, MAX_TRIED) if chosen)


def near_words(vocabulary: Vocabulary, words: list[str]) -> NearWords:
    """Return the words of the vocabulary near each of the words."""
    return {word: vocabulary.list_near(word) for word in words}


def _correct_text(text: str, query: Query, corrections: Mapping[str, str]) -> str:
    """Return the query's text with corrected words. All other characters stay as they were typed."""
    corrected, last = "", 0
    for term, _ in list_correctable(query):
        begin = text.index(":", term.start) + 1 if term.field else term.start
        # A term with several words is listed once for each.
        if begin < last:
            continue
        for start, end, word in lexemes.iter_word_spans(text[begin : term.end]):
            if word in corrections:
                corrected += text[last : begin + start] + corrections[word]
                last = begin + end
    return corrected + text[last:]
