"""Publication rules: what a crawled or observed record does to the indexed one, and which indexed records a crawl removes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from federator.model import Coverage, Kind, Path, Record, parse_key, path_key
from federator.planning.evidence import proves_absent


class Effect(StrEnum):
    """The effect of a crawl on one object. Only the first three differ from the index; ``missing`` removes only where absence is
    proven."""

    ADDED = "added"
    CHANGED = "changed"
    MISSING = "missing"
    UNCHANGED = "unchanged"
    #: the crawl read it, or its namespace, before the index last observed it directly
    OUTDATED = "outdated"
    #: it was listed and could not be described; the index has it described
    UNDESCRIBED = "undescribed"


class Version(NamedTuple):
    """One object as the index or a crawl has it. ``at``: when the index last observed it directly, or when the crawl began to read it
    (seconds; None: never, and unknown)."""

    kind: Kind | str
    digest: str
    at: float | None = None


def compare(indexed: Version | None, crawled: Version | None, began_at: float) -> Effect:
    """Return the effect of a crawl that began at ``began_at`` on one object; at least one of both versions is there.

    ``pipeline.diff.effect_column`` is the same in Spark.
    """
    if indexed is None:
        return Effect.ADDED
    if crawled is not None and crawled.digest == indexed.digest:
        return Effect.UNCHANGED
    read_at = crawled.at if crawled is not None and crawled.at is not None else began_at
    if is_outdated(read_at, indexed.at):
        return Effect.OUTDATED
    if crawled is None:
        return Effect.MISSING
    if loses_description(indexed.kind, crawled.kind):
        return Effect.UNDESCRIBED
    return Effect.CHANGED


def is_outdated(read_at: float, observed_at: float | None) -> bool:
    """Whether evidence whose reading began at ``read_at`` is older than the last direct observation of the object: then it neither
    removes nor replaces the record."""
    return observed_at is not None and read_at < observed_at


def known_time(observed_at: float | None, now: float) -> float | None:
    """Return the time of an observation; None if it is later than ``now``: the clock went back, and the order of both is unknown.

    A crawl is newer evidence then. Otherwise it would change nothing of the object until the clock is there again.
    """
    return observed_at if observed_at is not None and observed_at <= now else None


def loses_description(indexed: Kind | str, crawled: Kind | str) -> bool:
    """Whether a listed object that could not be described would replace a description."""
    return crawled == Kind.UNDESCRIBED and indexed != Kind.UNDESCRIBED


def removable(
    missing: Iterable[tuple[int, str]], coverage: Mapping[str, Coverage], namespaces: Container[str]
) -> list[tuple[int, str]]:
    """Return those of the missing objects, as ``(is_table, path)``, that the crawl proves absent."""
    return [key for key in missing if proves_absent(parse_key(key[1]), coverage, namespaces)]


@dataclass(frozen=True, slots=True)
class Observed:
    """One object as a direct look found it at a time; ``record`` is None where it is absent."""

    path: Path
    record: Record | None
    at: float
    is_table: bool

    @property
    def key(self) -> tuple[int, str]:
        """``(is_table, path)``, as the index has it."""
        return int(self.is_table), path_key(self.path)


def changed_observations(
    seen: Iterable[Observed], indexed: Mapping[tuple[int, str], str | None]
) -> dict[tuple[int, str], Observed]:
    """Return the newest observation of each object that differs from the index. ``indexed``: the digests there, by ``Observed.key``."""
    newest = {look.key: look for look in seen}
    return {key: look for key, look in newest.items() if indexed[key] != (look.record.digest if look.record else None)}
