"""What the proxies have in common: listening on loopback, accepting, refusing, hanging and resetting."""

from __future__ import annotations

import socket
import struct
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Self

from tests.adversary.lies import Lie, Script


class Proxy(ABC):
    """Stands before the server at ``target`` (``host:port``, with or without a scheme) and lies as it was told by ``lie``."""

    def __init__(self, target: str) -> None:
        self.target = address(target)
        self.script = Script()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        #: set while hanging connections are to end
        self.released = threading.Event()
        self._listener: socket.socket | None = None
        self.port = 0
        self._listen()

    def lie(self, *lies: Lie) -> None:
        """Replaces the lies in force, ends what hangs, drops open connections and listens again."""
        self._drop()
        self.script.set(lies)
        self._listen()

    def truthful(self) -> None:
        """Forwards everything again."""
        self.lie()

    @property
    def calls(self) -> list[str]:
        """The names of the calls since the lies were set."""
        return self.script.calls

    @property
    def met(self) -> int:
        """How many calls met a lie since the lies were set."""
        return self.script.met

    def refuse(self) -> None:
        """Stops listening and resets every connection."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone would not wake the thread that accepts.
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._drop()

    def close(self) -> None:
        """Ends everything; harmless twice."""
        self.refuse()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def serve(self, connection: socket.socket) -> None:
        """Answers the requests of one connection until it ends. May raise OSError and EOFError."""

    def _listen(self) -> None:
        if self._listener is not None:
            return
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._connections.add(connection)
                threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        try:
            with suppress(OSError, EOFError):
                self.serve(connection)
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _drop(self) -> None:
        with self._lock:
            released, self.released = self.released, threading.Event()
            connections = list(self._connections)
        released.set()
        for connection in connections:
            with suppress(OSError):
                resetting(connection)
                connection.shutdown(socket.SHUT_RDWR)


def resetting(connection: socket.socket) -> None:
    """Makes the close of a connection a reset, which drops what was not sent yet."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def address(target: str) -> tuple[str, int]:
    """Host and port of ``thrift://host:port``, ``http://host:port/...`` or ``host:port``."""
    host, _, port = target.partition("://")[2].partition("/")[0].rpartition(":") if "://" in target else target.rpartition(":")
    return host, int(port)
