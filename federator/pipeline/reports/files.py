"""A report's files except the page. Details are written batch by batch."""

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
from federator.runtime.text import FORMULA_START, escape_cell

_TIMESTAMP = pa.timestamp("us", "UTC")
# At least the characters that ``escape_cell`` replaces. Arrow finds their texts much faster than Python.
_CONTROL = r"[\p{Cc}\x{2028}-\x{202e}\x{2066}-\x{2069}]"


def write_details(rows: pa.RecordBatchReader, directory: Path, name: str, formats: Sequence[str]) -> list[Path]:
    """Write rows as one CSV file (RFC 4180) and one Parquet file, as far as requested. Return the files.

    Columns that end in ``_at`` become times in UTC. In the CSV file, control characters are escaped, and texts that a
    spreadsheet would evaluate start with an apostrophe.
    """
    schema = _report_schema(rows.schema)
    paths = [directory / f"{name}.{suffix}" for suffix in ("csv", "parquet") if suffix in formats]
    with ExitStack() as opened:
        writers = [
            opened.enter_context(
                pa_csv.CSVWriter(str(path), schema)
                if path.suffix == ".csv"
                else pq.ParquetWriter(path, schema, compression="zstd")
            )
            for path in paths
        ]
        for batch in _batches(rows, schema) if writers else ():
            for path, writer in zip(paths, writers, strict=True):
                writer.write_batch(_escape_batch(batch) if path.suffix == ".csv" else batch)
    return paths


def write_json(report: Report, path: Path) -> None:
    """Write the figures as JSON."""
    path.write_text(json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _report_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, _TIMESTAMP if field.name.endswith("_at") else field.type) for field in schema])


def _batches(rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        columns = [
            _to_timestamps(column) if field.type == _TIMESTAMP else column
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _escape_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Escape control characters, and put an apostrophe before texts that start like a formula (OWASP, CSV injection).

    Names and comments are texts that any user can write into a catalog.
    """
    columns = [_escape_texts(column) if pa.types.is_string(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _escape_texts(texts: pa.Array) -> pa.Array:
    unsafe = pc.match_substring_regex(texts, f"{_CONTROL}|{FORMULA_START}")
    if not pc.any(unsafe).as_py():
        return texts
    escaped = pa.array([escape_cell(text.as_py()) for text in texts.filter(unsafe)], texts.type)
    return pc.replace_with_mask(texts, pc.fill_null(unsafe, False), escaped)


def _to_timestamps(seconds: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(pc.round(pc.multiply(seconds, 1e6)), pa.int64()), _TIMESTAMP)
