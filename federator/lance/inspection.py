"""Inspection of one location: open it and classify its content as a verification state.

Opening a location can hang if its store hangs, so inspections run in processes that can be killed
(``federator.runtime.child_process``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federator.connector import PermissionDenied, ServiceUnavailable
from federator.lance.columns import list_columns
from federator.lance.foreign_locations import ForeignLocationsFound, require_own_bases, require_own_files
from federator.lance.pinned_directory import pin_directory, show_location
from federator.model import digest_of, is_location, local_path, to_lance_uri
from federator.runtime.text import first_line

#: the state of a table that is not read, because opening it would read what is elsewhere
REFERS_OUTSIDE = "refers_outside"
# The message does not name the other location: not everybody who may see the table may know it.
_OUTSIDE_MESSAGE = "the table refers to data outside its location, which its source does not list in allowed_bases"


@dataclass(frozen=True, slots=True)
class Inspection:
    """The verification state of a location. Each field is a column of the table ``dataset``.

    Only a valid table has facts: those of its newest version. The other states have a ``message``.
    """

    #: ``valid``, ``declared_only``, ``empty``, ``missing``, ``not_lance``, ``corrupt``, ``denied``, ``unreachable``, ``refers_outside``
    state: str
    message: str | None
    version: int | None = None
    rows: int | None = None
    fragments: int | None = None
    #: of the data files, in bytes
    size: int | None = None
    #: the number of indices
    indices: int | None = None
    #: JSON of the columns, as ``lance.columns.list_columns`` returns them
    schema: str | None = None
    #: a digest of ``schema``
    fingerprint: str | None = None
    #: the version of Lance's file format
    format: str | None = None
    #: the time of the version, in seconds since the epoch
    changed_at: float | None = None


def inspect_location(
    location: str,
    storage: dict[str, str],
    session: Any = None,
    *,
    allowed: Sequence[str] | None = (),
    mounts: Sequence[str] = (),
) -> Inspection:
    """Open a location and classify its content. Of a table, only the newest manifest is read.

    ``storage`` are the storage options. ``session`` is a ``lance.Session`` that several inspections share.

    A table that refers to locations outside it is not read, except for those below one of ``allowed``; None allows all of them. The
    result is shown to everybody who may see the table, and not all of them may see what is there. ``mounts``: ``require_own_files``.
    """
    path = local_path(location)
    if path is None and not is_location(location):
        return Inspection("not_lance", f"not a location: {location[:200]!r}")
    import lance

    try:
        with pin_directory(location) as pinned:
            if allowed is not None:
                require_own_files(location, allowed, mounts, pinned)
            # A session knows tables by their paths, and other directories will be pinned at the same one.
            uri, shared = (to_lance_uri(location), session) if pinned is None else (pinned.path, None)
            dataset = lance.dataset(uri, storage_options=storage or None, session=shared)
            if allowed is not None:
                require_own_bases(location, dataset, allowed, pinned)
            return _describe_dataset(dataset)
    except ForeignLocationsFound:
        return Inspection(REFERS_OUTSIDE, _OUTSIDE_MESSAGE)
    except (PermissionDenied, ServiceUnavailable) as error:
        return Inspection("denied" if isinstance(error, PermissionDenied) else "unreachable", error.message)
    except (ValueError, OSError, RuntimeError) as error:
        if path is not None:
            return _inspect_local_directory(Path(path)) or _classify_local_error(error, location)
        return (
            _inspect_object_prefix(location, storage)
            if _NOT_FOUND_TEXT.search(str(error))
            else _classify_error(error, location)
        )


def _describe_dataset(dataset: Any) -> Inspection:
    version = dataset.get_version()
    columns = json.dumps(list_columns(dataset.schema))
    return Inspection(
        "valid",
        message=None,
        version=version["version"],
        rows=dataset.count_rows(),
        fragments=int(version["metadata"]["total_fragments"]),
        size=int(version["metadata"]["total_files_size"]),
        indices=len(dataset.describe_indices()),
        schema=columns,
        fingerprint=digest_of(columns),
        format=dataset.data_storage_version,
        changed_at=version["timestamp"].timestamp(),
    )


def _inspect_local_directory(path: Path) -> Inspection | None:
    """Return the state of a directory that is not a table. None if it has Lance's ``_versions``."""
    try:
        names = {entry.name for entry in os.scandir(path)}
        data = [entry.name for entry in os.scandir(path / "data")] if "data" in names else []
    except FileNotFoundError:
        return Inspection("missing", "no such directory")
    except NotADirectoryError:
        return Inspection("not_lance", "a file, not a directory")
    except PermissionError:
        return Inspection("denied", "the directory cannot be read")
    except OSError as error:
        return Inspection("unreachable", f"the directory cannot be read: {error.strerror}")
    return None if "_versions" in names else _classify_contents([*names, *(f"data/{name}" for name in data)])


