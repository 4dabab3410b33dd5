"""Edit distance between words: the number of typos that lead from one to the other."""

from __future__ import annotations

#: words with at least so many letters may have two typos
LONG_WORD = 8


def allowed_typos(text: str) -> int:
    """Return how many typos a word of this length may have. Words of one or two letters resemble too many others."""
    return 0 if len(text) < 3 else 1 if len(text) < LONG_WORD else 2


def edit_distance(text: str, other: str, max_typos: int) -> int | None:
    """Return the number of typos between two words: a letter too many, missing, replaced, or two neighbours in the wrong order.

    None if there are more than ``max_typos``.
    """
    if text == other:
        return 0
    if abs(len(text) - len(other)) > max_typos:
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
        # A swap of neighbours continues from the row before the last one, so both must exceed the limit.
        if min(current) > max_typos and min(last) > max_typos:
            return None
        before_last, last = last, current
    return last[-1] if last[-1] <= max_typos else None
