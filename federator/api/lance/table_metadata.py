"""Routes of versions, tags, branches, indices and columns. Reads need visibility of the table, writes the role writer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from lance_namespace import (
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

from federator.api.bodies import BoundedRoute
from federator.api.lance.identifiers import Identifier, TableId, choose_reading, decode_segment
from federator.api.lance.lancedb_dialect import AddColumnsBody, LancedbDialect
from federator.api.lance.responses import Limit, PageToken, parse_limit
from federator.api.lance.table_data import TableReaderDep, TableWriter, TableWriterDep, body_fields, result_response, spool_body

router = APIRouter(prefix="/v1/table/{id}", include_in_schema=False, route_class=BoundedRoute)
Branch = Annotated[str | None, Query(max_length=1000)]


# Versions.


@router.post("/version/list")
async def list_table_versions(
    id: TableId, data: TableReaderDep, branch: Branch = None, page_token: PageToken = None, limit: Limit = None,  # noqa: A002
    descending: Annotated[bool | None, Query()] = None,
) -> Response:  # fmt: skip
    """List versions, oldest first unless ``descending``."""
    size = parse_limit(limit)
    options = {"branch": branch, "page_token": page_token, "limit": size, "descending": descending}
    return result_response(await data.run(id, None, "versions", **options))


@router.post("/version/describe")
async def describe_table_version(
    id: TableId, data: TableReaderDep, body: Annotated[DescribeTableVersionRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Describe a version; default: the newest."""
    request = body or DescribeTableVersionRequest()
    return result_response(await data.run(id, request.id, "version", version=request.version, branch=request.branch))


@router.post("/restore")
async def restore_table(id: TableId, writer: TableWriterDep, body: RestoreTableRequest) -> Response:  # noqa: A002
    """Restore an old version as a new version."""
    return await _execute_write(id, writer, body, "restore_table", "restore")


# Tags.


@router.post("/tags/list")
async def list_table_tags(
    id: TableId, data: TableReaderDep, page_token: PageToken = None, limit: Limit = None, lancedb: LancedbDialect = None  # noqa: A002
) -> Response:  # fmt: skip
    """List tags, ordered by name."""
    response = await data.run(id, None, "tags", page_token=page_token, limit=parse_limit(limit))
    return result_response(response["tags"] if lancedb else response)


@router.post("/tags/version")
async def get_table_tag_version(id: TableId, data: TableReaderDep, body: GetTableTagVersionRequest) -> Response:  # noqa: A002
    """Return the version of a tag."""
    return result_response(await data.run(id, body.id, "tag_version", tag=body.tag))


@router.post("/tags/create")
async def create_table_tag(id: TableId, writer: TableWriterDep, body: CreateTableTagRequest) -> Response:  # noqa: A002
    return await _execute_write(id, writer, body, "create_tag", "create_tag")


@router.post("/tags/update")
async def update_table_tag(id: TableId, writer: TableWriterDep, body: UpdateTableTagRequest) -> Response:  # noqa: A002
    return await _execute_write(id, writer, body, "update_tag", "update_tag")


@router.post("/tags/delete")
async def delete_table_tag(id: TableId, writer: TableWriterDep, body: DeleteTableTagRequest) -> Response:  # noqa: A002
    return await _execute_write(id, writer, body, "delete_tag", "delete_tag")


# Branches.


@router.post("/branches/list")
async def list_table_branches(
    id: TableId, data: TableReaderDep, page_token: PageToken = None, limit: Limit = None  # noqa: A002
) -> Response:  # fmt: skip
    """List all branches except main, ordered by name."""
    return result_response(await data.run(id, None, "branches", page_token=page_token, limit=parse_limit(limit)))


@router.post("/branches/create")
async def create_table_branch(id: TableId, writer: TableWriterDep, body: CreateTableBranchRequest) -> Response:  # noqa: A002
    return await _execute_write(id, writer, body, "create_branch", "create_branch")


@router.post("/branches/delete")
async def delete_table_branch(id: TableId, writer: TableWriterDep, body: DeleteTableBranchRequest) -> Response:  # noqa: A002
    return await _execute_write(id, writer, body, "delete_branch", "delete_branch")


# Indices.


