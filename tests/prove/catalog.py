"""A light catalog: dictionaries behind the port, with faults that strike once, a side door for users, and a witness of every write.

Records are kept as they are handed out, so that their digests are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from federator.connector import (
    Capabilities,
    Catalog,
    CatalogError,
    ConcurrentModification,
    Confirm,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Throttled,
    Unsupported,
    unconditional,
)
from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    Identity,
    Kind,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed,
    fold_digest,
    path_key,
)
from federator.planning.marks import PREFIX, bound_mark

#: seconds that a slow look takes
SLOW = 3.0


class Crash(BaseException):
    """The process dies here; nothing of it catches this."""


# Made anew each time: an exception that is raised again keeps every frame it has been through.
_LOOKS: dict[str, Callable[[], CatalogError]] = {
    "look_failed": lambda: ServiceUnavailable("no answer"),
    "look_denied": lambda: PermissionDenied("denied"),
    "look_throttled": lambda: Throttled("too many requests"),
    "look_without_fields": lambda: Internal("the answer lacks what it always has"),
}


class Witness(Protocol):
    """Sees every write of the product, with the truth before and after it, and every fault that strikes."""

    def wrote(
        self, catalog: LightCatalog, call: str, key: str, before: TableRecord | None, after: TableRecord | None
    ) -> None: ...

    def struck(self, fault: str, source: str) -> None: ...

    def later(self, effect: Callable[[], None]) -> Callable[[], None]: ...

    def denied(self, catalog: LightCatalog, key: str) -> None: ...

    def observed(self, catalog: LightCatalog, key: str, truth: str, began: float) -> None: ...

    def now(self) -> float: ...

    def wait(self, seconds: float) -> None: ...


@dataclass
class Armed:
    """Faults that wait for their moment: at the next crawl, write or look; each strikes once."""

    listing: tuple[str, int] | None = None
    write: str | None = None
    look: str | None = None
    #: what users do just before the next write, or after this many looks
    race: Callable[[], None] | None = None
    race_after: int = 0
    #: nothing answers, until the application ends
    outage: bool = False
    #: what meets the second call of a recreation
    halfway: str | None = None
    #: a declaration that is refused, as often as it is tried
    refused: TableRecord | None = None
    #: how many of the next looks take longer than any mirror allows
    slow: int = 0

    def clear(self) -> None:
        self.listing = None
        self.calm()

    def calm(self) -> None:
        """What waits for an application does not outlast it."""
        self.write = self.look = self.race = self.halfway = self.refused = None
        self.outage = False
        self.slow = 0


@dataclass
class LightCatalog(Catalog):
    """``has_ids``: objects have native ids. ``hidden``: namespaces (text form) that the principal may not see any more."""

    source: str
    capabilities: Capabilities
    witness: Witness
    has_ids: bool = True
    tables: dict[str, TableRecord] = field(default_factory=dict)
    namespaces: dict[str, NamespaceRecord] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    #: who an object really is, whatever the catalog tells
    uids: dict[str, int] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    armed: Armed = field(default_factory=Armed)
    #: writes whose effect comes after their answer was given up
    late: list[Callable[[], None]] = field(default_factory=list)
    #: tables that users dropped and may declare again as they were, the newest last
    dropped: list[TableRecord] = field(default_factory=list)
    #: whether the catalog tells which one it is
    has_identity: bool = False
    #: tables, namespaces, foreign objects and identities of the catalog that another one stands in for
    replaced: tuple[dict[str, Any], ...] | None = None
    #: counts every change of the truth
    version: int = 0
    _next: int = 0
    _removed: str = ""

    # The port.

    def list_namespaces(self, parent: Path) -> list[str]:
        self._there(parent)
        return [r.path[-1] for r in self.namespaces.values() if r.path[:-1] == parent]

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        self._look()
        if path == ROOT:
            return NamespaceRecord(self.source, ROOT)
        self._there(path)
        return self.namespaces[path_key(path)]

    def list_tables(self, namespace: Path) -> list[str]:
        self._there(namespace)
        if path_key(namespace) in self.hidden:
            return []
        return [r.path[-1] for r in self.tables.values() if r.path[:-1] == namespace and r.kind is Kind.TABLE]

    def describe_table(self, path: Path) -> TableRecord:
        began, key = self.witness.now(), path_key(path)
        self._look()
        self.witness.observed(self, key, self.truth(path), began)
        if path_key(path[:-1]) in self.hidden:
            # The worst that such a catalog does: what may not be seen is said not to exist.
            self.witness.denied(self, key)
            raise TableNotFound(f"{key} is not there")
        self._there(path[:-1])
        if key in self.foreign:
            raise InvalidInput(f"{key} is {self.foreign[key]}")
        record = self.tables.get(key)
        self._raced()
        if record is None:
            raise TableNotFound(f"{key} is not there")
        if record.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{key} is managed by the catalog")
        return record

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        key = record.key
        fault = self._before_write()
        if len(record.path) not in self.capabilities.creates_namespaces_at:
            raise Unsupported(f"{key} cannot be created here")
        self._there(record.path[:-1])
        if key in self.namespaces:
            raise NamespaceAlreadyExists(f"{key} is there")
        uid = self._uid()
        made = replace(record, source=self.source, native_id=self._id(uid))

        def effect() -> None:
            if key not in self.namespaces:
                self.uids[f"/{key}"] = uid
                self.witness.wrote(self, "create_namespace", key, None, None)
                self._touch().namespaces[key] = made

        self._carry_out(fault, effect)
        return made

    def drop_namespace(self, path: Path) -> None:
        key = path_key(path)
        fault = self._before_write()
        self._there(path)
        # Where the catalog drops whatever is inside, nothing but a look is before it, and that does not see what is hidden.
        cascades = self.capabilities.drop_cascades and key in self.hidden
        if not cascades and self._has_contents(path):
            raise NamespaceNotEmpty(f"{key} is not empty")

        def effect() -> None:
            if key in self.namespaces and (cascades or not self._has_contents(path)):
                self.witness.wrote(self, "drop_namespace", key, None, None)
                self.take_away(path)

        self._carry_out(fault, effect)

    def declare_table(self, record: TableRecord) -> TableRecord:
        fault = self._before_write(declares=True)
        if record.key == self._removed and self.armed.halfway is not None:
            self._fail_halfway(record)
        if record == self.armed.refused:
            raise PermissionDenied("denied")
        if not self.capabilities.writes_tables:
            raise Unsupported("this catalog takes no declarations")
        key = record.key
        self._there(record.path[:-1])
        if fault == "name_raced":
            self._create_first(record)
        if key in self.tables or key in self.foreign:
            raise TableAlreadyExists(f"{key} is there")
        uid = self._uid()
        made = replace(self._kept(record), source=self.source, native_id=self._id(uid), version=str(uid))

        def effect() -> None:
            if key not in self.tables and key not in self.foreign and self._exists(record.path[:-1]):
                self.uids[key] = uid
                self.witness.wrote(self, "declare_table", key, None, made)
                self._touch().tables[key] = made

        self._carry_out(fault, effect)
        return made

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        fault = self._before_write()
        if not self.capabilities.can_alter:
            raise Unsupported("this catalog cannot alter tables")
        now = self._expected(before)
        confirm()
        made = replace(self._kept(after), source=self.source, native_id=now.native_id, version=str(self._uid()))

        def effect() -> None:
            if self.tables.get(now.key) is now:
                self.witness.wrote(self, "update_table", now.key, now, made)
                self._touch().tables[now.key] = made

        self._carry_out(fault, effect)
        return made

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        fault = self._before_write()
        now = self._expected(expected)
        confirm()

        def effect() -> None:
            if self.tables.get(now.key) is now:
                self.witness.wrote(self, "deregister_table", now.key, now, None)
                self._touch().tables.pop(now.key)
                self._removed = now.key

        self._carry_out(fault, effect)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        raise Unsupported("mirrors never rename")

    def native(self, path: Path) -> dict[str, Any]:
        record = self.describe_table(path)
        return {"path": record.key, "location": record.location, "properties": dict(record.properties)}

    def lost_by_recreation(self, native: Mapping[str, Any]) -> str | None:
        # Some tables have grants that nobody could restore.
        return "its grants" if native["properties"].get("q") else None

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        return Identity.of(f"{self.source}, {'another' if self.replaced else 'the first'}") if self.has_identity else None

    # The crawl.

    def shards(self) -> Sequence[Shard]:
        if self.armed.listing is not None and self.armed.listing[0] == "unreachable":
            self.armed.listing = None
            self.witness.struck("unreachable", self.source)
            raise ServiceUnavailable(f"{self.source} does not answer")
        return [Shard((ROOT,)), *(Shard((record.path,)) for record in sorted(self.namespaces.values(), key=lambda r: r.path))]

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        for namespace in shard.namespaces:
            yield from self._read(namespace)

    def _read(self, namespace: Path) -> Iterator[Record | Coverage]:
        kind = self._listing_fault(namespace)
        if kind == "namespace_vanished":
            self.take_away(namespace)
        if not self._exists(namespace):
            evidence = failed(1, "it does not exist")
            yield Coverage(self.source, namespace, evidence, evidence, found=False)
            return
        if kind == "listing_failed":
            evidence = failed(17, "the catalog did not answer")
            yield Coverage(self.source, namespace, evidence, evidence)
            return
        if kind == "answer_without_fields":
            evidence = failed(Internal.code, "the answer lacks what it always has")
            yield Coverage(self.source, namespace, evidence, evidence)
            return
        if kind == "namespace_denied":
            evidence = failed(15, "denied")
            yield Coverage(self.source, namespace, evidence, evidence)
            return
        handed: list[Record] = [] if path_key(namespace) in self.hidden else list(self.below(namespace))
        presence = COMPLETE
        if kind == "listing_short":
            handed, presence = handed[: len(handed) // 2], failed(17, "the listing broke off")
        detail = presence
        if kind == "table_undescribed":
            handed = [
                TableRecord(self.source, r.path, kind=Kind.UNDESCRIBED, problem="the catalog did not answer")
                if isinstance(r, TableRecord) else r
                for r in handed
            ]  # fmt: skip
            detail = failed(17, "some could not be described")
        fold = fold_digest(r.digest for r in handed)
        # Rows that are lost on their way were counted before.
        yield from handed[1:] if kind == "rows_lost" else handed
        yield Coverage(self.source, namespace, presence, detail, len(handed), fold)

    def _listing_fault(self, namespace: Path) -> str:
        if self.armed.listing is None:
            return ""
        kind, number = self.armed.listing
        places: list[Path] = [r.path for r in sorted(self.namespaces.values(), key=lambda r: r.path)]
        # A vanished root is no catalog; every other fault may strike it too, where tables lie in it or by chance.
        if not places or (number % 7 == 0 and kind != "namespace_vanished") or self.capabilities.max_depth == 0:
            places = [ROOT]
        if places[number % len(places)] != namespace or (kind == "namespace_vanished" and namespace == ROOT):
            return ""
        handed = self.below(namespace)
        if (kind in ("rows_lost", "listing_short") and not handed) or (
            kind == "table_undescribed" and not any(isinstance(r, TableRecord) for r in handed)
        ):
            return ""
        self.armed.listing = None
        self.witness.struck(kind, self.source)
        return kind

    # What users do, unseen by the witness: they may do anything.

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
        return sorted(key for key, record in self.tables.items() if bound_mark(record) is None)

    def copies(self) -> list[str]:
        """Tables that carry a mark, in a fixed order; where a catalog keeps none, every table."""
        caps = self.capabilities
        if not caps.keeps_properties and not caps.keeps_comment:
            return sorted(self.tables)
        return sorted(key for key, record in self.tables.items() if bound_mark(record) is not None)

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
        """What is really at a path: a digest, ``absent``, ``foreign``, or ``hidden`` from whoever looks."""
        key = path_key(path)
        if key in self.tables or key in self.foreign:
            if path_key(path[:-1]) in self.hidden:
                return "hidden"
            return self.tables[key].digest if key in self.tables else "foreign"
        return "absent"

    def remove(self, key: str) -> None:
        if key in self.tables:
            self.dropped.append(self.tables[key])
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

    def replace(self, keep: int) -> None:
        """Another catalog answers at the address: an empty one, or a restored one with every ``keep``-th table."""
        self.land()
        self.replaced = (self.tables, self.namespaces, self.foreign, self.uids)
        records = list(self.tables.values())[::keep] if keep else []
        self._touch().tables = {record.key: record for record in records}
        self.namespaces, self.foreign, self.uids = dict(self.namespaces) if keep else {}, {}, dict(self.uids)

    def put_back(self) -> None:
        """The catalog itself answers again."""
        if self.replaced is not None:
            self.land()
            self._touch().tables, self.namespaces, self.foreign, self.uids = self.replaced
            self.replaced = None

    def land(self) -> None:
        """Calls in flight take effect."""
        while self.late:
            self.late.pop()()

    # Inside.

    def _look(self) -> None:
        self._out()
        if self.armed.slow:
            self.armed.slow -= 1
            self.witness.struck("look_slow", self.source)
            self.witness.wait(SLOW)
        if self.armed.look is not None:
            fault, self.armed.look = self.armed.look, None
            self.witness.struck(fault, self.source)
            raise _LOOKS[fault]()

    def _out(self) -> None:
        if self.armed.outage:
            self.witness.struck("outage", self.source)
            raise ServiceUnavailable(f"{self.source} does not answer")

    def _raced(self) -> None:
        if self.armed.race is not None:
            self.armed.race_after -= 1
            if self.armed.race_after < 0:
                race, self.armed.race = self.armed.race, None
                race()

    def _before_write(self, *, declares: bool = False) -> str:
        self._raced()
        self._out()
        if self.armed.write == "name_raced" and not declares:
            return ""
        fault, self.armed.write = self.armed.write or "", None
        if fault:
            self.witness.struck(fault, self.source)
        if fault == "answer_lost_before":
            raise ServiceUnavailable("the connection broke")
        if fault == "throttled":
            raise Throttled("too many requests")
        if fault == "write_denied":
            raise PermissionDenied("denied")
        return fault

    def _create_first(self, record: TableRecord) -> None:
        """Another client creates the same name: a table there or elsewhere, or an entry that is only half made."""
        if record.key in self.tables or record.key in self.foreign:
            return
        if self._next % 3 == 0:
            self.squat(record.key)
        else:
            self.put(TableRecord(self.source, record.path, record.location if self._next % 3 == 1 else "s3://lake/9"))

    def _fail_halfway(self, record: TableRecord) -> None:
        fault, self.armed.halfway = self.armed.halfway or "", None
        self.witness.struck(fault, self.source)
        if fault == "crash_halfway":
            raise Crash
        if fault == "halfway_denied":
            self.armed.refused = record
            raise PermissionDenied("denied")
        raise ServiceUnavailable("no answer")

    def _carry_out(self, fault: str, effect: Callable[[], None]) -> None:
        if fault == "answer_late":
            self.late.append(self.witness.later(effect))
            raise ServiceUnavailable("no answer in time")
        effect()
        if fault == "crash_after_call":
            raise Crash
        if fault == "answer_malformed":
            raise Internal("the answer lacks what it always has")
        if fault == "answer_lost_after":
            raise ServiceUnavailable("the answer was lost")
        if fault == "answer_and_look_lost":
            self.armed.look = "look_failed"
            raise ServiceUnavailable("the answer was lost")

    def _expected(self, expected: TableRecord) -> TableRecord:
        self.witness.observed(self, expected.key, self.truth(expected.path), self.witness.now())
        self._there(expected.path[:-1])
        now = self.tables.get(expected.key)
        if now is None:
            raise TableNotFound(f"{expected.key} is not there")
        if now.kind is not Kind.TABLE:
            raise InvalidInput(f"{expected.key} is managed by the catalog")
        if now is not expected and now.digest != expected.digest:
            raise ConcurrentModification(f"{expected.key} is not as it was")
        return now

    def _kept(self, record: TableRecord) -> TableRecord:
        caps = self.capabilities
        properties = record.properties if caps.keeps_properties else {}
        return replace(record, properties=dict(properties), doc=record.doc if caps.keeps_comment else None)

    def _exists(self, namespace: Path) -> bool:
        return namespace == ROOT or path_key(namespace) in self.namespaces

    def _there(self, namespace: Path) -> None:
        if not self._exists(namespace):
            raise NamespaceNotFound(f"{path_key(namespace)} is not there")

    def _uid(self) -> int:
        self._next += 1
        return self._next

    def _id(self, uid: int) -> str | None:
        return f"{self.source}{uid}" if self.has_ids else None

    def _touch(self) -> LightCatalog:
        self.version += 1
        return self


def without_mark(record: TableRecord) -> dict[str, object]:
    """The fields of a table whose mark a user removed."""
    properties = {key: value for key, value in record.properties.items() if not key.startswith(PREFIX)}
    return {"properties": properties, "doc": None}


__all__ = ["Armed", "CatalogError", "Crash", "LightCatalog", "Witness", "without_mark"]
