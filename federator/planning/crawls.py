"""Crawl validation: the evidence of a crawl, from the coverage that its shards stated and the records that arrived.

The coverage of each namespace is checked against the records that arrived with it. A namespace whose records do not match its
coverage, or that two shards covered, proves nothing. Every listed namespace has a coverage afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from federator.connector.errors import Internal
from federator.model import (
    ROOT,
    Coverage,
    CoverageState,
    Evidence,
    failed_evidence,
    fold_digest,
    parent_path,
    parse_path_key,
    path_key,
    skipped_evidence,
)
from federator.planning.evidence import is_proven_absent

_ROOT = path_key(ROOT)
#: the evidence that a shard states of a namespace from which it read only named tables; the known coverage of the namespace is carried
READ_BY_NAME = Evidence(CoverageState.CARRIED)


@dataclass(slots=True)
class Arrival:
    """The arrived parts of one namespace.

    ``stated`` is the coverage that a shard stated (None: no shard did), and ``times`` is how many shards did. ``records`` and
    ``fold`` are the number and the folded digests of the records directly below it. ``listed`` says whether a record of the
    namespace itself arrived.
    """

    stated: Coverage | None = None
    times: int = 0
    records: int = 0
    fold: int = 0
    listed: bool = False


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """The evidence of one source's crawl.

    ``coverage`` is by namespace, without those that are proven absent. ``namespaces`` are the listed ones, and ``read`` those that
    the crawl was to read (None: all), as path keys.
    """

    coverage: dict[str, Coverage]
    namespaces: frozenset[str]
    read: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ArrivalCollector:
    """Groups what arrived of a crawl by namespace (path key)."""

    arrivals: dict[str, Arrival] = field(default_factory=dict)

    def add_coverage(self, coverage: Coverage) -> None:
        arrival = self._arrival_of(coverage.key)
        arrival.stated = arrival.stated or coverage
        arrival.times += 1

    def add_record(self, key: str, parent: str, digest: str, *, is_namespace: bool) -> None:
        """Add the record with the path key ``key``, directly below the namespace ``parent``."""
        arrival = self._arrival_of(parent)
        arrival.records += 1
        arrival.fold ^= fold_digest((digest,))
        if is_namespace:
            self._arrival_of(key).listed = True

    def _arrival_of(self, key: str) -> Arrival:
        arrival = self.arrivals.get(key)
        if arrival is None:
            arrival = self.arrivals[key] = Arrival()
        return arrival


def validate_arrivals(
    source: str,
    arrivals: Mapping[str, Arrival],
    *,
    read: Collection[str] | None = None,
    carried: Mapping[str, Coverage] | None = None,
    named: Collection[str] = (),
) -> SourceEvidence:
    """Return the evidence of a crawl.

    ``read``, ``carried`` and ``named`` are set for an incremental crawl: the namespaces that it was to read as a whole (None: all),
    the coverage of the others, and those of the others from which it was to read tables by name.
    """
    carried = carried or {}
    coverage = _check_arrivals(source, arrivals, carried, named)
    listed = frozenset(key for key, arrival in arrivals.items() if arrival.listed)
    if read is not None:
        coverage = _add_carried(source, coverage, listed, read, carried)
        read = {*read, *(key for key, row in coverage.items() if carried.get(key) != row)}
    if _ROOT not in coverage:
        coverage[_ROOT] = check_coverage(source, _ROOT, Arrival())
    absent = {
        key
        for key, row in coverage.items()
        if not row.found and key not in listed and is_proven_absent(row.namespace, coverage, listed)
    }
    existing = {key: row for key, row in coverage.items() if key not in absent}
    return SourceEvidence(existing, listed, None if read is None else frozenset(read))


def _check_arrivals(
    source: str, arrivals: Mapping[str, Arrival], carried: Mapping[str, Coverage], named: Collection[str]
) -> dict[str, Coverage]:
    """Return the coverage of the namespaces of which something arrived, without those whose tables were read by name as expected."""
    coverage: dict[str, Coverage] = {}
    for key, arrival in arrivals.items():
        if arrival.stated is None and not arrival.records and key in carried:
            # Only its own record arrived, with the listing of its parent.
            continue
        checked = check_coverage(source, key, arrival)
        if checked.presence != READ_BY_NAME:
            coverage[key] = checked
        elif key not in named:
            coverage[key] = _invalid(checked, "no table of it was to be read by name")
    unstated = failed_evidence(Internal.code, "the crawl ended without stating whether its tables were read by name")
    for key in named:
        if key not in arrivals or arrivals[key].stated is None:
            coverage[key] = Coverage(source, parse_path_key(key), unstated, unstated)
    return coverage


def unread_coverage(source: str, code: int, reason: str) -> Coverage:
    """Return the coverage of a source that could not be read, or whose crawl does not count: it proves nothing."""
    evidence = failed_evidence(code, reason)
    return Coverage(source, ROOT, evidence, evidence)


def list_failures(coverage: Mapping[str, Coverage]) -> list[Coverage]:
    """Return the coverage that should prove which objects exist, and does not.

    A connector skips the listing of the root if the source's configuration names its children: that is no failure. Children that
    the configuration does not name stay unknown.
    """
    return [
        row
        for row in coverage.values()
        if not (row.complete_or_carried or (row.namespace == ROOT and row.presence.state is CoverageState.SKIPPED))
    ]


def is_failed(coverage: Mapping[str, Coverage]) -> bool:
    """Tell whether a crawl failed as a whole: the root could not be listed. The position in the change feed then stays."""
    return any(failure.namespace == ROOT for failure in list_failures(coverage))


def check_coverage(source: str, key: str, arrival: Arrival) -> Coverage:
    """Return the coverage of one namespace: as stated, or failed if the arrived records do not match it."""
    stated = arrival.stated
    if stated is None and key == _ROOT:
        return unread_coverage(source, Internal.code, "the crawl ended without stating coverage of the root")
    if stated is None:
        return Coverage(source, parse_path_key(key), skipped_evidence("it appeared during the crawl"))
    if arrival.times > 1:
        return _invalid(stated, "two shards covered it")
    if stated.presence.complete_or_carried and (arrival.records, arrival.fold) != (stated.records, stated.digest):
        return _invalid(stated, f"{stated.records} records were read and {arrival.records} arrived")
    return stated


def _invalid(stated: Coverage, reason: str) -> Coverage:
    evidence = failed_evidence(Internal.code, reason)
    return replace(stated, presence=evidence, detail=evidence)


def _add_carried(
    source: str, stated: Mapping[str, Coverage], listed: Collection[str], read: Iterable[str], carried: Mapping[str, Coverage]
) -> dict[str, Coverage]:
    """Add the coverage of namespaces that no shard covered: carried, unless the parent's complete listing omits them."""
    unstated = failed_evidence(Internal.code, "the crawl ended without stating its coverage")
    vanished = skipped_evidence("it disappeared during the crawl")
    coverage = {key: Coverage(source, parse_path_key(key), unstated, unstated) for key in read}
    for key, known in carried.items():
        parent = stated.get(path_key(parent_path(known.namespace))) if known.namespace != ROOT else None
        absent = parent is not None and parent.complete and key not in listed
        coverage[key] = Coverage(source, known.namespace, vanished, vanished) if absent else known
    return {**coverage, **stated}
