"""Connections to a metastore: how they are opened, lent, and given up.

A call that only reads is repeated once, on a new connection, if its connection broke. A write never is: nobody can tell whether
it was carried out.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from threading import BoundedSemaphore
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType

from federator.connector import CatalogError, IdentityChanged, InvalidInput, Limits, ServiceUnavailable, politeness
from federator.model import ROOT
from federator_connectors._hive import errors, responses
from federator_connectors._hive.errors import Subject
from federator_connectors._hive.settings import Endpoint
from federator_connectors._hive.structs import METHODS, Method
from federator_connectors._hive.transport import Dial, plain

_CONNECT_SECONDS = 10.0
# On the wire this number is two line ends, so that a server that reads lines, HTTP's, refuses us at once instead of waiting for one.
_FIRST_SEQUENCE = 0x0D0A0D0A


class Connection:
    """One open connection. ``has_catalogs`` tells Hive 3 and later from Hive 2."""

    def __init__(self, endpoint: Endpoint, timeout: float, dial: Dial = plain) -> None:
        """Connects and asks for the catalogs, which proves that a metastore is there.

        Raises ``errors.BROKEN``, and CatalogError where the login was refused.
        """
        first = min(timeout, _CONNECT_SECONDS)
        self._sequence = _FIRST_SEQUENCE
        #: what ``Client.identity`` read on this connection; None: not read
        self.identity: str | None = None
        self._transport, self._socket = dial(endpoint, first)
        self._protocol = TBinaryProtocolAccelerated(self._transport, strictRead=True)
        self._socket.setTimeout(first * 1000)
        try:
            self.has_catalogs = self._probe()
        except BaseException:
            self.close()
            raise
        self._socket.setTimeout(timeout * 1000)

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
        if not method.answers:
            return None
        lacking = responses.missing(method.name, result.success)
        if lacking:
            raise TApplicationException(TApplicationException.MISSING_RESULT, f"the answer to {method.name} lacks {lacking}")
        return result.success

    def is_open(self) -> bool:
        """Whether the server has not closed the connection meanwhile."""
        waiting = select.poll()
        waiting.register(self._socket.handle, select.POLLIN)
        # An idle connection has nothing to say but its end.
        return not waiting.poll(0)

    def close(self) -> None:
        self._transport.close()


class Client:
    """At most ``size`` connections to one metastore, opened when they are needed. Thread-safe."""

    def __init__(
        self, source: str, endpoints: Sequence[Endpoint], *, size: int, timeout: float, dial: Dial = plain,
        limits: Limits | None = None,
    ) -> None:  # fmt: skip
        self._source = source
        self._endpoints = tuple(endpoints)
        self._timeout = timeout
        self._dial = dial
        self._slots = BoundedSemaphore(size)
        # Reads are repeated here, once and on a new connection, and not by the politeness, too.
        once = replace(limits or Limits(), attempts=1)
        self._politeness = politeness(source, self._where(), once)
        # A deque's append and pop are atomic, so no lock is needed.
        self._idle: deque[Connection] = deque()
        #: what ``identity`` returned last; every connection that is used afterwards has the same one. None: it was never read
        self._identity: str | None = None
        #: why ``identity`` fails next: a connection reached another metastore after the last reading
        self._contradiction: str | None = None

    def call(self, name: str, *arguments: Any, about: Subject) -> Any:
        """Calls a method of the metastore. Raises CatalogError."""
        method = METHODS[name]
        return self._politeness.call(lambda: self._call(method, arguments, about), repeatable=not method.writes)

    def _call(self, method: Method, arguments: Sequence[Any], about: Subject) -> Any:
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

    def identity(self) -> str:
        """Read the id of the metastore's database; empty on Hive 2, which has none. Raises CatalogError.

        Connections to another metastore are not used afterwards: opening one raises IdentityChanged, and so does the next
        reading, once. So a crawl that ends with a reading knows that a part of it met another metastore.
        """
        return self._politeness.call(self._anchor, repeatable=True)

    def close(self) -> None:
        self._drop_idle()

    def _anchor(self) -> str:
        with self._slots:
            contradiction, self._contradiction = self._contradiction, None
            if contradiction is not None:
                raise IdentityChanged(contradiction)
            # Other threads compare with the last identity until this one is read.
            connection = self._idle_connection() or self._connect()
            try:
                self._identity = connection.identity = self._read_identity(connection)
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
            return self._identity

    def _read_identity(self, connection: Connection) -> str:
        if not connection.has_catalogs:
            return ""
        try:
            return str(connection.call(METHODS["get_metastore_db_uuid"], ()))
        except errors.ANSWERS as error:
            raise errors.answered(self._source, errors.namespace(ROOT), error) from error
        except errors.BROKEN as error:
            raise self._unreachable(error) from error

    def _ask(self, connection: Connection, method: Method, arguments: Sequence[Any], about: Subject) -> Any:
        usable = False
        try:
            answer = connection.call(method, arguments)
            usable = True
            return answer
        except errors.ANSWERS as error:
            usable = True
            raise errors.answered(self._source, about, error) from error
        except errors.BROKEN:
            raise
        except UnicodeEncodeError as error:
            # Nothing was sent: the text was refused before the buffer was flushed.
            raise InvalidInput(f"{self._source}: {about.name}: a text that cannot be written as UTF-8") from error
        except Exception as error:
            # thrift's decoder trusts types and lengths: what it raises over an answer that is none, or that was cut, differs by field.
            if not connection.is_open():
                raise EOFError("the connection ended within an answer") from error
            raise errors.unreadable(self._source, about, method.name, error) from error
        finally:
            if usable:
                self._idle.append(connection)
            else:
                connection.close()

    def _take(self) -> Connection:
        while (connection := self._idle_connection()) is not None:
            if self._identity in (None, connection.identity):
                return connection
            connection.close()
        return self._open()

    def _idle_connection(self) -> Connection | None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_open():
                return connection
            connection.close()

    def _open(self) -> Connection:
        return self._checked(self._connect())

    def _connect(self) -> Connection:
        failure: Exception | None = None
        for endpoint in self._endpoints:
            try:
                return Connection(endpoint, self._timeout, self._dial)
            except errors.BROKEN as error:
                failure = error
            except CatalogError:
                raise
            except Exception as error:
                raise errors.unreadable(self._source, errors.namespace(ROOT), "get_catalogs", error) from error
        assert failure is not None
        raise self._unreachable(failure) from failure

    def _checked(self, connection: Connection) -> Connection:
        known = self._identity
        if known is not None:
            try:
                connection.identity = self._read_identity(connection)
            except BaseException:
                connection.close()
                raise
            if connection.identity != known:
                connection.close()
                found = connection.identity or "unknown"
                self._contradiction = f"{self._source}: two metastores answer at {self._where()}: {found} and {known}"
                raise IdentityChanged(self._contradiction)
        return connection

    def _unreachable(self, error: Exception) -> ServiceUnavailable:
        return errors.unreachable(self._source, self._where(), error)

    def _where(self) -> str:
        return ", ".join(f"{host}:{port}" for host, port in self._endpoints)

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
