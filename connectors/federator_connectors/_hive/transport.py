"""Transports to a metastore: TCP, optionally with TLS, and optionally with a SASL login.

TLS: ``metastore.use.SSL``. SASL: thrift's own framing, with the mechanism PLAIN (Hive 4, ``metastore.authentication``) or GSSAPI
(every version, ``metastore.sasl.enabled``).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TSaslClientTransport, TTransportException

from federator.connector import ConfigError
from federator.connector.call_deadline import watch_connection
from federator.connector.connecting import open_connection
from federator_connectors._hive import errors
from federator_connectors._hive.settings import KERBEROS, PLAIN, Endpoint, HiveSettings

#: connects to one endpoint within a timeout in seconds; returns the open transport and the thrift socket below it
Dialer = Callable[[Endpoint, float], tuple[Any, Any]]

_BUFFER_BYTES = 1 << 16
# A metastore sends each response as one frame, which may exceed thrift's default of 16 MB.
_FRAME_BYTES = 1 << 30


def open_plain(endpoint: Endpoint, timeout: float) -> tuple[Any, Any]:
    """Open a buffered TCP connection. Raise OSError."""
    connected = _wrap_socket(endpoint, _open_tcp(endpoint, timeout))
    return TBufferedTransport(connected, _BUFFER_BYTES), connected


def build_dialer(source: str, settings: HiveSettings) -> Dialer:
    """Build the function that opens connections as the settings require. Raise ConfigError for files that cannot be read."""
    context = _tls_context(settings) if settings.tls else None

    def dial(endpoint: Endpoint, timeout: float) -> tuple[Any, Any]:
        handle = _open_tcp(endpoint, timeout)
        try:
            if context:
                handle = context.wrap_socket(handle, server_hostname=endpoint[0])
            connected = _wrap_socket(endpoint, handle)
            transport = TBufferedTransport(connected, _BUFFER_BYTES)
            return (_log_in(source, settings, endpoint, transport), connected)
        except BaseException:
            handle.close()
            raise

    return dial


def _open_tcp(endpoint: Endpoint, timeout: float) -> socket.socket:
    handle = open_connection(*endpoint, timeout)
    handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    watch_connection(handle)
    return handle


def _wrap_socket(endpoint: Endpoint, handle: socket.socket) -> Any:
    """Return the thrift socket of an open connection. ``TSocket.open`` is not used, because it logs every failure itself."""
    connected = TSocket(*endpoint)
    connected.setHandle(handle)
    return connected


def _tls_context(settings: HiveSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca)
        if settings.tls_certificate:
            context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    except OSError as error:
        files = ", ".join(filter(None, (settings.tls_ca, settings.tls_certificate, settings.tls_key)))
        raise ConfigError(f"client.tls.*: cannot read {files} ({error.strerror or error})", hint="PEM files") from None
    context.check_hostname = settings.tls_check_hostname
    return context


def _log_in(source: str, settings: HiveSettings, endpoint: Endpoint, transport: Any) -> Any:
    """Return ``transport``, or a SASL transport over it after the login.

    Raise Unauthenticated, ServiceUnavailable, TTransportException.
    """
    if settings.auth not in (PLAIN, KERBEROS):
        return transport
    host, port = endpoint
    sasl = TSaslClientTransport(
        transport, host, "hive", "PLAIN", max_frame_size=_FRAME_BYTES, username=settings.user, password=settings.password
    )
    try:
        if settings.auth == KERBEROS:
            # Imported only here, because the module loads a library that is installed only where Kerberos is used.
            from federator_connectors._hive.kerberos import Kerberos

            principal = (settings.principal or "").replace("_HOST", host.lower())
            sasl.sasl = Kerberos(principal, keytab=settings.keytab, user=settings.kerberos_user)
        sasl.open()
    except errors.LoginFailed as error:
        raise errors.error_for_login(source, f"{host}:{port}", error) from error
    except TTransportException as error:
        if error.type == TTransportException.NOT_OPEN:
            raise errors.error_for_login(source, f"{host}:{port}", error) from error
        raise
    return sasl
