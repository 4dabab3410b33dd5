"""Operations on the indices of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import InvalidInput
from federator.connector.errors import TableColumnNotFound, TableIndexNotFound
from federator.data.table_handle import TableHandle
from federator.data.versions import transaction_id

_SCALAR_TYPES = ("BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "FTS", "NGRAM", "ZONEMAP", "BLOOMFILTER")
_VECTOR_TYPES = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ")
_FTS_OPTIONS = (
    "with_position", "base_tokenizer", "language", "max_token_length", "lower_case", "stem", "remove_stop_words", "ascii_folding",
)  # fmt: skip
_TOKENIZERS = ("simple", "whitespace", "raw", "ngram", "icu")
# pylance's name of each option.
_IVF_OPTIONS = {
    "num_partitions": "num_partitions", "num_sub_vectors": "num_sub_vectors", "num_bits": "num_bits", "sample_rate": "sample_rate",
    "max_iterations": "max_iters", "target_partition_size": "target_partition_size", "m": "m", "ef_construction": "ef_construction",
}  # fmt: skip


def list_indices(
    handle: TableHandle,
    *,
    version: int | None = None,
    branch: str | None = None,
    page_token: str | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """Return a ``ListTableIndicesResponse``, sorted by name."""
    with handle.opened_dataset(version, branch) as dataset:
        indices = sorted(dataset.describe_indices(), key=lambda index: index.name)
        indices = [index for index in indices if page_token is None or index.name > page_token]
        page = indices if limit is None else indices[: max(1, limit)]
        entries = [_index_json(dataset, index) for index in page]
    return {"indexes": entries} | ({"page_token": page[-1].name} if len(page) < len(indices) else {})


def get_index_stats(
    handle: TableHandle, *, index_name: str, version: int | None = None, branch: str | None = None
) -> dict[str, Any]:
    """Return a ``DescribeTableIndexStatsResponse``. Raise TableIndexNotFound."""
    with handle.opened_dataset(version, branch) as dataset:
        _find_index(dataset, index_name)
        stats = dataset.stats.index_stats(index_name)
        metric = next((part["metric_type"] for part in stats.get("indices") or () if "metric_type" in part), None)
        return {
            "index_type": stats["index_type"], "num_indexed_rows": stats["num_indexed_rows"],
            "num_unindexed_rows": stats["num_unindexed_rows"], "num_indices": stats["num_indices"],
        } | ({"distance_type": metric} if metric else {})  # fmt: skip


def create_index(handle: TableHandle, *, index: Mapping[str, Any], scalar_only: bool = False) -> dict[str, Any]:
    """Build an index. It is complete when this returns.

    ``index`` has the fields of a ``CreateTableIndexRequest``. Raise TableIndexAlreadyExists if there is an index of that name.
    """
    kind, column, name = index["index_type"].upper(), index["column"], index.get("name")
    if name == "":
        raise InvalidInput("name is empty", hint="omit it: the index is then named after its column")
    known = _SCALAR_TYPES if scalar_only else (*_SCALAR_TYPES, *_VECTOR_TYPES)
    if kind not in known:
        raise InvalidInput(f"unknown index_type: {index['index_type']!r}", hint=f"use one of {', '.join(known)}")
    with handle.opened_dataset(branch=index.get("branch")) as dataset:
        if dataset.lance_schema.field(column) is None:
            raise TableColumnNotFound(f"the table has no column {column!r}")
        if kind in _SCALAR_TYPES:
            options = (
                {key: index[key] for key in _FTS_OPTIONS if index.get(key) is not None} if kind in ("FTS", "INVERTED") else {}
            )
            _require_tokenizer(options.get("base_tokenizer"))
            dataset.create_scalar_index(column, kind, name, replace=False, **options)
        else:
            options = {option: index[key] for key, option in _IVF_OPTIONS.items() if index.get(key) is not None}
            metric = index.get("distance_type") or "l2"
            dataset.create_index(column, kind, name, metric=metric, replace=False, **options)
        return transaction_id(dataset)


def _require_tokenizer(name: str | None) -> None:
    """Raise InvalidInput for a tokenizer that needs files. Lance uses its name as a path in the home directory of this service."""
    if name is not None and name not in _TOKENIZERS:
        raise InvalidInput(f"unknown base_tokenizer: {name[:100]!r}", hint=f"use one of {', '.join(_TOKENIZERS)}")


def drop_index(handle: TableHandle, *, index_name: str, branch: str | None = None) -> dict[str, Any]:
    """Drop an index. Raise TableIndexNotFound."""
    with handle.opened_dataset(branch=branch) as dataset:
        _find_index(dataset, index_name)
        dataset.drop_index(index_name)
        return transaction_id(dataset)


def _find_index(dataset: Any, name: str) -> Any:
    for index in dataset.describe_indices():
        if index.name == name:
            return index
    raise TableIndexNotFound(f"the table has no index {name!r}")


def _index_json(dataset: Any, index: Any) -> dict[str, Any]:
    stats = dataset.stats.index_stats(index.name)
    created_at = [segment.created_at for segment in index.segments if segment.created_at is not None]
    entry = {
        "index_name": index.name,
        "index_uuid": str(index.segments[0].uuid),
        "columns": list(index.field_names),
        "status": "SUCCEEDED",
        "index_type": index.index_type,
        "type_url": index.type_url,
        "num_indexed_rows": index.num_rows_indexed,
        "num_unindexed_rows": stats["num_unindexed_rows"],
        "size_bytes": index.total_size_bytes,
        "num_segments": len(index.segments),
        "created_at": min(created_at).isoformat() if created_at else None,
        "index_version": index.segments[0].index_version,
    }
    return {key: value for key, value in entry.items() if value is not None}
