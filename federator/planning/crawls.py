"""Crawl validation: what a crawl proves, by the Coverage that its shards stated and the records that arrived.

Each namespace's Coverage is checked against the records that arrived with it. A namespace whose records do not add up, or that two
shards covered, proves nothing. Every namespace that was listed has a Coverage afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from federator.connector.errors import Internal
from federator.model import (
    ROOT,
    Coverage,
    NamespaceRecord,
    Record,
    failed,
    fold_digest,
    parent,
    parse_key,
    path_key,
    skipped,
)

_ROOT = path_key(ROOT)


@dataclass(slots=True)
class Arrival:
    """What arrived of one namespace.

    ``stated``: the Coverage that a shard stated for it (None: no shard did), and ``times``: how many shards did. ``records`` and
    ``fold``: number and folded digests of the records directly below it. ``listed``: a record of the namespace itself arrived.
    """

    stated: Coverage | None = None
    times: int = 0
    records: int = 0
    fold: int = 0
    listed: bool = False


@dataclass(frozen=True, slots=True)
class CrawlEvidence:
    """What a crawl proves: Coverage by namespace, the namespaces that were listed, and the namespaces that were to be read (None:
    all), each in text form."""

    coverage: dict[str, Coverage]
    namespaces: frozenset[str]
    read: frozenset[str] | None = None


def collect_arrivals(items: Iterable[Record | Coverage]) -> dict[str, Arrival]:
    """Group what the shards of a crawl handed over by namespace (text form). ``pipeline.normalise`` does the same in Spark."""
    arrivals: dict[str, Arrival] = {}

    def of(key: str) -> Arrival:
        found = arrivals.get(key)
        if found is None:
            found = arrivals[key] = Arrival()
        return found

    for item in items:
        if isinstance(item, Coverage):
            arrival = of(item.key)
            arrival.stated = arrival.stated or item
            arrival.times += 1
            continue
        above = of(path_key(parent(item.path)))
        above.records += 1
        above.fold ^= fold_digest((item.digest,))
        if isinstance(item, NamespaceRecord):
            of(item.key).listed = True
    return arrivals


def validate_crawl(
    source: str,
    arrivals: Mapping[str, Arrival],
    *,
    read: Collection[str] | None = None,
    carried: Mapping[str, Coverage] | None = None,
) -> CrawlEvidence:
    """Return what a crawl proves.

    ``read`` and ``carried`` are set for a crawl that leaves namespaces out: the namespaces that were to be read (None: all), and the
    Coverage of the others.
    """
    carried = carried or {}
    coverage: dict[str, Coverage] = {}
    for key, arrival in arrivals.items():
        if arrival.stated is None and not arrival.records and key in carried:
            continue
        coverage[key] = check_coverage(source, key, arrival)
    listed = frozenset(key for key, arrival in arrivals.items() if arrival.listed)
    if read is not None:
        coverage = _add_carried(source, coverage, listed, read, carried)
        read = {*read, *(key for key, proven in coverage.items() if carried.get(key) != proven)}
    if _ROOT not in coverage:
        coverage[_ROOT] = Coverage(source, ROOT, failed(Internal.code, "the crawl ended without a word on the root"))
    # A namespace that is neither listed nor failing does not exist; its parent's Coverage says so.
    kept = {key: c for key, c in coverage.items() if key in listed or key == _ROOT or c.found}
    return CrawlEvidence(kept, listed, None if read is None else frozenset(read))


def unread(source: str, code: int, reason: str) -> Coverage:
    """Return all that is known of a source that could not be read, or whose crawl does not count: nothing."""
    evidence = failed(code, reason)
    return Coverage(source, ROOT, evidence, evidence)


def check_coverage(source: str, key: str, arrival: Arrival) -> Coverage:
    """Return the Coverage of one namespace: as it was stated, or failed where the records that arrived do not add up to it."""
    stated = arrival.stated
    if stated is None:
        return Coverage(source, parse_key(key), skipped("it appeared while the crawl was running"))
    if arrival.times > 1:
        return _invalid(stated, "two shards covered it")
    if stated.complete and (arrival.records, arrival.fold) != (stated.records, stated.digest):
        return _invalid(stated, f"{stated.records} records were read and {arrival.records} arrived")
    return stated


def _invalid(stated: Coverage, reason: str) -> Coverage:
    evidence = failed(Internal.code, reason)
    return replace(stated, presence=evidence, detail=evidence)


def _add_carried(
    source: str, stated: Mapping[str, Coverage], listed: Collection[str], read: Iterable[str], carried: Mapping[str, Coverage]
) -> dict[str, Coverage]:
    """Add the Coverage of namespaces that no shard covered: carried, except where a complete listing of the parent leaves them out."""
    silent = failed(Internal.code, "the crawl ended without a word on it")
    vanished = skipped("it went away while the crawl was running")
    coverage = {key: Coverage(source, parse_key(key), silent, silent) for key in read}
    for key, known in carried.items():
        above = stated.get(path_key(parent(known.namespace))) if known.namespace != ROOT else None
        absent = above is not None and above.complete and key not in listed
        coverage[key] = Coverage(source, known.namespace, vanished, vanished) if absent else known
    return {**coverage, **stated}
