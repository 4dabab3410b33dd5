"""The catalog that ``registry.open_catalog`` returns: its calls are counted, traced, and raise only FederatorErrors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from federator.connector.call_deadline import writing
from federator.connector.call_metrics import PROCESS_METER, CallMeter
from federator.connector.errors import CatalogError, Internal
from federator.connector.native_errors import translate_native_errors
from federator.connector.port import Catalog, Confirm, Observation, Shard, unconditional
from federator.connector.temporary_credentials import TemporaryCredentials
from federator.model import Coverage, CoverageState, Identity, NamespaceRecord, Path, Record, TableRecord, path_key
from federator.runtime.spans import span


class OpenedCatalog(Catalog):
    """Adds to a connector's catalog what all connectors need: a meter and a span for each call, and FederatorErrors only."""

    def __init__(self, catalog: Catalog, meter: CallMeter = PROCESS_METER) -> None:
        self.source = catalog.source
        self._inner = catalog
        self._meter = meter

    @contextmanager
    def _measure(self, operation: str, path: Path | None = None, *, writes: bool = False) -> Iterator[None]:
        started, code = time.perf_counter(), None
        path_attribute = {} if path is None else {"federator.path": path_key(path)}
        try:
            with (
                translate_native_errors(self.source),
                span(f"{self.source} {operation}", {"federator.source": self.source, **path_attribute}, client=True),
                writing() if writes else nullcontext(),
            ):
                yield
        except Exception as error:
            code = error_code(error)
            raise
        finally:
            self._meter.record_call(self.source, operation, time.perf_counter() - started, {code: 1} if code else None)

    def list_namespaces(self, parent: Path) -> list[str]:
        with self._measure("list_namespaces", parent):
            return self._inner.list_namespaces(parent)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        with self._measure("describe_namespace", path):
            return self._inner.describe_namespace(path)

    def list_tables(self, namespace: Path) -> list[str]:
        with self._measure("list_tables", namespace):
            return self._inner.list_tables(namespace)

    def list_tables_after(self, namespace: Path, after: str, limit: int) -> list[str]:
        with self._measure("list_tables", namespace):
            return self._inner.list_tables_after(namespace, after, limit)

    def describe_table(self, path: Path) -> TableRecord:
        with self._measure("describe_table", path):
            return self._inner.describe_table(path)

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        with self._measure("create_namespace", record.path, writes=True):
            return self._inner.create_namespace(record)

    def drop_namespace(self, path: Path) -> None:
        with self._measure("drop_namespace", path, writes=True):
            self._inner.drop_namespace(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        with self._measure("update_namespace", before.path, writes=True):
            return self._inner.update_namespace(before, after)

    def declare_table(self, record: TableRecord) -> TableRecord:
        with self._measure("declare_table", record.path, writes=True):
            return self._inner.declare_table(record)

    def find_declaration_obstacle(self) -> str | None:
        with translate_native_errors(self.source):
            return self._inner.find_declaration_obstacle()

    def remove_unfinished(self, path: Path, op_id: str) -> bool:
        with self._measure("remove_unfinished", path, writes=True):
            return self._inner.remove_unfinished(path, op_id)

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        with self._measure("update_table", before.path, writes=True):
            return self._inner.update_table(before, after, confirm=confirm)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        with self._measure("deregister_table", expected.path, writes=True):
            self._inner.deregister_table(expected, confirm=confirm)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        with self._measure("rename_table", before.path, writes=True):
            return self._inner.rename_table(before, new_path)

    def read_native(self, path: Path) -> dict[str, Any]:
        with self._measure("native", path):
            return self._inner.read_native(path)

    def describe_recreate_loss(self, native: Mapping[str, Any]) -> str | None:
        with translate_native_errors(self.source):
            return self._inner.describe_recreate_loss(native)

    def find_recreate_obstacle(self, before: TableRecord, after: TableRecord) -> str | None:
        with self._measure("find_recreate_obstacle", before.path):
            return self._inner.find_recreate_obstacle(before, after)

    def default_location(self, path: Path) -> str | None:
        with translate_native_errors(self.source):
            return self._inner.default_location(path)

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        # Not translated: errors of ``is_unused`` are no errors of the catalog.
        return self._inner.new_location(path, is_unused)

    def list_foreign_objects(self, namespace: Path) -> list[str]:
        with self._measure("list_foreign_objects", namespace):
            return self._inner.list_foreign_objects(namespace)

    def is_only_declared(self, record: TableRecord) -> bool:
        with self._measure("is_only_declared", record.path):
            return self._inner.is_only_declared(record)

    def json_schema(self, record: TableRecord) -> Mapping[str, Any] | None:
        with translate_native_errors(self.source):
            return self._inner.json_schema(record)

    def issue_credentials(self, record: TableRecord, *, writes: bool) -> TemporaryCredentials:
        with self._measure("issue_credentials", record.path):
            return self._inner.issue_credentials(record, writes=writes)

    def canonical_path(self, path: Path) -> Path:
        with translate_native_errors(self.source):
            return self._inner.canonical_path(path)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        with self._measure("identity"):
            return self._inner.identity(namespaces)

    def plan_shards(self) -> Sequence[Shard]:
        with self._measure("shards"):
            return self._inner.plan_shards()

    def plan_shards_for(self, namespaces: Sequence[Path]) -> Sequence[Shard]:
        with translate_native_errors(self.source):
            return self._inner.plan_shards_for(namespaces)

    def describe_tables(self, namespace: Path, names: Sequence[str]) -> Sequence[TableRecord]:
        with self._measure("describe"):
            return self._inner.describe_tables(namespace, names)

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        started_at, spent, errors = time.time(), 0.0, Counter[str]()
        items = iter(self._inner.read_shard(shard))
        try:
            while True:
                # Only the time inside the catalog counts, not the consumer's time between two items.
                item_started = time.perf_counter()
                try:
                    with translate_native_errors(self.source):
                        item = next(items, None)
                    if item is None:
                        return
                finally:
                    spent += time.perf_counter() - item_started
                if isinstance(item, Coverage) and (code := _failure_code(item)):
                    errors[code] += 1
                yield item
        except Exception as error:
            errors[error_code(error)] += 1
            raise
        finally:
            self._meter.record_call(self.source, "read", spent, errors)
            name = ", ".join(path_key(namespace) or "/" for namespace in shard.namespaces[:3])
            self._meter.record_shard(name, started_at, spent, next(iter(errors), None))

    def current_feed_cursor(self) -> str:
        with self._measure("change_cursor"):
            return self._inner.current_feed_cursor()

    def changes_since(self, cursor: str) -> Any:
        with self._measure("changes_since"):
            return self._inner.changes_since(cursor)

    def observe(self, path: Path) -> Observation:
        with self._measure("observe", path):
            return self._inner.observe(path)

    def ping(self) -> str:
        with self._measure("ping"):
            return self._inner.ping()

    def close(self) -> None:
        self._inner.close()


def error_code(error: Exception) -> str:
    """Return the Lance error code of an error, as a metric label."""
    return str(error.code if isinstance(error, CatalogError) else Internal.code)


def _failure_code(coverage: Coverage) -> str | None:
    """Return the error code of failed coverage. None if it did not fail, or if the namespace is absent."""
    for evidence in (coverage.presence, coverage.detail):
        if evidence.state is CoverageState.FAILED and coverage.found:
            return str(evidence.code if evidence.code is not None else Internal.code)
    return None
