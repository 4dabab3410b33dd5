"""Columns of a table, and the metadata of its schema and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from federator.connector import InvalidInput, Unsupported
from federator.connector.errors import TableColumnNotFound
from federator.data.arrow_json import data_type
from federator.data.place import Place


def add_columns(place: Place, *, new_columns: Sequence[Mapping[str, Any]], branch: str | None = None) -> dict[str, Any]:
    """Adds columns by SQL expressions. Raises Unsupported for columns that something else would have to fill."""
    expressions: dict[str, str] = {}
    for column in new_columns:
        name = column["name"]
        if column.get("virtual_column") is not None or column.get("computed") is not None:
            raise Unsupported(f"{name}: virtual and computed columns are filled by backfill, which nothing here runs")
        if not column.get("expression"):
            raise InvalidInput(f"{name}: an expression is required")
        expressions[name] = column["expression"]
    if not expressions:
        raise InvalidInput("new_columns is empty")
    with place.opened(branch=branch) as dataset:
        if taken := [name for name in expressions if name in dataset.schema.names]:
            raise InvalidInput(f"the table has a column {taken[0]!r} already")
        dataset.add_columns(expressions)
        return {"version": dataset.version}


def alter_columns(place: Place, *, alterations: Sequence[Mapping[str, Any]], branch: str | None = None) -> dict[str, Any]:
    """Renames, casts and loosens columns."""
    wanted: list[dict[str, Any]] = []
    for change in alterations:
        path = change["path"]
        if change.get("virtual_column") is not None:
            raise Unsupported(f"{path}: virtual columns are filled by backfill, which nothing here runs")
        kind = change.get("data_type")
        told = {
            "name": change.get("rename"),
            "nullable": change.get("nullable"),
            "data_type": data_type(kind) if kind else None,
        }
        wanted.append({"path": path} | {key: value for key, value in told.items() if value is not None})
    if not wanted:
        raise InvalidInput("alterations is empty")
    with place.opened(branch=branch) as dataset:
        _all_there(dataset, [change["path"] for change in wanted])
        dataset.alter_columns(*wanted)
        return {"version": dataset.version}


def drop_columns(place: Place, *, columns: Sequence[str], branch: str | None = None) -> dict[str, Any]:
    with place.opened(branch=branch) as dataset:
        _all_there(dataset, columns)
        dataset.drop_columns(list(columns))
        return {"version": dataset.version}


def set_schema_metadata(place: Place, *, metadata: Mapping[str, str], branch: str | None = None) -> dict[str, str]:
    """Replaces the schema's metadata; what it is afterwards."""
    with place.opened(branch=branch) as dataset:
        found: dict[str, str] = dataset.update_schema_metadata(dict(metadata), replace=True)
        return found


def update_field_metadata(place: Place, *, updates: Sequence[Mapping[str, Any]], branch: str | None = None) -> dict[str, Any]:
    """Merges metadata into fields, or replaces theirs; a null removes its key."""
    with place.opened(branch=branch) as dataset:
        _all_there(dataset, [update["path"] for update in updates])
        for replace in (False, True):
            chosen = {update["path"]: dict(update["metadata"]) for update in updates if bool(update.get("replace")) is replace}
            if chosen:
                dataset.update_field_metadata(chosen, replace=replace)
        return {
            "version": dataset.version,
            "fields": {update["path"]: _metadata(dataset, update["path"]) for update in updates},
        }


def _all_there(dataset: Any, paths: Sequence[str]) -> None:
    for path in paths:
        if dataset.lance_schema.field(path) is None:
            raise TableColumnNotFound(f"the table has no column {path!r}")


def _metadata(dataset: Any, path: str) -> dict[str, str]:
    found = dataset.lance_schema.field(path).to_arrow().metadata or {}
    return {key.decode(): value.decode() for key, value in found.items()}
