"""The tree, and one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api import models as m
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, SettingsOf
from federator.api.merging import merged_tree
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.past import AsOf, PastTable, table_at, tree_at
from federator.api.problems import documented
from federator.connector.options import masked
from federator.index import Connection, freshness, tree
from federator.index.freshness import Freshness
from federator.model import parse_key, path_key
from federator.model.scopes import Scopes

router = APIRouter(prefix="/api/v1", tags=["tree"])

_ANSWERS = {**documented_304(), **documented(400, 404, 409)}


@router.get("/tree", response_model=m.Tree | m.MergedTree, responses=_ANSWERS, summary="The entries below a path")
def get_tree(
    request: Request,
    index: IndexOf,
    settings: SettingsOf,
    caller: CallerOf,
    path: Annotated[str, Query(max_length=4000, description="`source$namespace`; empty: the sources")] = "",
    limit: Limit = 200,
    cursor: Cursor = None,
    depth: Annotated[int, Query(ge=1, le=3, description="levels; below the first, `limit` bounds all nodes together")] = 1,
    as_of: AsOf = None,
    view: Annotated[
        Literal["source", "merged"], Query(description="merged: one tree over all sources, by logical path")
    ] = "source",
) -> Response:
    """A page of children, in order of their paths. All pages of one listing show the revision that the first one showed.

    With `view=merged`, paths begin below the levels that only name a catalog, what several sources call the same is one entry with its
    homes, and tables of one path at different places are a conflict: `default` is then the home in the source that `[tree] priority`
    names first. Its pages follow what is current, but with `as_of`, which shows every page as the first one.
    """
    node = parse_key(printable(path, "path"))
    if view == "merged":
        return merged_tree(request, index, settings, caller, node, limit=limit, cursor=cursor, depth=depth, as_of=as_of)
    if as_of is not None:
        return tree_at(request, index, caller, node, as_of, limit=limit, cursor=cursor, depth=depth)
    with index.read() as connection:
        known = freshness.read(connection, caller.scopes)
        source = freshness.among(known, node[0]) if node else None
        after, revision = decode(cursor, path_key(node), source.revision if source else None, scopes=caller.scopes)
        page = tree.read_children(connection, node, after=after, limit=limit, revision=revision, scopes=caller.scopes)
        below = _Below(connection, caller.scopes, known, limit)
        nodes = [below.node(found, depth - 1) for found in page.nodes]
    end = encode(path_key(node), page.next, revision, scopes=caller.scopes) if page.next is not None else None
    shown = m.Freshness.model_validate(source) if source else None
    return tagged(request, m.Tree(path=path_key(node), freshness=shown, nodes=nodes, next=end), revision)


@router.get("/tables/{id:path}", response_model=m.Table | PastTable, responses=_ANSWERS, summary="One table")
def get_table(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    id: Annotated[str, Path(max_length=4000, description="its path from the root", examples=["lake_hive$sales$orders"])],  # noqa: A002 - the name in the URL's template
    as_of: AsOf = None,
) -> Response:
    """Everything known about one declaration. In the URL, percent-encode the id as a whole: `$` in a name is `%2524` there."""
    node = parse_key(printable(id, "id"))
    if as_of is not None:
        return table_at(request, index, caller, node, as_of)
    with index.read() as connection:
        known = freshness.read(connection, caller.scopes)
        view = tree.read_table(connection, node, known, scopes=caller.scopes).to_json()
    source = known[node[0]]
    view |= {"properties": masked(view["properties"]), "freshness": m.Freshness.model_validate(source)}
    return tagged(request, m.Table.model_validate(view), source.revision)


@dataclass
class _Below:
    """The levels below a page, ``left`` nodes of them together."""

    connection: Connection
    scopes: Scopes
    known: dict[str, Freshness]
    left: int

    def node(self, node: tree.Node, levels: int) -> m.Node:
        shown = m.Node.model_validate(node)
        path = parse_key(node.id)
        source = self.known.get(path[0])
        if node.kind == "source" and source is not None:
            shown.freshness = m.Freshness.model_validate(source)
        if levels and source is not None and node.kind in ("source", "namespace") and self.left > 0:
            page = tree.read_children(self.connection, path, limit=self.left, revision=source.revision, scopes=self.scopes)
            self.left -= len(page.nodes)
            shown.children = [self.node(child, levels - 1) for child in page.nodes]
            shown.next = encode(node.id, page.next, source.revision, scopes=self.scopes) if page.next is not None else None
        return shown
