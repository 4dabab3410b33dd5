"""What a crawl of a source with a feed of changes has to read: everything, or the namespaces that something speaks for. Pure.

::

    what is known                                           read again
    ------------------------------------------------------  -----------------------------------------------------
    an event names a namespace                              it, what is known below it, and the listing it stands in
    an event names a table                                  its namespace
    it was not read whole the last time                     it
    it is in the index, and no listing covers it            it, and the listing it stands in
    it was listed, and the one above it was not             both
    an origin is gone and not yet proven gone often enough  the nearest namespace above it that is known
    nothing of all this                                     nothing: its evidence is carried, which never proves absence

A namespace that the index does not have is read together with those above it, up to one that the index has: the record of a namespace
is in the listing of the one above.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from federator.connector import Changes
from federator.model import ROOT, Coverage, Path, ancestors, parent, parse_key, path_key
from federator.planning.evidence import enough_misses
from federator.planning.rule import MirrorRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How far a source was followed: the cursor of its feed, and its last crawl that read everything (when, in seconds since 1970, and
    with which configuration)."""

    cursor: str | None = None
    full_at: float | None = None
    full_config: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the index has of a source: the Coverage of its published revision, its namespaces in text form, and origins of mirrors that
    have to be missed again."""

    coverage: Mapping[str, Coverage]
    namespaces: Collection[str]
    pending: Collection[Path] = ()


def full_because(followed: Followed, *, config: str, every: float, now: float, asked: bool) -> str | None:
    """Why everything has to be read, whatever the feed says; None if the feed may be asked. Empty where it is the first time."""
    if asked:
        return "it was asked for"
    if followed.full_at is None:
        return ""
    if followed.full_config != config:
        return "the source's configuration has changed"
    if followed.cursor is None:
        return "the last crawl has left no place in the feed of changes to go on from"
    if not 0 <= now - followed.full_at < every:
        return f"everything is read every {every:g} s"
    return None


def pending_origins(lost: Iterable[str], misses: Mapping[str, Sequence[float]], rules: Iterable[MirrorRule]) -> frozenset[Path]:
    """Of origins (text form) that are not in the index any more, those that the strictest of the mirrors wants to miss again."""
    strictest = list(rules)
    if not strictest:
        return frozenset()
    needed = max(rule.misses_before_delete for rule in strictest)
    interval = max(rule.min_miss_interval for rule in strictest)
    return frozenset(parse_key(path) for path in lost if not enough_misses(misses.get(path, ()), needed, interval))


def to_read(changes: Changes, known: Known) -> frozenset[Path]:
    """The namespaces that a crawl has to read; what is known of the others may be carried."""
    covered = {coverage.namespace for coverage in known.coverage.values()}
    recorded = {parse_key(key) for key in known.namespaces}
    there = covered | recorded | {ROOT}
    wanted = {parent(table) for table in changes.tables}
    for named in changes.namespaces:
        wanted |= {named, parent(named)}
    wanted |= {path for path in there if not changes.namespaces.isdisjoint(ancestors(path))}
    wanted |= {each.namespace for each in known.coverage.values() if not (each.presence.holds and each.detail.holds)}
    for path in there - covered:
        wanted |= {path, parent(path)}
    for path in covered - {ROOT}:
        if parent(path) not in covered:
            wanted |= {path, parent(path)}
    wanted |= {next(above for above in ancestors(path) if above in there) for path in known.pending}
    for path in list(wanted):
        step = path
        while step != ROOT and step not in recorded:
            step = parent(step)
            wanted.add(step)
    return frozenset(wanted)


def carried(coverage: Mapping[str, Coverage], read: Collection[Path], revision: int) -> dict[str, Coverage]:
    """What is known of the namespaces that are not read; ``revision`` is the one that ``coverage`` is of."""
    return {path_key(each.namespace): each.carried_from(revision) for each in coverage.values() if each.namespace not in read}
