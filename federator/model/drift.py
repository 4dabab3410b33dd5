"""Drift: where catalogs, or a catalog and its storage, have come to say different things."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much it matters: ``high`` loses or hides data from readers, ``medium`` will mislead someone, ``low`` is untidy."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class DriftKind(StrEnum):
    """What has drifted; docs/datasets.md explains each."""

    LOCATION_DIFFERS = "location_differs"
    PROPERTIES_DIFFER = "properties_differ"
    SCHEMA_DIFFERS = "schema_differs"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    DANGLING_MIRROR = "dangling_mirror"
    NAME_CLASH = "name_clash"
    ORPHAN = "orphan"

    @property
    def severity(self) -> Severity:
        return _SEVERITY[self]


_SEVERITY = {
    DriftKind.LOCATION_DIFFERS: Severity.HIGH,
    DriftKind.PROPERTIES_DIFFER: Severity.LOW,
    DriftKind.SCHEMA_DIFFERS: Severity.MEDIUM,
    DriftKind.MISSING: Severity.HIGH,
    DriftKind.DUPLICATE: Severity.MEDIUM,
    DriftKind.DANGLING_MIRROR: Severity.HIGH,
    DriftKind.NAME_CLASH: Severity.MEDIUM,
    DriftKind.ORPHAN: Severity.MEDIUM,
}


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference. ``source`` is the source of ``subject``, a table's path from the tree's root; ``other`` is what it differs
    from: another path, or a location. Of an orphan, which is no catalog's, ``source`` is empty, ``subject`` the location and ``other``
    the root that it was found under. The three that make its identity are kind, subject and other."""

    kind: DriftKind
    source: str
    subject: str
    other: str = ""
    detail: str = ""

    @property
    def severity(self) -> Severity:
        return self.kind.severity

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.kind.value, self.subject, self.other)
