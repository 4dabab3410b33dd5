"""Routes of the tree and of single tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep, SettingsDep
from federator.api.merged_tree import merged_tree_response
from federator.api.models.base import fields_of
from federator.api.models.tree import MergedTree, Node, Tree
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.problems import problem_docs
from federator.api.snapshots import AsOf, SnapshotResolver, SnapshotsDep
from federator.connector import InvalidInput
from federator.model import Path as NodePath
from federator.model import parse_path_key, path_key
from federator.model.scopes import Scopes
from federator.store import Connection
from federator.views import freshness, history, tree

router = APIRouter(prefix="/api/v1")

Sort = Literal["state", "-state", "rows", "-rows", "size", "-size", "written", "-written"]

_NodePage = tuple[list[tree.TreeNode], str | None]

_RESPONSES = {**not_modified_docs(), **problem_docs(400, 404, 409)}


@router.get("/tree", response_model=Tree | MergedTree, responses=_RESPONSES, summary="Children of a path")
def get_tree(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    snapshots: SnapshotsDep,
    path: Annotated[str, Query(max_length=4000, description="object id, `source$namespace`; empty: list the sources")] = "",
    limit: Limit = 200,
    cursor: Cursor = None,
    depth: Annotated[
        int, Query(ge=1, le=3, description="number of levels; `limit` bounds the total number of nodes below the first level")
    ] = 1,
    as_of: AsOf = None,
    view: Annotated[
        Literal["source", "merged"], Query(description="source, or merged: one tree over all sources by logical path")
    ] = "source",
    sort: Annotated[
        Sort | None, Query(description="order of the children of a source or a namespace; a minus: descending. Default: path")
    ] = None,
    facts: Annotated[
        Literal["verified"] | None,
        Query(alias="with", description="verified: also `stored`, with rows, size and last write, and `declarations`"),
    ] = None,
    counts: Annotated[bool, Query(description="also `tables`, the number of tables below each namespace")] = False,
) -> Response:
    """A page of children, ordered by path. All pages of one listing show the revision of the first page.

    `sort`, `with` and `counts` are for the present state of one level. What verification finds between two pages may move a table.

    With `view=merged`, an entry combines all objects with one logical path; `homes` lists them. Logical paths omit levels that only
    name a catalog. Tables with one path and different locations are a conflict: `default` is then the one in the source that
    `[tree] priority` lists first. Each page shows the current state; with `as_of`, all pages show one snapshot.
    """
    node = parse_path_key(require_storable(path, "path"))
    if (sort or facts or counts) and (view == "merged" or as_of is not None or depth > 1 or (sort and not node)):
        raise InvalidInput(
            "sort, with and counts are for one level below a source, as it is now", hint="omit view, as_of and depth"
        )
    if view == "merged":
        return merged_tree_response(request, snapshots, settings, node, limit=limit, cursor=cursor, depth=depth, as_of=as_of)
    if as_of is not None:
        return _tree_at_response(request, snapshots, node, as_of, limit=limit, cursor=cursor, depth=depth)
    with index.read() as connection:
        by_source = freshness.read_freshness(connection, principal.scopes)
        source = freshness.require_source(by_source, node[0]) if node else None
        pages = _CurrentPages(connection, principal.scopes, sort, with_facts=facts is not None)
        after, revision = decode_cursor(
            cursor, pages.listing(node), source.revision if source else None, scopes=principal.scopes
        )
        children, next_cursor = pages.read(node, after, limit, revision)
        subtree = _Subtree(limit, lambda path, size: pages.read(path, "", size, by_source[path[0]].revision), by_source)
        nodes = [subtree.build_node(child, depth - 1) for child in children]
        if facts:
            declared = tree.count_declarations(connection, children, principal.scopes)
            nodes = [replace(child, declarations=declared.get(child.id)) for child in nodes]
        if counts:
            tables = tree.count_tables(connection, children, principal.scopes)
            nodes = [replace(child, tables=tables.get(child.id)) for child in nodes]
    return etag_response(request, Tree(path=path_key(node), freshness=source, nodes=nodes, next=next_cursor), revision)


@dataclass(frozen=True)
class _CurrentPages:
    """Reads pages of children in the order of a request, as the index has them now."""

    connection: Connection
    scopes: Scopes
    sort: Sort | None
    with_facts: bool

    def listing(self, parent: NodePath) -> str:
        """Return the listing to which the cursors of a parent's pages belong."""
        return f"{path_key(parent)} by {self.sort}" if self.sort else path_key(parent)

    def read(self, parent: NodePath, after: str, limit: int, revision: int | None) -> _NodePage:
        if self.sort is None or revision is None:
            page = tree.read_children(self.connection, parent, after=after, limit=limit, revision=revision, scopes=self.scopes)
        else:
            column, descending = self.sort.removeprefix("-"), self.sort.startswith("-")
            page = tree.read_sorted_children(
                self.connection, parent, column, descending=descending, after=after, limit=limit, revision=revision,
                scopes=self.scopes,
            )  # fmt: skip
        nodes = page.nodes if self.with_facts else [replace(node, stored=None) for node in page.nodes]
        if page.next is None:
            return nodes, None
        return nodes, encode_cursor(self.listing(parent), page.next, revision, scopes=self.scopes)


