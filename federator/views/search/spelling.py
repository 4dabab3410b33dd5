"""Edit distance between words: the number of typos that lead from one to the other."""

from __future__ import annotations

from collections.abc import Iterable

#: words with at least so many letters may have two typos
LONG_WORD = 8


def allowed_typos(text: str) -> int:
    """Return how many typos a word of this length may have. Words of one or two letters resemble too many others."""
    return 0 if len(text) < 3 else 1 if len(text) < LONG_WORD else 2


def edit_distance(text: str, other: str, most: int) -> int | None:
    """Return the number of typos between two words: a letter too many, missing, replaced, or two neighbours in the wrong order.

    None if there are more than ``most``.
    """
    if text == other:
        return 0
    if abs(len(text) - len(other)) > most:
        return None
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(text, 1):
        current = [row]
        for column, other_letter in enumerate(other, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != other_letter))
            if row > 1 and column > 1 and letter == other[column - 2] and text[row - 2] == other_letter:
                cost = min(cost, before_last[column - 2] + 1)
            current.append(cost)
        if min(current) > most and min(last) > most:
            return None
        before_last, last = last, current
    return last[-1] if last[-1] <= most else None


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that somebody may have meant: one that begins alike, or else the one with the fewest typos, at most half its
    letters."""
    names = list(names)
    for begins_alike in (
        [known for known in names if len(name) > 1 and known.startswith(name)],
        [known for known in names if name.startswith(known)],
    ):
        if begins_alike:
            return min(begins_alike, key=lambda known: abs(len(known) - len(name)))
    distances = [(distance, known) for known in names if (distance := edit_distance(name, known, len(known) // 2)) is not None]
    return min(distances)[1] if distances else None
