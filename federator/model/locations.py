"""The canonical form of a storage location: the identity of a Dataset.

Two catalogs spell one place differently (``file:/x``, ``file:///x/``, ``/x``; ``s3a://b/k``, ``s3://b/k``). The canonical form is
for comparing and grouping only: what is shown, mirrored and opened stays as its catalog wrote it.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_URI = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)$", re.DOTALL)
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_DEFAULT_PORTS = {"hdfs": "8020", "http": "80", "https": "443"}
# Object stores keep "a//b" and "a/../b" apart from "a/b": only a file system folds them.
_FILE_SYSTEMS = frozenset({"file", "hdfs"})
_STRIPPED = "".join(map(chr, range(0x21)))
_LAST_SPACE = re.compile(r"[\x00-\x20]+\Z")
_KEPT_ENCODED = re.compile(r"%|[\ud800-\udfff]|[\x00-\x20]+\Z")


def canonical_location(location: str) -> str:
    """The one spelling of a storage location, or the text itself where it is not an absolute location.

    Idempotent. Folds scheme aliases, case of scheme and host, default ports, trailing slashes and, for file systems only,
    repeated slashes, ``.`` and ``..`` and percent-encoding. The case of the path is kept. Never raises.
    """
    if location.startswith("/"):
        return _file(location)
    # What the readers of a URI strip, and no more: a name may start with any other white space.
    text = location.strip(_STRIPPED)
    match = _URI.match(text)
    if match is None:
        return _file(text) if text.startswith("/") else text
    scheme = match["scheme"].lower()
    scheme = _ALIASES.get(scheme, scheme)
    rest = match["rest"]
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        host, path = host.strip(_STRIPPED), slash + tail
    if scheme == "file":
        return _file(_decoded(path), "" if host.lower() == "localhost" else host)
    host = _host(scheme, host)
    path = _fold(path) if scheme in _FILE_SYSTEMS else path.rstrip("/")
    return f"{scheme}://{host}{_LAST_SPACE.sub(_encoded, path)}"


def is_location(text: str | None) -> bool:
    """Whether a text names a place at all: an absolute path or ``scheme:/...``."""
    return bool(text) and (str(text).startswith("/") or _URI.match(str(text)) is not None)


def local_path(location: str) -> str | None:
    """The file system path of a ``file`` location on this host, and None for every other one."""
    canonical = canonical_location(location)
    return _decoded(canonical.removeprefix("file://")) if canonical.startswith("file:///") else None


def _file(path: str, host: str = "") -> str:
    # Kept encoded where a second pass would decode or strip it, so that it ends at the same text; and what is no UTF-8 stays
    # apart from everything else that is none.
    return f"file://{host}{_KEPT_ENCODED.sub(_encoded, _fold(path))}"


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
    host = host.lower() if scheme != "s3" else host
    name, _, port = host.rpartition(":")
    named = ":" not in name or name.endswith("]")
    if port and named and port == _DEFAULT_PORTS.get(scheme):
        host = name.rstrip(_STRIPPED)
    return f"{user}{at}{host}"
