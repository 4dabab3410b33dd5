"""What a crawl proves: presence, absence, or nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from federator.model import ROOT, Coverage, Path, iter_ancestors, path_key


def is_proven_absent(path: Path, coverage: Mapping[str, Coverage], namespaces: Container[str]) -> bool:
    """Tell whether a crawl proves that an object which it did not list does not exist.

    The nearest existing namespace above the object (the root always exists) must have been listed completely. Then either the
    object or the first missing namespace on its path was not in a complete listing. ``namespaces`` are those that the crawl listed.
    A namespace that was read without being listed (access was denied, or its parent's listing is older) counts as existing: denied
    is not absent.
    """
    for above in iter_ancestors(path):
        key = path_key(above)
        exists = key in coverage and coverage[key].found
        if above == ROOT or key in namespaces or exists:
            return key in coverage and coverage[key].complete
    return False


def is_covered(path: Path, coverage: Mapping[str, Coverage]) -> bool:
    """Tell whether the published coverage proves that an object at ``path`` exists or that it does not."""
    for above in iter_ancestors(path):
        key = path_key(above)
        if key in coverage:
            # A namespace that failed because it does not exist is judged by its parent's listing.
            if coverage[key].complete:
                return True
            if coverage[key].found:
                return False
    return False


def is_listed_empty(namespace: str, coverage: Mapping[str, Coverage]) -> bool:
    """Tell whether the last crawl saw no object in a namespace (path key): its listing was complete and empty, or the namespace was
    absent.

    Records of direct observations that are newer than the crawl do not matter: they do not show what listings return.
    """
    listing = coverage.get(namespace)
    return listing is None or (listing.complete and not listing.records)


def has_enough_misses(misses: Sequence[float], needed: int, interval: float) -> bool:
    """Tell whether ``needed`` of the misses (times in seconds, ascending) are at least ``interval`` seconds apart."""
    return count_spaced_misses(misses, interval) >= needed


def count_spaced_misses(misses: Sequence[float], interval: float) -> int:
    """Return the largest number of misses that can be chosen with at least ``interval`` seconds between two."""
    counted, last = 0, float("-inf")
    for missed_at in misses:
        if missed_at - last >= interval:
            counted, last = counted + 1, missed_at
    return counted
