"""A report's files but for the page. Details pass through batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from federator.pipeline.reports.sections import Report

_BATCH = 20_000
_TIME = pa.timestamp("us", "UTC")
# What spreadsheets take for the beginning of a formula, in the forms of East Asian keyboards too.
_FORMULA = r"\A[=+\-@\t\r\n＝＋－＠]"


def write_details(staged: Path, directory: Path, name: str, formats: Sequence[str]) -> list[Path]:
    """Writes Spark's Parquet as one CSV (RFC 4180) and one Parquet file, as far as wanted; returns the files.

    Columns that end in ``_at`` become times in UTC. In the CSV, texts that a spreadsheet would compute begin with an apostrophe.
    """
    parts = sorted(staged.glob("*.parquet"))
    schema = _typed(pq.read_schema(parts[0]))
    wanted = [directory / f"{name}.{suffix}" for suffix in ("csv", "parquet") if suffix in formats]
    with ExitStack() as opened:
        writers = [
            opened.enter_context(
                pa_csv.CSVWriter(str(path), schema)
                if path.suffix == ".csv"
                else pq.ParquetWriter(path, schema, compression="zstd")
            )
            for path in wanted
        ]
        for batch in _batches(parts, schema) if writers else ():
            for path, writer in zip(wanted, writers, strict=True):
                writer.write_batch(_harmless(batch) if path.suffix == ".csv" else batch)
    return wanted


def write_json(report: Report, path: Path) -> None:
    """Writes the figures."""
    path.write_text(json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _typed(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, _TIME if field.name.endswith("_at") else field.type) for field in schema])


def _batches(parts: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for part in parts:
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(_BATCH):
                columns = [
                    _moments(column) if field.type == _TIME else column
                    for column, field in zip(batch.columns, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _harmless(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Texts that begin as a formula does, behind an apostrophe: names and comments are whatever people write into a catalog
    (OWASP, CSV injection)."""
    columns = [_guarded(column) if pa.types.is_string(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _guarded(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(texts, _FORMULA), pc.binary_join_element_wise("'", texts, ""), texts)


def _moments(seconds: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(pc.round(pc.multiply(seconds, 1e6)), pa.int64()), _TIME)
