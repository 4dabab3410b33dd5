"""Authentication of HTTP requests: none, a fixed token, or a token that is fetched and renewed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from federator.runtime.redaction import is_secret_key


class Authentication(Protocol):
    """Provides the headers of requests, and decides whether a request is repeated after its token was refused. Thread-safe."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers of the next request. Raise CatalogError if a required token cannot be fetched."""

    def discard_refused_token(self, sent: Mapping[str, str], /) -> bool:
        """Discard the token in ``sent``, which the server refused. Return whether ``headers`` returns another one now.

        If it is False, repeating the request is useless.
        """

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must be redacted from messages."""


@dataclass(frozen=True)
class FixedHeaders:
    """Constant headers, by default none. For a token use ``FixedHeaders.bearer(token)``."""

    fixed: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def bearer(cls, token: str | None) -> FixedHeaders:
        """Return the header of a bearer token. Without a token, no headers."""
        return cls({"Authorization": f"Bearer {token}"} if token else {})

    def headers(self) -> Mapping[str, str]:
        return self.fixed

    def discard_refused_token(self, _: Mapping[str, str], /) -> bool:
        return False

    def secrets(self) -> tuple[str, ...]:
        # Only headers with secret names: redacting a tenant called "a" would replace each "a" in a text.
        return tuple(value.removeprefix("Bearer ") for name, value in self.fixed.items() if is_secret_key(name))


@dataclass(frozen=True)
class AdditionalHeaders:
    """Constant headers beside those of an authentication."""

    authentication: Authentication
    fixed: Mapping[str, str] = field(repr=False)

    def headers(self) -> Mapping[str, str]:
        return {**self.fixed, **self.authentication.headers()}

    def discard_refused_token(self, sent: Mapping[str, str], /) -> bool:
        return self.authentication.discard_refused_token(sent)

    def secrets(self) -> tuple[str, ...]:
        return (*self.authentication.secrets(), *FixedHeaders(self.fixed).secrets())


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A fetched token. ``expires_in`` is its lifetime in seconds; None if it does not expire."""

    text: str = field(repr=False)
    expires_in: float | None = None


class RefreshingToken:
    """A bearer token that is fetched at its first use, and again before it expires. Thread-safe.

    ``fetch`` returns a new token, or raises CatalogError. ``clock`` returns monotonic seconds.
    """

    def __init__(self, fetch: Callable[[], AccessToken], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._token: AccessToken | None = None
        self._renew_at = 0.0
        self._lock = threading.Lock()

    def headers(self) -> Mapping[str, str]:
        with self._lock:
            if self._token is None or self._clock() >= self._renew_at:
                self._token = self._fetch()
                lifetime = self._token.expires_in
                # Renewed after 90 % of its lifetime, so that the token does not expire during a request.
                self._renew_at = float("inf") if lifetime is None else self._clock() + lifetime * 0.9
            return {"Authorization": f"Bearer {self._token.text}"}

    def discard_refused_token(self, sent: Mapping[str, str], /) -> bool:
        # Several threads may discard the same token. ``headers`` returns one newer token to all of them.
        with self._lock:
            if self._token is not None and sent.get("Authorization") == f"Bearer {self._token.text}":
                self._token = None
        return True

    def secrets(self) -> tuple[str, ...]:
        token = self._token
        return (token.text,) if token else ()
