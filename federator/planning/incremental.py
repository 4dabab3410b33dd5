"""The reading scope of an incremental crawl: everything, or only the namespaces and tables that need it. Pure.

::

    situation                                               read again
    ------------------------------------------------------  -----------------------------------------------------------
    an event names a namespace                              it, the known namespaces below it, and its parent's listing
    an event names a table                                  it, by its name; its namespace if no listing covers that
    a table of the index is no longer there by its name     the names of its namespace: only a listing proves that it is gone
    an origin of a mirror is no longer there by its name    its namespace: only that counts as a miss
    a namespace was not read completely the last time       it
    a namespace is in the index, and no listing covers it   it, and its parent's listing
    a namespace was listed, and its parent was not          both
    an origin is absent, and needs more misses              the nearest known namespace above it
    none of these                                           nothing: carried evidence, which never proves absence

A namespace that the index does not have is read together with its ancestors, up to one that the index has: the record of a
namespace is in its parent's listing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from federator.connector import CatalogChanges
from federator.model import ROOT, Coverage, Path, iter_ancestors, parent_path, parse_path_key, path_key
from federator.model.text import is_storable
from federator.planning.evidence import has_enough_misses
from federator.planning.rule import MirrorRule


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedState:
    """How far a source was followed.

    ``cursor`` is a position in its change feed. ``full_at`` and ``full_config`` are the time (seconds since 1970) and the
    configuration of its last full crawl. ``full_config`` is None if a crawl has failed since.
    """

    cursor: str | None = None
    full_at: float | None = None
    full_config: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedSource:
    """The published state of a source in the index, which decides what an incremental crawl reads again.

    ``coverage`` is that of its published revision, ``namespaces`` are path keys, and ``pending`` are origins of mirrors that need
    more misses. ``named`` are the tables that the change feed names and the index has, and ``origins`` those that the feed names and a
    mirror has declared in its target.
    """

    coverage: Mapping[str, Coverage]
    namespaces: Collection[str]
    pending: Collection[Path] = ()
    named: Collection[Path] = ()
    origins: Collection[Path] = ()


@dataclass(frozen=True, slots=True)
class NamedTables:
    """Tables of one namespace that are read by name, because a change feed names them. Picklable.

    ``expected`` are those of the index. One of them that is not there is gone if a listing of the names omits it, too. ``origins`` are
    those that a mirror has declared in its target: if one is not there, the namespace is read as a whole.
    """

    namespace: Path
    names: tuple[str, ...]
    expected: frozenset[str]
    origins: frozenset[str] = frozenset()

    @property
    def namespaces(self) -> tuple[Path, ...]:
        """The namespaces that fail if this cannot be read, as of a ``Shard``."""
        return (self.namespace,)

    @property
    def keys(self) -> list[str]:
        """The path keys of the tables."""
        return [path_key((*self.namespace, name)) for name in self.names]


def full_crawl_reason(state: FeedState, *, config: str, interval: float, now: float, requested: bool) -> str | None:
    """Return why a full crawl is needed. None if the change feed may be used. Empty for the first crawl."""
    if requested:
        return "it was requested"
    if state.full_at is None:
        return ""
    if state.full_config is None:
        return "the last crawl could not read the source"
    if state.full_config != config:
        return "the source's configuration has changed"
    if state.cursor is None:
        return "the last crawl stored no cursor of the change feed"
    if not 0 <= now - state.full_at < interval:
        return f"a full crawl is due every {interval:g} s"
    return None


def origins_needing_misses(
    lost: Iterable[str], misses: Mapping[str, Sequence[float]], rules: Iterable[MirrorRule]
) -> frozenset[Path]:
    """Return the origins (path keys) absent from the index for which the strictest mirror needs more misses."""
    all_rules = list(rules)
    if not all_rules:
        return frozenset()
    needed = max(rule.misses_before_delete for rule in all_rules)
    interval = max(rule.min_miss_interval for rule in all_rules)
    return frozenset(parse_path_key(path) for path in lost if not has_enough_misses(misses.get(path, ()), needed, interval))


def namespaces_to_read(changes: CatalogChanges, known: IndexedSource) -> frozenset[Path]:
    """Return the namespaces that a crawl must read as a whole. The evidence of the others may be carried.

    No crawl reads an unstorable path.
    """
    covered = {coverage.namespace for coverage in known.coverage.values()}
    recorded = {parse_path_key(key) for key in known.namespaces}
    existing = covered | recorded | {ROOT}
    # In the order of the module's table.
    to_read = {path for path in existing if not changes.namespaces.isdisjoint(iter_ancestors(path))}
    for namespace in changes.namespaces:
        to_read |= {namespace, parent_path(namespace)}
    to_read |= {parent_path(table) for table in changes.tables} - covered
    to_read |= {
        coverage.namespace
        for coverage in known.coverage.values()
        if not (coverage.presence.complete_or_carried and coverage.detail.complete_or_carried)
    }
    for path in existing - covered:
        to_read |= {path, parent_path(path)}
    for path in covered - {ROOT}:
        if parent_path(path) not in covered:
            to_read |= {path, parent_path(path)}
    to_read |= {next(above for above in iter_ancestors(path) if above in existing) for path in known.pending}
    for path in list(to_read):
        step = path
        while step != ROOT and step not in recorded:
            step = parent_path(step)
            to_read.add(step)
    return frozenset(path for path in to_read if is_storable("".join(path)))


def tables_to_read(changes: CatalogChanges, known: IndexedSource, namespaces: Collection[Path]) -> list[NamedTables]:
    """Return the tables that a crawl reads by name. ``namespaces`` are read as a whole."""
    by_namespace: dict[Path, list[str]] = {}
    for table in sorted(changes.tables):
        if parent_path(table) not in namespaces and is_storable("".join(table)):
            by_namespace.setdefault(parent_path(table), []).append(table[-1])

    def select(namespace: Path, names: list[str], paths: Collection[Path]) -> frozenset[str]:
        return frozenset(name for name in names if (*namespace, name) in paths)

    expected, origins = frozenset(known.named), frozenset(known.origins)
    return [
        NamedTables(namespace, tuple(names), select(namespace, names, expected), select(namespace, names, origins))
        for namespace, names in by_namespace.items()
    ]


def carried_coverage(coverage: Mapping[str, Coverage], read: Collection[Path], revision: int) -> dict[str, Coverage]:
    """Return the coverage of the namespaces that are not read, as carried. ``revision`` is the revision of ``coverage``."""
    return {path_key(entry.namespace): entry.as_carried(revision) for entry in coverage.values() if entry.namespace not in read}
