"""Connection pool of one metastore.

A call that only reads is repeated once on a new connection if its connection broke. A write is never repeated, because it is
unknown whether the server executed it.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType

from federator.connector import CallLimits, CatalogError, IdentityChanged, InvalidInput, ServiceUnavailable, shared_call_policy
from federator.connector.call_deadline import CallDeadline, CallSlots, call_seconds, watch_connection
from federator.connector.catalog_pool import close_idle
from federator.model import ROOT
from federator_connectors._hive import errors, responses
from federator_connectors._hive.errors import CallSubject
from federator_connectors._hive.settings import Endpoint
from federator_connectors._hive.thrift_types import METHODS, ThriftMethod
from federator_connectors._hive.transport import Dialer, open_plain

T = TypeVar("T")

_CONNECT_SECONDS = 10.0
# On the wire this number is two line ends. A server that reads lines (HTTP) therefore refuses the request at once; otherwise it
# would wait for the end of a line.
_FIRST_SEQUENCE = 0x0D0A0D0A


class Connection:
    """One open connection. ``has_catalogs`` is true for Hive 3 and later, and false for Hive 2."""

    def __init__(self, endpoint: Endpoint, timeout: float, dial: Dialer = open_plain) -> None:
        """Connect and list the catalogs, which proves that the server is a metastore.

        Raise ``errors.CONNECTION_ERRORS``, and CatalogError if the login was refused.
        """
        connect_seconds = min(timeout, _CONNECT_SECONDS)
        self._sequence = _FIRST_SEQUENCE
        #: the metastore id that ``Client.anchor_identity`` read on this connection; None if not read
        self.identity: str | None = None
        self._transport, self._socket = dial(endpoint, connect_seconds)
        self._protocol = TBinaryProtocolAccelerated(self._transport, strictRead=True)
        self._socket.setTimeout(connect_seconds * 1000)
        try:
            self.has_catalogs = self._probe()
        except BaseException:
            self.close()
            raise
        self._socket.setTimeout(timeout * 1000)

    def _probe(self) -> bool:
        """Make the first call, and return whether the server has catalogs: Hive 2 does not know the method."""
        try:
            self.call(METHODS["get_catalogs"], ())
        except TApplicationException as error:
            return bool(error.type != TApplicationException.UNKNOWN_METHOD)
        except errors.SERVER_ERRORS:
            return True
        return True

    def call(self, method: ThriftMethod, arguments: Sequence[Any]) -> Any:
        """Call a method and return its result. Raise the exceptions that it declares, and ``errors.CONNECTION_ERRORS``."""
        self._sequence += 1
        watch_connection(self._socket.handle)
        protocol = self._protocol
        protocol.writeMessageBegin(method.name, TMessageType.CALL, self._sequence)
        method.arguments(**dict(zip(method.names, arguments, strict=True))).write(protocol)
        protocol.writeMessageEnd()
        protocol.trans.flush()
        _, kind, sequence = protocol.readMessageBegin()
        if sequence != self._sequence:
            raise TProtocolException(TProtocolException.INVALID_DATA, "the response belongs to another request")
        if kind == TMessageType.EXCEPTION:
            exception = TApplicationException()
            exception.read(protocol)
            protocol.readMessageEnd()
            raise exception
        result = method.result()
        result.read(protocol)
        protocol.readMessageEnd()
        for failure in method.failures:
            declared = getattr(result, failure)
            if declared is not None:
                raise declared
        if not method.has_result:
            return None
        missing = responses.find_missing(method.name, result.success)
        if missing:
            message = f"the response to {method.name} lacks {missing}"
            raise TApplicationException(TApplicationException.MISSING_RESULT, message)
        return result.success

    def is_open(self) -> bool:
        """Return whether the server has kept the connection open."""
        poll = select.poll()
        poll.register(self._socket.handle, select.POLLIN)
        # On an idle connection the only possible input is its end.
        return not poll.poll(0)

    def close(self) -> None:
        self._transport.close()


class Client:
    """A pool of at most ``size`` connections to one metastore, which are opened on demand. Thread-safe."""

    def __init__(
        self, source: str, endpoints: Sequence[Endpoint], *, size: int, timeout: float, dial: Dialer = open_plain,
        limits: CallLimits | None = None, ugi: tuple[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        self._source = source
        self._endpoints = tuple(endpoints)
        self._timeout = timeout
        self._dial = dial
        self._ugi = ugi
        self._slots = CallSlots(size)
        # The pool itself repeats reads, once and on a new connection, so the call policy does not.
        single_attempt = replace(limits or CallLimits(), attempts=1)
        self._call_policy = shared_call_policy(source, self._format_endpoints(), single_attempt)
        # A deque's append and pop are atomic, so no lock is needed.
        self._idle: deque[Connection] = deque()
        #: the last result of ``anchor_identity``; every connection that is used afterwards has the same id. None if never read
        self._identity: str | None = None
        #: the error text of the next ``anchor_identity`` call: a connection reached another metastore after the last one
        self._contradiction: str | None = None

    def call(self, name: str, *arguments: Any, about: CallSubject) -> Any:
        """Call a method of the metastore and return its result. Raise CatalogError."""
        method = METHODS[name]
        return self._limit(lambda: self._call(method, arguments, about), writes=method.writes)

    def _limit(self, call: Callable[[], T], *, writes: bool = False) -> T:
        """Make a call within the limits: of connections, of the call policy, and of its time."""

        def call_within_deadline() -> T:
            seconds = call_seconds(_CONNECT_SECONDS, self._timeout, writes=writes)
            with CallDeadline(f"{self._source}: {self._format_endpoints()}", seconds):
                return call()

        # Waiting comes first: by then, the server may have failed to respond to the calls before, or a write may have lost its
        # permission, so that this call is not made.
        with self._slots:
            return self._call_policy.call(call_within_deadline, repeatable=not writes)

    def _call(self, method: ThriftMethod, arguments: Sequence[Any], about: CallSubject) -> Any:
        connection = self._acquire()
        try:
            return self._call_once(connection, method, arguments, about)
        except errors.CONNECTION_ERRORS as error:
            if method.writes or errors.is_timeout(error):
                raise self._unreachable(error) from error
        close_idle(self._idle)
        connection = self._open()
        try:
            return self._call_once(connection, method, arguments, about)
        except errors.CONNECTION_ERRORS as error:
            raise self._unreachable(error) from error

    def has_catalogs(self) -> bool:
        """Return whether the metastore has catalogs (Hive 3 and later). Raise ServiceUnavailable."""
        return self._limit(self._has_catalogs)

    def _has_catalogs(self) -> bool:
        connection = self._acquire()
        self._idle.append(connection)
        return connection.has_catalogs

    def anchor_identity(self) -> str:
        """Read the id of the metastore's database; empty on Hive 2, which has none. Raise CatalogError.

        Afterwards, connections to another metastore are not used: opening one raises IdentityChanged, and so does the next call
        of this method, once. A crawl that ends with this call therefore detects that a part of it reached another metastore.
        """
        return self._limit(self._read_anchor)

    def close(self) -> None:
        close_idle(self._idle)

    def _read_anchor(self) -> str:
        contradiction, self._contradiction = self._contradiction, None
        if contradiction is not None:
            raise IdentityChanged(contradiction)
        # Until the new identity is read, other threads compare with the last one.
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
        except errors.SERVER_ERRORS as error:
            raise errors.error_for_response(self._source, errors.namespace_subject(ROOT), error) from error
        except errors.CONNECTION_ERRORS as error:
            raise self._unreachable(error) from error

    def _call_once(self, connection: Connection, method: ThriftMethod, arguments: Sequence[Any], about: CallSubject) -> Any:
        usable = False
        try:
            result = connection.call(method, arguments)
            usable = True
            return result
        except errors.SERVER_ERRORS as error:
            usable = True
            raise errors.error_for_response(self._source, about, error) from error
        except errors.CONNECTION_ERRORS:
            raise
        except UnicodeEncodeError as error:
            # Nothing was sent: encoding failed before the buffer was flushed.
            raise InvalidInput(f"{self._source}: {about.name}: a text cannot be encoded as UTF-8") from error
        except Exception as error:
            # thrift's decoder trusts types and lengths. For an invalid or truncated response it raises a different exception for
            # each field.
            if not connection.is_open():
                raise EOFError("the connection ended within a response") from error
            raise errors.error_for_unreadable_response(self._source, about, method.name, error) from error
        finally:
            if usable:
                self._idle.append(connection)
            else:
                connection.close()

    def _acquire(self) -> Connection:
        """Return an idle connection to the known metastore, or else a new one."""
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
        return self._check_identity(self._connect())

    def _connect(self) -> Connection:
        """Open a connection to the first endpoint that responds, whichever metastore it is."""
        failure: Exception | None = None
        for endpoint in self._endpoints:
            try:
                return self._introduce(Connection(endpoint, self._timeout, self._dial))
            except errors.CONNECTION_ERRORS as error:
                failure = error
            except CatalogError:
                raise
            except Exception as error:
                root = errors.namespace_subject(ROOT)
                raise errors.error_for_unreadable_response(self._source, root, "get_catalogs", error) from error
        assert failure is not None
        raise self._unreachable(failure) from failure

    def _introduce(self, connection: Connection) -> Connection:
        """Return the connection after it named its user, if one is configured."""
        if self._ugi is not None:
            user, groups = self._ugi
            try:
                connection.call(METHODS["set_ugi"], (user, list(groups)))
            except errors.SERVER_ERRORS as error:
                connection.close()
                raise errors.error_for_response(self._source, errors.namespace_subject(ROOT), error) from error
            except BaseException:
                connection.close()
                raise
        return connection

    def _check_identity(self, connection: Connection) -> Connection:
        """Return the connection if it reaches the known metastore, or if none is known. Raise IdentityChanged."""
        known = self._identity
        if known is not None:
            try:
                connection.identity = self._read_identity(connection)
            except BaseException:
                connection.close()
                raise
            if connection.identity != known:
                connection.close()
                other = connection.identity or "unknown"
                self._contradiction = (
                    f"{self._source}: two metastores answer at {self._format_endpoints()}: {other} and {known}"
                )
                raise IdentityChanged(self._contradiction)
        return connection

    def _unreachable(self, error: Exception) -> ServiceUnavailable:
        return errors.error_for_broken_connection(self._source, self._format_endpoints(), error)

    def _format_endpoints(self) -> str:
        return ", ".join(f"{host}:{port}" for host, port in self._endpoints)
