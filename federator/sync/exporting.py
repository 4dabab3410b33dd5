"""Export: the extracts of the index into a directory, each as a Parquet file and as a Lance table.

A directory is written beside its place and takes it as a whole: who reads it sees the old export or the new one.
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
from federator.index import Index
from federator.index.extracts import EXTRACTS, Extract, snapshot

#: what says of a directory that it is an export, and may be replaced; with the version of its tables' columns
MARKER = "federator-export.json"
VERSION = 1
_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Exported:
    """One exported table; the paths are below the export's directory."""

    name: str
    rows: int
    parquet: str
    lance: str


def export(index: Index, directory: Path) -> list[Exported]:
    """Writes every extract, all of one state of the index. Raises ConfigError where ``directory`` holds something else, or cannot be
    written, and where Lance is not installed."""
    _check(directory)
    with _replacing(directory) as place, snapshot(index) as connection:
        written = [_write(extract, connection, place) for extract in EXTRACTS]
        (place / MARKER).write_text(json.dumps({"version": VERSION}) + "\n", encoding="utf-8")
    return written


def _write(extract: Extract, connection: Any, place: Path) -> Exported:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        import lance
    except ModuleNotFoundError:
        raise ConfigError("an export needs pylance", hint="pip install 'lance-federator[data]'") from None
    made = Exported(extract.name, 0, f"{extract.name}.parquet", f"{extract.name}.lance")
    rows = 0
    with pq.ParquetWriter(place / made.parquet, extract.schema, compression="zstd") as writer:
        for batch in extract.batches(connection):
            writer.write_batch(batch)
            rows += batch.num_rows
    with pq.ParquetFile(place / made.parquet) as file:
        lance.write_dataset(
            pa.RecordBatchReader.from_batches(extract.schema, (batch.cast(extract.schema) for batch in file.iter_batches(_BATCH))),
            str(place / made.lance),
        )  # fmt: skip
    return Exported(extract.name, rows, made.parquet, made.lance)


def _check(directory: Path) -> None:
    if not directory.exists():
        return
    if not directory.is_dir() or (any(directory.iterdir()) and not (directory / MARKER).is_file()):
        raise ConfigError(
            f"{directory} holds something that is no export", hint="name a new directory, or an export to replace"
        )


@contextmanager
def _replacing(directory: Path) -> Iterator[Path]:
    """A directory beside the wanted one, which takes its place when all is well."""
    directory = directory.absolute()
    draft = directory.with_name(f".{directory.name}.{os.getpid()}.draft")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        yield draft
        if directory.exists():
            _exchange(draft, directory)
        else:
            draft.rename(directory)
    except OSError as error:
        raise ConfigError(f"{directory}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    """Swaps two directories in one step where the system can (Linux, renameat2), else in two."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if call is not None and call(here, os.fsencode(one), here, os.fsencode(other), swap) == 0:
        return
    aside = one.with_suffix(".old")
    other.rename(aside)
    one.rename(other)
    aside.rename(one)
