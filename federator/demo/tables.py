"""The Lance tables of the demo."""

from __future__ import annotations

from pathlib import Path


def write_table(target: Path | str, *, rows: int, storage: dict[str, str] | None = None) -> None:
    """Write a Lance table to a path, or to a URI with storage options. It has an id, a number and a vector of eight values."""
    import lance
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i % 7) for i in range(rows * 8)], pa.float32()), 8)
    table = pa.table(
        {"id": pa.array(range(rows), pa.int64()), "amount": pa.array([i * 1.5 for i in range(rows)]), "vector": vectors}
    )
    if isinstance(target, Path):
        target.parent.mkdir(parents=True, exist_ok=True)
    lance.write_dataset(table, str(target), storage_options=storage)
