"""What a catalog really has, and what its users do there: they may do anything, and nobody witnesses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from federator.connector import Capabilities
from federator.model import ROOT, NamespaceRecord, Path, Record, TableRecord, path_key
from federator.planning.ownership import PREFIX, find_bound_marker


@dataclass
class CatalogTruth:
    """``has_ids``: objects have native ids. ``hidden``: namespaces (text form) that the principal may not see any more."""

    source: str
    capabilities: Capabilities
    has_ids: bool = True
    tables: dict[str, TableRecord] = field(default_factory=dict)
    namespaces: dict[str, NamespaceRecord] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    #: who an object really is, whatever the catalog tells
    uids: dict[str, int] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    #: writes whose effect comes after their answer was given up
    late: list[Callable[[], None]] = field(default_factory=list)
    #: tables that users dropped and may declare again as they were, and who they were; the newest last
    dropped: list[tuple[TableRecord, int]] = field(default_factory=list)
    #: which catalog answers at the address, and which past its feed of changes has
    number: int = 0
    past: int = 0
    #: counts every change of the truth
    version: int = 0
    _next: int = 0

    @property
    def next_uid(self) -> int:
        """Who the next object will be."""
        return self._next + 1

    def below(self, namespace: Path) -> list[Record]:
        """What a listing of a namespace hands over."""
        depth = len(namespace)
        found: list[Record] = [r for r in self.namespaces.values() if len(r.path) == depth + 1 and r.path[:depth] == namespace]
        found += [r for r in self.tables.values() if len(r.path) == depth + 1 and r.path[:depth] == namespace]
        return found

    def _has_contents(self, namespace: Path) -> bool:
        return bool(self.below(namespace)) or any(key.startswith(f"{path_key(namespace)}$") for key in self.foreign)

    def natives(self) -> list[str]:
        """Tables that are no mirror's, in a fixed order."""
        return sorted(key for key, record in self.tables.items() if find_bound_marker(record) is None)

    def copies(self) -> list[str]:
        """Tables that carry a mark, in a fixed order; where a catalog keeps none, every table."""
        caps = self.capabilities
        if not caps.keeps_properties and not caps.keeps_comment:
            return sorted(self.tables)
        return sorted(key for key, record in self.tables.items() if find_bound_marker(record) is not None)

    def put(self, record: TableRecord) -> None:
        """A table made by a user, namespaces above it too; whatever was there is gone."""
        key = record.key
        for depth in range(1, len(record.path)):
            above = path_key(record.path[:depth])
            if above not in self.namespaces:
                number = self.uids[f"/{above}"] = self._uid()
                self.namespaces[above] = NamespaceRecord(self.source, record.path[:depth], native_id=self._id(number))
        self.foreign.pop(key, None)
        uid = self.uids[key] = self._uid()
        properties = record.properties if self.capabilities.keeps_properties else {}
        self._touch().tables[key] = replace(
            record, source=self.source, properties=properties, native_id=self._id(uid), version=str(uid)
        )

    def change(self, key: str, **fields: object) -> None:
        """A user changes a table in place."""
        self._touch().tables[key] = replace(self.tables[key], version=str(self._uid()), **fields)  # type: ignore[arg-type]

    def truth(self, path: Path) -> str:
        """The true state at a path: a digest, ``absent``, ``foreign``, or ``hidden`` from the principal."""
        key = path_key(path)
        if key in self.tables or key in self.foreign:
            if path_key(path[:-1]) in self.hidden:
                return "hidden"
            return self.tables[key].digest if key in self.tables else "foreign"
        return "absent"

    def remove(self, key: str) -> None:
        if key in self.tables:
            self.dropped.append((self.tables[key], self.uids[key]))
        self._touch().tables.pop(key, None)
        self.foreign.pop(key, None)

    def squat(self, key: str) -> None:
        """Something that is no Lance table takes a name."""
        self._touch().tables.pop(key, None)
        self.foreign[key] = "a view"

    def take_away(self, namespace: Path) -> None:
        """A user drops a namespace with everything in it."""
        depth = len(namespace)
        self._touch()
        for content in (self.tables, self.namespaces):
            for key in [key for key, record in content.items() if record.path[:depth] == namespace]:
                del content[key]  # type: ignore[attr-defined]
        inside = path_key(namespace) + "$"
        for key in [key for key in self.foreign if key.startswith(inside)]:
            del self.foreign[key]

    def land(self) -> None:
        """Calls in flight take effect."""
        while self.late:
            self.late.pop()()

    def _exists(self, namespace: Path) -> bool:
        return namespace == ROOT or path_key(namespace) in self.namespaces

    def _uid(self) -> int:
        self._next += 1
        return self._next

    def _id(self, uid: int) -> str | None:
        return f"{self.source}{uid}" if self.has_ids else None

    def _touch(self) -> Self:
        self.version += 1
        return self


def without_mark(record: TableRecord) -> dict[str, object]:
    """The fields of a table whose mark a user removed."""
    properties = {key: value for key, value in record.properties.items() if not key.startswith(PREFIX)}
    return {"properties": properties, "doc": None}
