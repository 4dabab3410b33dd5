"""The merged view's answers: one tree over all sources, several levels at once, now or at a moment."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request, Response

from federator.api import models as m
from federator.api.access import Caller
from federator.api.paging import decode, encode, tagged
from federator.api.past import following, turned
from federator.api.told import fresh
from federator.index import Index, merged
from federator.index.moments import Moment
from federator.model import Path, parse_key, path_key
from federator.settings import Settings


def merged_tree(
    request: Request, index: Index, settings: Settings, caller: Caller, node: Path, *, limit: int, cursor: str | None,
    depth: int = 1, as_of: str | None = None,
) -> Response:  # fmt: skip
    """A page of the entries below a path; ``limit`` bounds those below the first level together."""
    tree = _Tree(index, settings, caller, as_of, limit)
    after = tree.begin(node, cursor)
    page = tree.page(node, after, limit)
    body = m.MergedTree(
        path=path_key(node),
        nodes=[tree.node(found, depth - 1) for found in page.nodes],
        next=tree.cursor(node, page.next),
        freshness=[] if tree.at is not None else fresh(index, caller.scopes, tree.sources),
        as_of=tree.at.at if tree.at is not None else None,  # type: ignore[arg-type]  # seconds; the model makes a time of them
    )
    return tagged(request, body)


@dataclass
class _Tree:
    """One answer's way through the view; ``left`` entries below the first level may still be told of."""

    index: Index
    settings: Settings
    caller: Caller
    as_of: str | None
    left: int
    at: Moment | None = None

    def __post_init__(self) -> None:
        self.sources: set[str] = set()

    def begin(self, node: Path, cursor: str | None) -> str:
        """Where the page begins; a cursor of a moment brings the moment."""
        if self.as_of is None:
            return decode(cursor, self._listing(node), scopes=self.caller.scopes)[0]
        after, (self.at,) = turned(self.index, self.caller, self._listing(node), (self.as_of,), cursor)
        return after or ""

    def page(self, node: Path, after: str, limit: int) -> merged.MergedPage:
        found = merged.children(
            self.index, self.settings.merged, node, after=after, limit=limit, at=self.at, scopes=self.caller.scopes
        )
        self.sources |= {home.source for each in found.nodes for home in each.homes}
        return found

    def cursor(self, node: Path, after: str | None) -> str | None:
        if after is None:
            return None
        if self.at is not None:
            return following(self._listing(node), after, (self.at,), self.caller)
        return encode(self._listing(node), after, scopes=self.caller.scopes)

    def node(self, found: merged.MergedNode, levels: int) -> m.MergedNode:
        shown = m.MergedNode.model_validate(found)
        if levels and found.kind == "namespace" and self.left > 0:
            path = parse_key(found.id)
            page = self.page(path, "", self.left)
            self.left -= len(page.nodes)
            shown.children = [self.node(child, levels - 1) for child in page.nodes]
            shown.next = self.cursor(path, page.next)
        return shown

    def _listing(self, node: Path) -> str:
        return f"merged {path_key(node)}" + (f" as of {self.as_of}" if self.as_of is not None else "")
