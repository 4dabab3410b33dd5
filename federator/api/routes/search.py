"""Route of the table search."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep
from federator.api.freshness import list_source_freshness
from federator.api.models.base import fields_of
from federator.api.models.search import Facets, FacetValue, Hit, SearchResults, Suggestions
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.problems import problem_docs
from federator.model import parse_path_key
from federator.views.search import engine
from federator.views.search.facets import Facets as SearchFacets

router = APIRouter(prefix="/api/v1")

_Q = Query(
    min_length=1,
    max_length=1000,
    description="words, prefixes (`ord*`), globs (`sales$*`, `*_2024`), and fields: `name:`, `namespace:`, `property:key=value`, "
    "`column:`, `location:`, `owner:`, `source:`, `state:`. A table must match all terms; `-` or `NOT` before a term leaves out the "
    "tables that match it",
    examples=["orders namespace:sales column:price"],
)


@router.get(
    "/search", response_model=SearchResults, responses={**not_modified_docs(), **problem_docs(400)}, summary="Search tables"
)
def get_search(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    q: Annotated[str, _Q],
    facets: Annotated[bool, Query(description="count the matches by source, namespace, state and owner")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Matching tables, best match first: exact names, then names that contain a searched word, then all other tables with the words,
    then tables in which the last word is the start of a word. Equal matches are ordered by source and path. If there are none, and no
    visible table has some of the words, tables whose names have similar words; their `match.kind` is `typo`."""
    after, _ = decode_cursor(cursor, f"search {q}", scopes=principal.scopes)
    results = engine.search_tables(
        index, require_storable(q, "q"), scopes=principal.scopes, limit=limit, after=after, facets=facets
    )
    source_names = {parse_path_key(node.id)[0] for node in results.nodes}
    response = SearchResults(
        nodes=[Hit(**fields_of(node)) for node in results.nodes],
        total=results.total,
        did_you_mean=list(results.did_you_mean),
        next=encode_cursor(f"search {q}", results.next, scopes=principal.scopes) if results.next is not None else None,
        freshness=list_source_freshness(index, principal.scopes, source_names),
        facets=_facets_model(results.facets) if results.facets else None,
        capped=results.capped,
    )
    return etag_response(request, response)


@router.get(
    "/suggest", response_model=Suggestions, responses={**not_modified_docs(), **problem_docs(400)}, summary="Suggest tables"
)
def get_suggestions(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    q: Annotated[str, Query(min_length=1, max_length=200, description="start of a query", examples=["sales ord"])],
    limit: Annotated[int, Query(ge=1, le=100, description="maximum number of tables")] = 8,
) -> Response:
    """Tables for a query that a user is typing: the last word is the start of a word in the table's name, or after `$` of the name
    itself; all other terms are those of a search. Ordered by source and path. If there are none: tables whose names have similar
    words."""
    nodes = engine.suggest_tables(index, require_storable(q, "q"), scopes=principal.scopes, limit=limit)
    source_names = {parse_path_key(node.id)[0] for node in nodes}
    body = Suggestions(
        nodes=[Hit(**fields_of(node)) for node in nodes],
        freshness=list_source_freshness(index, principal.scopes, source_names),
    )
    return etag_response(request, body)


def _facets_model(facets: SearchFacets) -> Facets:
    values = {name: [FacetValue(value=value, count=count) for value, count in pairs] for name, pairs in facets.values.items()}
    return Facets(counted=facets.counted, exact=facets.exact, **values)
