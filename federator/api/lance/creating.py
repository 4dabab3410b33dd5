"""CreateTable of the general spec: a declaration, and an empty table with its schema at the location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lance_namespace import DeclareTableRequest, DeclareTableResponse
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema

from federator.api.lance.detail import place_of
from federator.api.lance.resolving import Table
from federator.api.lance.tables import declare
from federator.api.lance.writes import Target, Write
from federator.connector import CatalogError, InvalidInput, Unsupported
from federator.data import DataPool
from federator.data.arrow_json import data_type
from federator.sync.writing import Written

if TYPE_CHECKING:
    import pyarrow as pa


def create_empty(
    pool: DataPool, write: Write, target: Target, told: JsonArrowSchema, location: str | None,
    properties: Mapping[str, str] | None,
) -> tuple[Table, Written[DeclareTableResponse]]:  # fmt: skip
    """Declares the table, then writes it without rows. A declaration whose table could not be written is taken back.

    Raises InvalidInput for a schema that Arrow has no like of, Unsupported for a source whose tables are not opened here.
    """
    schema = _arrow(told.model_dump(by_alias=True, exclude_none=True))
    if not target.source.data_operations:
        raise Unsupported(f"tables of {target.source.name} are not written here: data_operations = false in its settings")
    table, made = declare(write, target, DeclareTableRequest(location=location, properties=dict(properties or {}) or None))
    try:
        body = pool.new_file()
        try:
            _write_stream(schema, str(body))
            pool.run("create", place_of(table), input=str(body))
        finally:
            body.unlink(missing_ok=True)
    except CatalogError:
        # What was there before, another's table at this place for one, is none of ours to declare.
        write.carry_out(target, "deregister_table", lambda face: face.deregister_table({"id": list(target.inner)}))  # type: ignore[arg-type]  # the face takes mappings, too
        raise
    return table, made


def _arrow(told: Mapping[str, Any]) -> pa.Schema:
    import pyarrow as pa

    fields = told.get("fields") or []
    if not fields:
        raise InvalidInput("the schema has no fields")
    return pa.schema(
        [pa.field(field["name"], data_type(field["type"]), nullable=field.get("nullable", True)) for field in fields]
    )


def _write_stream(schema: pa.Schema, path: str) -> None:
    import pyarrow as pa

    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, schema):
        pass
