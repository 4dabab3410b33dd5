"""NamespaceRecord and TableRecord: what a catalog says of one object, and what we want it to say.

The same two frozen types stand for the observed and the desired state, so that a Change is a pair of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from federator.model.digests import digest_of, stable_properties
from federator.model.identifiers import Path, path_key
from federator.model.locations import canonical_location

Properties = Mapping[str, str]


class Kind(StrEnum):
    """What a record is. A table that its catalog manages, or that could be listed but not described, is still there."""

    NAMESPACE = "namespace"
    TABLE = "table"
    MANAGED_TABLE = "managed_table"
    UNDESCRIBED = "undescribed"


@dataclass(frozen=True)
class NamespaceRecord:
    """A catalog, database, schema or directory of one source.

    ``path`` is relative to the source's root. ``properties`` are the user's, without those that the catalog derives.
    """

    source: str
    path: Path
    properties: Properties = field(default_factory=dict)
    location: str | None = None
    doc: str | None = None
    owner: str | None = None
    native_id: str | None = None

    @property
    def kind(self) -> Kind:
        return Kind.NAMESPACE

    @cached_property
    def key(self) -> str:
        return path_key(self.path)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, without volatile fields; hexadecimal."""
        return digest_of(_content(self))


@dataclass(frozen=True)
class TableRecord:
    """A declaration of a Lance table in one source.

    ``properties`` are the catalog's parameters less those that only identify the table as Lance (``table_type``, ``EXTERNAL``).
    ``schema`` is the catalog's own column list as canonical JSON (``[{"name", "type", "doc"?}, ...]``, native type names).
    ``native_id`` changes when the object is recreated; ``version`` is a compare-and-set token and changes with each write.
    ``location`` is None only where the catalog has none. ``problem`` says why an ``undescribed`` table could not be described.
    """

    source: str
    path: Path
    location: str | None = None
    properties: Properties = field(default_factory=dict)
    doc: str | None = None
    owner: str | None = None
    schema: str | None = None
    native_id: str | None = None
    version: str | None = None
    kind: Kind = Kind.TABLE
    problem: str | None = None

    @cached_property
    def key(self) -> str:
        return path_key(self.path)

    @cached_property
    def canonical(self) -> str | None:
        """The identity of the Dataset that this declares, or None without a location."""
        return canonical_location(self.location) if self.location else None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, without volatile fields and ``version``; hexadecimal."""
        return digest_of([*_content(self), self.schema, self.problem])


Record = NamespaceRecord | TableRecord


def _content(record: Record) -> list[object]:
    location = canonical_location(record.location) if record.location else None
    return [
        record.kind,
        list(record.path),
        location,
        stable_properties(record.properties),
        record.doc,
        record.owner,
        record.native_id,
    ]
