"""Which characters of a text a glob matches with anything but its ``*``. Pure, and linear in the length of the text."""

from __future__ import annotations

import re
from functools import lru_cache

from federator.model.identifiers import DELIMITER

#: begin and end, as of a slice
Range = tuple[int, int]


def mark_glob(glob: str, text: str) -> list[Range] | None:
    """Return the ranges of a text that a glob names, if the glob matches the whole text. None: it does not match."""
    return _mark_from(glob, text, 0)


def mark_path_glob(glob: str, text: str) -> list[Range] | None:
    """Return the ranges of a path that a glob names, or None.

    The glob matches the path from the first level or from any other level on.
    """
    starts = [0, *(position + 1 for position, letter in enumerate(text) if letter == DELIMITER)]
    return next((ranges for start in starts if (ranges := _mark_from(glob, text, start)) is not None), None)


def mark_substring(glob: str, text: str) -> list[Range] | None:
    """Return the ranges of a text that a glob names if it matches any part of the text. None: it matches none."""
    return _mark_from(f"*{glob}*", text, 0)


def _mark_from(glob: str, text: str, start: int) -> list[Range] | None:
    pieces = glob.split("*")
    if len(pieces) == 1:
        return [(start, len(text))] if _compile_piece(glob).fullmatch(text, start) else None
    first, last = _compile_piece(pieces[0]).match(text, start), len(text) - len(pieces[-1])
    if first is None:
        return None
    ranges, position = [first.span()], first.end()
    for piece in pieces[1:-1]:
        # The first occurrence is as good as any: what follows it has the most room.
        following = _compile_piece(piece).search(text, position)
        if following is None:
            return None
        ranges.append(following.span())
        position = following.end()
    if last < position or not _compile_piece(pieces[-1]).fullmatch(text, last):
        return None
    return [(begin, end) for begin, end in [*ranges, (last, len(text))] if begin < end]


@lru_cache(maxsize=256)
def _compile_piece(piece: str) -> re.Pattern[str]:
    pattern = "".join("." if letter == "?" else re.escape(letter) for letter in piece)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)
