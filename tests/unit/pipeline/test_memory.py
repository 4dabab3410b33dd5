"""The driver's memory does not grow with the number of records that a crawl publishes."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from federator.model import TableRecord
from federator.model.rows import RECORD_COLUMNS, record_to_row
from federator.pipeline.diff import DifferingKeys, RevisionDelta, StagedRecords
from federator.pipeline.staging_area import StagingArea
from federator.pipeline.validation import unchanged_crawl
from federator.planning.publication import Effect
from federator.store.lexemes import row_lexemes
from federator.store.sql import ROWS_PER_CHUNK, chunked

FEW, MANY = 3 * ROWS_PER_CHUNK, 9 * ROWS_PER_CHUNK


def stage(directory: Path, number: int) -> RevisionDelta:
    """A crawl that replaced so many tables, each with 3 kB of properties, as one row group of Parquet."""
    record = record_to_row(TableRecord("s", ("db", "t"), "s3://b/t"))
    columns: dict[str, Any] = {name: [record[name]] * number for name in RECORD_COLUMNS}
    columns |= {"words": [row_lexemes("s", record)] * number, "path": [f"db${key:0100}" for key in range(number)]}
    # No two are alike, because Parquet stores equal texts once.
    columns["properties"] = [f"{{'number': '{key}', 'text': '{'x' * 3_000}'}}" for key in range(number)]
    table = pa.table(
        {name: pa.array(values, pa.int16() if name == "is_table" else pa.string()) for name, values in columns.items()}
    )
    staging = StagingArea(cast(Any, None), str(directory))
    pq.write_table(table, staging.path("rows.parquet"), row_group_size=number)
    keys = table.select(["is_table", "path"]).append_column("effect", pa.array([Effect.CHANGED.value] * number))
    pq.write_table(keys, staging.path("keys.parquet"), row_group_size=number)
    differing = DifferingKeys(staging, staging.path("keys.parquet"), unchanged_crawl("s", {}, began_at=0.0))
    counts = Counter({(Effect.CHANGED, 1): number})
    return RevisionDelta("s", counts, differing, StagedRecords(staging, staging.path("rows.parquet")))


def peak(delta: RevisionDelta, part: str) -> int:
    """The most bytes of Arrow and Python objects at once, while the records or the keys are read in chunks."""
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        rows = delta.iter_inserts() if part == "records" else iter(delta.closed)
        sizes = Counter(len(chunk) for chunk in chunked(rows, ROWS_PER_CHUNK))
        assert sizes == {ROWS_PER_CHUNK: delta.changed // ROWS_PER_CHUNK}
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


@pytest.mark.parametrize("part", ["records", "keys"])
def test_three_times_the_records_need_the_same_memory(tmp_path: Path, part: str) -> None:
    peaks: list[int] = []
    for number in (FEW, MANY):
        (tmp_path / str(number)).mkdir()
        peaks.append(peak(stage(tmp_path / str(number), number), part))
    assert peaks[1] < 1.2 * peaks[0], peaks