@router.post("/index/list")
async def list_table_indices(
    id: TableId, data: TableReaderDep, body: Annotated[ListTableIndicesRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """List indices with their coverage, ordered by name."""
    request = body or ListTableIndicesRequest()
    options = {"version": request.version, "branch": request.branch, "page_token": request.page_token}
    return result_response(await data.run(id, request.id, "indices", limit=parse_limit(request.limit), **options))


@router.post("/index/{index_name}/stats")
async def describe_table_index_stats(
    id: TableId, index_name: str, data: TableReaderDep, body: Annotated[DescribeTableIndexStatsRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    request = body or DescribeTableIndexStatsRequest()
    name = choose_reading(decode_segment(index_name), request.index_name)
    return result_response(
        await data.run(id, request.id, "index_stats", index_name=name, version=request.version, branch=request.branch)
    )


@router.post("/create_index")
async def create_table_index(id: TableId, writer: TableWriterDep, body: CreateTableIndexRequest) -> Response:  # noqa: A002
    """Build an index; the response follows when it is complete. Raise TableIndexAlreadyExists for the name of another one."""
    return await _build_index(id, writer, body, scalar_only=False)


@router.post("/create_scalar_index")
async def create_table_scalar_index(id: TableId, writer: TableWriterDep, body: CreateTableIndexRequest) -> Response:  # noqa: A002
    """Build a scalar index, like ``create_table_index``."""
    return await _build_index(id, writer, body, scalar_only=True)


async def _build_index(id: Identifier, writer: TableWriter, body: CreateTableIndexRequest, *, scalar_only: bool) -> Response:  # noqa: A002
    table = await writer.resolve_table(id, body.id)
    request = body_fields(body)
    return result_response(
        *await writer.execute(
            table, "create_index", "create_index", request_fields=request, index=request, scalar_only=scalar_only
        )
    )


@router.post("/index/{index_name}/drop")
async def drop_table_index(id: TableId, index_name: str, writer: TableWriterDep, branch: Branch = None) -> Response:  # noqa: A002
    name = choose_reading(decode_segment(index_name), None)
    table, request = await writer.resolve_table(id), {"index_name": name, "branch": branch}
    return result_response(*await writer.execute(table, "drop_index", "drop_index", request_fields=request, **request))


# Columns and metadata.


@router.post("/add_columns")
async def alter_table_add_columns(id: TableId, writer: TableWriterDep, request: Request, body: AddColumnsBody) -> Response:  # noqa: A002
    """Add columns that are computed by SQL expressions from existing columns, or columns without values by a schema."""
    if body is None:
        table = await writer.resolve_table(id)
        async with spool_body(request, writer.pool) as stream:
            return result_response(*await writer.execute(table, "add_columns", "add_null_columns", input=stream))
    return await _execute_write(id, writer, body, "add_columns", "add_columns")


@router.post("/alter_columns")
async def alter_table_alter_columns(id: TableId, writer: TableWriterDep, body: AlterTableAlterColumnsRequest) -> Response:  # noqa: A002
    """Rename columns, cast them, or make them nullable."""
    return await _execute_write(id, writer, body, "alter_columns", "alter_columns")


@router.post("/drop_columns")
async def alter_table_drop_columns(id: TableId, writer: TableWriterDep, body: AlterTableDropColumnsRequest) -> Response:  # noqa: A002
    return await _execute_write(id, writer, body, "drop_columns", "drop_columns")


@router.post("/schema_metadata/update")
async def update_table_schema_metadata(
    id: TableId, writer: TableWriterDep, body: dict[str, str], branch: Branch = None  # noqa: A002
) -> Response:  # fmt: skip
    """Replace the schema metadata and return it."""
    table = await writer.resolve_table(id)
    request = {"metadata": body, "branch": branch}
    return result_response(
        *await writer.execute(table, "update_schema_metadata", "set_schema_metadata", request_fields=request, **request)
    )


@router.post("/update_field_metadata")
async def update_field_metadata(id: TableId, writer: TableWriterDep, body: UpdateFieldMetadataRequest) -> Response:  # noqa: A002
    return await _execute_write(id, writer, body, "update_field_metadata", "update_field_metadata")


async def _execute_write(id: Identifier, writer: TableWriter, body: Any, action: str, operation: str) -> Response:  # noqa: A002
    """Run a write with the fields of the body as arguments."""
    table = await writer.resolve_table(id, body.id)
    request = body_fields(body)
    return result_response(*await writer.execute(table, action, operation, request_fields=request, **request))
