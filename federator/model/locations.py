"""Canonical locations: the normalised form that identifies a dataset. docs/explanation/datasets.md lists the rules.

Two catalogs may spell one location differently (``file:/x``, ``file:///x/``, ``/x``; ``s3a://b/k``, ``s3://b/k``). The canonical form
is only for comparing and grouping. Locations are displayed, mirrored and opened as their catalog wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

_URI = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)$", re.DOTALL)
_CANONICAL_SCHEMES = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs", "azure": "az", "file-object-store": "file",
}  # fmt: skip
# Schemes that Lance does not support, or whose hosts it spells differently, with the scheme that it supports.
_LANCE_SCHEMES = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "abfss", "abfss": "abfss", "wasb": "abfss", "wasbs": "abfss",
}  # fmt: skip
_DEFAULT_PORTS = {"hdfs": "8020", "http": "80", "https": "443", "abfs": "80", "abfss": "443", "wasb": "80", "wasbs": "443"}
# In object stores "a//b" and "a/../b" differ from "a/b". Only file systems treat them as equal.
_FILE_SYSTEMS = frozenset({"file", "hdfs"})
_BUCKETS = frozenset({"s3", "s3+ddb", "gs"})
_AZURE = frozenset({"abfss", "wasbs", "az"})
# Each account has two hosts: one for the blob API, one for the file system API.
_AZURE_HOST = re.compile(
    r"([^.@:]+)\.(?:blob|dfs)\.(core\.windows\.net|core\.usgovcloudapi\.net|core\.chinacloudapi\.cn|fabric\.microsoft\.com)"
)
_CONTAINER = re.compile(r"[A-Za-z0-9$_-]+")
# In this scheme Lance names the table of its commit lock in the query. The data is at the same location as with s3.
_LOCKED, _LOCK = "s3+ddb", re.compile(r"\?ddbTableName=[^/?&]*\Z")
# Lance parses URIs as browsers do: it decodes, resolves relative levels, and drops users, ports, queries and fragments. So these
# characters must be encoded, as encode_key does, and a second spelling of any other would be one of the same object.
_AMBIGUOUS_KEY = re.compile(r"[\x00-\x1f\x7f?#\\]|%(?!25|3F|23|5C|7F|[01][0-9A-F]|20\Z)|//|(?:^|/)\.{1,2}(?:/|\Z)|\s\Z")
# Only these characters are encoded, because other catalogs do not decode locations.
_DECODED_BY_LANCE = re.compile(r"[%?#\\\x00-\x1f\x7f]| $")
_NO_NAME = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
# A path on Linux has at most 4,096 bytes, and a key in an object store 1,024.
_MAX_LENGTH = 4096
_STRIPPED = "".join(map(chr, range(0x21)))
_KEPT_ENCODED = re.compile(r"%|[\ud800-\udfff]|[\x00-\x20]+\Z")


class _ParsedLocation(NamedTuple):
    """The parts of a location. ``path`` is decoded and has no trailing slash; the path of the root is empty."""

    scheme: str
    host: str
    path: str

    def contains(self, other: _ParsedLocation) -> bool:
        """Return whether another location is equal to this one or below it."""
        return self[:2] == other[:2] and (self.path == other.path or other.path.startswith(self.path + "/"))


@dataclass(frozen=True, slots=True)
class LocationAliases:
    """Location aliases: prefixes that stand for other locations (an access point, a mount), as pairs, deepest first."""

    pairs: tuple[tuple[_ParsedLocation, _ParsedLocation], ...] = ()

    @classmethod
    def from_prefixes(cls, prefixes: Mapping[str, str]) -> LocationAliases:
        """Return the aliases of location prefixes and their targets. Targets must not contain aliases or lie inside them.

        Raise ValueError with the offending entry.
        """
        pairs = {_parse(prefix): _parse(target) for prefix, target in prefixes.items()}
        if len(pairs) < len(prefixes):
            raise ValueError("two entries have the same canonical location")
        for alias, target in pairs.items():
            for other in pairs:
                if other.contains(target) or target.contains(other):
                    raise ValueError(
                        f"{_format(alias)} stands for {_format(target)}, which overlaps with the alias {_format(other)}: "
                        "name the final location"
                    )
        return cls(tuple(sorted(pairs.items(), key=lambda pair: len(pair[0].path), reverse=True)))

    def resolve(self, location: _ParsedLocation) -> _ParsedLocation:
        for alias, target in self.pairs:
            if alias.contains(location):
                return _normalize(target._replace(path=target.path + location.path[len(alias.path) :]))
        return location

    @property
    def prefixes(self) -> list[str]:
        """Return the canonical form of all aliases."""
        return [_format(alias) for alias, _ in self.pairs]


NO_ALIASES = LocationAliases()


def canonical_location(location: str, aliases: LocationAliases = NO_ALIASES) -> str:
    """Return the canonical form of a storage location, or the text itself if it is not an absolute location. Never raise.

    The function is idempotent, and different locations have different results. It normalises equivalent schemes, Azure hosts, the case
    of scheme and host (except S3 buckets), default ports and trailing slashes. For file systems it also resolves repeated slashes,
    ``.`` and ``..``, and for ``file:`` percent-encoding. The case of the path is kept. ``aliases`` are resolved last.
    """
    parsed = _parse_or_none(location)
    if parsed is None:
        return location.strip(_STRIPPED)
    return _format(aliases.resolve(parsed))


def is_location(text: str | None) -> bool:
    """Return whether a text is a location: an absolute path or ``scheme:/...``."""
    return bool(text) and (str(text).startswith("/") or _URI.match(str(text)) is not None)


def local_path(location: str) -> str | None:
    """Return the file system path of a ``file`` location on this host. None for any other location."""
    parsed = _parse_or_none(location)
    return parsed.path or "/" if parsed is not None and parsed[:2] == ("file", "") else None


def to_lance_uri(location: str) -> str:
    """Return a location as Lance opens it: a file system path, or a URI with a scheme that Lance supports.

    Only the scheme is replaced (``s3a`` → ``s3``, ``wasbs`` → ``abfss`` ...). Any other text is returned unchanged.
    """
    path = local_path(location)
    if path is not None:
        return path
    scheme, colon, rest = location.strip(_STRIPPED).partition("://")
    scheme = scheme.lower()
    if colon and (scheme == "https" or _LANCE_SCHEMES.get(scheme) == "abfss"):
        return _azure_uri(scheme, rest) or location
    return f"{_LANCE_SCHEMES[scheme]}://{rest}" if colon and scheme in _LANCE_SCHEMES else location


def is_ambiguous(location: str) -> bool:
    """Return whether Lance could read a URI of an object store as the name of another object than its canonical form names."""
    scheme, colon, rest = to_lance_uri(location).partition("://")
    scheme = scheme.strip().lower()
    if not colon or local_path(location) is not None:
        return False
    if scheme == _LOCKED:
        rest = _LOCK.sub("", rest)
    host, _, key = rest.partition("/")
    has_other_host = scheme in _BUCKETS and bool(set("@:%?#\\") & set(host))
    return has_other_host or _AMBIGUOUS_KEY.search(key.rstrip("/")) is not None or key.startswith("/")


def encode_key(key: str) -> str:
    """Return the path of a location such that Lance, which parses URLs as browsers do, opens the object with this key."""
    return _DECODED_BY_LANCE.sub(lambda match: quote(match[0], safe=""), key)


def _azure_uri(scheme: str, rest: str) -> str | None:
    """Return an Azure location in Lance's form for a container of an account. None if the location is not in Azure."""
    host, slash, key = rest.partition("/")
    container, at, account = host.rpartition("@")
    if scheme == "https":
        container, slash, key = key.partition("?")[0].partition("/")
    elif not at:
        # Only the storage options name the account.
        return f"az://{rest}" if _CONTAINER.fullmatch(host) else None
    account_host = _AZURE_HOST.fullmatch(account.lower())
    return f"abfss://{container}@{account_host[1]}.dfs.{account_host[2]}{slash}{key}" if account_host and container else None


