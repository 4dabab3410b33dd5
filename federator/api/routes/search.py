"""The search over all tables."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from federator.api import models as m
from federator.api.context import CallerOf, Cursor, IndexOf, Limit
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import documented
from federator.api.told import fresh
from federator.index import search
from federator.model import parse_key

router = APIRouter(prefix="/api/v1", tags=["tree"])

_Q = Query(
    min_length=1,
    max_length=1000,
    description="words, `beginnings*`, globs (`sales$*`, `*_2024`), and fields: `name:`, `namespace:`, `property:key=value`, "
    "`column:`, `location:`, `owner:`, `source:`, `state:`; all must hold",
    examples=["orders namespace:sales column:price"],
)


@router.get("/search", response_model=m.Found, responses={**documented_304(), **documented(400)}, summary="Search tables")
def get_search(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    q: Annotated[str, _Q],
    facets: Annotated[bool, Query(description="count the matches by source, namespace, state and owner")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Tables that match, the closest first: those of that very name, those with a word of it in their names, then the rest; each by
    source and path."""
    after, _ = decode(cursor, f"search {q}", scopes=caller.scopes)
    found = search.find(index, printable(q, "q"), scopes=caller.scopes, limit=limit, after=after, facets=facets)
    named = {parse_key(node.id)[0] for node in found.nodes}
    answer = m.Found(
        nodes=[m.Node.model_validate(node) for node in found.nodes],
        next=encode(f"search {q}", found.next, scopes=caller.scopes) if found.next is not None else None,
        freshness=fresh(index, caller.scopes, named),
        facets=_facets(found.facets) if found.facets else None,
        capped=found.capped,
    )
    return tagged(request, answer)


def _facets(facets: search.Facets) -> m.Facets:
    values = {name: [m.FacetValue(value=value, count=count) for value, count in pairs] for name, pairs in facets.values.items()}
    return m.Facets(counted=facets.counted, exact=facets.exact, **values)
