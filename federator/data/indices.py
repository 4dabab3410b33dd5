"""Indices of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import InvalidInput
from federator.connector.errors import TableColumnNotFound, TableIndexNotFound
from federator.data.history import transaction_of
from federator.data.place import Place

_SCALAR = ("BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "FTS", "NGRAM", "ZONEMAP", "BLOOMFILTER")
_VECTOR = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ")
_FTS = (
    "with_position", "base_tokenizer", "language", "max_token_length", "lower_case", "stem", "remove_stop_words", "ascii_folding",
)  # fmt: skip
# What pylance takes by another name, or by the same.
_IVF = {
    "num_partitions": "num_partitions", "num_sub_vectors": "num_sub_vectors", "num_bits": "num_bits", "sample_rate": "sample_rate",
    "max_iterations": "max_iters", "target_partition_size": "target_partition_size", "m": "m", "ef_construction": "ef_construction",
}  # fmt: skip


def indices(
    place: Place,
    *,
    version: int | None = None,
    branch: str | None = None,
    page_token: str | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """A ``ListTableIndicesResponse``, by name."""
    with place.opened(version, branch) as dataset:
        found = sorted((index for index in dataset.describe_indices()), key=lambda index: index.name)
        found = [index for index in found if page_token is None or index.name > page_token]
        page = found if limit is None else found[: max(1, limit)]
        told = [_index(dataset, index) for index in page]
    return {"indexes": told} | ({"page_token": page[-1].name} if len(page) < len(found) else {})


def index_stats(place: Place, *, index_name: str, version: int | None = None, branch: str | None = None) -> dict[str, Any]:
    """A ``DescribeTableIndexStatsResponse``. Raises TableIndexNotFound."""
    with place.opened(version, branch) as dataset:
        _named(dataset, index_name)
        told = dataset.stats.index_stats(index_name)
        metric = next((part["metric_type"] for part in told.get("indices") or () if "metric_type" in part), None)
        return {
            "index_type": told["index_type"], "num_indexed_rows": told["num_indexed_rows"],
            "num_unindexed_rows": told["num_unindexed_rows"], "num_indices": told["num_indices"],
        } | ({"distance_type": metric} if metric else {})  # fmt: skip


def create_index(place: Place, *, index: Mapping[str, Any], scalar_only: bool = False) -> dict[str, Any]:
    """Builds an index, whole when this returns, or replaces the one of that name. ``index``: a ``CreateTableIndexRequest``'s fields."""
    kind, column = index["index_type"].upper(), index["column"]
    known = _SCALAR if scalar_only else (*_SCALAR, *_VECTOR)
    if kind not in known:
        raise InvalidInput(f"index_type {index['index_type']!r} is unknown here", hint=f"one of {', '.join(known)}")
    with place.opened(branch=index.get("branch")) as dataset:
        if dataset.lance_schema.field(column) is None:
            raise TableColumnNotFound(f"the table has no column {column!r}")
        if kind in _SCALAR:
            options = {key: index[key] for key in _FTS if index.get(key) is not None} if kind in ("FTS", "INVERTED") else {}
            dataset.create_scalar_index(column, kind, index.get("name"), replace=True, **options)
        else:
            options = {theirs: index[ours] for ours, theirs in _IVF.items() if index.get(ours) is not None}
            metric = index.get("distance_type") or "l2"
            dataset.create_index(column, kind, index.get("name"), metric=metric, replace=True, **options)
        return transaction_of(dataset)


def drop_index(place: Place, *, index_name: str, branch: str | None = None) -> dict[str, Any]:
    """Raises TableIndexNotFound."""
    with place.opened(branch=branch) as dataset:
        _named(dataset, index_name)
        dataset.drop_index(index_name)
        return transaction_of(dataset)


def _named(dataset: Any, name: str) -> Any:
    for index in dataset.describe_indices():
        if index.name == name:
            return index
    raise TableIndexNotFound(f"the table has no index {name!r}")


def _index(dataset: Any, index: Any) -> dict[str, Any]:
    counted = dataset.stats.index_stats(index.name)
    made = [segment.created_at for segment in index.segments if segment.created_at is not None]
    told = {
        "index_name": index.name,
        "index_uuid": str(index.segments[0].uuid),
        "columns": list(index.field_names),
        "status": "SUCCEEDED",
        "index_type": index.index_type,
        "type_url": index.type_url,
        "num_indexed_rows": index.num_rows_indexed,
        "num_unindexed_rows": counted["num_unindexed_rows"],
        "size_bytes": index.total_size_bytes,
        "num_segments": len(index.segments),
        "created_at": min(made).isoformat() if made else None,
        "index_version": index.segments[0].index_version,
    }
    return {key: value for key, value in told.items() if value is not None}
