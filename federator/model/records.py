"""Records: the typed content of one namespace or one table declaration in a catalog.

The same frozen types represent the observed and the desired state, so a change is a pair of records.
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
    """The kind of a record. A table that its catalog manages, or that could not be described, has a kind of its own."""

    NAMESPACE = "namespace"
    TABLE = "table"
    MANAGED_TABLE = "managed_table"
    UNDESCRIBED = "undescribed"


@dataclass(frozen=True)
class NamespaceRecord:
    """A catalog, database, schema or directory of one source.

    ``path`` starts below the source. ``properties`` are those set by users, without those that the catalog derives.
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
        """Return the SHA-256 of the content without volatile properties (``digests``), as hexadecimal text."""
        return digest_of(_digest_content(self, _canonical(self.location)))


@dataclass(frozen=True)
class TableRecord:
    """A declaration of a Lance table in one source.

    ``properties`` are the catalog's parameters without those that only identify the table as Lance (``table_type``, ``EXTERNAL``).
    ``schema`` is the catalog's column list as canonical JSON (``[{"name", "type", "doc"?}, ...]``, native type names).
    ``native_id`` changes when the object is recreated. ``version`` is a compare-and-set token and changes with each write.
    ``location`` is None only if the catalog has none. ``problem`` is the reason why an ``undescribed`` table could not be described,
    or why a managed table is read-only. A managed table without a problem is not listed as a Lance table.
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

    @property
    def is_read_only(self) -> bool:
        """Whether this is a managed table that is listed and described, and that nothing here changes."""
        return self.kind is Kind.MANAGED_TABLE and self.problem is not None

    @cached_property
    def canonical(self) -> str | None:
        """Return the canonical location, which identifies the dataset. None without a location."""
        return _canonical(self.location)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the content without volatile properties (``digests``) and ``version``, as hexadecimal text."""
        return digest_of([*_digest_content(self, self.canonical), self.schema, self.problem])


Record = NamespaceRecord | TableRecord


def _canonical(location: str | None) -> str | None:
    return canonical_location(location) if location else None


def _digest_content(record: Record, canonical: str | None) -> list[object]:
    return [
        record.kind,
        list(record.path),
        canonical,
        stable_properties(record.properties),
        record.doc,
        record.owner,
        record.native_id,
    ]
