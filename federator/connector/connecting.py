"""TCP connections that are open, or have failed, within one time.

``socket.create_connection`` gives the whole timeout to each address of a name in turn, and waits for the lookup of the name as long as
the resolver does.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from federator.connector.call_deadline import connect_timeout

_Host = tuple[str, int]
_Addresses = list[tuple[Any, ...]]


def open_connection(
    host: str, port: int, seconds: float, *, source_address: tuple[str, int] | None = None, options: Iterable[Any] = ()
) -> socket.socket:
    """Return a connection to the first address of a host that accepts one within ``seconds``, or what is left of this thread's call.

    Its timeout is ``seconds`` again, or what is left of the call by then. ``options`` are arguments of ``setsockopt``. Raise OSError:
    TimeoutError after this time, and ``socket.gaierror`` if the name is not known.
    """
    expires_at = time.monotonic() + connect_timeout(seconds)
    addresses = _resolve((host, port), expires_at)
    failure: OSError | None = None
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        left = expires_at - time.monotonic()
        if left <= 0:
            break
        handle = socket.socket(family, kind, protocol)
        try:
            for option in options:
                handle.setsockopt(*option)
            if source_address:
                handle.bind(source_address)
            # An address that does not answer leaves time for those after it.
            handle.settimeout(left / (len(addresses) - number))
            handle.connect(address)
            handle.settimeout(connect_timeout(seconds))
            return handle
        except OSError as error:
            handle.close()
            failure = error
    raise failure or TimeoutError(f"connecting to {host} took too long")


class _Resolver:
    """The lookups of names that this process has in progress, each in a thread of its own: the resolver cannot be interrupted."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._by_host: dict[_Host, Future[_Addresses]] = {}

    def start(self, host: _Host) -> Future[_Addresses]:
        """Start the lookup of a host, or return the one in progress."""
        with self._changing:
            lookup = self._by_host.get(host)
            if lookup is None:
                lookup = self._by_host[host] = Future()
                threading.Thread(target=self._run, args=(host, lookup), name="lookup", daemon=True).start()
            return lookup

    def _run(self, host: _Host, lookup: Future[_Addresses]) -> None:
        try:
            addresses = socket.getaddrinfo(*host, type=socket.SOCK_STREAM)
        except OSError as error:
            self._forget(host)
            lookup.set_exception(error)
        else:
            self._forget(host)
            lookup.set_result(addresses)

    def _forget(self, host: _Host) -> None:
        with self._changing:
            del self._by_host[host]


_resolver = _Resolver()


def _replace_resolver() -> None:
    # A forked process has none of the threads of its parent, and locks as they were.
    global _resolver
    _resolver = _Resolver()


os.register_at_fork(after_in_child=_replace_resolver)


def _resolve(host: _Host, expires_at: float) -> _Addresses:
    try:
        return socket.getaddrinfo(*host, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "the name is not valid") from None
    except socket.gaierror:
        pass
    try:
        return _resolver.start(host).result(max(0.0, expires_at - time.monotonic()))
    except TimeoutError:
        raise TimeoutError(f"the lookup of {host[0]} took too long") from None
