"""Operations on the columns of a table, and on the metadata of its schema and fields.

They run in the child processes of ``data.process_pool``. Arguments and results are the JSON forms of the Lance REST spec's requests and
responses (``AlterTableAddColumnsRequest``, ...). ``path`` names a column, ``a.b`` a field of a struct. Each operation raises
TableColumnNotFound for an unknown column and the errors of ``TableHandle.opened_dataset``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from federator.connector import InvalidInput, Unsupported
from federator.connector.errors import TableColumnNotFound
from federator.data.rows import open_stream
from federator.data.table_handle import TableHandle
from federator.lance.arrow_json import type_from_json


def add_columns(handle: TableHandle, *, new_columns: Sequence[Mapping[str, Any]], branch: str | None = None) -> dict[str, Any]:
    """Add columns by SQL expressions. Return the new ``version``.

    Raise InvalidInput for an existing column or one without an expression, Unsupported for virtual and computed columns.
    """
    expressions: dict[str, str] = {}
    for column in new_columns:
        name = column["name"]
        if column.get("virtual_column") is not None or column.get("computed") is not None:
            raise Unsupported(f"{name}: virtual and computed columns need a backfill, which this service does not run")
        if not column.get("expression"):
            raise InvalidInput(f"{name}: an expression is required")
        expressions[name] = column["expression"]
    if not expressions:
        raise InvalidInput("new_columns is empty")
    with handle.opened_dataset(branch=branch) as dataset:
        if existing := [name for name in expressions if name in dataset.schema.names]:
            raise InvalidInput(f"the table already has a column {existing[0]!r}")
        dataset.add_columns(expressions)
        return {"version": dataset.version}


def add_null_columns(handle: TableHandle, *, input: str) -> dict[str, Any]:  # noqa: A002 - the request's field name
    """Add columns without values, by the schema of an Arrow IPC stream. Return the new ``version``.

    Raise InvalidInput for an existing column, and for one that must have values.
    """
    with open_stream(input) as reader, handle.opened_dataset() as dataset:
        names = [*dataset.schema.names]
        for field in reader.schema:
            if field.name in names:
                raise InvalidInput(f"the table already has a column {field.name!r}")
            if not field.nullable:
                raise InvalidInput(f"{field.name}: a column without values must be nullable")
            names.append(field.name)
        dataset.add_columns(reader.schema)
        return {"version": dataset.version}


def alter_columns(
    handle: TableHandle, *, alterations: Sequence[Mapping[str, Any]], branch: str | None = None
) -> dict[str, Any]:
    """Rename columns, cast them, or change whether they are nullable. Return the new ``version``.

    Raise InvalidInput without alterations, Unsupported for virtual columns.
    """
    lance_alterations: list[dict[str, Any]] = []
    for alteration in alterations:
        path = alteration["path"]
        if alteration.get("virtual_column") is not None:
            raise Unsupported(f"{path}: virtual columns need a backfill, which this service does not run")
        json_type = alteration.get("data_type")
        options = {
            "name": alteration.get("rename"),
            "nullable": alteration.get("nullable"),
            "data_type": type_from_json(json_type) if json_type else None,
        }
        lance_alterations.append({"path": path} | {key: value for key, value in options.items() if value is not None})
    if not lance_alterations:
        raise InvalidInput("alterations is empty")
    with handle.opened_dataset(branch=branch) as dataset:
        _require_columns(dataset, [alteration["path"] for alteration in lance_alterations])
        dataset.alter_columns(*lance_alterations)
        return {"version": dataset.version}


def drop_columns(handle: TableHandle, *, columns: Sequence[str], branch: str | None = None) -> dict[str, Any]:
    """Remove columns from the schema. Return the new ``version``. Data files are not rewritten. Raise InvalidInput without columns."""
    if not columns:
        raise InvalidInput("columns is empty")
    with handle.opened_dataset(branch=branch) as dataset:
        _require_columns(dataset, columns)
        dataset.drop_columns(list(columns))
        return {"version": dataset.version}


def set_schema_metadata(handle: TableHandle, *, metadata: Mapping[str, str], branch: str | None = None) -> dict[str, str]:
    """Replace the schema's metadata, and return the metadata afterwards."""
    with handle.opened_dataset(branch=branch) as dataset:
        updated: dict[str, str] = dataset.update_schema_metadata(dict(metadata), replace=True)
        return updated


def update_field_metadata(
    handle: TableHandle, *, updates: Sequence[Mapping[str, Any]], branch: str | None = None
) -> dict[str, Any]:
    """Merge metadata into fields, or replace it if an update has ``replace``. A null value removes its key.

    Merging and replacing are two commits, the merge first. Return the last ``version``, and the metadata of each updated field by path.
    """
    with handle.opened_dataset(branch=branch) as dataset:
        _require_columns(dataset, [update["path"] for update in updates])
        for replace in (False, True):
            metadata_by_path = {
                update["path"]: dict(update["metadata"]) for update in updates if bool(update.get("replace")) is replace
            }
            if metadata_by_path:
                dataset.update_field_metadata(metadata_by_path, replace=replace)
        return {
            "version": dataset.version,
            "fields": {update["path"]: _field_metadata(dataset, update["path"]) for update in updates},
        }


def _require_columns(dataset: Any, paths: Sequence[str]) -> None:
    for path in paths:
        if dataset.lance_schema.field(path) is None:
            raise TableColumnNotFound(f"the table has no column {path!r}")


def _field_metadata(dataset: Any, path: str) -> dict[str, str]:
    metadata = dataset.lance_schema.field(path).to_arrow().metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}
