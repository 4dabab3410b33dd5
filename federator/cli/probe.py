"""A small Python job on Spark: which Python a worker runs, and whether each source's secret references resolve there."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from federator.connector import SourceSpec


def probe(spark: Any, specs: Sequence[SourceSpec]) -> tuple[str, dict[str, str]]:
    """The worker's Python, and per source what is wrong there (an empty text: nothing)."""
    frame = spark.createDataFrame([(json.dumps([asdict(spec) for spec in specs]),)], "specs string")
    row = frame.mapInArrow(_look, "python string, errors string").collect()[0]
    return row["python"], json.loads(row["errors"])


def _look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from federator.connector import FederatorError, SourceSpec
    from federator.registry import connector

    for batch in batches:
        for text in batch.column("specs").to_pylist():
            errors: dict[str, str] = {}
            for data in json.loads(text):
                spec = SourceSpec(**data)
                try:
                    connector(spec.impl).configure(spec.properties)
                    errors[spec.name] = ""
                except FederatorError as error:
                    errors[spec.name] = error.message
            python = f"{platform.python_version()}, {sys.executable}"
            yield pa.RecordBatch.from_pydict({"python": [python], "errors": [json.dumps(errors)]})
