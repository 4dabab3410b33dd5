"""Connections of urllib3 that a ``CallDeadline`` can shut down. Both requests and botocore use urllib3.

The module imports neither of them: an environment for Glue has no requests.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from federator.connector.call_deadline import watch_connection
from federator.connector.connecting import open_connection


class _WatchedConnection:
    """A mixin for classes of connections: opens them in time, and tells the deadline of the current call which socket it uses."""

    sock: socket.socket | None
    host: str
    port: int
    timeout: float
    source_address: tuple[str, int] | None
    socket_options: Sequence[Any] | None
    _dns_host: str

    def _new_conn(self) -> socket.socket:
        """Replace urllib3's method, and raise its errors."""
        try:
            connection = open_connection(
                self._dns_host.strip("[]"),
                self.port,
                self.timeout,
                source_address=self.source_address,
                options=self.socket_options or (),
            )
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error  # type: ignore[arg-type]  # a mixin
        except TimeoutError as error:
            raise ConnectTimeoutError(self, f"Connection to {self.host} timed out: {error}") from error
        except OSError as error:
            raise NewConnectionError(self, f"Failed to establish a new connection: {error}") from error  # type: ignore[arg-type]  # a mixin
        sys.audit("http.client.connect", self, self.host, self.port)
        # Before TLS, whose handshake belongs to the call.
        watch_connection(connection)
        return connection

    def request(self, *args: Any, **options: Any) -> None:
        if self.sock is not None:
            watch_connection(self.sock)
        super().request(*args, **options)  # type: ignore[misc]


@cache
def watched_pool_class(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """Return a class of pools whose connections end with the deadline of their call."""
    connection = type(pool.ConnectionCls.__name__, (_WatchedConnection, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


def watch_pools(manager: PoolManager) -> None:
    """Let all pools that a manager opens from now on have watched connections."""
    manager.pool_classes_by_scheme = {
        scheme: watched_pool_class(pool) for scheme, pool in manager.pool_classes_by_scheme.items()
    }
