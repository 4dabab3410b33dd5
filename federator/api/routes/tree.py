"""The tree, one table, and the search over all tables."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api import models as m
from federator.api.context import Cursor, IndexOf, Limit
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import documented
from federator.connector.options import masked
from federator.index import Index, tree
from federator.index.freshness import Freshness, freshness, of_source
from federator.model import parse_key, path_key

router = APIRouter(prefix="/api/v1", tags=["tree"])

_ANSWERS = {**documented_304(), **documented(400, 404)}


@router.get("/tree", response_model=m.Tree, responses=_ANSWERS, summary="The entries below a path")
def get_tree(
    request: Request,
    index: IndexOf,
    path: Annotated[str, Query(max_length=4000, description="`source$namespace`; empty: the sources")] = "",
    limit: Limit = 200,
    cursor: Cursor = None,
    depth: Annotated[int, Query(ge=1, le=3, description="levels; below the first, `limit` bounds all nodes together")] = 1,
) -> Response:
    """A page of children, in order of their paths. All pages of one listing show the revision that the first one showed."""
    node = parse_key(printable(path, "path"))
    known = freshness(index)
    source = of_source(index, node[0]) if node else None
    after, revision = decode(cursor, path_key(node), source.revision if source else None)
    page = tree.children(index, node, after=after, limit=limit, revision=revision)
    budget = [limit]
    nodes = [_node(index, found, known, depth - 1, budget) for found in page.nodes]
    end = encode(path_key(node), page.next, revision) if page.next is not None else None
    shown = m.Freshness.model_validate(source) if source else None
    return tagged(request, m.Tree(path=path_key(node), freshness=shown, nodes=nodes, next=end), revision)


@router.get("/tables/{id:path}", response_model=m.Table, responses=_ANSWERS, summary="One table")
def get_table(
    request: Request,
    index: IndexOf,
    id: Annotated[str, Path(max_length=4000, examples=["lake_hive$sales$orders"])],  # noqa: A002 - the name in the URL's template
) -> Response:
    """Everything known about one declaration. In the URL, percent-encode the id as a whole: `$` in a name is `%2524` there."""
    node = parse_key(printable(id, "id"))
    source = of_source(index, node[0]) if node else None
    view = tree.table(index, node, revision=source.revision if source else None).to_json()
    view |= {"properties": masked(view["properties"]), "freshness": m.Freshness.model_validate(source)}
    return tagged(request, m.Table.model_validate(view), source.revision if source else None)


@router.get("/search", response_model=m.Found, responses=_ANSWERS, summary="Search tables")
def search(
    request: Request,
    index: IndexOf,
    q: Annotated[str, Query(min_length=1, max_length=200, description="part of a path, location, doc or property")],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Tables whose path, location, doc or properties contain the text, in any case."""
    after, _ = decode(cursor, f"search {q}")
    page = tree.search(index, printable(q, "q"), limit=limit, after=after)
    known = freshness(index)
    named = {parse_key(node.id)[0] for node in page.nodes}
    found = m.Found(
        nodes=[m.Node.model_validate(node) for node in page.nodes],
        next=encode(f"search {q}", page.next) if page.next is not None else None,
        freshness=[m.Freshness.model_validate(fresh) for name, fresh in known.items() if name in named],
    )
    return tagged(request, found)


def _node(index: Index, node: tree.Node, known: dict[str, Freshness], levels: int, budget: list[int]) -> m.Node:
    shown = m.Node.model_validate(node)
    path = parse_key(node.id)
    source = known.get(path[0])
    if node.kind == "source" and source is not None:
        shown.freshness = m.Freshness.model_validate(source)
    if levels and source is not None and node.kind in ("source", "namespace") and budget[0] > 0:
        page = tree.children(index, path, limit=budget[0], revision=source.revision)
        budget[0] -= len(page.nodes)
        shown.children = [_node(index, child, known, levels - 1, budget) for child in page.nodes]
        shown.next = encode(node.id, page.next, source.revision) if page.next is not None else None
    return shown
