"""Positions in a listing, as JSON inside a cursor. A client may send any text, so it is parsed strictly."""

from __future__ import annotations

import json
from typing import Any

from federator.connector import InvalidInput
from federator.model.text import is_storable

_MAX_NUMBER = 2**53


def parse_position(text: str, *kinds: type) -> list[Any]:
    """Return the values of a JSON list whose types are ``kinds``: ``str``, ``int``, ``float`` or ``list``. Raise InvalidInput.

    Numbers are finite, and texts can be stored. The values of a list are texts or floats.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or [type(value) for value in values] != [*kinds] or not all(map(_is_valid, values)):
        raise InvalidInput("the cursor is malformed", hint="omit the cursor to start again")
    return values


def _is_valid(value: Any) -> bool:
    if isinstance(value, list):
        return all(type(item) in (str, float) and _is_valid(item) for item in value)
    # The comparison is false for NaN.
    return is_storable(value) if isinstance(value, str) else abs(value) < _MAX_NUMBER
