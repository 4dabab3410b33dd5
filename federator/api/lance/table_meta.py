"""Versions, tags, branches, indices and columns of tables: read by anyone who may see the table, changed by writers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response
from lance_namespace import (
    AlterTableAddColumnsRequest,
    AlterTableAlterColumnsRequest,
    AlterTableDropColumnsRequest,
    CreateTableBranchRequest,
    CreateTableIndexRequest,
    CreateTableTagRequest,
    DeleteTableBranchRequest,
    DeleteTableTagRequest,
    DescribeTableIndexStatsRequest,
    DescribeTableVersionRequest,
    GetTableTagVersionRequest,
    ListTableIndicesRequest,
    RestoreTableRequest,
    UpdateFieldMetadataRequest,
    UpdateTableTagRequest,
)
from pydantic import BaseModel

from federator.api.lance.answers import Limit, PageToken, wanted
from federator.api.lance.data import Change, Changing, Data, told
from federator.api.lance.identifiers import Identifier, TableId, decoded
from federator.connector import InvalidInput

router = APIRouter(prefix="/v1/table/{id}", include_in_schema=False)
Branch = Annotated[str | None, Query(max_length=1000)]


# Versions.


@router.post("/version/list")
async def list_table_versions(
    id: TableId, data: Data, branch: Branch = None, page_token: PageToken = None, limit: Limit = None,  # noqa: A002
    descending: Annotated[bool | None, Query()] = None,
) -> Response:  # fmt: skip
    """Oldest first unless ``descending``."""
    size, _ = wanted(limit, None)
    options = {"branch": branch, "page_token": page_token, "limit": size, "descending": descending}
    return told(await data.ask(id, None, "versions", **options))


@router.post("/version/describe")
async def describe_table_version(
    id: TableId, data: Data, body: Annotated[DescribeTableVersionRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """The newest where none is named."""
    asked = body or DescribeTableVersionRequest()
    return told(await data.ask(id, asked.id, "version", version=asked.version, branch=asked.branch))


@router.post("/restore")
async def restore_table(id: TableId, change: Change, body: RestoreTableRequest) -> Response:  # noqa: A002
    """An old version becomes the newest, as a new one."""
    return await _changed(id, change, body, "restore_table", "restore")


# Tags.


@router.post("/tags/list")
async def list_table_tags(
    id: TableId, data: Data, page_token: PageToken = None, limit: Limit = None  # noqa: A002
) -> Response:  # fmt: skip
    """Names of versions, by name."""
    return told(await data.ask(id, None, "tags", page_token=page_token, limit=wanted(limit, None)[0]))


@router.post("/tags/version")
async def get_table_tag_version(id: TableId, data: Data, body: GetTableTagVersionRequest) -> Response:  # noqa: A002
    """The version that a tag names."""
    return told(await data.ask(id, body.id, "tag_version", tag=body.tag))


@router.post("/tags/create")
async def create_table_tag(id: TableId, change: Change, body: CreateTableTagRequest) -> Response:  # noqa: A002
    return await _changed(id, change, body, "create_tag", "create_tag")


@router.post("/tags/update")
async def update_table_tag(id: TableId, change: Change, body: UpdateTableTagRequest) -> Response:  # noqa: A002
    return await _changed(id, change, body, "update_tag", "update_tag")


@router.post("/tags/delete")
async def delete_table_tag(id: TableId, change: Change, body: DeleteTableTagRequest) -> Response:  # noqa: A002
    return await _changed(id, change, body, "delete_tag", "delete_tag")


# Branches.


@router.post("/branches/list")
async def list_table_branches(
    id: TableId, data: Data, page_token: PageToken = None, limit: Limit = None  # noqa: A002
) -> Response:  # fmt: skip
    """Every branch but the main one, by name."""
    return told(await data.ask(id, None, "branches", page_token=page_token, limit=wanted(limit, None)[0]))


@router.post("/branches/create")
async def create_table_branch(id: TableId, change: Change, body: CreateTableBranchRequest) -> Response:  # noqa: A002
    return await _changed(id, change, body, "create_branch", "create_branch")


@router.post("/branches/delete")
async def delete_table_branch(id: TableId, change: Change, body: DeleteTableBranchRequest) -> Response:  # noqa: A002
    return await _changed(id, change, body, "delete_branch", "delete_branch")


# Indices.


@router.post("/index/list")
async def list_table_indices(
    id: TableId, data: Data, body: Annotated[ListTableIndicesRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """By name, with what each covers."""
    asked = body or ListTableIndicesRequest()
    options = {"version": asked.version, "branch": asked.branch, "page_token": asked.page_token}
    return told(await data.ask(id, asked.id, "indices", limit=wanted(asked.limit, None)[0], **options))


@router.post("/index/{index_name}/stats")
async def describe_table_index_stats(
    id: TableId, index_name: str, data: Data, body: Annotated[DescribeTableIndexStatsRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    asked = body or DescribeTableIndexStatsRequest()
    name = _index_name(index_name, asked.index_name)
    return told(await data.ask(id, asked.id, "index_stats", index_name=name, version=asked.version, branch=asked.branch))


@router.post("/create_index")
async def create_table_index(id: TableId, change: Change, body: CreateTableIndexRequest) -> Response:  # noqa: A002
    """Built when this answers; one of that name is replaced."""
    return await _index_built(id, change, body, scalar_only=False)


@router.post("/create_scalar_index")
async def create_table_scalar_index(id: TableId, change: Change, body: CreateTableIndexRequest) -> Response:  # noqa: A002
    """The same, for indices that are not of vectors."""
    return await _index_built(id, change, body, scalar_only=True)


async def _index_built(id: Identifier, change: Changing, body: CreateTableIndexRequest, *, scalar_only: bool) -> Response:  # noqa: A002
    table = await change.table(id, body.id)
    asked = _fields(body)
    return told(
        *await change.carry_out(table, "create_index", "create_index", told=asked, index=asked, scalar_only=scalar_only)
    )


@router.post("/index/{index_name}/drop")
async def drop_table_index(id: TableId, index_name: str, change: Change, branch: Branch = None) -> Response:  # noqa: A002
    table, asked = await change.table(id), {"index_name": _index_name(index_name, None), "branch": branch}
    return told(*await change.carry_out(table, "drop_index", "drop_index", told=asked, **asked))


# Columns and metadata.


@router.post("/add_columns")
async def alter_table_add_columns(id: TableId, change: Change, body: AlterTableAddColumnsRequest) -> Response:  # noqa: A002
    """New columns by SQL expressions over those that are there."""
    return await _changed(id, change, body, "add_columns", "add_columns")


@router.post("/alter_columns")
async def alter_table_alter_columns(id: TableId, change: Change, body: AlterTableAlterColumnsRequest) -> Response:  # noqa: A002
    """Columns renamed, cast, or made nullable."""
    return await _changed(id, change, body, "alter_columns", "alter_columns")


@router.post("/drop_columns")
async def alter_table_drop_columns(id: TableId, change: Change, body: AlterTableDropColumnsRequest) -> Response:  # noqa: A002
    return await _changed(id, change, body, "drop_columns", "drop_columns")


@router.post("/schema_metadata/update")
async def update_table_schema_metadata(
    id: TableId, change: Change, body: dict[str, str], branch: Branch = None  # noqa: A002
) -> Response:  # fmt: skip
    """The schema's metadata replaced; what it is then."""
    table = await change.table(id)
    asked = {"metadata": body, "branch": branch}
    return told(*await change.carry_out(table, "update_schema_metadata", "set_schema_metadata", told=asked, **asked))


@router.post("/update_field_metadata")
async def update_field_metadata(id: TableId, change: Change, body: UpdateFieldMetadataRequest) -> Response:  # noqa: A002
    return await _changed(id, change, body, "update_field_metadata", "update_field_metadata")


async def _changed(id: Identifier, change: Changing, body: Any, action: str, operation: str) -> Response:  # noqa: A002
    """A write whose arguments are the body's fields."""
    table = await change.table(id, body.id)
    asked = _fields(body)
    return told(*await change.carry_out(table, action, operation, told=asked, **asked))


def _fields(body: BaseModel) -> dict[str, Any]:
    return body.model_dump(exclude_none=True, exclude={"identity", "context", "id"})


def _index_name(segment: str, body: str | None) -> str:
    name = decoded(segment)
    if body is not None and body != name:
        raise InvalidInput(f"the body names the index {body!r}, the route names {name!r}")
    return name
