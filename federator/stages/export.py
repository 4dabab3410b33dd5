"""Export: write the extracts of the index into a directory, each as a Parquet file and as a Lance table.

The new export is written to a draft directory, which then replaces the old one. Readers see either the old export or the new one.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federator.connector import ConfigError
from federator.store import Index
from federator.views.extracts import EXTRACTS, Extract

#: the file that marks a directory as an export, which may be replaced; it contains the version of the tables' columns
MARKER = "federator-export.json"
VERSION = 1
_BATCH_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """One exported table. The paths are below the export's directory."""

    name: str
    rows: int
    parquet: str
    lance: str


def export_index(index: Index, directory: Path) -> list[ExportedTable]:
    """Write every extract, all from one state of the index.

    Raise ConfigError if ``directory`` contains other files or cannot be written, or if Lance is not installed.
    """
    _check_directory(directory)
    with _replace_directory(directory) as draft, index.read_consistently() as connection:
        written = [_write_extract(extract, connection, draft) for extract in EXTRACTS]
        (draft / MARKER).write_text(json.dumps({"version": VERSION}) + "\n", encoding="utf-8")
    return written


def _write_extract(extract: Extract, connection: Any, directory: Path) -> ExportedTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        import lance
    except ModuleNotFoundError:
        raise ConfigError("an export needs pylance", hint="pip install 'lance-federator[data]'") from None
    parquet, table, rows = f"{extract.name}.parquet", f"{extract.name}.lance", 0
    with pq.ParquetWriter(directory / parquet, extract.schema, compression="zstd") as writer:
        for batch in extract.batches(connection):
            writer.write_batch(batch)
            rows += batch.num_rows
    with pq.ParquetFile(directory / parquet) as file:
        lance.write_dataset(
            pa.RecordBatchReader.from_batches(extract.schema, (batch.cast(extract.schema) for batch in file.iter_batches(_BATCH_ROWS))),
            str(directory / table),
        )  # fmt: skip
    return ExportedTable(extract.name, rows, parquet, table)


def _check_directory(directory: Path) -> None:
    if not directory.exists():
        return
    if not directory.is_dir() or (any(directory.iterdir()) and not (directory / MARKER).is_file()):
        raise ConfigError(
            f"{directory} contains files that are not an export", hint="use a new directory, or an export to replace"
        )


@contextmanager
def _replace_directory(directory: Path) -> Iterator[Path]:
    """Yield a draft directory beside the final one, and replace the final one if the block succeeds. A link to it stays."""
    directory = directory.resolve()
    draft = directory.with_name(f".{directory.name}.{os.getpid()}.draft")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        yield draft
        if directory.exists():
            _swap_directories(draft, directory)
        else:
            draft.rename(directory)
    except OSError as error:
        raise ConfigError(f"{directory}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _swap_directories(first: Path, second: Path) -> None:
    """Swap two directories in one step if the system can (Linux, renameat2), else in several."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    current_directory, exchange_flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if (
        renameat2 is not None
        and renameat2(current_directory, os.fsencode(first), current_directory, os.fsencode(second), exchange_flag) == 0
    ):
        return
    temporary = first.with_suffix(".old")
    second.rename(temporary)
    first.rename(second)
    temporary.rename(first)
