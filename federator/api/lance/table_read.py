"""Read routes of table data: counts, statistics, queries and their plans."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Body, Response
from fastapi.concurrency import run_in_threadpool
from lance_namespace import CountTableRowsRequest, GetTableStatsRequest

from federator.api.bodies import BoundedRoute
from federator.api.lance.identifiers import TableId
from federator.api.lance.lancedb_dialect import AnalyzeBody, ExplainBody, QueryBody
from federator.api.lance.table_data import TableReaderDep, body_fields, result_response
from federator.api.spooled_response import SpooledResponse

router = APIRouter(prefix="/v1/table/{id}", include_in_schema=False, route_class=BoundedRoute)
ARROW_FILE = "application/vnd.apache.arrow.file"


@router.post("/count_rows")
async def count_table_rows(
    id: TableId, data: TableReaderDep, body: Annotated[CountTableRowsRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Return the number of rows as a JSON number."""
    request = body or CountTableRowsRequest()
    rows = await data.run(id, request.id, "count", version=request.version, branch=request.branch, predicate=request.predicate)
    return result_response(rows)


@router.post("/stats")
async def get_table_stats(
    id: TableId, data: TableReaderDep, body: Annotated[GetTableStatsRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Return bytes, rows, indices and the distribution of rows over fragments."""
    request = body or GetTableStatsRequest()
    return result_response(await data.run(id, request.id, "stats", branch=request.branch))


@router.post("/query")
async def query_table(id: TableId, data: TableReaderDep, body: QueryBody) -> Response:  # noqa: A002
    """Query rows by projection, filter, vector or full text. Return a complete Arrow IPC file, or an error that names the limit."""
    handle = await data.resolve_handle(id, body.id)
    with ExitStack() as stack:
        file = stack.enter_context(await run_in_threadpool(data.pool.open_file))
        await data.run_on(handle, "query", query=body_fields(body), output=str(file.path))
        response = SpooledResponse(file, ARROW_FILE)
        # The response closes the file once it is sent.
        stack.pop_all()
        return response


@router.post("/explain_plan")
async def explain_table_query_plan(id: TableId, data: TableReaderDep, body: ExplainBody) -> Response:  # noqa: A002
    """Return the plan of a query as a JSON string."""
    query = {**body_fields(body.query), "branch": body.branch or body.query.branch}
    return result_response(await data.run(id, body.id, "explain", query=query, verbose=bool(body.verbose)))


@router.post("/analyze_plan")
async def analyze_table_query_plan(id: TableId, data: TableReaderDep, body: AnalyzeBody) -> Response:  # noqa: A002
    """Run a query and return its plan with measurements as a JSON string."""
    return result_response(await data.run(id, body.id, "analyze", query=body_fields(body)))