def parent_locations(location: str, limit: int = _MAX_LENGTH) -> list[str]:
    """Return the canonical locations of the ``limit`` directories above a location, nearest first, up to its bucket or root.

    Empty for a location that is longer than file systems and object stores permit: no table can be there.
    """
    parsed = _parse_or_none(location) if len(location) <= _MAX_LENGTH else None
    parents: list[str] = []
    while parsed is not None and parsed.path and len(parents) < limit:
        parsed = parsed._replace(path=parsed.path.rpartition("/")[0].rstrip("/"))
        # Only a URL can be an Azure location without its last part. To parse each parent takes long for deep locations.
        parents.append(canonical_location(_format(parsed)) if parsed.scheme == "https" else _format(parsed))
    return parents


def relative_location(directory: str, location: str) -> str | None:
    """Return the path of a location below a directory, with plain names; None for a location that is not below it."""
    canonical, root = canonical_location(location), canonical_location(directory)
    return unquote(canonical.removeprefix(f"{root}/")) if canonical.startswith(f"{root}/") else None


def _parse(location: str) -> _ParsedLocation:
    parsed = _parse_or_none(location)
    if parsed is None:
        raise ValueError(f"{location!r} is not an absolute location")
    return parsed


def _parse_or_none(location: str) -> _ParsedLocation | None:
    if location.startswith("/"):
        return _normalize(_ParsedLocation("file", "", location))
    # Strip only what URI parsers strip, because a name may start with any other white space.
    text = location.strip(_STRIPPED)
    match = _URI.match(text)
    if match is None:
        return _normalize(_ParsedLocation("file", "", text)) if text.startswith("/") else None
    written = match["scheme"].lower()
    host, path = "", match["rest"]
    if path.startswith("//"):
        host, slash, tail = path[2:].partition("/")
        host, path = host.strip(_STRIPPED), slash + tail
    if written == _LOCKED:
        written, path = "s3", _LOCK.sub("", path)
    scheme = _CANONICAL_SCHEMES.get(written, written)
    if scheme == "file":
        return _normalize(_ParsedLocation(scheme, "" if host.lower() == "localhost" else host, _decode_path(path)))
    return _normalize(_normalize_azure(_ParsedLocation(scheme, _normalize_host(written, host), path)))


