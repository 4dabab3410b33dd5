"""The ownership mark: properties that we leave on what we declare, and by which we know it again.

The mark names its own path, so that a copy of the object (with its properties) is not taken for ours: a mark with another path is
no mark at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from federator.model import Path, TableRecord, path_key

PREFIX = "federator."
_INSTANCE, _MIRROR, _ORIGIN, _PATH, _OP = (f"{PREFIX}{name}" for name in ("instance", "mirror", "origin", "path", "op"))


@dataclass(frozen=True, slots=True)
class Mark:
    """Who declared an object: our instance id, the mirror, the origin as ``source$path``, and the operation's id."""

    instance: str
    mirror: str
    origin: str
    op_id: str = ""

    def properties(self, target: Path) -> dict[str, str]:
        """The mark as table properties, bound to the target path."""
        mark = {_INSTANCE: self.instance, _MIRROR: self.mirror, _ORIGIN: self.origin, _PATH: path_key(target)}
        return {**mark, _OP: self.op_id} if self.op_id else mark


def bound_mark(record: TableRecord) -> Mark | None:
    """The mark of an object that carries one bound to its own path, from any instance; None for copies and the unmarked."""
    properties = record.properties
    if properties.get(_PATH) != record.key or not properties.get(_INSTANCE):
        return None
    return Mark(properties[_INSTANCE], properties.get(_MIRROR, ""), properties.get(_ORIGIN, ""), properties.get(_OP, ""))


def unmarked(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties without any mark."""
    return {key: value for key, value in properties.items() if not key.startswith(PREFIX)}
