"""The canonical form of a storage location: the identity of a Dataset.

Two catalogs spell one place differently (``file:/x``, ``file:///x/``, ``/x``; ``s3a://b/k``, ``s3://b/k``). The canonical form is
for comparing and grouping only: what is shown, mirrored and opened stays as its catalog wrote it.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

_URI = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)$", re.DOTALL)
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_DEFAULT_PORTS = {"hdfs": "8020", "http": "80", "https": "443"}
# Object stores keep "a//b" and "a/../b" apart from "a/b": only a file system folds them.
_FILE_SYSTEMS = frozenset({"file", "hdfs"})


def canonical_location(location: str) -> str:
    """The one spelling of a storage location, or the text itself where it is not an absolute location.

    Idempotent. Folds scheme aliases, case of scheme and host, default ports, trailing slashes and, for file systems only,
    repeated slashes, ``.`` and ``..`` and percent-encoding. The case of the path is kept. Never raises.
    """
    text = location.strip()
    if text.startswith("/"):
        return _file(text)
    match = _URI.match(text)
    if match is None:
        return text
    scheme = match["scheme"].lower()
    scheme = _ALIASES.get(scheme, scheme)
    rest = match["rest"]
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        path = slash + tail
    if scheme == "file":
        return _file(unquote(path) if "%" in path else path)
    host = _host(scheme, host)
    return f"{scheme}://{host}{_fold(path) if scheme in _FILE_SYSTEMS else path.rstrip('/')}"


def is_location(text: str | None) -> bool:
    """Whether a text names a place at all: an absolute path or ``scheme:/...``."""
    return bool(text) and (str(text).startswith("/") or _URI.match(str(text)) is not None)


def local_path(location: str) -> str | None:
    """The file system path of a ``file`` location, and None for every other scheme."""
    canonical = canonical_location(location)
    return unquote(canonical.removeprefix("file://")) if canonical.startswith("file://") else None


def _file(path: str) -> str:
    # Kept encoded so that a second pass, which decodes, ends at the same text.
    return "file://" + _fold(path).replace("%", "%25")


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
    default = _DEFAULT_PORTS.get(scheme)
    if default and host.endswith(f":{default}"):
        host = host[: -len(default) - 1]
    return f"{user}{at}{host}"