def _tree_at_response(
    request: Request, snapshots: SnapshotResolver, node: NodePath, as_of: str, *, limit: int, cursor: str | None, depth: int
) -> Response:  # fmt: skip
    """Build a page of a node's children in a snapshot."""

    def listing(parent: NodePath) -> str:
        return f"{path_key(parent)} as of {as_of}"

    after, (snapshot,) = snapshots.resolve_page(listing(node), (as_of,), cursor)

    def read_page(parent: NodePath, limit: int, after: str = "") -> _NodePage:
        page = history.list_children_at(
            snapshots.index, parent, snapshot, after=after, limit=limit, scopes=snapshots.visibility.scopes
        )
        return page.nodes, snapshots.next_cursor(listing(parent), page.next, (snapshot,))

    children, next_cursor = read_page(node, limit, after or "")
    subtree = _Subtree(limit, read_page, dict.fromkeys(snapshot.revisions))
    nodes = [subtree.build_node(child, depth - 1) for child in children]
    return etag_response(request, Tree(path=path_key(node), freshness=None, nodes=nodes, next=next_cursor, as_of=snapshot.at))


@router.get("/tables/{id:text}", response_model=tree.Table | history.PastTable, responses=_RESPONSES, summary="One table")
def get_table(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    snapshots: SnapshotsDep,
    id: Annotated[str, Path(max_length=4000, description="object id", examples=["lake_hive$sales$orders"])],  # noqa: A002 - the name in the URL's template
    as_of: AsOf = None,
) -> Response:
    """All details of one declaration. Percent-encode the id in the URL: a `$` inside a name becomes `%2524`."""
    node = parse_path_key(require_storable(id, "id"))
    if as_of is not None:
        snapshot = snapshots.resolve(as_of, "as_of")
        past = history.get_table_at(index, node, snapshot, scopes=principal.scopes)
        return etag_response(request, past)
    with index.read() as connection:
        freshness_by_source = freshness.read_freshness(connection, principal.scopes)
        table = tree.read_table(connection, node, freshness_by_source, scopes=principal.scopes)
    return etag_response(request, table, table.freshness.revision)


@dataclass
class _Subtree:
    """Builds the levels below a page; ``remaining`` is the number of nodes that it may still add.

    ``read_page`` returns the first children of a path, at most as many as its second argument, and the cursor of the next page.
    """

    remaining: int
    read_page: Callable[[NodePath, int], _NodePage]
    freshness_by_source: Mapping[str, freshness.Freshness | None]

    def build_node(self, node: tree.TreeNode, levels: int) -> Node:
        path, children, next_cursor = parse_path_key(node.id), None, None
        is_parent = node.kind in ("source", "namespace") and path[0] in self.freshness_by_source
        if levels and is_parent and self.remaining > 0:
            below, next_cursor = self.read_page(path, self.remaining)
            self.remaining -= len(below)
            children = [self.build_node(child, levels - 1) for child in below]
        source = self.freshness_by_source.get(path[0]) if node.kind == "source" else None
        return Node(**fields_of(node), freshness=source, children=children, next=next_cursor)
