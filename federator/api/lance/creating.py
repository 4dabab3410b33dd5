"""CreateTable: the general spec's, which declares a table and writes it without rows, and the check that ends every CreateTable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lance_namespace import DeclareTableRequest, DeclareTableResponse, DeregisterTableRequest
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema

from federator.api.lance.detail import place_of
from federator.api.lance.resolving import Table
from federator.api.lance.tables import declare
from federator.api.lance.writes import Target, Write
from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Unsupported,
)
from federator.data import DataPool
from federator.data.arrow_json import data_type
from federator.model import path_key
from federator.sync.writing import Order, Written

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
    asked = DeclareTableRequest(location=location, properties=dict(properties or {}) or None)
    with write.writer.locks.hold(target.source.name, target.inner):
        table, made = declare(write, target, asked, locked=True)
        try:
            with pool.file() as body:
                _write_stream(schema, str(body))
                answer = pool.run("create", place_of(table), input=str(body))
        except CatalogError:
            # What was there before, another's table at this place for one, is none of ours to declare.
            request = DeregisterTableRequest(id=list(target.inner))
            write.carry_out(target, "deregister_table", lambda face: face.deregister_table(request), locked=True)
            raise
        order = Order(write.caller.name, target.source.name, "create_table", target.inner, ())
        write.writer.record(order, lambda: check_created(write, table, answer, pool.run("look", place_of(table))))
    return table, made


def check_created(write: Write, table: Table, made: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Check that a table that was written can be read where its catalog says: ``made`` is the write's answer, ``found`` the row of
    verification for the location afterwards.

    Raise ConcurrentModification where the catalog no longer declares it there, Internal where its rows are not at the location,
    ServiceUnavailable and PermissionDenied where it cannot be opened now.
    """
    name = path_key(table.path)
    with write.writer.face(table.source.name).lent() as catalog:
        now = catalog.observe(table.path[1:]).record
    if now is None or now.canonical != table.record.canonical:
        raise ConcurrentModification(
            f"{name} was written to {table.location}, and {'is no longer declared' if now is None else 'is declared elsewhere'}",
            hint="another client removed or changed the declaration meanwhile",
        )
    state, version = found["state"], found["version"]
    if state != "valid":
        kind = {"unreachable": ServiceUnavailable, "denied": PermissionDenied}.get(state, Internal)
        raise kind(f"{name} was written to {table.location}, and cannot be opened there: {state}, {found['message']}")
    if version < made["version"] or (version == made["version"] and found["rows"] != made["num_inserted_rows"]):
        raise Internal(
            f"{name} was written to {table.location} as version {made['version']} with {made['num_inserted_rows']} rows, "
            f"and is version {version} with {found['rows']} rows there"
        )


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
