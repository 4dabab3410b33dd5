"""Mapping of the metastore's exceptions to ``CatalogError``."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Unauthenticated,
    Unsupported,
)
from federator.model import Path, path_key
from federator_connectors._hive import thrift_types

#: exceptions that the server returns: the connection stays usable
SERVER_ERRORS = (
    thrift_types.AlreadyExistsException,
    thrift_types.InvalidObjectException,
    thrift_types.InvalidOperationException,
    thrift_types.MetaException,
    thrift_types.NoSuchObjectException,
    thrift_types.UnknownDBException,
    TApplicationException,
)
#: the connection is broken, or the server does not speak the protocol; UnicodeDecodeError means a text that is not UTF-8
CONNECTION_ERRORS = (TTransportException, TProtocolException, OSError, EOFError, UnicodeDecodeError)

# Causes that only the text of a MetaException distinguishes. Each text was observed on a real server, except those of the
# authorisers, which differ by installation.
_TEXTS: tuple[tuple[re.Pattern[str], type[CatalogError], str | None], ...] = (
    (re.compile(r"has been modified\. The parameter value"), ConcurrentModification, None),
    (
        re.compile(r"No FileSystem for scheme|UnsupportedFileSystemException|Failed to create external path"),
        InvalidInput,
        "install a driver for this kind of storage on the metastore's host (for s3: hadoop-aws)",
    ),
    (
        re.compile(r"AccessControl|not authorized|permission denied|does not have .*privilege", re.IGNORECASE),
        PermissionDenied,
        None,
    ),
    (re.compile(r"Can not drop (default database|hive catalog)"), Unsupported, None),
    (re.compile(r"Attempt to store value .* in column", re.DOTALL), InvalidInput, None),
)
# Two concurrent creations: the server's own check found no object, and its database then refused the second row.
_DUPLICATE = re.compile(
    r'INSERT INTO "?(TBLS|DBS|CTLGS)\b.*(duplicate key|duplicate entry|unique constraint)', re.IGNORECASE | re.DOTALL
)
# Derby and Oracle cannot compare the column that holds a parameter's value.
_INCOMPARABLE = re.compile(r'update "?TABLE_PARAMS\b.*(Comparisons between|inconsistent datatypes)', re.DOTALL)
_ALREADY_EXISTS = re.compile(r"already exists", re.IGNORECASE)
_NO_KDC = re.compile(r"Cannot (contact any|resolve network address for|find) KDC")
_NOT_FOUND = re.compile(r"doesn't exist|does not exist|not found", re.IGNORECASE)


class LoginFailed(Exception):
    """A SASL login could not be started, or was refused."""


class Incomparable(Internal):
    """The server cannot compare a parameter before it writes, and has written nothing."""


@dataclass(frozen=True, slots=True)
class CallSubject:
    """The object of a call: its name, and the errors that absence, existence and a conflict mean for it."""

    name: str
    missing: type[CatalogError]
    exists: type[CatalogError]
    busy: type[CatalogError]


def namespace_subject(path: Path) -> CallSubject:
    return CallSubject(f"namespace {path_key(path)!r}", NamespaceNotFound, NamespaceAlreadyExists, NamespaceNotEmpty)


def table_subject(path: Path) -> CallSubject:
    return CallSubject(f"table {path_key(path)!r}", TableNotFound, TableAlreadyExists, InvalidInput)


def error_for_response(source: str, subject: CallSubject, error: Exception) -> CatalogError:
    """Return the CatalogError for one of ``SERVER_ERRORS``."""
    text = _first_line(error)
    message = f"{source}: {subject.name}: {text}"
    if isinstance(error, thrift_types.NoSuchObjectException):
        return subject.missing(f"{source}: {subject.name} does not exist")
    if isinstance(error, thrift_types.UnknownDBException):
        return NamespaceNotFound(message)
    if isinstance(error, thrift_types.AlreadyExistsException):
        return subject.exists(f"{source}: {subject.name} already exists")
    if isinstance(error, thrift_types.InvalidObjectException):
        return InvalidInput(message)
    if isinstance(error, thrift_types.InvalidOperationException):
        kinds = ((_NOT_FOUND, subject.missing), (_ALREADY_EXISTS, subject.exists))
        return next((kind(message) for pattern, kind in kinds if pattern.search(text)), subject.busy(message))
    if isinstance(error, TApplicationException):
        unknown = error.type == TApplicationException.UNKNOWN_METHOD
        return Unsupported(f"{message}: this metastore does not have the method") if unknown else Internal(message)
    full_text = str(getattr(error, "message", ""))
    for pattern, kind, hint in _TEXTS:
        if pattern.search(full_text):
            return kind(message, hint=hint)
    if _DUPLICATE.search(full_text):
        return subject.exists(f"{source}: {subject.name} already exists")
    return Incomparable(message) if _INCOMPARABLE.search(full_text) else Internal(message)


def error_for_broken_connection(source: str, where: str, error: Exception) -> ServiceUnavailable:
    """Return the CatalogError for one of ``CONNECTION_ERRORS``."""
    if isinstance(error, (TProtocolException, UnicodeDecodeError)):
        hint = "uri must name the thrift port (usually 9083), not an HTTP port; for TLS and SASL see client.tls.enabled and client.auth"
        return ServiceUnavailable(f"{source}: {where} answers, but not as a Hive metastore", hint=hint)
    if is_timeout(error):
        return ServiceUnavailable(
            f"{source}: {where} did not respond in time", hint="check its load, or increase client.timeout"
        )
    if isinstance(error, (EOFError, TTransportException)):
        hint = "check that it is running; if it requires TLS or SASL, set client.tls.enabled and client.auth"
        return ServiceUnavailable(f"{source}: {where} closed the connection", hint=hint)
    if isinstance(error, ssl.SSLError):
        hint = "check client.tls.ca-file and client.tls.check-hostname; a server without TLS causes the same error"
        return ServiceUnavailable(f"{source}: {where}: TLS failed ({_first_line(error)})", hint=hint)
    return ServiceUnavailable(
        f"{source}: {where} cannot be reached ({getattr(error, 'strerror', None) or _first_line(error)})",
        hint="check the uri and the network",
    )


def error_for_unreadable_response(source: str, subject: CallSubject, method: str, error: Exception) -> Internal:
    """Return the CatalogError for a response that thrift's decoder failed to read."""
    return Internal(f"{source}: {subject.name}: the response to {method} cannot be read ({type(error).__name__})")


def error_for_login(source: str, where: str, error: Exception) -> CatalogError:
    """Return the CatalogError for a login that failed before it reached the server, or at the server."""
    text = _first_line(error)
    if _NO_KDC.search(text):
        return ServiceUnavailable(f"{source}: {where}: {text}", hint="check the network, and the realm's KDCs in krb5.conf")
    return Unauthenticated(
        f"{source}: {where} refused the login ({text})", hint="check client.auth and the keys that it requires"
    )


def is_timeout(error: Exception) -> bool:
    return isinstance(error, TimeoutError) or getattr(error, "type", None) == TTransportException.TIMED_OUT


def _first_line(error: Exception) -> str:
    """Return the first line of the server's text. Metastores append stack traces and SQL."""
    text = str(getattr(error, "message", None) or error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
