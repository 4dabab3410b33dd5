"""Write routes of table data: create, insert, merge, update and delete. They need the role writer.

``TableWriter.execute`` takes two names: the action in journal and audit log, and the operation of the child process
(``data.operations``). Query parameters have the names of the Lance REST spec (``..._filt``); ``timeout`` is a text such as ``30s``.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from lance_namespace import DeclareTableRequest, DeleteFromTableRequest, UpdateTableRequest

from federator.api.bodies import BoundedRoute
from federator.api.lance.create_table import check_created
from federator.api.lance.identifiers import TableId
from federator.api.lance.lancedb_dialect import LancedbDialect
from federator.api.lance.lookup import VisibleTable, capabilities, public_properties
from federator.api.lance.table_data import UNLIMITED, TableWriter, TableWriterDep, result_response, spool_body
from federator.api.lance.table_detail import table_handle
from federator.api.lance.tables import declare_in_catalog, withdraw_declaration
from federator.api.lance.write_access import WriteTarget
from federator.connector import InvalidInput, TableAlreadyExists, TableNotFound, Unsupported
from federator.connector.errors import TableSchemaValidation
from federator.data import TableHandle
from federator.lance.columns import declared_schema
from federator.lance.facade_mapping import parse_choice

router = APIRouter(prefix="/v1/table/{id}", include_in_schema=False, route_class=BoundedRoute)
Flag = Annotated[bool | None, Query()]
Text = Annotated[str | None, Query(max_length=16_000)]


@router.post("/create", max_body_size=UNLIMITED)
async def create_table(
    id: TableId, writer: TableWriterDep, request: Request, mode: Text = None, properties: Text = None, storage_options: Text = None  # noqa: A002
) -> Response:  # fmt: skip
    """Declare a table in its catalog, write the rows of the body (an Arrow IPC stream), and check the result. If the rows are refused,
    the declaration is removed again. Mode Overwrite writes the rows as a new version of an existing table; old versions stay."""
    target = await writer.authorize_target(id)
    chosen_mode = parse_choice("mode", mode, "create", "exist_ok", "overwrite")
    if storage_options and _parse_string_map(storage_options, "storage_options"):
        raise Unsupported("storage_options cannot be set: tables are written with the storage.* of their source")
    if not target.source.data_operations:
        raise Unsupported(f"tables of {target.source.name} cannot be written: data_operations = false in its settings")
    declaration = DeclareTableRequest(properties=_parse_string_map(properties, "properties") if properties else None)
    async with spool_body(request, writer.pool) as body, writer.locked(target):
        schema = await _read_columns(writer, body) if capabilities(target.source).keeps_columns else None
        table, is_new = await _declare_table(writer, target, declaration, chosen_mode, schema)
        if not is_new and chosen_mode == "exist_ok":
            inspection = await writer.run_on(table_handle(table), "inspect")
            return result_response(_create_response(table, inspection["version"]))
        operation_mode = "create" if is_new else "overwrite"
        try:
            confirm = partial(check_created, writer.write, table)
            created, op_id = await writer.execute(
                table, "create_table", "create", confirm, request_fields={"mode": chosen_mode}, input=body, mode=operation_mode
            )
        except (InvalidInput, TableSchemaValidation, TableAlreadyExists):
            # These errors mean that nothing was written, or that another table is at the location: either way, no data of this name.
            if is_new:
                await run_in_threadpool(withdraw_declaration, writer.write, target)
            raise
        return result_response(_create_response(table, created["version"]), op_id)


async def _read_columns(writer: TableWriter, body: str) -> str | None:
    """Return the columns to declare for a body, read by a process of its own. Raise InvalidInput if it is not an Arrow IPC stream."""
    return declared_schema(await writer.run_on(TableHandle(body), "columns", input=body))


async def _declare_table(
    writer: TableWriter, target: WriteTarget, declaration: DeclareTableRequest, mode: str, schema: str | None
) -> tuple[VisibleTable, bool]:
    """Declare a table; the calling function holds its lock. Return it, and whether it is new.

    Raise TableAlreadyExists in the mode ``create``, and if the name is free but its location belongs to another table.
    """
    try:
        declare = partial(declare_in_catalog, writer.write, target, declaration, schema=schema, locked=True)
        table, _ = await writer.threads.run(declare)
    except TableAlreadyExists as error:
        if mode == "create":
            raise
        try:
            return await writer.table_at(target), False
        except TableNotFound:
            # The name is free, but its default directory contains the data of a table that was deregistered. It must not be written.
            raise error from None
    return table, True


def _create_response(table: VisibleTable, version: int | None) -> dict[str, Any]:
    """Return a ``CreateTableResponse``. ``version`` is None for a table without data."""
    return {
        "location": table.location, "version": version, "properties": public_properties(table.record),
        "storage_options": table.storage_options(with_secrets=False),
    }  # fmt: skip


@router.post("/insert", max_body_size=UNLIMITED)
async def insert_into_table(
    id: TableId, writer: TableWriterDep, request: Request, mode: Text = None, branch: Text = None  # noqa: A002
) -> Response:  # fmt: skip
    """Append the rows of an Arrow IPC stream, or replace all rows with them. Creates the data of a table that was only declared."""
    table, fields = await writer.resolve_table(id), {"mode": mode, "branch": branch}
    async with spool_body(request, writer.pool) as body:
        return result_response(*await writer.execute(table, "insert", "insert", request_fields=fields, input=body, **fields))


@router.post("/merge_insert", max_body_size=UNLIMITED)
async def merge_insert_into_table(
    id: TableId, writer: TableWriterDep, request: Request, on: Annotated[list[str], Query(min_length=1)], branch: Text = None,  # noqa: A002
    when_matched_update_all: Flag = None, when_matched_update_all_filt: Text = None, when_not_matched_insert_all: Flag = None,
    when_not_matched_by_source_delete: Flag = None, when_not_matched_by_source_delete_filt: Text = None,
    timeout: Text = None, use_index: Flag = None,
) -> Response:  # fmt: skip
    """Merge rows: update those that match on the columns ``on``, and insert or delete others, as the flags say."""
    table = await writer.resolve_table(id)
    fields = {
        "on": on, "branch": branch, "when_matched_update_all": when_matched_update_all,
        "when_matched_update_all_filt": when_matched_update_all_filt, "when_not_matched_insert_all": when_not_matched_insert_all,
        "when_not_matched_by_source_delete": when_not_matched_by_source_delete,
        "when_not_matched_by_source_delete_filt": when_not_matched_by_source_delete_filt, "use_index": use_index, "timeout": timeout,
    }  # fmt: skip
    async with spool_body(request, writer.pool) as body:
        return result_response(
            *await writer.execute(table, "merge_insert", "merge", request_fields=fields, input=body, **fields)
        )


@router.post("/update")
async def update_table(
    id: TableId, writer: TableWriterDep, body: UpdateTableRequest, lancedb: LancedbDialect = None  # noqa: A002
) -> Response:  # fmt: skip
    """Set columns to SQL expressions in all rows that match the predicate."""
    table = await writer.resolve_table(id, body.id)
    if body.properties:
        raise Unsupported("properties cannot be changed together with rows")
    fields = {"updates": body.updates, "predicate": body.predicate, "branch": body.branch}
    response, op_id = await writer.execute(table, "update_rows", "update", request_fields=fields, **fields)
    return result_response({**response, "rows_updated": response["updated_rows"]} if lancedb else response, op_id)


@router.post("/delete")
async def delete_from_table(
    id: TableId, writer: TableWriterDep, body: DeleteFromTableRequest, lancedb: LancedbDialect = None  # noqa: A002
) -> Response:  # fmt: skip
    """Delete all rows that match the predicate."""
    table = await writer.resolve_table(id, body.id)
    fields = {"predicate": body.predicate, "branch": body.branch}
    response, op_id = await writer.execute(table, "delete_rows", "delete", request_fields=fields, **fields)
    return result_response(response if lancedb else {"version": response["version"]}, op_id)


def _parse_string_map(text: str, name: str) -> dict[str, str]:
    """Parse a JSON object whose values are strings. Raise InvalidInput."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict) or not all(isinstance(value, str) for value in parsed.values()):
        raise InvalidInput(f"{name} is not a JSON object of strings")
    return parsed
