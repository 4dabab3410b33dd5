"""Rows written to a table. What is written comes as a file with a stream of Arrow IPC, whole before the write begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from federator.connector import InvalidInput, TableNotFound
from federator.connector.answers import choice
from federator.connector.errors import TableColumnNotFound
from federator.data.faults import FAULTS, as_ours
from federator.data.place import MAIN, Place
from federator.settings.values import seconds


def create(place: Place, *, input: str, mode: str | None = None) -> dict[str, Any]:  # noqa: A002 - the file that came in
    """Writes the first version of a table that was only declared, or with ``overwrite`` a new one; its version and rows."""
    chosen = choice("mode", mode, "create", "exist_ok", "overwrite")
    with _stream(input) as reader:
        return _written(place, reader, "overwrite" if chosen == "overwrite" else "create")


def insert(place: Place, *, input: str, mode: str | None = None, branch: str | None = None) -> dict[str, Any]:  # noqa: A002
    """Appends rows, or replaces all; a table that was only declared is made with them. An ``InsertIntoTableResponse``."""
    chosen = choice("mode", mode, "append", "overwrite")
    with _stream(input) as reader:
        try:
            dataset = place.open(branch=branch)
        except TableNotFound:
            if branch not in (None, "", MAIN):
                raise
            return _written(place, reader, "create")
        return _written(place, reader, chosen, dataset)


def merge(
    place: Place,
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
    """Updates rows that match on the columns ``on``, inserts and deletes others. A ``MergeInsertIntoTableResponse``.

    ``timeout`` (``30s``) bounds how long it tries again after what others commit. As in Lance's own server, what does not match is
    inserted unless that is declined, and a filter asks for what it filters.
    """
    patience = _duration(timeout) if timeout is not None else None
    with _stream(input) as reader:
        try:
            dataset = place.open(branch=branch)
        except TableNotFound:
            if branch not in (None, "", MAIN):
                raise
            made = _written(place, reader, "create")
            return {"num_updated_rows": 0, "num_deleted_rows": 0, **made}
        for column in on:
            if dataset.lance_schema.field(column) is None:
                raise TableColumnNotFound(f"the table has no column {column!r}")
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
            if patience is not None:
                builder = builder.retry_timeout(patience)
            told = builder.execute(reader)
        except FAULTS as error:
            raise as_ours(error) from None
        counts = {f"num_{what}_rows": told[f"num_{what}_rows"] for what in ("updated", "inserted", "deleted")}
        return {**counts, "version": dataset.version}


def update(
    place: Place, *, updates: Sequence[Sequence[str]], predicate: str | None = None, branch: str | None = None
) -> dict[str, Any]:
    """Sets columns by SQL expressions where the predicate holds. An ``UpdateTableResponse``."""
    if not updates or any(len(pair) != 2 for pair in updates):
        raise InvalidInput("updates are pairs of a column and an expression")
    with place.opened(branch=branch) as dataset:
        for column in (pair[0] for pair in updates):
            if dataset.lance_schema.field(column) is None:
                raise TableColumnNotFound(f"the table has no column {column!r}")
        done = dataset.update({pair[0]: pair[1] for pair in updates}, where=predicate or None)
        return {"updated_rows": done["num_rows_updated"], "version": dataset.version}


def delete(place: Place, *, predicate: str, branch: str | None = None) -> dict[str, Any]:
    """Deletes the rows that match. A ``DeleteFromTableResponse``."""
    if not predicate.strip():
        raise InvalidInput("predicate is empty", hint="true deletes every row")
    with place.opened(branch=branch) as dataset:
        dataset.delete(predicate)
        return {"version": dataset.version}


def drop(place: Place) -> dict[str, Any]:
    """Deletes the table's data, whole. Raises TableNotFound where there is none.

    Only for a person's DropTable of a source that allows it: nothing of the mirroring calls this.
    """
    import lance

    place.open()
    try:
        lance.LanceDataset.drop(place.uri, place.options)
    except FAULTS as error:
        raise as_ours(error) from None
    return {}


def strangers(place: Place) -> dict[str, Any]:
    """What lies in a table's directory and is none of its own: ``names``, paths from it. Raises what the store answers.

    Lance's drop takes the directory whole: other tables in it, which no catalog needs to declare, and files of any kind.
    """
    from lance.file import LanceFileSession

    try:
        found = LanceFileSession(place.uri, storage_options=place.options).list()
    except FAULTS as error:
        raise as_ours(error) from None
    return {"names": sorted({name for name in map(_stranger, found) if name})}


def _stranger(path: str) -> str | None:
    """The table or the first name that a path belongs to, where it is not the table's own."""
    names = path.split("/")
    above = next((at for at, name in enumerate(names) if name in ("_versions", ".lance-reserved")), 0)
    if above and names[0] != "tree":
        return "/".join(names[:above])
    # What Lance makes begins with one of these signs, but for its data and its branches.
    own = names[0][:1] in ("", "_", ".") or names[0] in ("data", "tree")
    return None if own else names[0]


def _duration(text: str) -> timedelta:
    try:
        return timedelta(seconds=seconds(text))
    except ValueError as error:
        raise InvalidInput(f"timeout: {error}") from None


def _written(place: Place, reader: Any, mode: str, dataset: Any = None) -> dict[str, Any]:
    import lance

    counted = _Counted(reader)
    try:
        made = lance.write_dataset(
            counted.reader(), dataset if dataset is not None else place.uri, mode=mode, storage_options=place.options
        )
    except FAULTS as error:
        raise as_ours(error) from None
    return {"num_inserted_rows": counted.rows, "version": made.version}


class _Counted:
    """A reader's batches, counted as they go by."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.rows = 0

    def reader(self) -> Any:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._reader.schema, self._batches())

    def _batches(self) -> Iterator[Any]:
        for batch in self._reader:
            self.rows += batch.num_rows
            yield batch


@contextmanager
def _stream(path: str) -> Iterator[Any]:
    """The stream of Arrow in a file. Raises InvalidInput where there is none."""
    import pyarrow as pa

    with pa.memory_map(path) if _size(path) else pa.BufferReader(b"") as source:
        try:
            reader = pa.ipc.open_stream(source)
        except (pa.ArrowInvalid, OSError) as error:
            raise InvalidInput(f"the body is no stream of Arrow IPC: {str(error)[:200]}") from None
        with reader:
            yield reader


def _size(path: str) -> int:
    from pathlib import Path

    return Path(path).stat().st_size
