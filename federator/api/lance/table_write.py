"""Rows of tables, written: created with their first rows, appended, merged, updated, deleted. For writers."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from lance_namespace import DeclareTableRequest, DeleteFromTableRequest, DeregisterTableRequest, UpdateTableRequest

from federator.api.lance.creating import check_created
from federator.api.lance.data import ANY_SIZE, Change, Changing, spooled, told
from federator.api.lance.detail import place_of
from federator.api.lance.identifiers import TableId
from federator.api.lance.resolving import Table, shown_properties
from federator.api.lance.tables import declare
from federator.api.lance.writes import Target
from federator.connector import InvalidInput, TableAlreadyExists, TableNotFound, Unsupported
from federator.connector.answers import choice
from federator.connector.errors import TableSchemaValidation

router = APIRouter(prefix="/v1/table/{id}", include_in_schema=False)
Flag = Annotated[bool | None, Query()]
Text = Annotated[str | None, Query(max_length=16_000)]


@router.post("/create", max_body_size=ANY_SIZE)
async def create_table(
    id: TableId, change: Change, request: Request, mode: Text = None, properties: Text = None, storage_options: Text = None  # noqa: A002
) -> Response:  # fmt: skip
    """Declared in its catalog, then written from the body, a stream of Arrow IPC, then opened again. Where the rows are refused, the
    declaration is taken back. Mode Overwrite writes the rows as a new version of a table that is there; its old ones stay."""
    target = change.target(id)
    chosen = choice("mode", mode, "create", "exist_ok", "overwrite")
    if storage_options and json_object(storage_options, "storage_options"):
        raise Unsupported("storage_options: tables are written with the storage.* of their source")
    if not target.source.data_operations:
        raise Unsupported(f"tables of {target.source.name} are not written here: data_operations = false in its settings")
    asked = DeclareTableRequest(properties=json_object(properties, "properties") if properties else None)
    async with spooled(request, change.pool) as body, change.locked(target):
        table, is_new = await _declared(change, target, asked, chosen)
        if not is_new and chosen == "exist_ok":
            found = {"version": (await run_in_threadpool(change.pool.run, "look", place_of(table)))["version"]}
            return told(_created(change, table, found))
        written = "create" if is_new else "overwrite"
        try:
            confirm = partial(check_created, change.write, table)
            made, op_id = await change.carry_out(
                table, "create_table", "create", confirm, told={"mode": chosen}, input=body, mode=written
            )
        except (InvalidInput, TableSchemaValidation, TableAlreadyExists):
            # Nothing was written, or what lies there is another's.
            if is_new:
                await run_in_threadpool(_take_back, change, target)
            raise
        return told(_created(change, table, made), op_id)


async def _declared(change: Changing, target: Target, asked: DeclareTableRequest, mode: str) -> tuple[Table, bool]:
    """The table, and whether it was not there before."""
    try:
        table, _ = await run_in_threadpool(partial(declare, change.write, target, asked, locked=True))
    except TableAlreadyExists as exists:
        if mode == "create":
            raise
        try:
            return await change.table_at(target), False
        except TableNotFound:
            # A directory's own name, whose location holds what was deregistered: there is no table to write into.
            raise exists from None
    return table, True


def _take_back(change: Changing, target: Target) -> None:
    request = DeregisterTableRequest(id=list(target.inner))
    change.write.carry_out(target, "deregister_table", lambda face: face.deregister_table(request), locked=True)


def _created(change: Changing, table: Table, made: dict[str, Any]) -> dict[str, Any]:
    return {
        "location": table.location, "version": made["version"], "properties": shown_properties(table.record),
        "storage_options": table.shown_options(change.write.caller, vend_credentials=False),
    }  # fmt: skip


@router.post("/insert", max_body_size=ANY_SIZE)
async def insert_into_table(
    id: TableId, change: Change, request: Request, mode: Text = None, branch: Text = None  # noqa: A002
) -> Response:  # fmt: skip
    """Rows of a stream of Arrow IPC appended, or in place of those that are there; makes a table that was only declared."""
    table, asked = await change.table(id), {"mode": mode, "branch": branch}
    async with spooled(request, change.pool) as body:
        return told(*await change.carry_out(table, "insert", "insert", told=asked, input=body, **asked))


@router.post("/merge_insert", max_body_size=ANY_SIZE)
async def merge_insert_into_table(
    id: TableId, change: Change, request: Request, on: Annotated[list[str], Query(min_length=1)], branch: Text = None,  # noqa: A002
    when_matched_update_all: Flag = None, when_matched_update_all_filt: Text = None, when_not_matched_insert_all: Flag = None,
    when_not_matched_by_source_delete: Flag = None, when_not_matched_by_source_delete_filt: Text = None,
    timeout: Text = None, use_index: Flag = None,
) -> Response:  # fmt: skip
    """Rows that match on the columns ``on`` updated, others inserted or deleted, as asked."""
    table = await change.table(id)
    asked = {
        "on": on, "branch": branch, "when_matched_update_all": when_matched_update_all,
        "when_matched_update_all_filt": when_matched_update_all_filt, "when_not_matched_insert_all": when_not_matched_insert_all,
        "when_not_matched_by_source_delete": when_not_matched_by_source_delete,
        "when_not_matched_by_source_delete_filt": when_not_matched_by_source_delete_filt, "use_index": use_index, "timeout": timeout,
    }  # fmt: skip
    async with spooled(request, change.pool) as body:
        return told(*await change.carry_out(table, "merge_insert", "merge", told=asked, input=body, **asked))


@router.post("/update")
async def update_table(id: TableId, change: Change, body: UpdateTableRequest) -> Response:  # noqa: A002
    """Columns set by SQL expressions, where the predicate holds."""
    table = await change.table(id, body.id)
    if body.properties:
        raise Unsupported("properties: what the catalog keeps is not changed with rows")
    asked = {"updates": body.updates, "predicate": body.predicate, "branch": body.branch}
    return told(*await change.carry_out(table, "update_rows", "update", told=asked, **asked))


@router.post("/delete")
async def delete_from_table(id: TableId, change: Change, body: DeleteFromTableRequest) -> Response:  # noqa: A002
    """Rows deleted where the predicate holds."""
    table = await change.table(id, body.id)
    asked = {"predicate": body.predicate, "branch": body.branch}
    return told(*await change.carry_out(table, "delete_rows", "delete", told=asked, **asked))


def json_object(text: str, name: str) -> dict[str, str]:
    """A map of texts from its JSON. Raises InvalidInput."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidInput(f"{name} is no JSON object of texts")
    return found
