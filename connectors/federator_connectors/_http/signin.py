"""How requests are signed in: not at all, by a fixed token, or by one that is fetched and refreshed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from federator.connector import is_secret_key


class SignIn(Protocol):
    """Headers for a request, and what to do when the server does not take them."""

    def headers(self) -> Mapping[str, str]:
        """Raises CatalogError where a token is needed and cannot be had."""

    def refused(self) -> bool:
        """The server answered 401. True if the next ``headers`` will be others, so that asking again makes sense."""

    def secrets(self) -> tuple[str, ...]:
        """What must not be seen in any text."""


@dataclass(frozen=True)
class FixedHeaders:
    """The same headers always; a token goes in as ``FixedHeaders.bearer(token)``."""

    fixed: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def bearer(cls, token: str | None) -> FixedHeaders:
        return cls({"Authorization": f"Bearer {token}"} if token else {})

    def headers(self) -> Mapping[str, str]:
        return self.fixed

    def refused(self) -> bool:
        return False

    def secrets(self) -> tuple[str, ...]:
        # Not every header: hiding a tenant called "a" would hide each "a" of a text.
        return tuple(value.removeprefix("Bearer ") for name, value in self.fixed.items() if is_secret_key(name))


@dataclass(frozen=True, slots=True)
class Token:
    """A fetched token; ``expires_in`` is seconds from its fetching, None if it never ends."""

    text: str = field(repr=False)
    expires_in: float | None = None


class FetchedToken:
    """A bearer token from a token endpoint, fetched when it is first needed and again before it ends. Thread-safe."""

    def __init__(self, fetch: Callable[[], Token], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._token: Token | None = None
        self._renew_at = 0.0
        self._lock = threading.Lock()

    def headers(self) -> Mapping[str, str]:
        with self._lock:
            if self._token is None or self._clock() >= self._renew_at:
                self._token = self._fetch()
                life = self._token.expires_in
                # A tenth of its life early, so that no request starts with a token that ends on the way.
                self._renew_at = float("inf") if life is None else self._clock() + life * 0.9
            return {"Authorization": f"Bearer {self._token.text}"}

    def refused(self) -> bool:
        # True also where another thread has just dropped the same token: the next one is another in any case.
        with self._lock:
            self._token = None
        return True

    def secrets(self) -> tuple[str, ...]:
        token = self._token
        return (token.text,) if token else ()
