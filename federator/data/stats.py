"""What a table is: its schema, its size, its fragments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from federator.data.arrow_json import schema_json
from federator.data.faults import FAULTS, as_ours
from federator.data.history import tag_version
from federator.data.place import Place

# Fragments that compaction would join, as Lance's own server counts them.
_SMALL = 100_000


def describe(place: Place, *, version: int | None = None, branch: str | None = None, tag: str | None = None) -> dict[str, Any]:
    """What DescribeTable says of a table that it opens: ``version``, ``schema``, ``stats`` and ``metadata``."""
    if tag is not None:
        told = tag_version(place, tag=tag)
        version, branch = told["version"], told.get("branch")
    with place.opened(version, branch) as dataset:
        counted = dataset.stats.dataset_stats()
        return {
            "version": dataset.version,
            "schema": schema_json(dataset.schema),
            "stats": {"num_deleted_rows": counted["num_deleted_rows"], "num_fragments": counted["num_fragments"]},
            "metadata": dict(dataset.get_version()["metadata"]),
        }


def stats(place: Place, *, branch: str | None = None) -> dict[str, Any]:
    """A ``GetTableStatsResponse``. Lengths of fragments are rows that are not deleted."""
    with place.opened(branch=branch) as dataset:
        lengths = sorted(fragment.count_rows() for fragment in dataset.get_fragments())
        return {
            "total_bytes": sum(field.bytes_on_disk for field in dataset.stats.data_stats().fields),
            "num_rows": dataset.count_rows(),
            "num_indices": len(dataset.describe_indices()),
            "fragment_stats": {
                "num_fragments": len(lengths),
                "num_small_fragments": sum(length < _SMALL for length in lengths),
                "lengths": _summary(lengths),
            },
        }


def _summary(lengths: Sequence[int]) -> dict[str, int]:
    if not lengths:
        return dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 0)
    last = len(lengths) - 1
    parts = {f"p{part}": lengths[last * part // 100] for part in (25, 50, 75, 99)}
    return {"min": lengths[0], "max": lengths[-1], "mean": sum(lengths) // len(lengths), **parts}


def look(place: Place) -> dict[str, Any]:
    """A row of verification: what is there now."""
    try:
        return place.look()
    except FAULTS as error:
        raise as_ours(error) from None
