"""Cache of vended credentials, so that a table that is described again does not cause another call to the issuer."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from federator.vending.credentials import VendedCredentials

_MAX_ENTRIES = 10_000
#: cached credentials are valid for at least this time, or for a quarter of their lifetime if that is shorter
_LEAST_REMAINING_SECONDS = 300.0


class CredentialCache:
    """Credentials by key. Concurrent requests for one key cause one call, whose result or error all of them get. Safe for threads."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._entries: OrderedDict[Hashable, VendedCredentials] = OrderedDict()
        self._calls: dict[Hashable, Future[VendedCredentials]] = {}
        self._changing = threading.Lock()

    def get(self, key: Hashable, issue: Callable[[], VendedCredentials]) -> VendedCredentials:
        """Return cached credentials, or those that ``issue`` returns. Raise what it raises."""
        with self._changing:
            if (credentials := self._find(key)) is not None:
                return credentials
            call = self._calls.get(key)
            if is_new := call is None:
                call = self._calls[key] = Future()
        if not is_new:
            return call.result()
        try:
            credentials = issue()
        except BaseException as error:
            # Each waiting request would otherwise call an issuer that does not respond, one after the other.
            self._finish(key)
            call.set_exception(error)
            raise
        self._finish(key, credentials)
        call.set_result(credentials)
        return credentials

    def _find(self, key: Hashable) -> VendedCredentials | None:
        credentials = self._entries.get(key)
        if credentials is None:
            return None
        needed = min(_LEAST_REMAINING_SECONDS, (credentials.expires_at - credentials.issued_at) / 4)
        # Credentials from the future were issued before the clock was set back: their remaining time is unknown.
        return credentials if credentials.issued_at <= self._now() < credentials.expires_at - needed else None

    def _finish(self, key: Hashable, credentials: VendedCredentials | None = None) -> None:
        with self._changing:
            del self._calls[key]
            if credentials is not None:
                self._entries[key] = credentials
                self._entries.move_to_end(key)
            while len(self._entries) > _MAX_ENTRIES:
                self._entries.popitem(last=False)
