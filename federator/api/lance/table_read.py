"""Rows and state of tables, read: counts, statistics, queries and their plans."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response
from fastapi.concurrency import run_in_threadpool
from lance_namespace import (
    AnalyzeTableQueryPlanRequest,
    CountTableRowsRequest,
    ExplainTableQueryPlanRequest,
    GetTableStatsRequest,
    QueryTableRequest,
)
from pydantic import BaseModel

from federator.api.lance.data import Data, streamed, told
from federator.api.lance.identifiers import TableId

router = APIRouter(prefix="/v1/table/{id}", include_in_schema=False)
ARROW_FILE = "application/vnd.apache.arrow.file"


@router.post("/count_rows")
async def count_table_rows(
    id: TableId, data: Data, body: Annotated[CountTableRowsRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """A plain number."""
    asked = body or CountTableRowsRequest()
    rows = await data.ask(id, asked.id, "count", version=asked.version, branch=asked.branch, predicate=asked.predicate)
    return told(rows)


@router.post("/stats")
async def get_table_stats(
    id: TableId, data: Data, body: Annotated[GetTableStatsRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Bytes, rows, indices, and how the rows lie in fragments."""
    asked = body or GetTableStatsRequest()
    return told(await data.ask(id, asked.id, "stats", branch=asked.branch))


@router.post("/query")
async def query_table(id: TableId, data: Data, body: QueryTableRequest) -> Response:  # noqa: A002
    """Rows by projection, filter, vector or words: an Arrow IPC file, whole or an error that names the limit."""
    place = await data.place(id, body.id)
    path = await run_in_threadpool(data.pool.new_file)
    try:
        await data.at(place, "query", query=_query(body), output=str(path))
        return streamed(path, ARROW_FILE)
    finally:
        path.unlink(missing_ok=True)


@router.post("/explain_plan")
async def explain_table_query_plan(id: TableId, data: Data, body: ExplainTableQueryPlanRequest) -> Response:  # noqa: A002
    """The plan of a query, as a JSON string."""
    query = {**_query(body.query), "branch": body.branch or body.query.branch}
    return told(await data.ask(id, body.id, "explain", query=query, verbose=bool(body.verbose)))


@router.post("/analyze_plan")
async def analyze_table_query_plan(id: TableId, data: Data, body: AnalyzeTableQueryPlanRequest) -> Response:  # noqa: A002
    """The plan of a query with what running it took, as a JSON string."""
    return told(await data.ask(id, body.id, "analyze", query=_query(body)))


def _query(asked: BaseModel) -> dict[str, Any]:
    return asked.model_dump(exclude_none=True, exclude={"identity", "context", "id"})
