"""Answers about the past: the tree, a table and the Datasets as of a moment, and what changed between two."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import ConfigDict, Field

from federator.api import models as m
from federator.api.access import Caller
from federator.api.paging import decode, encode, printable, tagged
from federator.api.told import fresh
from federator.connector.options import masked
from federator.index import Index, differences, history
from federator.index.datasets import Wanted
from federator.index.moments import Moment, at_time, last_runs, moment
from federator.index.tree import Node
from federator.model import Aliases, Path, parse_key, path_key

AsOf = Annotated[
    str | None,
    Query(
        max_length=64,
        description="as it was at the end of a run (its id) or at a time: `2026-11-20`, `2026-11-20T08:30:00Z`, `-2d`; "
        "what is known for now only (freshness, mirrors, the versions and rows of tables) is left out",
    ),
]


class PastLook(m.Answer):
    """How a location had been found."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    state: str = Field(examples=["valid"])
    message: str | None
    since: m.Moment = Field(description="when it was first found so")
    schema_: Any = Field(alias="schema", description="the Lance schema")


class PastTable(m.Declared):
    """One declaration as it was."""

    at: m.Moment
    revision: int
    dataset: PastLook | None = Field(description="null: never opened by then, or not kept so far back")


class PastDataset(m.Answer):
    """A Dataset as it was declared and had been found."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    location: str = Field(examples=["s3://lake/sales/orders.lance"])
    state: str | None = Field(
        examples=["valid"], description="unverified: never opened by then; null: that is not kept so far back"
    )
    message: str | None
    since: m.Maybe = Field(description="when it was first found so")
    schema_: Any = Field(alias="schema", description="the Lance schema")
    declarations: list[m.Declaration]
    disagreements: list[m.Disagreement]
    duplicates: list[str] = Field(description="declarations that one source had under more than one name")


class PastDatasets(m.Answer):
    at: m.Moment
    datasets: list[PastDataset]
    next: str | None


class When(m.Answer):
    """A moment: a time, or the end of a run, and the revision of each source then."""

    at: m.Moment
    run: str | None
    revisions: dict[str, int]


class FieldChange(m.Answer):
    """One field before and after; null where it was not there."""

    field: str = Field(
        examples=["location"], description="location, doc, owner, kind, property:<key>, column:<name>, state, ..."
    )
    before: str | None
    after: str | None


class Doer(m.Answer):
    """The write of ours that did it."""

    mirror: str
    run_id: str
    actor: str | None
    action: str
    op_id: str


class Difference(m.Answer):
    """One object that differs, or (kind `dataset`) one location that was found otherwise."""

    how: str = Field(examples=["changed"], description="added, removed or changed")
    id: str = Field(examples=["aws$sales$orders"])
    source: str
    kind: str
    location: str | None
    fields: list[FieldChange] = Field(description="of what changed")
    revision: int | None = Field(
        description="the source's revision that first showed it so, its run and its time; null: of a place"
    )
    run_id: str | None
    at: m.Maybe
    by: Doer | None = Field(description="null: it was done by others, or found of a place")


class Differences(m.Answer):
    """What changed from one moment to another."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    from_: When = Field(alias="from")
    to: When
    totals: dict[str, int] = Field(examples=[{"added": 2, "removed": 0, "changed": 1}])
    differences: list[Difference]
    next: str | None
    freshness: m.Told


def tree_at(
    request: Request, index: Index, caller: Caller, node: Path, as_of: str, *, limit: int, cursor: str | None, depth: int = 1
) -> Response:
    """A page of the children that there were; ``limit`` bounds those below the first level together."""
    listing = f"{path_key(node)} as of {as_of}"
    after, (at,) = turned(index, caller, listing, (as_of,), cursor)
    page = history.children(index, node, at, after=after or "", limit=limit, scopes=caller.scopes)
    end = following(listing, page.next, (at,), caller)
    below = _Below(index, caller, as_of, at, limit)
    nodes = [below.node(found, depth - 1) for found in page.nodes]
    body = m.Tree.model_validate({"path": path_key(node), "freshness": None, "nodes": nodes, "next": end, "as_of": at.at})
    return tagged(request, body)


