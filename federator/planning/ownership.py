"""Ownership markers: the properties or comment line by which this instance recognises the objects that it declared.

The marker is stored in properties (``federator.instance`` and so on). In a catalog that refuses properties it is the last line of
the comment::

    Orders of the shop
    [federator instance=prod-eu mirror=hive-to-unity origin=lake$sales$orders path=main$sales$orders op=5f0c]

The marker names its own path, so that a copy of the object (with its properties) does not count as owned: a marker with another
path is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from federator.model import Path, Record, TableRecord, parse_path_key, path_key

PREFIX = "federator."
#: the beginning of a marker in a comment
COMMENT_PREFIX = "[federator "
_NAMES = ("instance", "mirror", "origin", "path", "via", "op")
# Values are percent-encoded, so no value contains a space or a bracket.
_COMMENT = re.compile(r"\s*\[federator((?: [a-z]+=[^\s\[\]]*)+)\]\s*\Z")
_READABLE = "$:,/"


@dataclass(frozen=True, slots=True)
class OwnershipMarker:
    """The declarer of an object: instance id, mirror, first origin as ``source$path``, and operation id.

    ``via`` are the sources that a forwarded copy passed after its first one, in order. A copy never returns to one of them.
    """

    instance: str
    mirror: str
    origin: str
    op_id: str = ""
    via: tuple[str, ...] = ()

    @property
    def visited_sources(self) -> tuple[str, ...]:
        """All sources of the table: its first one, and those that forwarded it."""
        return (self.origin.partition("$")[0], *self.via)

    def to_properties(self, target: Path) -> dict[str, str]:
        """Return the marker as table properties, bound to the target path."""
        return {f"{PREFIX}{name}": value for name, value in self._values(target).items()}

    def to_comment(self, target: Path) -> str:
        """Return the marker as a comment line, bound to the target path."""
        return (
            f"{COMMENT_PREFIX}{' '.join(f'{name}={quote(value, _READABLE)}' for name, value in self._values(target).items())}]"
        )

    def _values(self, target: Path) -> dict[str, str]:
        values = (self.instance, self.mirror, self.origin, path_key(target), ",".join(self.via), self.op_id)
        return {name: value for name, value in zip(_NAMES, values, strict=True) if value or name not in ("via", "op")}


def find_bound_marker(record: Record) -> OwnershipMarker | None:
    """Return an object's marker that is bound to its own path, from any instance. None for copies and unmarked objects.

    Malformed markers are ignored, never an error.
    """
    return _parse_bound_marker(_property_values(record), record.key) or _parse_bound_marker(
        _comment_values(record.doc), record.key
    )


def find_origin_marker(record: Record) -> OwnershipMarker | None:
    """Return the marker of an object that is read as an origin. Its path and the object's are equal, or one is the end of the other.

    A copy has further names in front if it is read through another federator (its source), or through Hive 3 instead of Hive 2.
    """
    for values in (_property_values(record), _comment_values(record.doc)):
        path = parse_path_key(values.get("path", ""))
        shared = min(len(path), len(record.path))
        if shared and path[-shared:] == record.path[-shared:]:
            return _parse_marker(values)
    return None


def describe_unbound_marker(record: Record) -> str:
    """Tell why an object has no bound marker: it has none, or that of another path, as a renamed or copied object has."""
    path = _property_values(record).get("path") or _comment_values(record.doc).get("path")
    return "its ownership marker is missing" if path is None else f"its ownership marker is that of {path}"


def with_operation_id(record: TableRecord, op_id: str) -> TableRecord:
    """Return a record whose marker, in properties or comment, has this operation id. A record without marker is returned unchanged."""
    marker = find_bound_marker(record)
    if marker is None:
        return record
    marker = replace(marker, op_id=op_id)
    if has_comment_marker(record):
        return replace(record, doc=append_comment_marker(strip_comment_marker(record.doc), marker, record.path))
    return replace(record, properties={**record.properties, **marker.to_properties(record.path)})


def has_comment_marker(record: Record) -> bool:
    """Tell whether an object's bound marker is in its comment."""
    return _parse_bound_marker(_comment_values(record.doc), record.key) is not None


def append_comment_marker(doc: str | None, marker: OwnershipMarker, target: Path) -> str:
    """Return a comment that ends with the marker."""
    return f"{doc}\n{marker.to_comment(target)}" if doc else marker.to_comment(target)


def strip_comment_marker(doc: str | None) -> str | None:
    """Return a comment without any marker. None if it is then empty."""
    return (_COMMENT.sub("", doc) if doc else doc) or None


def strip_marker_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without those of a marker."""
    return {key: value for key, value in properties.items() if not key.startswith(PREFIX)}


def _property_values(record: Record) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in record.properties.items() if key.startswith(PREFIX)}


def _parse_bound_marker(values: Mapping[str, str], key: str) -> OwnershipMarker | None:
    return _parse_marker(values) if values.get("path") == key else None


def _parse_marker(values: Mapping[str, str]) -> OwnershipMarker | None:
    if not values.get("instance"):
        return None
    via = tuple(source for source in values.get("via", "").split(",") if source)
    return OwnershipMarker(values["instance"], values.get("mirror", ""), values.get("origin", ""), values.get("op", ""), via)


def _comment_values(doc: str | None) -> dict[str, str]:
    match = _COMMENT.search(doc) if doc else None
    pairs = (pair.partition("=") for pair in match[1].split()) if match else ()
    return {name: unquote(value) for name, _, value in pairs}