def _normalize_azure(location: _ParsedLocation) -> _ParsedLocation:
    """Return one form for a container of an account. A container without an account in its location keeps its own form."""
    scheme, host, path = location
    if scheme == "https":
        account_host = _AZURE_HOST.fullmatch(host)
        container, slash, rest = path.removeprefix("/").partition("/")
        if account_host is None or not container or set("%?@:#") & set(container):
            return location
        # An https URL is percent-encoded, and its query is a signature.
        decoded = _decode_path(rest.partition("?")[0])
        return (
            location
            if _NO_NAME.search(decoded)
            else _ParsedLocation("abfss", f"{container}@{account_host[1]}.dfs.{account_host[2]}", slash + decoded)
        )
    if scheme not in _AZURE or not host:
        return location
    container, at, name = host.rpartition("@")
    if not at:
        return location._replace(scheme="az")
    account_host = _AZURE_HOST.fullmatch(name)
    return _ParsedLocation("abfss", f"{container}@{account_host[1]}.dfs.{account_host[2]}", path) if account_host else location


def _normalize(location: _ParsedLocation) -> _ParsedLocation:
    path = _fold(location.path) if location.scheme in _FILE_SYSTEMS else location.path
    return location._replace(path=path.rstrip("/"))


def _format(location: _ParsedLocation) -> str:
    scheme, host, path = location
    if scheme == "file":
        # Characters that a second pass would decode or strip stay encoded, so that the function is idempotent. Bytes that are not UTF-8
        # are encoded distinctly.
        return f"file://{host}{_KEPT_ENCODED.sub(_encoded, path or '/')}"
    # A second pass would strip a trailing space; a slash after the space prevents this.
    end = "/" if path.endswith(tuple(_STRIPPED)) or (scheme == "hdfs" and not path) else ""
    return f"{scheme}://{host}{path}{end}"


def _encoded(match: re.Match[str]) -> str:
    if 0xDC80 <= ord(match[0][0]) <= 0xDCFF:
        return quote(match[0], errors="surrogateescape")
    return quote(match[0], safe="", errors="surrogatepass")


def _decode_path(path: str) -> str:
    return unquote(path, errors="surrogateescape")


def _fold(path: str) -> str:
    segments: list[str] = []
    for segment in path.split("/"):
        if segment in ("", "."):
            continue
        if segment == "..":
            del segments[-1:]
        else:
            segments.append(segment)
    return "/" + "/".join(segments)


def _normalize_host(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    canonical_scheme = _CANONICAL_SCHEMES.get(scheme, scheme)
    host = host.lower() if canonical_scheme != "s3" else host
    name, colon, port = host.rpartition(":")
    is_port = bool(colon) and (":" not in name or name.endswith("]"))
    if port and is_port and port in (_DEFAULT_PORTS.get(scheme), _DEFAULT_PORTS.get(canonical_scheme)):
        host = name.rstrip(_STRIPPED)
    return f"{user}{at}{host}"
