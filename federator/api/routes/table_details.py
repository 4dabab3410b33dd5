"""Routes about one table: its graph of declarations, its columns on both sides, and code that opens it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.models.snippets import SnippetList
from federator.api.paging import etag_response, not_modified_docs, require_storable
from federator.api.problems import problem_docs
from federator.api.security_middleware import requires_credential
from federator.lance.snippets import build_snippets
from federator.model import Kind, parse_path_key
from federator.views.declaration_graph import DeclarationGraph, build_graph
from federator.views.schema_comparison import SchemaComparison, compare_schemas
from federator.views.tree import Table, get_table

router = APIRouter(prefix="/api/v1")

_RESPONSES = {**not_modified_docs(), **problem_docs(400, 404)}
_Id = Annotated[str, Path(max_length=4000, description="object id", examples=["lake_hive$sales$orders"])]


@router.get("/graph/{id:text}", response_model=DeclarationGraph, responses=_RESPONSES, summary="Graph of declarations")
def get_graph(request: Request, index: IndexDep, principal: PrincipalDep, id: _Id) -> Response:  # noqa: A002 - the name in the URL's template
    """A table with its origins and its copies over all mirrors, and the other declarations of its location.

    Copies of copies are included. Objects outside the scopes are not, and nothing beyond them.
    """
    return etag_response(request, build_graph(index, parse_path_key(require_storable(id, "id")), scopes=principal.scopes))


@router.get("/schema/{id:text}", response_model=SchemaComparison, responses=_RESPONSES, summary="Declared and stored columns")
def get_schema(request: Request, index: IndexDep, principal: PrincipalDep, id: _Id) -> Response:  # noqa: A002
    """The columns of a table as its catalog declares them, and as the last verification read them, with their differences."""
    return etag_response(request, compare_schemas(index, parse_path_key(require_storable(id, "id")), scopes=principal.scopes))


@router.get("/snippets/{id:text}", response_model=SnippetList, responses=_RESPONSES, summary="Code that opens a table")
def get_snippets(
    request: Request, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, id: _Id,  # noqa: A002
    uri: Annotated[
        str | None,
        Query(max_length=2000, description="address of the service in the code; default: that of `redirect_uri`, else of the request"),
    ] = None,
) -> Response:  # fmt: skip
    """Python code that opens the table through this service with pylance, lancedb, Spark and DuckDB.

    It contains no secret. If the service requires a token, the code reads it from the environment variable FEDERATOR_TOKEN.
    """
    node = parse_path_key(require_storable(id, "id"))
    table = get_table(index, node, scopes=principal.scopes)
    obstacle = _find_obstacle(table)
    default = settings.serve.public_url or str(request.base_url)
    address = require_storable(uri, "uri") if uri is not None else default
    snippets = build_snippets(address, node, requires_token=requires_credential(settings)) if obstacle is None else []
    return etag_response(
        request,
        SnippetList(id=table.id, snippets=snippets, obstacle=obstacle, freshness=table.freshness),
        table.freshness.revision,
    )


def _find_obstacle(table: Table) -> str | None:
    """Return why clients cannot open a table. None if its catalog declares it as a Lance table with a location."""
    if table.kind == Kind.UNDESCRIBED.value:
        return "the last crawl could not describe the table"
    if table.kind == Kind.MANAGED_TABLE.value and table.problem is None:
        return "the table is managed by its catalog; the service does not open such tables"
    if table.location is None:
        return "the catalog does not tell where the table is stored"
    return None
