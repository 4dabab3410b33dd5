"""Misses: how often crawls proved the origins of a mirror absent, and when that is forgotten."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from federator.model import Coverage, parse_key
from federator.planning.evidence import proves_absent

#: more misses of one table than any policy asks for; the first and the newest are always kept
KEPT_MISSES = 32


class Missed(NamedTuple):
    """The misses of one table (seconds, ascending), and the digest of the source's configuration that they were counted under."""

    at: Sequence[float]
    config_digest: str


@dataclass(frozen=True, slots=True)
class MissUpdate:
    """``counted``: the new misses of tables that a crawl missed, by path; ``forgotten``: paths whose misses are deleted."""

    counted: dict[str, list[float]]
    forgotten: frozenset[str]


def valid_misses(stored: Mapping[str, Missed], config_digest: str) -> dict[str, list[float]]:
    """Return the misses that count under a source's current configuration, by path: another principal may see less."""
    return {path: list(missed.at) for path, missed in stored.items() if missed.config_digest == config_digest}


def lost_origins(copied: Iterable[str], tables: Container[str]) -> set[str]:
    """Return the tables of a source that some ledger names as origin and that the index does not have: only they can be missed.
    ``index.coverage.lost_origins`` is the same in SQL."""
    return {path for path in copied if path not in tables}


def update_misses(
    stored: Mapping[str, Missed],
    config_digest: str,
    lost: Collection[str],
    coverage: Mapping[str, Coverage],
    namespaces: Container[str],
    at: float,
) -> MissUpdate:
    """Return what a crawl that began at ``at`` does to the misses of its source.

    A lost origin that the crawl proves absent is missed once more. The misses of every other path are forgotten once it is seen, or no
    ledger names it; so are misses of another configuration than the crawl's.
    """
    known = valid_misses(stored, config_digest)
    missed = (path for path in lost if proves_absent(parse_key(path), coverage, namespaces))
    counted = {path: add_miss(known.get(path, ()), at) for path in missed}
    return MissUpdate(counted, frozenset(path for path in stored if path not in known or path not in lost))


def add_miss(misses: Sequence[float], at: float) -> list[float]:
    """Return the misses with one more at the end; beyond ``KEPT_MISSES``, the one before it is left out.

    Misses later than ``at`` were counted by a clock that went back. They are forgotten, since no miss could follow them for so long.
    """
    added = [*(miss for miss in misses if miss <= at), at]
    if len(added) > KEPT_MISSES:
        del added[-2]
    return added
