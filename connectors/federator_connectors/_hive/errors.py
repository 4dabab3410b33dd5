"""The one place where the metastore's exceptions become ours."""

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
from federator_connectors._hive import structs

#: the server's own answers: the connection stays usable
ANSWERS = (
    structs.AlreadyExistsException,
    structs.InvalidObjectException,
    structs.InvalidOperationException,
    structs.MetaException,
    structs.NoSuchObjectException,
    structs.UnknownDBException,
    TApplicationException,
)
#: the connection is broken, or whoever answers does not speak the protocol; UnicodeDecodeError is a text that is not UTF-8
BROKEN = (TTransportException, TProtocolException, OSError, EOFError, UnicodeDecodeError)

# What only the text of a MetaException tells apart. Each was seen on a real server, but for the authorisers', which differ.
_TEXTS: tuple[tuple[re.Pattern[str], type[CatalogError], str | None], ...] = (
    (re.compile(r"has been modified\. The parameter value"), ConcurrentModification, None),
    (
        re.compile(r"No FileSystem for scheme|UnsupportedFileSystemException|Failed to create external path"),
        InvalidInput,
        "the metastore itself has no driver for this kind of storage; install it there (for s3: hadoop-aws)",
    ),
    (
        re.compile(r"AccessControl|not authorized|permission denied|does not have .*privilege", re.IGNORECASE),
        PermissionDenied,
        None,
    ),
    (re.compile(r"Can not drop (default database|hive catalog)"), Unsupported, None),
    (re.compile(r"Attempt to store value .* in column", re.DOTALL), InvalidInput, None),
)
# Two creations at once: the server's own look found nothing, its database then refused the second row.
_DUPLICATE = re.compile(
    r'INSERT INTO "?(TBLS|DBS|CTLGS)\b.*(duplicate key|duplicate entry|unique constraint)', re.IGNORECASE | re.DOTALL
)
# Derby and Oracle cannot compare the column that holds a parameter's value.
_INCOMPARABLE = re.compile(r'update "?TABLE_PARAMS\b.*(Comparisons between|inconsistent datatypes)', re.DOTALL)
_TAKEN = re.compile(r"already exists", re.IGNORECASE)
_NO_KDC = re.compile(r"Cannot (contact any|resolve network address for|find) KDC")
_GONE = re.compile(r"doesn't exist|does not exist|not found", re.IGNORECASE)


class LoginFailed(Exception):
    """SASL's login cannot be made or was refused."""


class Incomparable(Internal):
    """The server cannot compare before it writes, and has written nothing."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call is about, and so what its not-found and its already-exists mean."""

    name: str
    missing: type[CatalogError]
    exists: type[CatalogError]
    busy: type[CatalogError]


def namespace(path: Path) -> Subject:
    return Subject(f"namespace {path_key(path)!r}", NamespaceNotFound, NamespaceAlreadyExists, NamespaceNotEmpty)


def table(path: Path) -> Subject:
    return Subject(f"table {path_key(path)!r}", TableNotFound, TableAlreadyExists, InvalidInput)


def answered(source: str, subject: Subject, error: Exception) -> CatalogError:
    """Our error for one of ``ANSWERS``."""
    text = _first_line(error)
    said = f"{source}: {subject.name}: {text}"
    if isinstance(error, structs.NoSuchObjectException):
        return subject.missing(f"{source}: {subject.name} does not exist")
    if isinstance(error, structs.UnknownDBException):
        return NamespaceNotFound(said)
    if isinstance(error, structs.AlreadyExistsException):
        return subject.exists(f"{source}: {subject.name} already exists")
    if isinstance(error, structs.InvalidObjectException):
        return InvalidInput(said)
    if isinstance(error, structs.InvalidOperationException):
        kinds = ((_GONE, subject.missing), (_TAKEN, subject.exists))
        return next((kind(said) for pattern, kind in kinds if pattern.search(text)), subject.busy(said))
    if isinstance(error, TApplicationException):
        unknown = error.type == TApplicationException.UNKNOWN_METHOD
        return Unsupported(f"{said}: this metastore does not know the call") if unknown else Internal(said)
    whole = str(getattr(error, "message", ""))
    for pattern, kind, hint in _TEXTS:
        if pattern.search(whole):
            return kind(said, hint=hint)
    if _DUPLICATE.search(whole):
        return subject.exists(f"{source}: {subject.name} already exists")
    return Incomparable(said) if _INCOMPARABLE.search(whole) else Internal(said)


def unreachable(source: str, where: str, error: Exception) -> ServiceUnavailable:
    """Our error for one of ``BROKEN``."""
    if isinstance(error, (TProtocolException, UnicodeDecodeError)):
        hint = (
            "the uri must be the thrift port (usually 9083), not HTTP; for TLS and SASL see client.tls.enabled and client.auth"
        )
        return ServiceUnavailable(f"{source}: {where} answers, but not as a Hive metastore", hint=hint)
    if timed_out(error):
        return ServiceUnavailable(f"{source}: {where} did not answer in time", hint="is it overloaded? see client.timeout")
    if isinstance(error, (EOFError, TTransportException)):
        hint = "it may have been stopped, or demand TLS or SASL: see client.tls.enabled and client.auth"
        return ServiceUnavailable(f"{source}: {where} closed the connection", hint=hint)
    if isinstance(error, ssl.SSLError):
        hint = "see client.tls.ca-file and client.tls.check-hostname; a server without TLS fails so, too"
        return ServiceUnavailable(f"{source}: {where}: TLS failed ({_first_line(error)})", hint=hint)
    return ServiceUnavailable(
        f"{source}: {where} cannot be reached ({_first_line(error)})", hint="check the uri and the network"
    )


def unreadable(source: str, subject: Subject, method: str, error: Exception) -> Internal:
    """Our error for an answer over which thrift's own code failed."""
    return Internal(f"{source}: {subject.name}: the answer to {method} cannot be read ({type(error).__name__})")


def not_logged_in(source: str, where: str, error: Exception) -> CatalogError:
    """Our error for a login that failed, before or at the server."""
    text = _first_line(error)
    if _NO_KDC.search(text):
        return ServiceUnavailable(f"{source}: {where}: {text}", hint="check the network, and the realm's KDCs in krb5.conf")
    return Unauthenticated(f"{source}: {where} refused the login ({text})", hint="see client.auth, and the keys that it needs")


def timed_out(error: Exception) -> bool:
    return isinstance(error, TimeoutError) or getattr(error, "type", None) == TTransportException.TIMED_OUT


def _first_line(error: Exception) -> str:
    """The server's text without its stack trace; metastores send whole ones, and SQL."""
    text = str(getattr(error, "message", None) or error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
