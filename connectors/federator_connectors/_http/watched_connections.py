"""Connections of urllib3, which requests and botocore use, that a ``CallDeadline`` can shut down. It imports neither of them:
the packages of Glue have no requests."""

from __future__ import annotations

import socket
from functools import cache
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager

from federator.connector.call_deadline import watch_connection


class _Watched:
    """Placed before a class of connections."""

    sock: socket.socket | None

    def _new_conn(self) -> socket.socket:
        # Before TLS, whose handshake belongs to the call.
        connection: socket.socket = super()._new_conn()  # type: ignore[misc]
        watch_connection(connection)
        return connection

    def request(self, *args: Any, **options: Any) -> None:
        if self.sock is not None:
            watch_connection(self.sock)
        super().request(*args, **options)  # type: ignore[misc]


@cache
def watched(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """Return a class of pools whose connections end with the deadline of their call."""
    connection = type(pool.ConnectionCls.__name__, (_Watched, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


def watch_pools(manager: PoolManager) -> None:
    """Let the pools that a manager will open have watched connections."""
    manager.pool_classes_by_scheme = {scheme: watched(pool) for scheme, pool in manager.pool_classes_by_scheme.items()}
