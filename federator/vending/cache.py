"""Cache of vended credentials, so that a table that is described again does not cause another call to the issuer."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from federator.vending.credentials import VendedCredentials

_MAX_ENTRIES = 10_000
#: cached credentials are valid for at least this time, or for a quarter of their lifetime if that is shorter
_LEAST_REMAINING_SECONDS = 300.0
_LOCKS = 64


class CredentialCache:
    """Credentials by key. Concurrent requests for one key cause one call. Safe for threads."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._entries: OrderedDict[Hashable, VendedCredentials] = OrderedDict()
        self._changing = threading.Lock()
        # A fixed number of locks, so that they do not accumulate.
        self._issuing = tuple(threading.Lock() for _ in range(_LOCKS))

    def get(self, key: Hashable, issue: Callable[[], VendedCredentials]) -> VendedCredentials:
        """Return cached credentials, or those that ``issue`` returns. Raise what it raises."""
        found = self._find(key)
        if found is not None:
            return found
        with self._issuing[hash(key) % _LOCKS]:
            found = self._find(key)
            if found is None:
                found = issue()
                self._store(key, found)
        return found

    def _find(self, key: Hashable) -> VendedCredentials | None:
        with self._changing:
            found = self._entries.get(key)
        if found is None:
            return None
        needed = min(_LEAST_REMAINING_SECONDS, (found.expires_at - found.issued_at) / 4)
        # Credentials from the future were issued before the clock was set back: their remaining time is unknown.
        return found if found.issued_at <= self._now() < found.expires_at - needed else None

    def _store(self, key: Hashable, credentials: VendedCredentials) -> None:
        with self._changing:
            self._entries[key] = credentials
            self._entries.move_to_end(key)
            while len(self._entries) > _MAX_ENTRIES:
                self._entries.popitem(last=False)
