"""The search words of crawled records: built in Spark's tasks, without secrets that only the driver knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from federator.model.rows import RECORD_COLUMNS
from federator.pipeline.crawl_columns import COLUMNS as TYPES
from federator.pipeline.secret_fingerprints import SecretFingerprints
from federator.store.lexemes import COLUMNS, row_lexemes

_SECRET_COLUMNS = ["location", "properties", "doc", "owner"]
_INPUTS = ["is_table", *COLUMNS]
_RECORDS_WITH_WORDS_DDL = ", ".join(f"`{name}` {TYPES[name]}" for name in RECORD_COLUMNS) + ", `words` string"


def add_search_words(records: DataFrame, source: str) -> DataFrame:
    """Add the column ``words`` in the tasks, because the driver uses only one core. ``complete_search_words`` must follow."""
    fingerprints = SecretFingerprints.of_known_secrets()

    def add_words(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column("words", pa.array(build_safe_words(source, batch, fingerprints), pa.string()))

    return records.mapInArrow(add_words, _RECORDS_WITH_WORDS_DDL)


def build_search_words(source: str, batch: pa.RecordBatch) -> list[str | None]:
    """Return the search words of each record, without the secrets that this process knows. None for a namespace."""
    columns = batch.select(_INPUTS).to_pydict()
    return [row_lexemes(source, dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def build_safe_words(source: str, batch: pa.RecordBatch, fingerprints: SecretFingerprints) -> list[str | None]:
    """Return the search words of each record. None for a namespace, and for a record that may contain a secret of the driver."""
    words = build_search_words(source, batch)
    for number in fingerprints.find_suspects(_texts(batch)):
        words[number] = None
    return words


def complete_search_words(source: str, batch: pa.RecordBatch) -> list[str | None]:
    """Return the search words of each record. Those that tasks did not build are built here, by the process that knows all secrets."""
    if "words" not in batch.schema.names:
        return build_search_words(source, batch)
    words: list[str | None] = batch.column("words").to_pylist()
    rows = [number for number, text in enumerate(words) if text is None]
    for number, row_words in zip(rows, build_search_words(source, batch.take(pa.array(rows, pa.int64()))), strict=True):
        words[number] = row_words
    return words


def incoming_rows(batch: pa.RecordBatch, words: list[str | None]) -> Iterator[tuple[Any, ...]]:
    """Yield crawled records in the order of ``draft_rows.INCOMING_COLUMNS``.

    ``observed_at`` is null: a crawl is not a direct observation.
    """
    columns = [batch.column(name).to_pylist() for name in RECORD_COLUMNS]
    return zip(*columns, [None] * len(batch), words, strict=True)


def _texts(batch: pa.RecordBatch) -> list[str]:
    """Return the texts of each record that may have a secret, as one."""
    columns = batch.select(_SECRET_COLUMNS).to_pydict().values()
    return ["\n".join(filter(None, row)) for row in zip(*columns, strict=True)]
