"""Publication rules: the effect of a crawled or observed record on the indexed one, and the records that a crawl removes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from federator.model import Coverage, Kind, Path, Record, parse_path_key, path_key
from federator.planning.evidence import is_proven_absent


class Effect(StrEnum):
    """The effect of a crawl on one object.

    Only the first three differ from the index. ``missing`` removes an object only if its absence is proven.
    """

    ADDED = "added"
    CHANGED = "changed"
    MISSING = "missing"
    UNCHANGED = "unchanged"
    #: the crawl read the object, or its namespace, before the index last observed it directly
    OUTDATED = "outdated"
    #: the object was listed but could not be described; the index has its description
    UNDESCRIBED = "undescribed"


class Version(NamedTuple):
    """One object in the index or in a crawl.

    ``at`` is the time of the index's last direct observation, or the time when the crawl started to read the object (seconds).
    None: never observed, or unknown.
    """

    kind: Kind | str
    digest: str
    at: float | None = None


def compare_versions(indexed: Version | None, crawled: Version | None, started_at: float) -> Effect:
    """Return the effect of a crawl that started at ``started_at`` on one object. At least one version must exist.

    ``pipeline.diff.effect_column`` is the same rule in Spark.
    """
    if indexed is None:
        return Effect.ADDED
    if crawled is not None and crawled.digest == indexed.digest:
        return Effect.UNCHANGED
    read_at = crawled.at if crawled is not None and crawled.at is not None else started_at
    if is_outdated(read_at, indexed.at):
        return Effect.OUTDATED
    if crawled is None:
        return Effect.MISSING
    if loses_description(indexed.kind, crawled.kind):
        return Effect.UNDESCRIBED
    return Effect.CHANGED


def is_outdated(read_at: float, observed_at: float | None) -> bool:
    """Tell whether evidence that was read from ``read_at`` on is older than the last direct observation of the object.

    Outdated evidence neither removes nor replaces the record.
    """
    return observed_at is not None and read_at < observed_at


def known_time(observed_at: float | None, now: float) -> float | None:
    """Return the time of an observation. None if it is later than ``now``: the clock was set back, and the order is unknown.

    A crawl then counts as newer evidence. Otherwise it could not change the object until the clock has caught up.
    """
    return observed_at if observed_at is not None and observed_at <= now else None


def loses_description(indexed: Kind | str, crawled: Kind | str) -> bool:
    """Tell whether an object that was listed but not described would replace a description."""
    return crawled == Kind.UNDESCRIBED and indexed != Kind.UNDESCRIBED


def removable(
    missing: Iterable[tuple[int, str]], coverage: Mapping[str, Coverage], namespaces: Container[str], named: Container[str] = ()
) -> list[tuple[int, str]]:
    """Return the missing objects, as ``(is_table, path)``, that the crawl proves absent.

    ``named`` are tables that were read by name, and that a listing of their names omits if they did not arrive.
    """
    return [
        (is_table, key)
        for is_table, key in missing
        if (is_table and key in named) or is_proven_absent(parse_path_key(key), coverage, namespaces)
    ]


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """One object as a direct observation found it at a time. ``record`` is None if it is absent."""

    path: Path
    record: Record | None
    at: float
    is_table: bool

    @property
    def key(self) -> tuple[int, str]:
        """The key in the index: ``(is_table, path)``."""
        return int(self.is_table), path_key(self.path)


def changed_observations(
    observations: Iterable[ObservedObject], indexed: Mapping[tuple[int, str], str | None]
) -> dict[tuple[int, str], ObservedObject]:
    """Return the newest observation of each object that differs from the index.

    ``indexed`` are the index's digests by ``ObservedObject.key``.
    """
    newest = {observation.key: observation for observation in observations}
    return {
        key: observation
        for key, observation in newest.items()
        if indexed[key] != (observation.record.digest if observation.record else None)
    }
