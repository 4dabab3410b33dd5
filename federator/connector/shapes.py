"""Shapes: the required fields of a catalog's responses, as data.

A connector has one table of shapes by operation, with the fields that recorded responses of the real server always have. A response of
another shape is a failure (``Internal``, 18): without this check a missing list would count as an empty one.

A shape is a type, ``NAME``, ``TEXTS``, a list with the shape of its items, or a mapping from required keys to their shapes. ``maybe``
of a shape allows an absent or null value. Other fields are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias


class _Special(StrEnum):
    NAME = "a name"
    TEXTS = "an object of texts"


#: a text of at least one character
NAME = _Special.NAME
#: an object whose values are texts
TEXTS = _Special.TEXTS


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that may be absent or null."""

    shape: Shape


Shape: TypeAlias = "type | _Special | Maybe | list[Any] | Mapping[str, Any]"

_NOUNS = {str: "a text", int: "a number", dict: "an object", list: "a list", bool: "true or false"}


def maybe(shape: Shape) -> Maybe:
    return Maybe(shape)


def mismatch(data: Any, shape: Shape, at: str = "") -> str | None:
    """Return a description of how ``data`` differs from a shape, without its values. None if it fits.

    ``at`` is the position of the data in the response, for example ``TableList[3].Name``.
    """
    if isinstance(shape, Maybe):
        return None if data is None else mismatch(data, shape.shape, at)
    if isinstance(shape, list):
        if not isinstance(data, list):
            return _is_not(at, "a list")
        return next(filter(None, (mismatch(item, shape[0], f"{at}[{number}]") for number, item in enumerate(data))), None)
    if isinstance(shape, Mapping):
        return _object_mismatch(data, shape, at)
    if shape is NAME:
        return None if isinstance(data, str) and data else _is_not(at, "a name")
    if shape is TEXTS:
        fits = isinstance(data, dict) and all(isinstance(value, str) for value in data.values())
        return None if fits else _is_not(at, "an object of texts")
    assert isinstance(shape, type)
    fits = isinstance(data, shape) and not (shape is int and isinstance(data, bool))
    return None if fits else _is_not(at, _NOUNS.get(shape, shape.__name__))


def _object_mismatch(data: Any, shape: Mapping[str, Shape], at: str) -> str | None:
    if not isinstance(data, Mapping):
        return _is_not(at, "an object")
    for key, inner in shape.items():
        position = f"{at}.{key}" if at else key
        if key not in data and not isinstance(inner, Maybe):
            return f"{position!r} is missing"
        problem = mismatch(data.get(key), inner, position)
        if problem:
            return problem
    return None


def _is_not(at: str, noun: str) -> str:
    return f"{at!r} is not {noun}" if at else f"it is not {noun}"
