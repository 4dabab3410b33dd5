"""Drift: persistent differences between catalogs, mirrors or storage."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DriftSeverity(StrEnum):
    """Severity: ``high`` loses data or hides it from readers, ``medium`` can mislead readers, ``low`` has no effect on readers."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class DriftKind(StrEnum):
    """The kinds of drift. docs/explanation/datasets.md explains each."""

    LOCATION_DIFFERS = "location_differs"
    PROPERTIES_DIFFER = "properties_differ"
    SCHEMA_DIFFERS = "schema_differs"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    DANGLING_MIRROR = "dangling_mirror"
    NAME_CLASH = "name_clash"
    ORPHAN = "orphan"

    @property
    def severity(self) -> DriftSeverity:
        return _SEVERITY[self]


_SEVERITY = {
    DriftKind.LOCATION_DIFFERS: DriftSeverity.HIGH,
    DriftKind.PROPERTIES_DIFFER: DriftSeverity.LOW,
    DriftKind.SCHEMA_DIFFERS: DriftSeverity.MEDIUM,
    DriftKind.MISSING: DriftSeverity.HIGH,
    DriftKind.DUPLICATE: DriftSeverity.MEDIUM,
    DriftKind.DANGLING_MIRROR: DriftSeverity.HIGH,
    DriftKind.NAME_CLASH: DriftSeverity.MEDIUM,
    DriftKind.ORPHAN: DriftSeverity.MEDIUM,
}


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference, identified by kind, subject and other.

    ``subject`` is the object id of a table of ``source``. ``other`` is what it differs from: another object id, or a location. An
    orphan belongs to no catalog: its ``source`` is empty, ``subject`` is the location, and ``other`` is the storage root.
    """

    kind: DriftKind
    source: str
    subject: str
    other: str = ""
    detail: str = ""

    @property
    def severity(self) -> DriftSeverity:
        return self.kind.severity

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.kind.value, self.subject, self.other)
