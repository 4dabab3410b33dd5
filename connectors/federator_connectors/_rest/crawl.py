"""The crawl: namespaces are walked while the shards are cut, tables are listed and described inside the shards.

The protocol lists names only, so that each table and each namespace costs a request beside the listings; a bounded number of them
is under way at once. A namespace without tables is looked at once more, since a server may list a missing one as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from federator.connector import Catalog, CatalogError, NamespaceNotFound, Shard
from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    Evidence,
    Kind,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed,
    fold_digest,
)

_NAMESPACES_PER_SHARD = 20
#: how many tables are described before their records are handed over
_AT_ONCE = 200

T = TypeVar("T")


@dataclass(frozen=True)
class Walked:
    """The payload of a shard: what the walk found in each of its namespaces."""

    children: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    problems: dict[Path, tuple[Evidence, bool]] = field(default_factory=dict)


class FanOut:
    """Calls with a bounded number under way at once. Its threads start with the first use and end with ``close``."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._threads: ThreadPoolExecutor | None = None

    def map(self, call: Callable[[Path], T], paths: Sequence[Path]) -> Iterator[T]:
        """The results in the order of ``paths``."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._width, thread_name_prefix="rest")
        for start in range(0, len(paths), _AT_ONCE):
            yield from self._threads.map(call, paths[start : start + _AT_ONCE])

    def close(self) -> None:
        """Harmless twice."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()


def shards(children: Callable[[Path], list[str]]) -> list[Shard]:
    """Every namespace in some shard; one that cannot be listed is a failed Coverage there. Raises CatalogError for the root's.

    ``children`` may list a missing namespace as empty: reading the shard looks at it again.
    """
    found: dict[Path, tuple[str, ...]] = {ROOT: tuple(children(ROOT))}
    problems: dict[Path, tuple[Evidence, bool]] = {}
    waiting: list[Path] = [(name,) for name in sorted(found[ROOT])]
    while waiting:
        path = waiting.pop(0)
        try:
            found[path] = tuple(sorted(children(path)))
        except CatalogError as error:
            found[path] = ()
            problems[path] = _problem(error)
        waiting += [(*path, name) for name in found[path]]
    paths = list(found)
    return [
        _shard(paths[start : start + _NAMESPACES_PER_SHARD], found, problems)
        for start in range(0, len(paths), _NAMESPACES_PER_SHARD)
    ]


def read(catalog: Catalog, shard: Shard, fan_out: FanOut) -> Iterator[Record | Coverage]:
    """See ``Catalog.read``."""
    walked: Walked = shard.payload
    for namespace in shard.namespaces:
        yield from _one(catalog, namespace, walked, fan_out)


def _one(catalog: Catalog, namespace: Path, walked: Walked, fan_out: FanOut) -> Iterator[Record | Coverage]:
    digests: list[str] = []
    details: list[Evidence] = []
    presence, found = walked.problems.get(namespace, (COMPLETE, True))
    try:
        # A namespace that the walk could not list may still tell its tables.
        tables = [(*namespace, name) for name in sorted(catalog.list_tables(namespace))] if found else []
    except CatalogError as error:
        tables = []
        presence, found = _problem(error)
    children = [(*namespace, name) for name in walked.children.get(namespace, ())]
    for record, problem in _records(catalog, children, tables, fan_out):
        if problem is not None:
            details.append(problem)
        if record is not None:
            digests.append(record.digest)
            yield record
    detail = presence if not presence.complete else (details[0] if details else COMPLETE)
    yield Coverage(catalog.source, namespace, presence, detail, len(digests), fold_digest(digests), found)


def _records(
    catalog: Catalog, children: Sequence[Path], tables: Sequence[Path], fan_out: FanOut
) -> Iterator[tuple[Record | None, Evidence | None]]:
    def namespace(path: Path) -> tuple[Record | None, Evidence | None]:
        try:
            return catalog.describe_namespace(path), None
        except NamespaceNotFound:
            return None, None
        except CatalogError as error:
            return NamespaceRecord(catalog.source, path), failed(error.code, error.message)

    def table(path: Path) -> tuple[Record | None, Evidence | None]:
        try:
            return catalog.describe_table(path), None
        except CatalogError as error:
            # Also where it says "not found": the listing named it, and only the next listing says that it has gone.
            record = TableRecord(catalog.source, path, kind=Kind.UNDESCRIBED, problem=error.message)
            return record, failed(error.code, error.message)

    yield from fan_out.map(namespace, children)
    yield from fan_out.map(table, tables)


def _shard(paths: Sequence[Path], found: dict[Path, tuple[str, ...]], problems: dict[Path, tuple[Evidence, bool]]) -> Shard:
    children = {path: found[path] for path in paths}
    return Shard(tuple(paths), Walked(children, {path: problems[path] for path in paths if path in problems}))


def _problem(error: CatalogError) -> tuple[Evidence, bool]:
    return failed(error.code, error.message), not isinstance(error, NamespaceNotFound)
