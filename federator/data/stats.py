"""Description of a table: schema, statistics, inspection and resolved locations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from federator.data.lance_errors import LANCE_ERRORS, to_catalog_error
from federator.data.table_handle import TableHandle
from federator.data.versions import get_tag_version
from federator.lance.arrow_json import schema_to_json
from federator.lance.foreign_locations import resolve_location

# Smaller fragments count as small, as in Lance's own server: compaction would join them.
_SMALL_FRAGMENT_ROWS = 100_000


def describe_table(
    handle: TableHandle, *, version: int | None = None, branch: str | None = None, tag: str | None = None,
    lance_types: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the fields of DescribeTable that need the opened table: ``version``, ``schema``, ``stats`` and ``metadata``.

    ``lance_types``: the schema has the type names of the Lance format, which contain units, instead of the protocol's.
    """
    if tag is not None:
        tagged = get_tag_version(handle, tag=tag)
        version, branch = tagged["version"], tagged.get("branch")
    from lance.schema import schema_to_json as lance_schema_to_json

    with handle.opened_dataset(version, branch) as dataset:
        stats = dataset.stats.dataset_stats()
        return {
            "version": dataset.version,
            "schema": (lance_schema_to_json if lance_types else schema_to_json)(dataset.schema),
            "stats": {"num_deleted_rows": stats["num_deleted_rows"], "num_fragments": stats["num_fragments"]},
            "metadata": dict(dataset.get_version()["metadata"]),
        }


def get_table_stats(handle: TableHandle, *, branch: str | None = None) -> dict[str, Any]:
    """Return a ``GetTableStatsResponse``. The lengths of fragments exclude deleted rows."""
    with handle.opened_dataset(branch=branch) as dataset:
        lengths = sorted(fragment.count_rows() for fragment in dataset.get_fragments())
        return {
            "total_bytes": sum(field.bytes_on_disk for field in dataset.stats.data_stats().fields),
            "num_rows": dataset.count_rows(),
            "num_indices": len(dataset.describe_indices()),
            "fragment_stats": {
                "num_fragments": len(lengths),
                "num_small_fragments": sum(length < _SMALL_FRAGMENT_ROWS for length in lengths),
                "lengths": _length_summary(lengths),
            },
        }


def _length_summary(lengths: Sequence[int]) -> dict[str, int]:
    if not lengths:
        return dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 0)
    last = len(lengths) - 1
    parts = {f"p{part}": lengths[last * part // 100] for part in (25, 50, 75, 99)}
    return {"min": lengths[0], "max": lengths[-1], "mean": sum(lengths) // len(lengths), **parts}


def inspect_table(handle: TableHandle, *, allow_outside: bool = False) -> dict[str, Any]:
    """Return the fields of ``TableHandle.inspect``. ``process_pool.run_inspection`` makes an ``Inspection`` of them."""
    try:
        return asdict(handle.inspect(allow_outside=allow_outside))
    except LANCE_ERRORS as error:
        raise to_catalog_error(error) from None


def resolve_locations(_: TableHandle, *, locations: Sequence[str]) -> dict[str, Any]:
    """Return canonical ``locations`` with the symbolic links of paths resolved."""
    return {"locations": [resolve_location(location) for location in locations]}
