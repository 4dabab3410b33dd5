"""Responses of the merged tree: one tree over all sources, with several levels, now or in a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request, Response

from federator.api.freshness import list_source_freshness
from federator.api.models.base import fields_of
from federator.api.models.tree import MergedNode, MergedTree
from federator.api.paging import decode_cursor, encode_cursor, etag_response
from federator.api.snapshots import SnapshotResolver
from federator.model import Path, parse_path_key, path_key
from federator.settings import Settings
from federator.store.snapshots import Snapshot
from federator.views import merged_tree


def merged_tree_response(
    request: Request, snapshots: SnapshotResolver, settings: Settings, node: Path, *, limit: int, cursor: str | None, depth: int = 1,
    as_of: str | None = None,
) -> Response:  # fmt: skip
    """Build a page of the entries below a path. ``limit`` bounds the page, and all entries below it together."""
    builder = _MergedTreeBuilder(snapshots, settings, as_of, limit)
    after = builder.start(node, cursor)
    page = builder.read_page(node, after, limit)
    body = MergedTree(
        path=path_key(node),
        nodes=[builder.build_node(entry, depth - 1) for entry in page.nodes],
        next=builder.encode_cursor(node, page.next),
        freshness=[]
        if builder.snapshot is not None
        else list_source_freshness(snapshots.index, builder.scopes, builder.sources),
        as_of=builder.snapshot.at if builder.snapshot is not None else None,
    )
    return etag_response(request, body)


@dataclass
class _MergedTreeBuilder:
    """Builds one response; ``remaining`` is the number of entries below the first level that it may still add."""

    snapshots: SnapshotResolver
    settings: Settings
    as_of: str | None
    remaining: int
    snapshot: Snapshot | None = None

    def __post_init__(self) -> None:
        self.sources: set[str] = set()
        self.scopes = self.snapshots.visibility.scopes

    def start(self, node: Path, cursor: str | None) -> str:
        """Return where the page begins, and take over the snapshot that the cursor pins."""
        if self.as_of is None:
            return decode_cursor(cursor, self._listing(node), scopes=self.scopes)[0]
        after, (self.snapshot,) = self.snapshots.resolve_page(self._listing(node), (self.as_of,), cursor)
        return after or ""

    def read_page(self, node: Path, after: str, limit: int) -> merged_tree.MergedPage:
        page = merged_tree.list_merged_children(
            self.snapshots.index,
            self.settings.merged_tree_levels,
            node,
            after=after,
            limit=limit,
            snapshot=self.snapshot,
            scopes=self.scopes,
        )
        self.sources |= {declaration.source for entry in page.nodes for declaration in entry.homes}
        return page

    def encode_cursor(self, node: Path, after: str | None) -> str | None:
        if after is None:
            return None
        if self.snapshot is not None:
            return self.snapshots.next_cursor(self._listing(node), after, (self.snapshot,))
        return encode_cursor(self._listing(node), after, scopes=self.scopes)

    def build_node(self, entry: merged_tree.MergedEntry, levels: int) -> MergedNode:
        """Build an entry with so many levels below it."""
        children, next_cursor = None, None
        if levels and entry.kind == "namespace" and self.remaining > 0:
            path = parse_path_key(entry.id)
            page = self.read_page(path, "", self.remaining)
            self.remaining -= len(page.nodes)
            children = [self.build_node(child, levels - 1) for child in page.nodes]
            next_cursor = self.encode_cursor(path, page.next)
        return MergedNode(**fields_of(entry), children=children, next=next_cursor)

    def _listing(self, node: Path) -> str:
        return f"merged {path_key(node)}" + (f" as of {self.as_of}" if self.as_of is not None else "")
