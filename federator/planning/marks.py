"""The ownership mark: what we leave on everything that we declare, and by which we know it again.

It lives in properties (``federator.instance`` and so on). Where a catalog refuses properties it is the last line of the comment::

    Orders of the shop
    [federator instance=prod-eu mirror=hive-to-unity origin=lake$sales$orders path=main$sales$orders op=5f0c]

The mark names its own path, so that a copy of the object (with its properties) is not taken for ours: a mark with another path is
no mark at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from federator.model import Path, Record, TableRecord, path_key

PREFIX = "federator."
_NAMES = ("instance", "mirror", "origin", "path", "via", "op")
# Values are percent-encoded, so that none holds a space or a bracket.
_COMMENT = re.compile(r"\s*\[federator((?: [a-z]+=[^\s\[\]]*)+)\]\s*\Z")
_READABLE = "$:,/"


@dataclass(frozen=True, slots=True)
class Mark:
    """Who declared an object: our instance id, the mirror, the first origin as ``source$path``, and the operation's id.

    ``via`` are the sources that a forwarded copy passed after its first one, in order: it never returns to one of them.
    """

    instance: str
    mirror: str
    origin: str
    op_id: str = ""
    via: tuple[str, ...] = ()

    @property
    def passed(self) -> tuple[str, ...]:
        """Every source where the table has been: its first one, and those that forwarded it."""
        return (self.origin.partition("$")[0], *self.via)

    def properties(self, target: Path) -> dict[str, str]:
        """The mark as table properties, bound to the target path."""
        return {f"{PREFIX}{name}": value for name, value in self._values(target).items()}

    def comment(self, target: Path) -> str:
        """The mark as a line of text, bound to the target path."""
        return f"[federator {' '.join(f'{name}={quote(value, _READABLE)}' for name, value in self._values(target).items())}]"

    def _values(self, target: Path) -> dict[str, str]:
        values = (self.instance, self.mirror, self.origin, path_key(target), ",".join(self.via), self.op_id)
        return {name: value for name, value in zip(_NAMES, values, strict=True) if value or name not in ("via", "op")}


def bound_mark(record: Record) -> Mark | None:
    """The mark of an object that carries one bound to its own path, from any instance; None for copies and the unmarked.

    Raises nothing: what only looks like a mark is none.
    """
    properties = {key.removeprefix(PREFIX): value for key, value in record.properties.items() if key.startswith(PREFIX)}
    return _bound(properties, record.key) or _bound(_in_comment(record.doc), record.key)


def stamped(record: TableRecord, op_id: str) -> TableRecord:
    """A record with its mark bound to an operation, wherever the mark is; without a mark, as it is."""
    mark = bound_mark(record)
    if mark is None:
        return record
    mark = replace(mark, op_id=op_id)
    if marked_in_comment(record):
        return replace(record, doc=with_comment(plain_doc(record.doc), mark, record.path))
    return replace(record, properties={**record.properties, **mark.properties(record.path)})


def marked_in_comment(record: Record) -> bool:
    """Whether an object's bound mark is in its comment."""
    return _bound(_in_comment(record.doc), record.key) is not None


def with_comment(doc: str | None, mark: Mark, target: Path) -> str:
    """A comment that ends with the mark."""
    return f"{doc}\n{mark.comment(target)}" if doc else mark.comment(target)


def plain_doc(doc: str | None) -> str | None:
    """A comment without any mark; None if nothing is left."""
    return (_COMMENT.sub("", doc) if doc else doc) or None


def unmarked(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties without any mark."""
    return {key: value for key, value in properties.items() if not key.startswith(PREFIX)}


def _bound(values: Mapping[str, str], key: str) -> Mark | None:
    if values.get("path") != key or not values.get("instance"):
        return None
    via = tuple(source for source in values.get("via", "").split(",") if source)
    return Mark(values["instance"], values.get("mirror", ""), values.get("origin", ""), values.get("op", ""), via)


def _in_comment(doc: str | None) -> dict[str, str]:
    found = _COMMENT.search(doc) if doc else None
    pairs = (pair.partition("=") for pair in found[1].split()) if found else ()
    return {name: unquote(value) for name, _, value in pairs}
