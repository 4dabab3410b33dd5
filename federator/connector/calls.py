"""What is counted of the calls that are made to catalogs, and the catalog that counts them.

A call is one method of ``Catalog``: all connectors are counted alike. A ``Meter`` adds up in its process; its ``Counts`` travel as JSON
from Spark's workers with what they read.
"""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from federator.connector.edge import edge
from federator.connector.errors import CatalogError, Internal
from federator.connector.port import Catalog, Confirm, Observation, Shard, unconditional
from federator.connector.spans import span
from federator.model import Coverage, CoverageState, Identity, NamespaceRecord, Path, Record, TableRecord, path_key

#: upper bounds of the latencies' buckets, in seconds; their names are Prometheus' ``le``
BOUNDS = (0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0)
BUCKETS = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
# Of a slot that reads more shards than this, the first ones are named in traces.
_TIMED = 500


@dataclass
class Counts:
    """Calls and their seconds by (source, operation, bucket); errors by (source, operation, code); when shards were read.

    ``shards`` are (name, began, seconds, error code or None): what a trace is told of a worker.
    """

    calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    seconds: dict[tuple[str, str, str], float] = field(default_factory=dict)
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    shards: list[tuple[str, float, float, str | None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.calls or self.errors)

    def add(self, other: Counts) -> None:
        """Takes in what was counted elsewhere."""
        self.calls.update(other.calls)
        self.errors.update(other.errors)
        for key, seconds in other.seconds.items():
            self.seconds[key] = self.seconds.get(key, 0.0) + seconds
        self.shards += other.shards

    def to_json(self) -> str:
        calls = [[*key, number, self.seconds.get(key, 0.0)] for key, number in self.calls.items()]
        return json.dumps({"calls": calls, "errors": [[*key, n] for key, n in self.errors.items()], "shards": self.shards})

    @classmethod
    def from_json(cls, text: str) -> Counts:
        data = json.loads(text)
        found = cls(shards=[(name, began, seconds, code) for name, began, seconds, code in data["shards"]])
        for source, operation, bucket, number, seconds in data["calls"]:
            found.calls[source, operation, bucket] = number
            found.seconds[source, operation, bucket] = seconds
        for source, operation, code, number in data["errors"]:
            found.errors[source, operation, code] = number
        return found


class Meter:
    """Adds up calls. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counts()

    def count(self, source: str, operation: str, seconds: float, errors: Mapping[str, int] | None = None) -> None:
        """One call; ``errors`` are how often it met an error, by code."""
        key = (source, operation, BUCKETS[bisect_left(BOUNDS, seconds)])
        with self._lock:
            self._counts.calls[key] += 1
            self._counts.seconds[key] = self._counts.seconds.get(key, 0.0) + seconds
            for code, number in (errors or {}).items():
                self._counts.errors[source, operation, code] += number

    def shard(self, name: str, began: float, seconds: float, code: str | None) -> None:
        """One shard that was read; ``began`` in seconds since the epoch."""
        with self._lock:
            if len(self._counts.shards) < _TIMED:
                self._counts.shards.append((name, began, seconds, code))

    def take(self) -> Counts:
        """What was counted since the last time."""
        with self._lock:
            taken, self._counts = self._counts, Counts()
        return taken

    def put_back(self, counts: Counts) -> None:
        """Counts again what was taken and could not be kept."""
        with self._lock:
            self._counts.add(counts)


#: that of this process, for catalogs that nobody gave another
METER = Meter()


class Counted(Catalog):
    """A catalog whose calls are counted, and shown in the trace of the run. Its methods raise FederatorError only.

    What the port does not name is the catalog's own.
    """

    def __init__(self, catalog: Catalog, meter: Meter = METER) -> None:
        self.source = catalog.source
        self._inner = catalog
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def _call(self, operation: str, path: Path | None = None) -> Iterator[None]:
        began, code = time.perf_counter(), None
        shown = {} if path is None else {"federator.path": path_key(path)}
        try:
            with edge(self.source), span(f"{self.source} {operation}", {"federator.source": self.source, **shown}, client=True):
                yield
        except Exception as error:
            code = code_of(error)
            raise
        finally:
            self._meter.count(self.source, operation, time.perf_counter() - began, {code: 1} if code else None)

    def list_namespaces(self, parent: Path) -> list[str]:
        with self._call("list_namespaces", parent):
            return self._inner.list_namespaces(parent)

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        with self._call("describe_namespace", path):
            return self._inner.describe_namespace(path)

    def list_tables(self, namespace: Path) -> list[str]:
        with self._call("list_tables", namespace):
            return self._inner.list_tables(namespace)

    def describe_table(self, path: Path) -> TableRecord:
        with self._call("describe_table", path):
            return self._inner.describe_table(path)

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        with self._call("create_namespace", record.path):
            return self._inner.create_namespace(record)

    def drop_namespace(self, path: Path) -> None:
        with self._call("drop_namespace", path):
            self._inner.drop_namespace(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        with self._call("update_namespace", before.path):
            return self._inner.update_namespace(before, after)

    def declare_table(self, record: TableRecord) -> TableRecord:
        with self._call("declare_table", record.path):
            return self._inner.declare_table(record)

    def remove_unfinished(self, path: Path, op_id: str) -> bool:
        with self._call("remove_unfinished", path):
            return self._inner.remove_unfinished(path, op_id)

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        with self._call("update_table", before.path):
            return self._inner.update_table(before, after, confirm=confirm)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        with self._call("deregister_table", expected.path):
            self._inner.deregister_table(expected, confirm=confirm)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        with self._call("rename_table", before.path):
            return self._inner.rename_table(before, new_path)

    def native(self, path: Path) -> dict[str, Any]:
        with self._call("native", path):
            return self._inner.native(path)

    def lost_by_recreation(self, native: Mapping[str, Any]) -> str | None:
        with edge(self.source):
            return self._inner.lost_by_recreation(native)

    def default_location(self, path: Path) -> str | None:
        with edge(self.source):
            return self._inner.default_location(path)

    def new_location(self, path: Path, is_unused: Callable[[str], bool]) -> str | None:
        return self._inner.new_location(path, is_unused)

    def canonical_path(self, path: Path) -> Path:
        with edge(self.source):
            return self._inner.canonical_path(path)

    def identity(self, namespaces: Collection[Path] | None = ()) -> Identity | None:
        if type(self._inner).identity is Catalog.identity:
            # Nothing is asked of a catalog that has none.
            return None
        with self._call("identity"):
            return self._inner.identity(namespaces)

    def shards(self) -> Sequence[Shard]:
        with self._call("shards"):
            return self._inner.shards()

    def shards_of(self, namespaces: Sequence[Path]) -> Sequence[Shard]:
        return self._inner.shards_of(namespaces)

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        began, spent, errors = time.time(), 0.0, Counter[str]()
        items = iter(self._inner.read(shard))
        try:
            while True:
                # What its consumer does between two items is not the catalog's time.
                asked = time.perf_counter()
                try:
                    with edge(self.source):
                        item = next(items, None)
                    if item is None:
                        return
                finally:
                    spent += time.perf_counter() - asked
                if isinstance(item, Coverage) and (code := _failure(item)):
                    errors[code] += 1
                yield item
        except Exception as error:
            errors[code_of(error)] += 1
            raise
        finally:
            self._meter.count(self.source, "read", spent, errors)
            name = ", ".join(path_key(namespace) or "/" for namespace in shard.namespaces[:3])
            self._meter.shard(name, began, spent, next(iter(errors), None))

    def change_cursor(self) -> str:
        with self._call("change_cursor"):
            return self._inner.change_cursor()

    def changes_since(self, cursor: str) -> Any:
        with self._call("changes_since"):
            return self._inner.changes_since(cursor)

    def observe(self, path: Path) -> Observation:
        with self._call("observe", path):
            return self._inner.observe(path)

    def ping(self) -> str:
        with self._call("ping"):
            return self._inner.ping()

    def close(self) -> None:
        self._inner.close()


def code_of(error: Exception) -> str:
    """The Lance error code of an error, as a metric's label."""
    return str(error.code if isinstance(error, CatalogError) else Internal.code)


def _failure(coverage: Coverage) -> str | None:
    """The code of a failed Coverage; a namespace that is gone is no failure of the catalog's."""
    for evidence in (coverage.presence, coverage.detail):
        if evidence.state is CoverageState.FAILED and coverage.found:
            return str(evidence.code if evidence.code is not None else Internal.code)
    return None