@dataclass
class _Below:
    """The levels below a page, ``left`` nodes of them together."""

    index: Index
    caller: Caller
    as_of: str
    at: Moment
    left: int

    def node(self, node: Node, levels: int) -> m.Node:
        shown = m.Node.model_validate(node)
        if levels and node.kind in ("source", "namespace") and self.left > 0:
            page = history.children(self.index, parse_key(node.id), self.at, limit=self.left, scopes=self.caller.scopes)
            self.left -= len(page.nodes)
            shown.children = [self.node(child, levels - 1) for child in page.nodes]
            shown.next = following(f"{node.id} as of {self.as_of}", page.next, (self.at,), self.caller)
        return shown


def table_at(request: Request, index: Index, caller: Caller, node: Path, as_of: str) -> Response:
    """One table as it was."""
    view = history.table(index, node, moment(index, printable(as_of, "as_of")), scopes=caller.scopes).to_json()
    return tagged(request, PastTable.model_validate(view | {"properties": masked(view["properties"])}))


def datasets_at(
    request: Request, index: Index, caller: Caller, as_of: str, wanted: Wanted, *, limit: int, cursor: str | None
) -> Response:
    """A page of the Datasets that there were."""
    listing = f"datasets {wanted.state} {wanted.declared_in} {wanted.conflicts} as of {as_of}"
    after, (at,) = turned(index, caller, listing, (as_of,), cursor)
    page = history.datasets(index, at, **asdict(wanted), after=after or "", limit=limit, scopes=caller.scopes)
    found = [PastDataset.model_validate(view) for view in page.datasets]
    end = following(listing, page.next, (at,), caller)
    return tagged(request, PastDatasets.model_validate({"at": at.at, "datasets": found, "next": end}))


def dataset_at(request: Request, index: Index, caller: Caller, location: str, aliases: Aliases, as_of: str) -> Response:
    """One Dataset as it was declared."""
    at = moment(index, printable(as_of, "as_of"))
    return tagged(request, PastDataset.model_validate(history.dataset(index, location, aliases, at, scopes=caller.scopes)))


def diff(
    request: Request, index: Index, caller: Caller, begin: str | None, end: str | None, wanted: differences.Wanted, *, limit: int,
    cursor: str | None,
) -> Response:  # fmt: skip
    """A page of what changed; all pages of one listing compare the moments that the first one compared."""
    listing = f"diff {begin} {end} {path_key(wanted.below)} {wanted.how}"
    after, (first, last) = turned(index, caller, listing, (begin, end), cursor)
    position = tuple(json.loads(after)) if after else None
    page = differences.page(index, first, last, wanted, after=position, limit=limit, scopes=caller.scopes)
    totals = differences.totals(index, first, last, wanted, scopes=caller.scopes)
    shown = {name for at in (first, last) for name in _when(at, caller).revisions}
    body = Differences.model_validate({
        "from": _when(first, caller), "to": _when(last, caller), "totals": totals, "differences": page.differences,
        "next": following(listing, json.dumps(page.next) if page.next else None, (first, last), caller),
        "freshness": fresh(index, caller.scopes, shown),
    })  # fmt: skip
    return tagged(request, body)


def _when(at: Moment, caller: Caller) -> When:
    seen = {name: number for name, number in sorted(at.revisions.items()) if caller.scopes.shows((name,))}
    return When.model_validate({"at": at.at, "run": at.run, "revisions": seen})


def turned(
    index: Index, caller: Caller, listing: str, texts: tuple[str | None, ...], cursor: str | None
) -> tuple[str | None, tuple[Moment, ...]]:
    """Where a page begins, and the moments that its listing shows: -2d is another time with every page that is asked for."""
    packed, _ = decode(cursor, listing, scopes=caller.scopes)
    if packed:
        after, pinned = json.loads(packed)
        return after, tuple(moment(index, at) if isinstance(at, str) else at_time(index, at) for at in pinned)
    if texts == (None, None):
        return None, last_runs(index)
    if len(texts) == 2 and texts[0] is None:
        return None, (last_runs(index)[0], moment(index, printable(texts[1] or "now", "to")))
    return None, tuple(moment(index, printable(text or "now", "as_of")) for text in texts)


def following(listing: str, after: str | None, moments: tuple[Moment, ...], caller: Caller) -> str | None:
    if after is None:
        return None
    return encode(listing, json.dumps([after, [at.run or at.at for at in moments]]), scopes=caller.scopes)


def below(path: str) -> Path:
    """The path of a filter."""
    return parse_key(printable(path, "path"))
