"""Counts of a search: all matches, and the matches by source, namespace, state and owner."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

#: the number of matches after which no further rank is counted, and the most values of a facet
MAX_COUNTED, MAX_FACET_VALUES = 1_000, 20
FACETS = ("source", "namespace", "state", "owner")


@dataclass(frozen=True, slots=True)
class Facets:
    """The number of matches by source, by namespace (with its source), by state and by owner, the most frequent values first.

    ``counted`` matches were counted. If these are not all matches (``exact`` is False), each count is a lower bound.
    """

    counted: int
    exact: bool
    values: dict[str, list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class Total:
    """The number of tables that match. If it is not ``exact``, there are more than ``count``."""

    count: int
    exact: bool


@dataclass(slots=True)
class FacetCounter:
    """Counts matches by facet, the best ranks first, until it is ``full``: it has more than ``MAX_COUNTED`` candidates, or those of a
    rank were only a sample.

    ``candidates`` may exceed ``total``, because not all candidates are published.
    """

    candidates: int = 0
    total: int = 0
    full: bool = False
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in FACETS})

    def add(self, distribution: list[list[Any]], candidates: int, *, sampled: bool = False) -> None:
        """Add a distribution: rows with one value for each of ``FACETS`` and the number of published matches with them."""
        self.candidates += candidates
        self.full = sampled or self.candidates > MAX_COUNTED
        for *values, number in distribution:
            self.total += number
            for name, value in zip(FACETS, values, strict=True):
                if value is not None:
                    self.counts[name][value] += number

    def facets(self) -> Facets:
        values = {
            name: sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_FACET_VALUES]
            for name, counter in self.counts.items()
        }
        return Facets(self.total, not self.full, values)


def total_of(facets: Facets) -> Total:
    """Return the number of counted matches, or a round number below it if there are more."""
    if facets.exact:
        return Total(facets.counted, exact=True)
    below = max(facets.counted - 1, 0)
    digit = 10 ** (len(str(below)) - 1)
    return Total(below // digit * digit, exact=False)
