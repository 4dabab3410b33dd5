"""Credentials of an assumed role, for all clients of one source.

They are fetched when a request needs them, never while a client is created: STS may be slow, or not respond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from botocore.credentials import CredentialProvider, DeferredRefreshableCredentials, ReadOnlyCredentials

Clock = Callable[[], datetime]


class RoleCredentials(DeferredRefreshableCredentials):
    """Credentials that ``fetch`` returns, renewed before they expire. Thread-safe.

    ``fetch`` returns ``access_key``, ``secret_key``, ``token`` and ``expiry_time`` (ISO 8601), as botocore names them.

    Threads that have to wait for STS wait for the same request, and share its failure. botocore would repeat a failed request for
    each of them, one after another.
    """

    def __init__(self, fetch: Callable[[], dict[str, str]], session_seconds: int, now: Clock) -> None:
        super().__init__(fetch, "assume-role", now)
        # botocore's margins, 15 and 10 minutes, would renew a session of 15 minutes at every call.
        self._advisory_refresh_timeout = min(900, session_seconds // 4)
        self._mandatory_refresh_timeout = min(600, session_seconds // 6)
        self._fetching = threading.Lock()
        self._attempts = 0
        # The error of the last attempt; None if it succeeded.
        self._failure: Exception | None = None

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Return the current credentials. Raise what ``fetch`` raises."""
        if not self.refresh_needed(self._mandatory_refresh_timeout):
            # They are still valid. botocore lets one thread renew them, and the others do not wait for it.
            return super().get_frozen_credentials()
        attempts_before_waiting = self._attempts
        with self._fetching:
            if self._failure is not None and self._attempts > attempts_before_waiting:
                # The attempt for which this thread waited has failed.
                raise self._failure
            self._failure = None
            try:
                return super().get_frozen_credentials()
            except Exception as error:
                self._failure = error
                raise
            finally:
                self._attempts += 1


class RoleProvider(CredentialProvider):
    """Gives a boto3 session the credentials of a role, and no others."""

    # botocore requires these names of a provider.
    METHOD = "assume-role"
    CANONICAL_NAME = "custom-assume-role"

    def __init__(self, credentials: RoleCredentials) -> None:
        super().__init__()
        self._credentials = credentials

    def load(self) -> RoleCredentials:
        return self._credentials
