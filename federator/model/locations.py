"""The canonical form of a storage location: the identity of a Dataset. docs/datasets.md has the rules as a table.

Two catalogs spell one place differently (``file:/x``, ``file:///x/``, ``/x``; ``s3a://b/k``, ``s3://b/k``). The canonical form is
for comparing and grouping only: what is shown, mirrored and opened stays as its catalog wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

_URI = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)$", re.DOTALL)
_SCHEMES = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs", "azure": "az", "file-object-store": "file",
}  # fmt: skip
# Schemes that Lance has no store for, or whose hosts it spells otherwise, by the one that it has.
_OF_LANCE = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "abfss", "abfss": "abfss", "wasb": "abfss", "wasbs": "abfss",
}  # fmt: skip
_DEFAULT_PORTS = {"hdfs": "8020", "http": "80", "https": "443", "abfs": "80", "abfss": "443", "wasb": "80", "wasbs": "443"}
# Object stores keep "a//b" and "a/../b" apart from "a/b": only a file system folds them.
_FILE_SYSTEMS = frozenset({"file", "hdfs"})
_AZURE = frozenset({"abfss", "wasbs", "az"})
# One account answers at two hosts: by the names of blobs, and as a file system.
_AZURE_HOST = re.compile(
    r"([^.@:]+)\.(?:blob|dfs)\.(core\.windows\.net|core\.usgovcloudapi\.net|core\.chinacloudapi\.cn|fabric\.microsoft\.com)"
)
_CONTAINER = re.compile(r"[A-Za-z0-9$_-]+")
# Lance names the table of its commit lock in the query of this scheme; the data lies where s3 would have it.
_LOCKED, _LOCK = "s3+ddb", re.compile(r"\?ddbTableName=[^/?&]*\Z")
_NO_NAME = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_STRIPPED = "".join(map(chr, range(0x21)))
_KEPT_ENCODED = re.compile(r"%|[\ud800-\udfff]|[\x00-\x20]+\Z")


class _Place(NamedTuple):
    """A location taken apart. ``path`` is as its store has it, nothing encoded, with no slash at its end; the root's is empty."""

    scheme: str
    host: str
    path: str

    def holds(self, other: _Place) -> bool:
        """Whether another place is this one or lies below it."""
        return self[:2] == other[:2] and (self.path == other.path or other.path.startswith(self.path + "/"))


@dataclass(frozen=True, slots=True)
class Aliases:
    """Places that are other places under another name (a bucket behind an access point, a mount), as pairs, deepest first."""

    pairs: tuple[tuple[_Place, _Place], ...] = ()

    @classmethod
    def of(cls, prefixes: Mapping[str, str]) -> Aliases:
        """From beginnings of locations and what they stand for. Each says where it ends: none leads into, or lies in, another.

        Raises ValueError that names the offending entry.
        """
        pairs = {_parsed(prefix): _parsed(meant) for prefix, meant in prefixes.items()}
        if len(pairs) < len(prefixes):
            raise ValueError("two entries are about one place")
        for alias, meant in pairs.items():
            for other in pairs:
                if other.holds(meant) or meant.holds(other):
                    raise ValueError(
                        f"{_spelled(alias)} leads to {_spelled(meant)}, and {_spelled(other)} is an alias: say where it ends"
                    )
        return cls(tuple(sorted(pairs.items(), key=lambda pair: len(pair[0].path), reverse=True)))

    def resolved(self, place: _Place) -> _Place:
        for alias, meant in self.pairs:
            if alias.holds(place):
                return _normal(meant._replace(path=meant.path + place.path[len(alias.path) :]))
        return place

    @property
    def prefixes(self) -> list[str]:
        """The canonical beginnings that stand for others."""
        return [_spelled(alias) for alias, _ in self.pairs]


NO_ALIASES = Aliases()


def canonical_location(location: str, aliases: Aliases = NO_ALIASES) -> str:
    """The one spelling of a storage location, or the text itself where it is not an absolute location.

    Idempotent, and never one text for two places. Folds the aliases of schemes, Azure's hosts, case of scheme and host (not of an S3
    bucket), default ports, slashes at the end and, for file systems only, repeated slashes, ``.`` and ``..`` and, in ``file:``,
    percent-encoding. The case of the path is kept. ``aliases`` are followed last. Never raises.
    """
    place = _place(location)
    if place is None:
        return location.strip(_STRIPPED)
    return _spelled(aliases.resolved(place))


def is_location(text: str | None) -> bool:
    """Whether a text names a place at all: an absolute path or ``scheme:/...``."""
    return bool(text) and (str(text).startswith("/") or _URI.match(str(text)) is not None)


def local_path(location: str) -> str | None:
    """The file system path of a ``file`` location on this host, and None for every other one."""
    place = _place(location)
    return place.path or "/" if place is not None and place[:2] == ("file", "") else None


