"""Helpers for crawls: the evidence of one namespace, the walk over a catalog that lists names only, and the division into shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from federator.connector.errors import CatalogError, NamespaceNotFound
from federator.connector.fan_out import FanOut
from federator.connector.port import Shard
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
    failed_evidence,
    fold_digest,
    skipped_evidence,
)


class CoverageBuilder:
    """Collects the evidence of one namespace while its child records are read. ``found`` is False once it is proven absent."""

    def __init__(self, source: str, namespace: Path) -> None:
        self._source = source
        self._namespace = namespace
        self._records = self._digest = self._undescribed = 0
        self.presence: Evidence = COMPLETE
        self.detail: Evidence = COMPLETE
        self.found = True

    def read(self, records: Iterable[Record]) -> Iterator[Record | Coverage]:
        """Yield the records, then the coverage. A CatalogError that ends the records becomes failed evidence."""
        yield from self.collect(records)
        yield self.build()

    def collect(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield some of the namespace's records, and count them. A CatalogError that ends them becomes failed evidence."""
        try:
            for record in records:
                self._records += 1
                self._digest ^= fold_digest((record.digest,))
                yield record
        except CatalogError as error:
            self.fail(error)

    def fail(self, error: CatalogError) -> None:
        """Record that the namespace could not be read. NamespaceNotFound proves it absent, unless it is the root."""
        # The root's reason is the message of the source, which has a hint.
        reason = str(error) if self._namespace == ROOT else error.message
        self.presence = self.detail = failed_evidence(error.code, reason)
        self.found = self._namespace == ROOT or not isinstance(error, NamespaceNotFound)

    def skip(self, reason: str) -> None:
        """Record that the listing proves nothing."""
        self.presence = self.detail = skipped_evidence(reason)

    def undescribed_table(self, path: Path, error: CatalogError) -> TableRecord:
        """Return the record of a table that is listed, but could not be described."""
        self._fail_description(path, error)
        return TableRecord(self._source, path, kind=Kind.UNDESCRIBED, problem=error.message)

    def describe_namespaces(
        self, results: Iterable[tuple[Path, NamespaceRecord | CatalogError]], *, fatal: tuple[type[CatalogError], ...] = ()
    ) -> Iterator[NamespaceRecord]:
        """Yield the records of listed child namespaces. Raise an error of the types ``fatal``."""
        for path, result in results:
            if isinstance(result, NamespaceNotFound):
                # The namespace was dropped after the listing; its own Coverage records that.
                continue
            if isinstance(result, fatal):
                raise result
            if isinstance(result, CatalogError):
                self._fail_description(path, result)
                result = NamespaceRecord(self._source, path)
            yield result

    def build(self) -> Coverage:
        return Coverage(self._source, self._namespace, self.presence, self.detail, self._records, self._digest, self.found)

    def _fail_description(self, path: Path, error: CatalogError) -> None:
        self._undescribed += 1
        reason = f"{self._undescribed} could not be described, the last one {path[-1]!r}: {error.message}"
        self.detail = failed_evidence(error.code, reason)


def walk_namespaces(
    root: Sequence[str], list_children: Callable[[Path], list[str]], fan_out: FanOut
) -> dict[Path, list[str] | CatalogError]:
    """Return the child names of every namespace, or the error of their listing. ``root`` are the children of the root."""
    listings: dict[Path, list[str] | CatalogError] = {}
    pending: list[Path] = [(name,) for name in root]
    while pending:
        level = dict(fan_out.map_with_errors(list_children, pending))
        listings |= level
        pending = [(*path, name) for path, names in level.items() if not isinstance(names, CatalogError) for name in names]
    return listings


def distribute(namespaces: Sequence[Path], groups: int) -> list[tuple[Path, ...]]:
    """Distribute namespaces in turn over at most ``groups`` groups, because consecutive namespaces are often of similar size."""
    count = min(len(namespaces), groups)
    return [tuple(namespaces[number::count]) for number in range(count)]


def consecutive_shards(namespaces: Sequence[Path], size: int, payload: object = None) -> list[Shard]:
    """Return shards of ``size`` consecutive namespaces, with the same payload. The last one may have fewer."""
    return [Shard(tuple(namespaces[start : start + size]), payload) for start in range(0, len(namespaces), size)]