def _inspect_object_prefix(location: str, storage: dict[str, str]) -> Inspection:
    """Return the state of a prefix without a manifest. Lance's own client lists it, because it supports all storage options."""
    from lance.file import LanceFileSession

    try:
        names = LanceFileSession(to_lance_uri(location), storage_options=storage or None).list()
    except (ValueError, OSError, RuntimeError) as error:
        return _classify_error(error, location)
    return _classify_contents(names) if names else Inspection("missing", "nothing is there")


def _classify_contents(names: Sequence[str]) -> Inspection:
    """Return the state of a directory without manifests, by the names or relative paths in it."""
    if any(name.partition("/")[0] in _LANCE_DIRECTORIES or _DATA_FILE.fullmatch(name) for name in names):
        return Inspection("corrupt", "Lance's files without a manifest")
    if ".lance-reserved" in names:
        return Inspection("declared_only", "declared, and no data written yet")
    # Some object stores mark a directory by an object with an empty name.
    if not any(names):
        return Inspection("empty", "an empty directory")
    return Inspection("not_lance", "a directory without Lance's _versions")


_LANCE_DIRECTORIES = frozenset({"_versions", "_transactions", "_indices", "_deletions"})
_DATA_FILE = re.compile(r"data/[^/]+\.lance")
_NOT_FOUND_TEXT = re.compile(r"Dataset at path .* was not found: ", re.DOTALL)
_SOURCE_POSITION = re.compile(r",? ?(location: )?/[\w./-]+\.rs:\d+(:\d+)?")
# pylance raises ValueError and OSError for all failures. The code and the status of a store have a fixed form in the text. Messages of
# the client without a response are matched last, and never against the table's own name.
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

_REMEDIES = {
    "denied": "check the permissions of the source's storage credentials",
    "missing": "check the bucket's name and the endpoint",
    "unreachable": "check the endpoint and the state of the store",
}

#: characters of a stored message
_MAX_MESSAGE_LENGTH = 500


def _classify_local_error(error: Exception, location: str) -> Inspection:
    # The directory has "_versions", so a missing file below it means lost data.
    if _NOT_FOUND_TEXT.search(str(error)):
        return Inspection("corrupt", "its _versions has no manifest that can be read: restore the table's files from a backup")
    denied = isinstance(error, PermissionError) or "(os error 13)" in str(error)
    return Inspection("denied" if denied else "corrupt", _describe_error(error, location))


def _classify_error(error: Exception, location: str) -> Inspection:
    text = str(error)
    state = state_from_error(error, text, location)
    code, status = _CODE.search(text), _STATUS.search(text)
    responses = [code[1] or code[2]] if code is not None else []
    responses += [f"status {status[1]}"] if status is not None else []
    if not responses or state not in _REMEDIES:
        return Inspection(state, _describe_error(error, location))
    return Inspection(state, f"the store responded with {', '.join(responses)}: {_REMEDIES[state]}")


def _describe_error(error: Exception, location: str) -> str:
    text = strip_source_positions(first_line(error, _MAX_MESSAGE_LENGTH)).removeprefix("LanceError(IO): ")
    return show_location(text, location)


def strip_source_positions(text: str) -> str:
    """Return a message of Lance without positions in its source code, which help no user."""
    return _SOURCE_POSITION.sub("", text).strip()


def state_from_error(error: Exception, text: str, location: str = "") -> str:
    """Return the state for a failure with a message; ``corrupt`` if the failure has no known form.

    Parts of ``location`` in the message are ignored.
    """
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
    message = text.replace(path, "").replace(path.partition("/")[2], "").lower() if "/" in path else text.lower()
    return next((state for state, words in _TEXTS if any(word in message for word in words)), "corrupt")