def lance_uri(location: str) -> str:
    """A location as Lance opens it: a path of the file system, else the URI under a scheme that Lance has a store for (``s3a`` →
    ``s3``, ``wasbs`` → ``abfss`` ...), the rest as it is written. What is neither stays the text that it is."""
    path = local_path(location)
    if path is not None:
        return path
    scheme, colon, rest = location.strip(_STRIPPED).partition("://")
    scheme = scheme.lower()
    if colon and (scheme == "https" or _OF_LANCE.get(scheme) == "abfss"):
        return _azure_uri(scheme, rest) or location
    return f"{_OF_LANCE[scheme]}://{rest}" if colon and scheme in _OF_LANCE else location


def _azure_uri(scheme: str, rest: str) -> str | None:
    """What follows the scheme, in the one form that Lance has for a container of an account; None for what is not Azure's."""
    host, slash, key = rest.partition("/")
    container, at, account = host.rpartition("@")
    if scheme == "https":
        container, slash, key = key.partition("?")[0].partition("/")
    elif not at:
        # The account is in the storage options.
        return f"az://{rest}" if _CONTAINER.fullmatch(host) else None
    found = _AZURE_HOST.fullmatch(account.lower())
    return f"abfss://{container}@{found[1]}.dfs.{found[2]}{slash}{key}" if found and container else None


def places_above(location: str) -> list[str]:
    """The canonical locations of the directories that a location lies in, nearest first, down to its bucket or root."""
    place = _place(location)
    found: list[str] = []
    while place is not None and place.path:
        place = _normal(place._replace(path=place.path.rpartition("/")[0]))
        found.append(canonical_location(_spelled(place)))
    return found


def _parsed(location: str) -> _Place:
    place = _place(location)
    if place is None:
        raise ValueError(f"{location!r} is no absolute location")
    return place


def _place(location: str) -> _Place | None:
    if location.startswith("/"):
        return _normal(_Place("file", "", location))
    # What the readers of a URI strip, and no more: a name may start with any other white space.
    text = location.strip(_STRIPPED)
    match = _URI.match(text)
    if match is None:
        return _normal(_Place("file", "", text)) if text.startswith("/") else None
    written = match["scheme"].lower()
    host, path = "", match["rest"]
    if path.startswith("//"):
        host, slash, tail = path[2:].partition("/")
        host, path = host.strip(_STRIPPED), slash + tail
    if written == _LOCKED:
        written, path = "s3", _LOCK.sub("", path)
    scheme = _SCHEMES.get(written, written)
    if scheme == "file":
        return _normal(_Place(scheme, "" if host.lower() == "localhost" else host, _decoded(path)))
    return _normal(_azure(_Place(scheme, _host(written, host), path)))


def _azure(place: _Place) -> _Place:
    """One form for a container of an account; a container whose account only the storage options name stays apart."""
    scheme, host, path = place
    if scheme == "https":
        found = _AZURE_HOST.fullmatch(host)
        container, slash, rest = path.removeprefix("/").partition("/")
        if found is None or not container or set("%?@:#") & set(container):
            return place
        # A URL of the web: encoded, and what follows the question mark is a signature.
        decoded = _decoded(rest.partition("?")[0])
        return place if _NO_NAME.search(decoded) else _Place("abfss", f"{container}@{found[1]}.dfs.{found[2]}", slash + decoded)
    if scheme not in _AZURE or not host:
        return place
    container, at, name = host.rpartition("@")
    if not at:
        return place._replace(scheme="az")
    found = _AZURE_HOST.fullmatch(name)
    return _Place("abfss", f"{container}@{found[1]}.dfs.{found[2]}", path) if found else place


def _normal(place: _Place) -> _Place:
    path = _fold(place.path) if place.scheme in _FILE_SYSTEMS else place.path
    return place._replace(path=path.rstrip("/"))


def _spelled(place: _Place) -> str:
    scheme, host, path = place
    if scheme == "file":
        # Kept encoded where a second pass would decode or strip it, so that it ends at the same text; and what is no UTF-8 stays
        # apart from everything else that is none.
        return f"file://{host}{_KEPT_ENCODED.sub(_encoded, path or '/')}"
    # A space at the end would be stripped the next time; a slash behind it keeps it.
    end = "/" if path.endswith(tuple(_STRIPPED)) or (scheme == "hdfs" and not path) else ""
    return f"{scheme}://{host}{path}{end}"


def _encoded(match: re.Match[str]) -> str:
    if 0xDC80 <= ord(match[0][0]) <= 0xDCFF:
        return quote(match[0], errors="surrogateescape")
    return quote(match[0], safe="", errors="surrogatepass")


def _decoded(path: str) -> str:
    return unquote(path, errors="surrogateescape")


def _fold(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/"):
        if segment in ("", "."):
            continue
        if segment == "..":
            del kept[-1:]
        else:
            kept.append(segment)
    return "/" + "/".join(kept)


def _host(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    host = host.lower() if _SCHEMES.get(scheme, scheme) != "s3" else host
    name, _, port = host.rpartition(":")
    named = ":" not in name or name.endswith("]")
    if port and named and port == _DEFAULT_PORTS.get(scheme):
        host = name.rstrip(_STRIPPED)
    return f"{user}{at}{host}"
