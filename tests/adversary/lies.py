"""Lies: what a proxy does to one call, as data.

A ``Lie`` names the calls that it concerns and the action on them. ``Script`` decides which action a call meets and notes every call.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Refuse:
    """Resets every connection and stops listening, so that new ones are refused. The request is not forwarded."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Forwards the request, sends half of the response and resets the connection."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Forwards the request, sends half of the body and closes the connection. HTTP: the length of the whole body was announced."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Keeps the connection open and sends nothing. The request is not forwarded."""


@dataclass(frozen=True, slots=True)
class Drip:
    """Forwards the request and sends the response byte by byte, with ``pause`` seconds before each."""

    pause: float = 0.05


@dataclass(frozen=True, slots=True)
class Late:
    """Thrift: forwards the request and sends the response after ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Send:
    """Sends an invented response. The request is forwarded only if ``forward``, and the real response is then dropped.

    ``status``, ``content_type`` and ``retry_after`` (the header's value) are for HTTP; a thrift proxy sends ``body`` as it is.
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    retry_after: str | None = None
    forward: bool = False


class AnyItem(StrEnum):
    """A step of an Edit's path that stands for every item of a list."""

    ITEM = "*"


EACH = AnyItem.ITEM


class Op(StrEnum):
    """What an Edit does to the value at its path."""

    REMOVE = "remove"
    SET = "set"
    #: a list becomes empty
    CLEAR = "clear"
    #: every item of a list comes twice
    DOUBLE = "double"
    #: the last item of a list is left out
    SHORTEN = "shorten"
    #: texts, also those in a list, in upper case
    UPPER = "upper"


@dataclass(frozen=True, slots=True)
class Edit:
    """Forwards the request and changes the response at ``path``: keys (JSON), field ids (thrift; 0 is the result), or ``EACH``.

    ``value`` is what ``SET`` writes there, creating the last step where it is missing. A path that does not exist changes nothing.
    """

    path: tuple[str | int | AnyItem, ...]
    op: Op
    value: Any = None


@dataclass(frozen=True, slots=True)
class Stale:
    """Sends the first response that the same request got since the proxy started; the first one is forwarded."""


@dataclass(frozen=True, slots=True)
class Endless:
    """HTTP: sends the first response to the same call again and again, each time with a page token at the key ``token``.

    ``fresh``: every token is another one.
    """

    token: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Lose:
    """Forwards the request, waits for the response and resets the connection without sending any of it."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Forwards the request twice and sends the response to the second one."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Forwards the request to another server. ``target`` is like the proxy's own."""

    target: str


@dataclass(frozen=True, slots=True)
class Raise:
    """Thrift: sends an exception. ``field`` is its id in the result; None sends a TApplicationException of type ``kind``."""

    field: int | None
    message: str = "invented"
    kind: int = 6


Action = Refuse | Reset | Cut | Hang | Drip | Late | Send | Edit | Stale | Endless | Lose | Repeat | Elsewhere | Raise


@dataclass(frozen=True, slots=True)
class Lie:
    """An action on the calls whose whole name matches ``call``, a regular expression.

    Occurrences are counted from 1 on, from the moment that the lie is set: it concerns ``times`` of them (None: all) from the
    ``first`` on.
    """

    call: str
    action: Action
    first: int = 1
    times: int | None = None


class Script:
    """The lies in force and the names of the calls that arrived. Thread-safe. The first lie that concerns a call wins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lies: list[Lie] = []
        self._counts: list[int] = []
        self._calls: list[str] = []
        self._met = 0

    def set(self, lies: Sequence[Lie]) -> None:
        """Replaces the lies, and forgets counts and calls."""
        with self._lock:
            self._lies, self._counts, self._calls, self._met = list(lies), [0] * len(lies), [], 0

    def action(self, call: str) -> Action | None:
        """Note a call and return its action; None if it is to be forwarded as it is."""
        with self._lock:
            self._calls.append(call)
            chosen: Action | None = None
            for number, lie in enumerate(self._lies):
                if not re.fullmatch(lie.call, call):
                    continue
                self._counts[number] += 1
                past = self._counts[number] - lie.first
                if chosen is None and past >= 0 and (lie.times is None or past < lie.times):
                    chosen = lie.action
            self._met += chosen is not None
            return chosen

    @property
    def calls(self) -> list[str]:
        """The names of the calls since the lies were set, in order."""
        with self._lock:
            return list(self._calls)

    @property
    def met(self) -> int:
        """How many calls met a lie. A test whose lie was never met has tested nothing."""
        with self._lock:
            return self._met
