"""A catalog in memory, for tests and benchmarks, as ``federator.testing:CONNECTOR``.

``CONNECTOR`` has namespaces of one to three levels and keeps everything. ``PLAIN`` has the minimal capabilities (one level, no
properties, no altering, no CASCADE). ``FOLDING`` has two levels and lower-case names, like a Hive metastore. ``FEEDING`` is
``CONNECTOR`` with a change feed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from federator.connector import (
    Capabilities,
    Catalog,
    CatalogChanges,
    CatalogError,
    ConcurrentModification,
    Confirm,
    Connector,
    ConnectorSettings,
    InvalidInput,
    NameRules,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    ServiceUnavailable,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    option,
    parse_positive_int,
    unconditional,
)
from federator.connector.crawl import CoverageBuilder
from federator.connector.operation import require_permission
from federator.connector.preconditions import check_namespace_update, check_table
from federator.lance.lazy_facade import lazy_facade_class
from federator.model import (
    ROOT,
    Coverage,
    Identity,
    Kind,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    local_path,
    parent_path,
    parse_path_key,
    path_key,
)
from federator.testing.faults import Faults
from federator.testing.memory_store import (
    MemoryStore,
    namespace_from_row,
    namespace_to_row,
    next_id,
    table_from_row,
    table_to_row,
)
from federator.testing.synthetic import SyntheticCatalog

_stores: dict[str, MemoryStore] = {}


def get_memory_store(name: str = "default") -> MemoryStore:
    """Return the store with a name in this process. The property ``store`` of a catalog selects it."""
    return _stores.setdefault(name, MemoryStore())


@dataclass(frozen=True, kw_only=True)
class MemorySettings(ConnectorSettings):
    """Settings of a memory catalog. ``tables`` selects the synthetic catalog, which stores nothing and is read-only."""

    store: str = option("store", "default", doc="Name of the in-process store.")
    file: str | None = option("file", doc="A JSON file that holds the store, so that several processes share it.")
    faults: str = option("faults", "", doc="Faults to show: see federator.testing.faults.")
    tables: int | None = option("tables", doc="Generate this many tables instead of storing any.", parse=parse_positive_int)
    databases: int = option("databases", 100, doc="Number of databases of the generated tables.", parse=parse_positive_int)
    changed: int = option("changed", 0, doc="Number of generated tables that differ from those with changed = 0.", parse=int)
    parameters: int = option("parameters", 0, doc="Number of additional properties of each generated table.", parse=int)
    columns: int = option("columns", 0, doc="Number of columns of each generated table.", parse=int)
    concurrency: int = option(
        "concurrency", 2, doc="Number of shards of one crawl that are read at once.", parse=parse_positive_int
    )


class MemoryCatalog(Catalog):
    """A catalog on a store. Safe for threads and processes."""

    def __init__(self, source: str, settings: MemorySettings, capabilities: Capabilities) -> None:
        self.source = source
        self._root = (settings.root or "s3://memory").rstrip("/")
        self._faults = settings.faults
        self._capabilities = capabilities
        self._store = MemoryStore(settings.file) if settings.file else get_memory_store(settings.store)

    def list_namespaces(self, parent: Path) -> list[str]:
        with self._open_for_read(parent) as state:
            return [name for kind, name in _children(state, parent) if kind == "namespaces"]

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        with self._open_for_read(path) as state:
            if path == ROOT:
                return NamespaceRecord(self.source, ROOT, location=self._root)
            return namespace_from_row(self.source, state["namespaces"][path_key(path)])

    def list_tables(self, namespace: Path) -> list[str]:
        with self._open_for_read(namespace) as state:
            rows = state["tables"]
            names = [name for kind, name in _children(state, namespace) if kind == "tables"]
            return [name for name in names if rows[path_key((*namespace, name))]["kind"] != Kind.MANAGED_TABLE]

    def list_foreign_objects(self, namespace: Path) -> list[str]:
        """Return the names of objects that are not external Lance tables."""
        with self._store.locked_state() as state:
            managed = [key for key, row in state["tables"].items() if row["kind"] == Kind.MANAGED_TABLE]
            return sorted(
                path[-1] for key in (*state["foreign"], *managed) if parent_path(path := parse_path_key(key)) == namespace
            )

    def describe_table(self, path: Path) -> TableRecord:
        with self._store.locked_state() as state:
            self._parse_faults(state).before_describe(path)
            self._require_namespace(state, parent_path(path))
            record = self._get_table(state, path)
        if record.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{self.source}: {record.key} is managed by the catalog")
        return record

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        path = self._fold_new_path(record.path)
        with self._open_for_write("create_namespace", path) as state:
            self._require_namespace(state, parent_path(path))
            if path_key(path) in state["namespaces"]:
                raise NamespaceAlreadyExists(f"{self.source}: the namespace {path_key(path)} exists")
            created = replace(record, source=self.source, path=path, native_id=next_id(state))
            state["namespaces"][created.key] = namespace_to_row(created)
        return created

    def drop_namespace(self, path: Path) -> None:
        with self._open_for_write("drop_namespace", path) as state:
            self._require_namespace(state, path)
            if _children(state, path):
                raise NamespaceNotEmpty(f"{self.source}: the namespace {path_key(path)} is not empty")
            del state["namespaces"][path_key(path)]

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        if len(before.path) not in self._capabilities.alters_namespaces_at:
            raise Unsupported(f"{self.source}: this catalog cannot alter namespaces")
        with self._open_for_write("update_namespace", before.path) as state:
            self._require_namespace(state, before.path)
            current = namespace_from_row(self.source, state["namespaces"][path_key(before.path)])
            check_namespace_update(current, before, after)
            updated = replace(current, properties=dict(after.properties), doc=after.doc)
            state["namespaces"][updated.key] = namespace_to_row(updated)
        return updated

    def declare_table(self, record: TableRecord) -> TableRecord:
        path = self._fold_new_path(record.path)
        with self._open_for_write("declare_table", path) as state:
            self._require_namespace(state, parent_path(path))
            self._require_no_table(state, path)
            created = replace(
                record,
                source=self.source,
                path=path,
                location=record.location or self.default_location(path),
                properties=self._stored_properties(record.properties),
                native_id=next_id(state),
                version=next_id(state),
            )
            state["tables"][created.key] = table_to_row(created)
        return created

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        if not self._capabilities.can_alter:
            raise Unsupported(f"{self.source}: this catalog cannot alter tables")
        with self._open_for_write("update_table", before.path) as state:
            current = self._get_unchanged_table(state, before, confirm)
            updated = replace(
                current,
                location=after.location,
                properties=self._stored_properties(after.properties),
                doc=after.doc,
                version=next_id(state),
            )
            state["tables"][updated.key] = table_to_row(updated)
        return updated

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        with self._open_for_write("deregister_table", expected.path) as state:
            del state["tables"][self._get_unchanged_table(state, expected, confirm).key]

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        if not self._capabilities.can_alter:
            raise Unsupported(f"{self.source}: this catalog cannot alter tables")
        new_path = self._fold_new_path(new_path)
        with self._open_for_write("rename_table", before.path) as state:
            current = self._get_unchanged_table(state, before)
            self._require_namespace(state, parent_path(new_path))
            self._require_no_table(state, new_path)
            del state["tables"][current.key]
            updated = replace(current, path=new_path, version=next_id(state))
            state["tables"][updated.key] = table_to_row(updated)
        return updated

    def read_native(self, path: Path) -> dict[str, Any]:
        return table_to_row(self.describe_table(path))

    def describe_recreate_loss(self, native: Mapping[str, Any]) -> None:  # noqa: ARG002 - a memory has no grants
        return None

    def default_location(self, path: Path) -> str:
        with self._store.locked_state() as state:
            row = state["namespaces"].get(path_key(parent_path(path)), {})
        return f"{row.get('location') or '/'.join((self._root, *parent_path(path)))}/{path[-1]}.lance"

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        # Only a location on this host can contain data.
        return super().new_location(path, lambda default: local_path(default) is None or is_unused(default))

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:  # noqa: ARG002 - a store is one catalog
        with self._store.locked_state() as state:
            self._parse_faults(state).before_identify()
            stated = state.get("identity")
        return Identity.of(stated) if stated else None

    def plan_shards(self) -> Sequence[Shard]:
        with self._store.locked_state() as state:
            return [Shard((ROOT,)), *(Shard((parse_path_key(key),)) for key in sorted(state["namespaces"]))]

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        for namespace in shard.namespaces:
            yield from self._read_namespace(namespace)

    def _read_namespace(self, namespace: Path) -> Iterator[Record | Coverage]:
        """Yield the children of a namespace, then its coverage."""
        coverage = CoverageBuilder(self.source, namespace)
        yield from coverage.read(self._read_children(namespace, coverage))

    def _read_children(self, namespace: Path, coverage: CoverageBuilder) -> Iterator[Record]:
        with self._open_for_read(namespace) as state:
            faults = self._parse_faults(state)
            children = [(kind, (*namespace, name)) for kind, name in _children(state, namespace) if kind != "foreign"]
            records = [self._read_child(state, faults, kind, path, coverage) for kind, path in children]
        if faults.value("short", namespace) is not None:
            yield from records[: len(records) // 2]
            raise ServiceUnavailable("the listing broke off")
        yield from records

    def _read_child(self, state: dict[str, Any], faults: Faults, kind: str, path: Path, coverage: CoverageBuilder) -> Record:
        if kind == "namespaces":
            return namespace_from_row(self.source, state["namespaces"][path_key(path)])
        try:
            faults.before_describe(path)
        except CatalogError as error:
            return coverage.undescribed_table(path, error)
        return table_from_row(self.source, state["tables"][path_key(path)])

    def current_feed_cursor(self) -> str:
        if not self._capabilities.change_feed:
            return super().current_feed_cursor()
        with self._store.locked_state(write=True) as state:
            self._parse_faults(state).before_feed_read()
            state["feed"] = state["feed"] or {"expired": 0, "events": []}
            return str(state["feed"]["expired"] + len(state["feed"]["events"]))

    def changes_since(self, cursor: str) -> CatalogChanges:
        if not self._capabilities.change_feed:
            return super().changes_since(cursor)
        cursor_now = self.current_feed_cursor()
        with self._store.locked_state() as state:
            feed = state["feed"]
        position = int(cursor) - feed["expired"] if cursor.isdecimal() else -1
        if not 0 <= position <= len(feed["events"]):
            ahead = position > len(feed["events"])
            return CatalogChanges(
                cursor_now, full_crawl="the cursor is ahead of the log" if ahead else "the log has expired", went_back=ahead
            )
        paths: dict[str, set[Path]] = {"namespaces": set(), "tables": set()}
        for kind, key in feed["events"][position:]:
            paths[kind].add(parse_path_key(key))
        return CatalogChanges(cursor_now, frozenset(paths["namespaces"]), frozenset(paths["tables"]))

    def describe_tables(self, namespace: Path, names: Sequence[str]) -> list[TableRecord]:
        with self._open_for_read(namespace) as state:
            faults, paths = self._parse_faults(state), [(*namespace, name) for name in names]
            for path in paths:
                faults.before_describe(path)
            keys = [path_key(path) for path in paths if faults.value("unnamed", path) is None]
            return [table_from_row(self.source, state["tables"][key]) for key in keys if key in state["tables"]]

    @contextmanager
    def _open_for_read(self, namespace: Path) -> Iterator[dict[str, Any]]:
        with self._store.locked_state() as state:
            faults = self._parse_faults(state)
        # Outside the lock, so that a hanging namespace does not block the others.
        self._wait("hang", namespace)
        faults.before_read(namespace)
        with self._store.locked_state() as state:
            self._require_namespace(state, namespace)
            yield state

    @contextmanager
    def _open_for_write(self, operation: str, path: Path) -> Iterator[dict[str, Any]]:
        with self._store.locked_state() as state:
            faults = self._parse_faults(state)
        require_permission()
        faults.before_write(path)
        with self._store.locked_state(write=True) as state:
            state["calls"].append(f"{operation} {path_key(path)}")
            yield state
        self._wait("slow", path)
        faults.after_write(path)

    def _wait(self, kind: str, path: Path) -> None:
        """Wait while the store has a fault of this kind, at most as many seconds as the fault says."""
        started_at = time.monotonic()
        while True:
            with self._store.locked_state() as state:
                seconds = self._parse_faults(state).value(kind, path)
            left = 0.0 if seconds is None else started_at + float(seconds or 3600) - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.05))

    def _parse_faults(self, state: Mapping[str, Any]) -> Faults:
        return Faults.parse(f"{self._faults};{state['faults']}")

    def _require_namespace(self, state: Mapping[str, Any], namespace: Path) -> None:
        if namespace != ROOT and path_key(namespace) not in state["namespaces"]:
            raise NamespaceNotFound(f"{self.source}: there is no namespace {path_key(namespace)}")

    def _require_no_table(self, state: Mapping[str, Any], path: Path) -> None:
        if path_key(path) in state["tables"] or path_key(path) in state["foreign"]:
            raise TableAlreadyExists(f"{self.source}: {path_key(path)} exists")

    def _get_table(self, state: Mapping[str, Any], path: Path) -> TableRecord:
        key = path_key(path)
        if key in state["foreign"]:
            raise InvalidInput(f"{self.source}: {key} is {state['foreign'][key]}, not a Lance table")
        if key not in state["tables"]:
            raise TableNotFound(f"{self.source}: there is no table {key}")
        return table_from_row(self.source, state["tables"][key])

    def _get_unchanged_table(
        self, state: Mapping[str, Any], expected: TableRecord, confirm: Confirm = unconditional
    ) -> TableRecord:
        current = self._get_table(state, expected.path)
        if current.kind is Kind.MANAGED_TABLE:
            raise InvalidInput(f"{self.source}: {current.key} is managed by the catalog")
        if current.version != (expected.version or current.version):
            raise ConcurrentModification(f"{self.source}: {current.key} has changed")
        check_table(current, expected, confirm)
        return current

    def _fold_new_path(self, path: Path) -> Path:
        rules = self._capabilities.names
        folded = tuple(rules.canonicalize(name) for name in path)
        if not rules.allows(folded[-1]):
            raise InvalidInput(f"{self.source}: {path[-1]!r} is not a valid name in this catalog")
        return folded

    def _stored_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        return dict(properties) if self._capabilities.keeps_properties else {}


def _children(state: Mapping[str, Any], namespace: Path) -> list[tuple[str, str]]:
    """Return the kind (a key of the state) and name of each child of a namespace."""
    children: list[tuple[str, str]] = []
    for kind in ("namespaces", "tables", "foreign"):
        paths = sorted(parse_path_key(key) for key in state[kind])
        children += [(kind, path[-1]) for path in paths if parent_path(path) == namespace]
    return children


class MemoryConnector(Connector[MemorySettings]):
    """The connector with the impl ``memory``."""

    impl = "memory"
    settings_type = MemorySettings
    capabilities = Capabilities(
        min_depth=1,
        max_depth=3,
        creates_namespaces_at=frozenset({1, 2, 3}),
        alters_namespaces_at=frozenset({1, 2, 3}),
    )

    def open(self, source: str, settings: MemorySettings) -> Catalog:
        if settings.tables:
            return SyntheticCatalog(
                source, settings.tables, settings.databases, settings.changed, settings.parameters, settings.columns
            )
        return MemoryCatalog(source, settings, self.capabilities)

    def crawl_concurrency(self, properties: Mapping[str, str]) -> int:
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
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "MemoryNamespace")
