"""Writes of rows to a table. The input is a file with an Arrow IPC stream, which is complete before the write starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from federator.connector import CatalogError, InvalidInput, TableNotFound
from federator.connector.errors import TableColumnNotFound, TableSchemaValidation
from federator.data.lance_errors import LANCE_ERRORS, to_catalog_error
from federator.data.required_fields import find_null
from federator.data.table_handle import TableHandle, is_main
from federator.lance.columns import list_columns
from federator.lance.facade_mapping import parse_choice
from federator.lance.foreign_locations import require_no_new_table_behind_link
from federator.lance.pinned_directory import create_directory
from federator.model import local_path
from federator.planning.key_types import parse_duration


def read_columns(_: TableHandle, *, input: str) -> list[dict[str, Any]]:  # noqa: A002 - the request's field name
    """Return the columns of an Arrow stream (``lance.columns.list_columns``). Nothing is opened at the location."""
    with open_stream(input) as reader:
        return list_columns(reader.schema)


def create_table(handle: TableHandle, *, input: str, mode: str | None = None) -> dict[str, Any]:  # noqa: A002 - the request's field name
    """Write the first version of a table that was only declared, or with ``overwrite`` a new one.

    Return its version and the number of its rows. Raise ForeignLocationsFound if files of the table are links to outside of it.
    """
    chosen = parse_choice("mode", mode, "create", "exist_ok", "overwrite")
    # Nothing is opened for this write, and a link would lead it into another table.
    handle.require_own_files()
    with open_stream(input) as reader:
        return _write_dataset(handle, reader, "overwrite" if chosen == "overwrite" else "create")


def insert_rows(handle: TableHandle, *, input: str, mode: str | None = None, branch: str | None = None) -> dict[str, Any]:  # noqa: A002
    """Append rows, or replace all. A table that was only declared is created with them. Return an ``InsertIntoTableResponse``."""
    chosen = parse_choice("mode", mode, "append", "overwrite")
    with open_stream(input) as reader:
        dataset = _open_written(handle, branch)
        if dataset is None:
            return _write_dataset(handle, reader, "create")
        return _write_dataset(handle, reader, chosen, dataset)


def merge_rows(
    handle: TableHandle,
    *,
    input: str,  # noqa: A002
    on: Sequence[str],
    when_matched_update_all: bool | None = None,
    when_matched_update_all_filt: str | None = None,
    when_not_matched_insert_all: bool | None = None,
    when_not_matched_by_source_delete: bool | None = None,
    when_not_matched_by_source_delete_filt: str | None = None,
    use_index: bool | None = None,
    timeout: str | None = None,
    branch: str | None = None,
) -> dict[str, Any]:
    """Update rows that match on the columns ``on``, and insert or delete others. Return a ``MergeInsertIntoTableResponse``.

    ``timeout`` (``30s``) limits the retries after concurrent commits. As in Lance's own server, rows that do not match are inserted
    unless that is disabled, and a filter implies the action that it filters.
    """
    retry_timeout = _parse_duration(timeout) if timeout is not None else None
    with open_stream(input) as reader:
        dataset = _open_written(handle, branch)
        if dataset is None:
            written = _write_dataset(handle, reader, "create")
            return {"num_updated_rows": 0, "num_deleted_rows": 0, **written}
        for column in on:
            if dataset.lance_schema.field(column) is None:
                raise TableColumnNotFound(f"the table has no column {column!r}")
        checked = _CheckedReader(reader, dataset)
        try:
            builder = dataset.merge_insert(list(on))
            if when_matched_update_all or when_matched_update_all_filt:
                builder = builder.when_matched_update_all(when_matched_update_all_filt)
            if when_not_matched_insert_all is not False:
                builder = builder.when_not_matched_insert_all()
            if when_not_matched_by_source_delete or when_not_matched_by_source_delete_filt:
                builder = builder.when_not_matched_by_source_delete(when_not_matched_by_source_delete_filt)
            if use_index is not None:
                builder = builder.use_index(use_index)
            if retry_timeout is not None:
                builder = builder.retry_timeout(retry_timeout)
            stats = builder.execute(checked.to_arrow())
        except LANCE_ERRORS as error:
            raise checked.to_error(error) from None
        counts = {f"num_{kind}_rows": stats[f"num_{kind}_rows"] for kind in ("updated", "inserted", "deleted")}
        return {**counts, "version": dataset.version}


def update_rows(
    handle: TableHandle, *, updates: Sequence[Sequence[str]], predicate: str | None = None, branch: str | None = None
) -> dict[str, Any]:
    """Set columns by SQL expressions in the rows that match the predicate. Return an ``UpdateTableResponse``."""
    if not updates or any(len(pair) != 2 for pair in updates):
        raise InvalidInput("updates must be pairs of a column and an expression")
    with handle.opened_dataset(branch=branch) as dataset:
        for column in (pair[0] for pair in updates):
            if dataset.lance_schema.field(column) is None:
                raise TableColumnNotFound(f"the table has no column {column!r}")
        result = dataset.update({pair[0]: pair[1] for pair in updates}, where=predicate or None)
        return {"updated_rows": result["num_rows_updated"], "version": dataset.version}


def delete_rows(handle: TableHandle, *, predicate: str, branch: str | None = None) -> dict[str, Any]:
    """Delete the matching rows. Return their number and the new ``version``.

    Raise InvalidInput, also for a column that does not exist.
    """
    if not predicate.strip():
        raise InvalidInput("predicate is empty", hint="use true to delete every row")
    try:
        with handle.opened_dataset(branch=branch) as dataset:
            result = dataset.delete(predicate)
            return {"num_deleted_rows": result["num_deleted_rows"], "version": dataset.version}
    except TableColumnNotFound as error:
        # The protocol has no missing column for this operation.
        raise InvalidInput(error.message) from None


def _parse_duration(text: str) -> timedelta:
    try:
        return timedelta(seconds=parse_duration(text))
    except ValueError as error:
        raise InvalidInput(f"timeout: {error}") from None


def _open_written(handle: TableHandle, branch: str | None) -> Any | None:
    """Open a table. None if it was only declared; raise TableNotFound for a branch of such a table."""
    try:
        return handle.open_dataset(branch=branch)
    except TableNotFound:
        if not is_main(branch):
            raise
        return None


def _write_dataset(handle: TableHandle, reader: Any, mode: str, dataset: Any = None) -> dict[str, Any]:
    """Write the rows of an Arrow stream with pylance's ``mode``, to the opened ``dataset`` or else to a new table.

    Return ``num_inserted_rows`` and ``version``.
    """
    import lance

    if dataset is None:
        require_no_new_table_behind_link(handle.location, handle.mounts, handle.pinned)
        if handle.pinned is not None and handle.pinned.target is None:
            # The directory does not exist yet: create it, and write to exactly that one.
            with create_directory(handle.location) as pinned:
                return _write_dataset(replace(handle, pinned=pinned), reader, mode)
    # An overwrite may change the table's columns.
    checked = _CheckedReader(reader, dataset if mode == "append" else None)
    path = local_path(handle.location) if handle.pinned is None else handle.pinned.path
    creates_data = mode == "create" and path is not None and not os.path.lexists(f"{path}/data")
    target = dataset if dataset is not None else handle.uri
    try:
        written = lance.write_dataset(checked.to_arrow(), target, mode=mode, storage_options=handle.storage_options)
    except LANCE_ERRORS as error:
        if creates_data:
            # Lance removes the files of a refused write, but not their directory: the location would not be free for the next one.
            with suppress(OSError):
                Path(f"{path}/data").rmdir()
        raise checked.to_error(error) from None
    return {"num_inserted_rows": checked.row_count, "version": written.version}


class _CheckedReader:
    """Counts the rows of an Arrow stream while Lance reads them, and refuses nulls in fields that allow none, here or in the table."""

    def __init__(self, reader: Any, dataset: Any = None) -> None:
        self._reader = reader
        self._schemas = (reader.schema,) if dataset is None else (reader.schema, dataset.schema)
        self._refusal: CatalogError | None = None
        self.row_count = 0

    def to_arrow(self) -> Any:
        """Return the stream as a ``pyarrow.RecordBatchReader``."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._reader.schema, self._batches())

    def _batches(self) -> Iterator[Any]:
        for batch in self._reader:
            if field := next(filter(None, (find_null(batch, schema) for schema in self._schemas)), None):
                self._refusal = TableSchemaValidation(f"the rows contain a null in {field}, which allows none")
                raise self._refusal
            self.row_count += batch.num_rows
            yield batch

    def to_error(self, error: Exception) -> CatalogError:
        """Return the catalog error for a failure of the write: the refusal of a null, of which Lance makes an error of its own."""
        return self._refusal or to_catalog_error(error)


@contextmanager
def open_stream(path: str) -> Iterator[Any]:
    """Open the Arrow stream in a file. Raise InvalidInput if there is none."""
    import pyarrow as pa

    # An empty file cannot be mapped.
    with pa.memory_map(path) if Path(path).stat().st_size else pa.BufferReader(b"") as source:
        try:
            reader = pa.ipc.open_stream(source)
        except (pa.ArrowInvalid, OSError) as error:
            raise InvalidInput(f"the body is not an Arrow IPC stream: {str(error)[:200]}") from None
        with reader:
            yield reader
