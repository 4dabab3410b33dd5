"""A catalog in memory, for tests and benchmarks, as ``federator.testing:CONNECTOR``.

``CONNECTOR`` takes namespaces of one to three levels and keeps everything; ``PLAIN`` is as poor as a catalog may be (one level,
no properties, no altering, no CASCADE); ``FOLDING`` has two levels and lower-case names, as a Hive metastore; ``FEEDING`` is
``CONNECTOR`` with a feed of changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from federator.connector import (
    Capabilities,
    Catalog,
    CatalogError,
    Changes,
    ConcurrentModification,
    Confirm,
    Connector,
    InvalidInput,
    NameRules,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    Settings,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    option,
    positive,
    unconditional,
)
from federator.connector.altering import check_namespace, check_table
from federator.connector.lazy import lazy_namespace
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
    local_path,
    parent,
    parse_key,
    path_key,
)
from federator.testing.faults import Faults
from federator.testing.store import MemoryStore, namespace_of, namespace_row, number, table_of, table_row
from federator.testing.synthetic import SyntheticCatalog

_stores: dict[str, MemoryStore] = {}


def memory_store(name: str = "default") -> MemoryStore:
    """The store of a name in this process; the one that a catalog with the property ``store`` uses."""
    return _stores.setdefault(name, MemoryStore())


@dataclass(frozen=True, kw_only=True)
class MemorySettings(Settings):
    """``tables`` switches to the synthetic catalog, which holds nothing and can only be read."""

    store: str = option("store", "default", doc="Which in-process store to use.")
    file: str | None = option("file", doc="A JSON file that holds the store, so that several processes share it.")
    faults: str = option("faults", "", doc="Faults to show: see federator.testing.faults.")
    tables: int | None = option("tables", doc="Generate this many tables instead of storing any.", parse=positive)
    databases: int = option("databases", 100, doc="How many databases the generated tables lie in.", parse=positive)
    changed: int = option("changed", 0, doc="How many of the generated tables differ from those with changed = 0.", parse=int)
    concurrency: int = option("concurrency", 2, doc="How many shards of one crawl are read at once.", parse=positive)


class MemoryCatalog(Catalog):
    """One view of a store. Safe for threads and processes."""

    def __init__(self, source: str, settings: MemorySettings, capabilities: Capabilities) -> None:
        self.source = source
        self._root = (settings.root or "s3://memory").rstrip("/")
        self._faults = settings.faults
        self._capabilities = capabilities
        self._store = MemoryStore(settings.file) if settings.file else memory_store(settings.store)

    def list_namespaces(self, parent: Path) -> list[str]:
        with self._reading(parent) as state:
            return [name for kind, name in _children(state, parent) if kind == "namespaces"]

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        with self._reading(path) as state:
            if path == ROOT:
                return NamespaceRecord(self.source, ROOT, location=self._root)
            return namespace_of(self.source, state["namespaces"][path_key(path)])

    def list_tables(self, namespace: Path) -> list[str]:
        with self._reading(namespace) as state:
            rows = state["tables"]
            names = [name for kind, name in _children(state, namespace) if kind == "tables"]
            return [name for name in names if rows[path_key((*namespace, name))]["kind"] != Kind.MANAGED_TABLE]

    def foreign_objects(self, namespace: Path) -> list[str]:
        """The names of what is no external Lance table."""
        with self._store.state() as state:
            managed = [key for key, row in state["tables"].items() if row["kind"] == Kind.MANAGED_TABLE]
            return sorted(path[-1] for key in (*state["foreign"], *managed) if parent(path := parse_key(key)) == namespace)

    def describe_table(self, path: Path) -> TableRecord:
        with self._store.state() as state:
            self._faults_of(state).describing(path)
            self._exists(state, parent(path))
            record = self._table(state, path)
        if record.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{self.source}: {record.key} is managed by the catalog")
        return record

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        path = self._folded(record.path)
        with self._writing("create_namespace", path) as state:
            self._exists(state, parent(path))
            if path_key(path) in state["namespaces"]:
                raise NamespaceAlreadyExists(f"{self.source}: the namespace {path_key(path)} exists")
            made = replace(record, source=self.source, path=path, native_id=number(state))
            state["namespaces"][made.key] = namespace_row(made)
        return made

    def drop_namespace(self, path: Path) -> None:
        with self._writing("drop_namespace", path) as state:
            self._exists(state, path)
            if _children(state, path):
                raise NamespaceNotEmpty(f"{self.source}: the namespace {path_key(path)} is not empty")
            del state["namespaces"][path_key(path)]

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        if len(before.path) not in self._capabilities.alters_namespaces_at:
            raise Unsupported(f"{self.source}: this catalog cannot alter namespaces")
        with self._writing("update_namespace", before.path) as state:
            self._exists(state, before.path)
            current = namespace_of(self.source, state["namespaces"][path_key(before.path)])
            check_namespace(current, before, after)
            made = replace(current, properties=dict(after.properties), doc=after.doc)
            state["namespaces"][made.key] = namespace_row(made)
        return made

    def declare_table(self, record: TableRecord) -> TableRecord:
        path = self._folded(record.path)
        with self._writing("declare_table", path) as state:
            self._exists(state, parent(path))
            if path_key(path) in state["tables"] or path_key(path) in state["foreign"]:
                raise TableAlreadyExists(f"{self.source}: {path_key(path)} exists")
            made = replace(
                record,
                source=self.source,
                path=path,
                location=record.location or self.default_location(path),
                properties=self._kept(record.properties),
                native_id=number(state),
                version=number(state),
            )
            state["tables"][made.key] = table_row(made)
        return made

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        if not self._capabilities.can_alter:
            raise Unsupported(f"{self.source}: this catalog cannot alter tables")
        with self._writing("update_table", before.path) as state:
            current = self._expected(state, before, confirm)
            made = replace(
                current,
                location=after.location,
                properties=self._kept(after.properties),
                doc=after.doc,
                version=number(state),
            )
            state["tables"][made.key] = table_row(made)
        return made

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        with self._writing("deregister_table", expected.path) as state:
            del state["tables"][self._expected(state, expected, confirm).key]

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        if not self._capabilities.can_alter:
            raise Unsupported(f"{self.source}: this catalog cannot alter tables")
        new_path = self._folded(new_path)
        with self._writing("rename_table", before.path) as state:
            current = self._expected(state, before)
            self._exists(state, parent(new_path))
            if path_key(new_path) in state["tables"] or path_key(new_path) in state["foreign"]:
                raise TableAlreadyExists(f"{self.source}: {path_key(new_path)} exists")
            del state["tables"][current.key]
            made = replace(current, path=new_path, version=number(state))
            state["tables"][made.key] = table_row(made)
        return made

    def native(self, path: Path) -> dict[str, Any]:
        return table_row(self.describe_table(path))

    def lost_by_recreation(self, native: Mapping[str, Any]) -> None:  # noqa: ARG002 - a memory has no grants
        return None

    def default_location(self, path: Path) -> str:
        with self._store.state() as state:
            row = state["namespaces"].get(path_key(parent(path)), {})
        return f"{row.get('location') or '/'.join((self._root, *parent(path)))}/{path[-1]}.lance"

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        # Only a root on this host has anything stored below it.
        return super().new_location(path, lambda default: local_path(default) is None or is_unused(default))

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:  # noqa: ARG002 - a store is one catalog
        with self._store.state() as state:
            self._faults_of(state).identifying()
            stated = state.get("identity")
        return Identity.of(stated) if stated else None

    def shards(self) -> Sequence[Shard]:
        with self._store.state() as state:
            return [Shard((ROOT,)), *(Shard((parse_key(key),)) for key in sorted(state["namespaces"]))]

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        for namespace in shard.namespaces:
            yield from self._read(namespace)

    def _read(self, namespace: Path) -> Iterator[Record | Coverage]:
        try:
            with self._reading(namespace) as state:
                faults = self._faults_of(state)
                records = [self._child(state, faults, kind, (*namespace, name)) for kind, name in _children(state, namespace)]
        except CatalogError as error:
            evidence = failed(error.code, error.message)
            found = not isinstance(error, NamespaceNotFound)
            yield Coverage(self.source, namespace, evidence, evidence, found=found)
            return
        handed = [record for record in records if record is not None]
        presence = COMPLETE
        if faults.value("short", namespace) is not None:
            handed = handed[: len(handed) // 2]
            presence = failed(17, "the listing broke off")
        undescribed = sum(record.kind is Kind.UNDESCRIBED for record in handed)
        detail = failed(17, f"{undescribed} of {len(handed)} could not be described") if undescribed else presence
        yield from handed
        yield Coverage(self.source, namespace, presence, detail, len(handed), fold_digest(r.digest for r in handed))

    def _child(self, state: dict[str, Any], faults: Faults, kind: str, path: Path) -> Record | None:
        if kind == "namespaces":
            return namespace_of(self.source, state["namespaces"][path_key(path)])
        if kind == "foreign":
            return None
        try:
            faults.describing(path)
        except CatalogError as error:
            return TableRecord(self.source, path, kind=Kind.UNDESCRIBED, problem=error.message)
        return table_of(self.source, state["tables"][path_key(path)])

    def change_cursor(self) -> str:
        if not self._capabilities.change_feed:
            return super().change_cursor()
        with self._store.state(write=True) as state:
            self._faults_of(state).feeding()
            state["feed"] = state["feed"] or {"expired": 0, "events": []}
            return str(state["feed"]["expired"] + len(state["feed"]["events"]))

    def changes_since(self, cursor: str) -> Changes:
        if not self._capabilities.change_feed:
            return super().changes_since(cursor)
        now = self.change_cursor()
        with self._store.state() as state:
            feed = state["feed"]
        seen = int(cursor) - feed["expired"] if cursor.isdecimal() else -1
        if not 0 <= seen <= len(feed["events"]):
            ahead = seen > len(feed["events"])
            return Changes(
                now, full_crawl="the cursor is ahead of the log" if ahead else "the log has expired", went_back=ahead
            )
        named = [(kind, parse_key(key)) for kind, key in feed["events"][seen:]]
        namespaces, tables = (frozenset(path for is_, path in named if is_ == kind) for kind in ("namespaces", "tables"))
        return Changes(now, namespaces, tables)

    @contextmanager
    def _reading(self, namespace: Path) -> Iterator[dict[str, Any]]:
        with self._store.state() as state:
            faults = self._faults_of(state)
        # Outside the lock, so that a hanging namespace does not hold the others.
        faults.reading(namespace)
        with self._store.state() as state:
            self._exists(state, namespace)
            yield state

    @contextmanager
    def _writing(self, operation: str, path: Path) -> Iterator[dict[str, Any]]:
        with self._store.state() as state:
            faults = self._faults_of(state)
        faults.before_write(path)
        with self._store.state(write=True) as state:
            state["calls"].append(f"{operation} {path_key(path)}")
            yield state
        faults.after_write(path)

    def _faults_of(self, state: Mapping[str, Any]) -> Faults:
        return Faults.parse(f"{self._faults};{state['faults']}")

    def _exists(self, state: Mapping[str, Any], namespace: Path) -> None:
        if namespace != ROOT and path_key(namespace) not in state["namespaces"]:
            raise NamespaceNotFound(f"{self.source}: there is no namespace {path_key(namespace)}")

    def _table(self, state: Mapping[str, Any], path: Path) -> TableRecord:
        key = path_key(path)
        if key in state["foreign"]:
            raise InvalidInput(f"{self.source}: {key} is {state['foreign'][key]}, not a Lance table")
        if key not in state["tables"]:
            raise TableNotFound(f"{self.source}: there is no table {key}")
        return table_of(self.source, state["tables"][key])

    def _expected(self, state: Mapping[str, Any], expected: TableRecord, confirm: Confirm = unconditional) -> TableRecord:
        current = self._table(state, expected.path)
        if current.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{self.source}: {current.key} is managed by the catalog")
        if current.version != (expected.version or current.version):
            raise ConcurrentModification(f"{self.source}: {current.key} is not as it was")
        check_table(current, expected, confirm)
        return current

    def _folded(self, path: Path) -> Path:
        rules = self._capabilities.names
        folded = tuple(rules.canonical(name) for name in path)
        if not rules.allows(folded[-1]):
            raise InvalidInput(f"{self.source}: {path[-1]!r} is no name for this catalog")
        return folded

    def _kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        return dict(properties) if self._capabilities.keeps_properties else {}


def _children(state: Mapping[str, Any], namespace: Path) -> list[tuple[str, str]]:
    """What lies directly in a namespace: kind (a key of the state) and name."""
    found: list[tuple[str, str]] = []
    for kind in ("namespaces", "tables", "foreign"):
        paths = sorted(parse_key(key) for key in state[kind])
        found += [(kind, path[-1]) for path in paths if parent(path) == namespace]
    return found


class MemoryConnector(Connector[MemorySettings]):
    """impl ``memory``."""

    impl = "memory"
    settings_type = MemorySettings
    capabilities = Capabilities(
        min_depth=1,
        max_depth=3,
        creates_namespaces_at=frozenset({1, 2, 3}),
        alters_namespaces_at=frozenset({1, 2, 3}),
        conditional_write=True,
    )

    def open(self, source: str, settings: MemorySettings) -> Catalog:
        if settings.tables:
            return SyntheticCatalog(source, settings.tables, settings.databases, settings.changed)
        return MemoryCatalog(source, settings, self.capabilities)

    def concurrency(self, properties: Mapping[str, str]) -> int:
        return int(properties.get("concurrency") or properties.get("memory.concurrency") or 2)


class _Plain(MemoryConnector):
    capabilities = Capabilities(
        min_depth=1,
        max_depth=1,
        creates_namespaces_at=frozenset({1}),
        can_alter=False,
        keeps_properties=False,
        keeps_comment=False,
        cascade=False,
    )


class _Folding(MemoryConnector):
    capabilities = Capabilities(
        min_depth=2,
        max_depth=2,
        names=NameRules(pattern=r"\w+", max_length=128, folds_case=True),
        creates_namespaces_at=frozenset({1, 2}),
        alters_namespaces_at=frozenset({1, 2}),
    )


class _Feeding(MemoryConnector):
    capabilities = replace(MemoryConnector.capabilities, change_feed=True)


CONNECTOR = MemoryConnector()
PLAIN = _Plain()
FOLDING = _Folding()
FEEDING = _Feeding()
__getattr__ = lazy_namespace(__name__, CONNECTOR, "MemoryNamespace")
