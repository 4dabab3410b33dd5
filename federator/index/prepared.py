"""Statements that are built once: putting the same SELECT together for every request would cost more than asking it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from sqlalchemy import Connection, Select

# Scopes are few, but whoever makes tokens decides how few.
_KEPT = 1000

P = ParamSpec("P")


def built_once(
    build: Callable[Concatenate[Connection, P], Select[Any]],
) -> Callable[Concatenate[Connection, P], Select[Any]]:
    """Of a function that builds a statement: one that remembers it for each dialect and arguments.

    The function takes of the connection no more than its dialect, and arguments that can be hashed; what differs from one execution
    to the next are bind parameters.
    """
    kept: dict[Hashable, Select[Any]] = {}

    @wraps(build)
    def statement(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> Select[Any]:
        shape = (connection.dialect.name, args, tuple(sorted(kwargs.items())))
        found = kept.get(shape)
        if found is None:
            if len(kept) >= _KEPT:
                kept.clear()
            found = kept[shape] = build(connection, *args, **kwargs)
        return found

    return statement
