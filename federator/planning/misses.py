"""Misses: how often crawls proved the origins of a mirror absent, and when misses are forgotten."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from federator.model import Coverage, parse_path_key
from federator.planning.evidence import is_proven_absent

#: the number of misses kept of one table, more than any policy needs; the first and the newest are always kept
MAX_MISSES = 32


class Missed(NamedTuple):
    """The misses of one table (seconds, ascending), and the digest of the source's configuration at that time."""

    at: Sequence[float]
    config_digest: str


@dataclass(frozen=True, slots=True)
class MissUpdate:
    """``counted``: by path, the misses of tables that a crawl missed. ``forgotten``: paths whose misses are deleted."""

    counted: dict[str, list[float]]
    forgotten: frozenset[str]

    def applied(self, stored: Mapping[str, Missed], config_digest: str) -> dict[str, Missed]:
        """Return the stored misses after the update. ``config_digest`` is the configuration of the crawl."""
        remaining = {path: missed for path, missed in stored.items() if path not in self.forgotten}
        return remaining | {path: Missed(at, config_digest) for path, at in self.counted.items()}


def valid_misses(stored: Mapping[str, Missed], config_digest: str) -> dict[str, list[float]]:
    """Return the misses that count under a source's current configuration, by path. With other credentials a crawl may see less."""
    return {path: list(missed.at) for path, missed in stored.items() if missed.config_digest == config_digest}


def update_misses(
    stored: Mapping[str, Missed],
    config_digest: str,
    lost: Collection[str],
    coverage: Mapping[str, Coverage],
    namespaces: Container[str],
    started_at: float,
) -> MissUpdate:
    """Return the effect of a crawl that started at ``started_at`` on the misses of its source.

    A lost origin that the crawl proves absent gets one more miss. The misses of any other path are forgotten, because it was seen
    or no ledger names it. Misses of another configuration than the crawl's are also forgotten.
    """
    known = valid_misses(stored, config_digest)
    missed = (path for path in lost if is_proven_absent(parse_path_key(path), coverage, namespaces))
    counted = {path: add_miss(known.get(path, ()), started_at) for path in missed}
    return MissUpdate(counted, frozenset(path for path in stored if path not in known or path not in lost))


def forget_all(stored: Iterable[str]) -> MissUpdate:
    """Return the effect of confirming another catalog on the misses of its source: they were the old catalog's, and are forgotten."""
    return MissUpdate({}, frozenset(stored))


def add_miss(misses: Sequence[float], missed_at: float) -> list[float]:
    """Return the misses with one more at the end. Beyond ``MAX_MISSES``, the one before it is omitted.

    Misses later than ``missed_at`` come from a clock that was set back. They are forgotten, because no miss could follow them for a
    long time.
    """
    added = [*(miss for miss in misses if miss <= missed_at), missed_at]
    if len(added) > MAX_MISSES:
        del added[-2]
    return added
