"""What a crawl proves: presence, absence, or nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from federator.model import ROOT, Coverage, Path, ancestors, path_key


def proves_absent(path: Path, coverage: Mapping[str, Coverage], namespaces: Container[str]) -> bool:
    """Whether a crawl proves that an object it did not list does not exist.

    The nearest namespace above that does exist (the root always does) must have been listed completely: then either the object or
    the first missing namespace on the way to it was not in a complete listing. ``namespaces`` are those that the crawl found; one
    that was read without being listed (it was denied, or its parent's listing is older) counts as there: denied is not absent.
    """
    for above in ancestors(path):
        key = path_key(above)
        there = key in coverage and coverage[key].found
        if above == ROOT or key in namespaces or there:
            return key in coverage and coverage[key].complete
    return False


def covered(path: Path, coverage: Mapping[str, Coverage]) -> bool:
    """Whether the published state says for certain whether an object at ``path`` exists."""
    for above in ancestors(path):
        key = path_key(above)
        if key in coverage:
            # A namespace that failed because it does not exist is judged by its parent's listing.
            if coverage[key].complete:
                return True
            if coverage[key].found:
                return False
    return False


def shows_nothing(namespace: str, coverage: Mapping[str, Coverage]) -> bool:
    """Whether the last crawl was shown nothing in a namespace (text form): its listing was whole and empty, or it was not there itself.

    Records of a direct look that is newer than the crawl are kept all the same: they do not tell what listings show.
    """
    listing = coverage.get(namespace)
    return listing is None or (listing.complete and not listing.records)


def enough_misses(misses: Sequence[float], needed: int, interval: float) -> bool:
    """Whether ``needed`` of the misses (times in seconds, ascending) lie at least ``interval`` apart."""
    return counted_misses(misses, interval) >= needed


def counted_misses(misses: Sequence[float], interval: float) -> int:
    """The most misses that can be picked with at least ``interval`` seconds between two."""
    counted, last = 0, float("-inf")
    for at in misses:
        if at - last >= interval:
            counted, last = counted + 1, at
    return counted
