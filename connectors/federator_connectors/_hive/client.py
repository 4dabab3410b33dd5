"""Connections to a metastore: how they are opened, lent, and given up.

A call that only reads is repeated once, on a new connection, if its connection broke. A write never is: nobody can tell whether
it was carried out.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from threading import BoundedSemaphore
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from federator.connector import InvalidInput, ServiceUnavailable
from federator_connectors._hive import errors
from federator_connectors._hive.errors import Subject
from federator_connectors._hive.settings import Endpoint
from federator_connectors._hive.structs import METHODS, Method

#: connects to one endpoint within some seconds: the open transport, and the thrift socket below it. The place for TLS and SASL
TransportFactory = Callable[[Endpoint, float], tuple[Any, Any]]

_CONNECT_SECONDS = 10.0
_BUFFER_BYTES = 1 << 16
# On the wire this number is two line ends, so that a server that reads lines, HTTP's, refuses us at once instead of waiting for one.
_FIRST_SEQUENCE = 0x0D0A0D0A


def plain_transport(endpoint: Endpoint, timeout: float) -> tuple[Any, Any]:
    """Buffered TCP. Raises OSError.

    The socket is not opened by ``TSocket.open``, which logs every failure on its own.
    """
    connected = TSocket(*endpoint)
    handle = socket.create_connection(endpoint, timeout)
    handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setHandle(handle)
    return TBufferedTransport(connected, _BUFFER_BYTES), connected


class Connection:
    """One open connection. ``has_catalogs`` tells Hive 3 and later from Hive 2."""

    def __init__(self, endpoint: Endpoint, timeout: float, transport: TransportFactory) -> None:
        """Connects and asks for the catalogs, which proves that a metastore is there. Raises ``errors.BROKEN``."""
        first = min(timeout, _CONNECT_SECONDS)
        self._sequence = _FIRST_SEQUENCE
        self._transport, connected = transport(endpoint, first)
        self._protocol = TBinaryProtocolAccelerated(self._transport, strictRead=True)
        connected.setTimeout(first * 1000)
        try:
            self.has_catalogs = self._probe()
        except errors.BROKEN:
            self.close()
            raise
        connected.setTimeout(timeout * 1000)

    def _probe(self) -> bool:
        try:
            self.call(METHODS["get_catalogs"], ())
        except TApplicationException as error:
            return bool(error.type != TApplicationException.UNKNOWN_METHOD)
        except errors.ANSWERS:
            return True
        return True

    def call(self, method: Method, arguments: Sequence[Any]) -> Any:
        """One call and its answer. Raises the exceptions that the method declares, and ``errors.BROKEN``."""
        self._sequence += 1
        protocol = self._protocol
        protocol.writeMessageBegin(method.name, TMessageType.CALL, self._sequence)
        method.arguments(**dict(zip(method.names, arguments, strict=True))).write(protocol)
        protocol.writeMessageEnd()
        protocol.trans.flush()
        _, kind, sequence = protocol.readMessageBegin()
        if sequence != self._sequence:
            raise TProtocolException(TProtocolException.INVALID_DATA, "the answer to another question")
        if kind == TMessageType.EXCEPTION:
            refusal = TApplicationException()
            refusal.read(protocol)
            protocol.readMessageEnd()
            raise refusal
        result = method.result()
        result.read(protocol)
        protocol.readMessageEnd()
        for failure in method.failures:
            declared = getattr(result, failure)
            if declared is not None:
                raise declared
        return result.success if method.answers else None

    def is_open(self) -> bool:
        """Whether the server has not closed the connection meanwhile."""
        return bool(self._transport.isOpen())

    def close(self) -> None:
        self._transport.close()


class Client:
    """At most ``size`` connections to one metastore, opened when they are needed. Thread-safe."""

    def __init__(
        self, source: str, endpoints: Sequence[Endpoint], *, size: int, timeout: float, transport: TransportFactory = plain_transport
    ) -> None:  # fmt: skip
        self._source = source
        self._endpoints = tuple(endpoints)
        self._timeout = timeout
        self._transport = transport
        self._slots = BoundedSemaphore(size)
        # A deque's append and pop are atomic, so no lock is needed.
        self._idle: deque[Connection] = deque()

    def call(self, name: str, *arguments: Any, about: Subject) -> Any:
        """Calls a method of the metastore. Raises CatalogError."""
        method = METHODS[name]
        with self._slots:
            connection = self._take()
            try:
                return self._ask(connection, method, arguments, about)
            except errors.BROKEN as error:
                if method.writes or errors.timed_out(error):
                    raise self._unreachable(error) from error
            self._drop_idle()
            connection = self._open()
            try:
                return self._ask(connection, method, arguments, about)
            except errors.BROKEN as error:
                raise self._unreachable(error) from error

    def has_catalogs(self) -> bool:
        """Whether the metastore knows catalogs (Hive 3 and later). Raises ServiceUnavailable."""
        with self._slots:
            connection = self._take()
            self._idle.append(connection)
            return connection.has_catalogs

    def close(self) -> None:
        self._drop_idle()

    def _ask(self, connection: Connection, method: Method, arguments: Sequence[Any], about: Subject) -> Any:
        usable = False
        try:
            answer = connection.call(method, arguments)
            usable = True
            return answer
        except errors.ANSWERS as error:
            usable = True
            raise errors.answered(self._source, about, error) from error
        except UnicodeEncodeError as error:
            # Nothing was sent: the text was refused before the buffer was flushed.
            raise InvalidInput(f"{self._source}: {about.name}: a text that cannot be written as UTF-8") from error
        finally:
            if usable:
                self._idle.append(connection)
            else:
                connection.close()

    def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open():
                return connection
            connection.close()
        return self._open()

    def _open(self) -> Connection:
        failure: Exception | None = None
        for endpoint in self._endpoints:
            try:
                return Connection(endpoint, self._timeout, self._transport)
            except errors.BROKEN as error:
                failure = error
        assert failure is not None
        raise self._unreachable(failure) from failure

    def _unreachable(self, error: Exception) -> ServiceUnavailable:
        where = ", ".join(f"{host}:{port}" for host, port in self._endpoints)
        return errors.unreachable(self._source, where, error)

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
