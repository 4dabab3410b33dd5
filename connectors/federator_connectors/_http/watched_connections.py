"""Connections of urllib3 that a ``CallDeadline`` can shut down. Both requests and botocore use urllib3.

The module imports neither of them: an environment for Glue has no requests.
"""

from __future__ import annotations

import socket
from functools import cache
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager

from federator.connector.call_deadline import connect_timeout, watch_connection


class _WatchedConnection:
    """A mixin for classes of connections: tells the deadline of the current call which socket it uses."""

    sock: socket.socket | None
    timeout: float

    def _new_conn(self) -> socket.socket:
        self.timeout = connect_timeout(self.timeout)
        # Before TLS, whose handshake belongs to the call.
        connection: socket.socket = super()._new_conn()  # type: ignore[misc]
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
