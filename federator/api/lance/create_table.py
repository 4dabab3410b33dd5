"""CreateTable of the general spec, which declares and writes an empty table; the check after each CreateTable of both specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lance_namespace import DeclareTableRequest, DeclareTableResponse
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema

from federator.api.lance.lookup import VisibleTable
from federator.api.lance.table_detail import table_handle
from federator.api.lance.tables import declare_in_catalog, withdraw_declaration
from federator.api.lance.write_access import AuthorizedWriter, WriteTarget
from federator.apply.direct_writes import WriteRequest, WriteResult
from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Unsupported,
)
from federator.data import PrincipalPool, run_inspection
from federator.lance.arrow_json import type_from_json
from federator.lance.columns import declared_schema, list_columns
from federator.lance.inspection import Inspection
from federator.model import path_key

if TYPE_CHECKING:
    import pyarrow as pa


def create_empty_table(
    pool: PrincipalPool, write: AuthorizedWriter, target: WriteTarget, json_schema: JsonArrowSchema, location: str | None,
    properties: Mapping[str, str] | None,
) -> tuple[VisibleTable, WriteResult[DeclareTableResponse]]:  # fmt: skip
    """Declare a table and write it without rows. If the write fails, the declaration is removed again.

    Raise InvalidInput for a schema that Arrow cannot represent, Unsupported for a source without data operations.
    """
    schema = _schema_from_json(json_schema.model_dump(by_alias=True, exclude_none=True))
    if not target.source.data_operations:
        raise Unsupported(f"tables of {target.source.name} cannot be written: data_operations = false in its settings")
    request = DeclareTableRequest(location=location, properties=dict(properties or {}) or None)
    with write.writer.locks.hold(target.source.name, target.source_path):
        table, result = declare_in_catalog(write, target, request, schema=declared_schema(list_columns(schema)), locked=True)
        write_request = WriteRequest(write.principal.name, target.source.name, "create_table", target.source_path, ())
        is_written = False

        def write_table() -> None:
            nonlocal is_written
            created = pool.run("create", table_handle(table), input=str(body.path))
            is_written = True
            check_created(write, table, created, run_inspection(pool.run, table_handle(table)))

        try:
            with pool.open_file() as body:
                _write_empty_stream(schema, str(body.path))
                write.writer.record_data_write(write_request, write_table)
        except CatalogError:
            if not is_written:
                # The write may have been refused because another table is at the location, which this name must not declare.
                withdraw_declaration(write, target)
            raise
    return table, result


def check_created(write: AuthorizedWriter, table: VisibleTable, created: Mapping[str, Any], inspection: Inspection) -> None:
    """Check that a written table can be read at the location in its catalog.

    ``created`` is the response of the write (``data.rows.create_table``), ``inspection`` that of the location afterwards. Raise
    ConcurrentModification if the catalog no longer declares the table there, Internal if its rows are not at the location,
    ServiceUnavailable or PermissionDenied if it cannot be opened now.
    """
    name = path_key(table.path)
    with write.writer.facade(table.source.name).borrow_catalog() as catalog:
        record = catalog.observe(table.path[1:]).record
    if record is None or record.canonical != table.record.canonical:
        raise ConcurrentModification(
            f"{name} was written to {table.location}, but {'is no longer declared' if record is None else 'is declared elsewhere'}",
            hint="check who removed or changed the declaration in the meantime",
        )
    state, version = inspection.state, inspection.version or 0
    if state != "valid":
        kind = {"unreachable": ServiceUnavailable, "denied": PermissionDenied}.get(state, Internal)
        raise kind(f"{name} was written to {table.location}, but cannot be opened there: {state}, {inspection.message}")
    if version < created["version"] or (version == created["version"] and inspection.rows != created["num_inserted_rows"]):
        raise Internal(
            f"{name} was written to {table.location} as version {created['version']} with {created['num_inserted_rows']} rows, "
            f"but is version {version} with {inspection.rows} rows there"
        )


def _schema_from_json(json_schema: Mapping[str, Any]) -> pa.Schema:
    import pyarrow as pa

    fields = json_schema.get("fields") or []
    if not fields:
        raise InvalidInput("the schema has no fields")
    return pa.schema(
        [pa.field(field["name"], type_from_json(field["type"]), nullable=field.get("nullable", True)) for field in fields]
    )


def _write_empty_stream(schema: pa.Schema, path: str) -> None:
    import pyarrow as pa

    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, schema):
        pass
