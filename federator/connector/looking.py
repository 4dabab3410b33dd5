"""What lies at a location: a Lance table, one that was only declared, something else, nothing, or a store that does not answer.

Opening may hang with its store: called in processes that can be ended (``federator.connector.child``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from federator.model import digest_of, is_location, lance_uri, local_path


def look(location: str, storage: dict[str, str], session: Any = None) -> dict[str, Any]:
    """What is at a location: a row of ``answer``'s fields. ``session`` is the ``lance.Session`` of whoever looks at many.

    ``state`` is ``valid``, with what the newest manifest says (the only one that is read), or ``declared_only``, ``empty``,
    ``missing``, ``not_lance``, ``corrupt``, ``denied``, ``unreachable``, with a ``message``.
    """
    path = local_path(location)
    if path is None and not is_location(location):
        return answer("not_lance", f"not a location: {location[:200]!r}")
    import lance

    try:
        return _described(lance.dataset(path or lance_uri(location), storage_options=storage or None, session=session))
    except (ValueError, OSError, RuntimeError) as error:
        if path is not None:
            return _look_locally(Path(path)) or _classify_locally(error)
        return _look_below(location, storage) if _NOTHING_THERE.search(str(error)) else _classify(error, location)


def _described(dataset: Any) -> dict[str, Any]:
    version = dataset.get_version()
    columns = json.dumps(
        [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in dataset.schema]
    )
    return answer("valid", None) | {
        "version": version["version"],
        "rows": dataset.count_rows(),
        "fragments": int(version["metadata"]["total_fragments"]),
        "size": int(version["metadata"]["total_files_size"]),
        "indices": len(dataset.describe_indices()),
        "schema": columns,
        "fingerprint": digest_of(columns),
        "format": dataset.data_storage_version,
        "changed_at": version["timestamp"].timestamp(),
    }


def _look_locally(path: Path) -> dict[str, Any] | None:
    """The state of a directory that is no table; None where it has Lance's ``_versions``."""
    try:
        names = {entry.name for entry in os.scandir(path)}
        data = [entry.name for entry in os.scandir(path / "data")] if "data" in names else []
    except FileNotFoundError:
        return answer("missing", "no such directory")
    except NotADirectoryError:
        return answer("not_lance", "a file, not a directory")
    except PermissionError:
        return answer("denied", "the directory cannot be read")
    except OSError as error:
        return answer("unreachable", f"the directory cannot be read: {error.strerror}")
    return None if "_versions" in names else _without_versions([*names, *(f"data/{name}" for name in data)])


def _look_below(location: str, storage: dict[str, str]) -> dict[str, Any]:
    """What an object store has where there is no manifest, with Lance's own client, which knows the storage options."""
    from lance.file import LanceFileSession

    try:
        names = LanceFileSession(lance_uri(location), storage_options=storage or None).list()
    except (ValueError, OSError, RuntimeError) as error:
        return _classify(error, location)
    return _without_versions(names) if names else answer("missing", "nothing is there")


def _without_versions(names: Sequence[str]) -> dict[str, Any]:
    """The state of a directory without manifests, by what is in it: names, or paths from it."""
    if any(name.partition("/")[0] in _OF_LANCE or _DATA_FILE.fullmatch(name) for name in names):
        return answer("corrupt", "Lance's files without a manifest")
    if ".lance-reserved" in names:
        return answer("declared_only", "declared, and no data written yet")
    # An object store's own sign for a directory is an object without a name.
    if not any(names):
        return answer("empty", "an empty directory")
    return answer("not_lance", "a directory without Lance's _versions")


_OF_LANCE = frozenset({"_versions", "_transactions", "_indices", "_deletions"})
_DATA_FILE = re.compile(r"data/[^/]+\.lance")
_NOTHING_THERE = re.compile(r"Dataset at path .* was not found: ", re.DOTALL)
# pylance raises ValueError and OSError for everything. A store's own code and status are in the text in a fixed form; what the
# client says without having had an answer is matched last, and never against the table's own name.
_CODE = re.compile(r"<Code>(\w+)</Code>|\"code\":\s*\"(\w+)\"")
_STATUS = re.compile(r"status code: (\d{3})")
_CODES = {
    "AccessDenied": "denied", "InvalidAccessKeyId": "denied", "SignatureDoesNotMatch": "denied", "ExpiredToken": "denied",
    "InvalidToken": "denied", "AllAccessDisabled": "denied", "NoSuchBucket": "missing", "NoSuchKey": "missing",
    "ContainerNotFound": "missing", "AuthorizationFailure": "denied", "AuthenticationFailed": "denied", "SlowDown": "unreachable",
}  # fmt: skip
_TEXTS = (
    ("denied", ("permission denied", "unauthorized")),
    ("not_lance", ("no object store provider", "unknown scheme", "invalid url")),
    ("missing", ("not found", "no such file")),
    (
        "unreachable",
        ("error sending request", "resolve region", "connection", "timed out", "timeout", "dns", "credential", "error performing"),
    ),
)  # fmt: skip


def _classify_locally(error: Exception) -> dict[str, Any]:
    # Whatever is missing below "_versions" was lost.
    denied = isinstance(error, PermissionError) or "(os error 13)" in str(error)
    return answer("denied" if denied else "corrupt", _first_line(error))


def _classify(error: Exception, location: str) -> dict[str, Any]:
    return answer(state_of(error, str(error), location), _first_line(error))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:500]


def state_of(error: Exception, text: str, location: str) -> str:
    """The state that a failure at a location tells of; ``corrupt`` where nothing says better."""
    if isinstance(error, PermissionError):
        return "denied"
    if isinstance(error, TimeoutError | ConnectionError):
        return "unreachable"
    for code in _CODE.finditer(text):
        if (known := _CODES.get(code[1] or code[2])) is not None:
            return known
    if status := _STATUS.search(text):
        return {"401": "denied", "403": "denied", "404": "missing"}.get(status[1], "unreachable")
    path = location.partition("://")[2].strip("/")
    told = text.replace(path, "").replace(path.partition("/")[2], "").lower() if "/" in path else text.lower()
    return next((state for state, words in _TEXTS if any(word in told for word in words)), "corrupt")


def answer(state: str, message: str | None) -> dict[str, Any]:
    """Columns of ``dataset``: ``size`` in bytes of the data files, ``changed_at`` in seconds since the epoch, ``format`` the version of
    Lance's file format, ``fingerprint`` a digest of the schema; all None but for what is valid."""
    nothing = dict.fromkeys(
        ("version", "rows", "fragments", "size", "indices", "schema", "fingerprint", "format", "changed_at")
    )
    return {"state": state, "message": message, **nothing}
