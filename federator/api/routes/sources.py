"""The sources with their freshness."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api import models as m
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, SettingsOf
from federator.api.paging import by_name, decode, documented_304, encode, printable, tagged
from federator.api.problems import documented
from federator.connector import NamespaceNotFound
from federator.index import Index, coverage, tree
from federator.index.freshness import of_source
from federator.model import Coverage, path_key
from federator.model.scopes import Scopes
from federator.settings import Settings

router = APIRouter(prefix="/api/v1", tags=["sources"])


@router.get("/sources", response_model=m.Sources, responses={**documented_304(), **documented(400)}, summary="All sources")
def get_sources(
    request: Request, index: IndexOf, settings: SettingsOf, caller: CallerOf, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """Every source that is configured or was ever crawled, by name. Never their properties. Counted is what the caller may see."""
    found = {source.name: source for source in _sources(index, settings, caller.scopes)}
    names, following = by_name(found, "sources", cursor, limit, scopes=caller.scopes)
    return tagged(request, m.Sources(sources=[found[name] for name in names], next=following))


@router.get(
    "/sources/{name}", response_model=m.Source, responses={**documented_304(), **documented(400, 404)}, summary="One source"
)
def get_source(
    request: Request,
    index: IndexOf,
    settings: SettingsOf,
    caller: CallerOf,
    name: Annotated[str, Path(max_length=64, description="the source", examples=["lake_hive"])],
) -> Response:
    """One source with its freshness and counts."""
    found = {source.name: source for source in _sources(index, settings, caller.scopes)}
    if name not in found:
        raise NamespaceNotFound(f"there is no source {name!r}", hint=f"known: {', '.join(found) or 'none'}")
    return tagged(request, found[name], found[name].freshness.revision)


@router.get(
    "/sources/{name}/coverage",
    response_model=m.SourceCoverage,
    responses={**documented_304(), **documented(400, 404)},
    summary="What the last crawl of a source proved",
)
def get_coverage(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    name: Annotated[str, Path(max_length=64, description="the source", examples=["lake_hive"])],
    short: Annotated[bool, Query(description="only namespaces that were not read in full, each with its reason")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of namespaces with the evidence of their last listing: what it proves about what is there, and why not."""
    scopes = caller.scopes
    fresh = of_source(index, printable(name, "name"), scopes)
    listing = f"coverage {name} {short}"
    # One sign before each: the root's own name is empty, and so is the place before it.
    after, revision = decode(cursor, listing, fresh.revision, scopes=scopes)
    with index.read() as connection:
        at = fresh.revision if revision is None else revision
        found = coverage.page(
            connection, name, at, scopes, short=short, after=after.removeprefix("=") if after else None, limit=limit + 1
        )
    end = encode(listing, "=" + found[limit - 1].key, revision, scopes=scopes) if len(found) > limit else None
    answer = m.SourceCoverage(
        freshness=m.Freshness.model_validate(fresh), namespaces=[_proof(proven) for proven in found[:limit]], next=end
    )
    return tagged(request, answer, revision)


def _proof(proven: Coverage) -> m.Proof:
    presence, detail = proven.presence, proven.detail
    return m.Proof(
        namespace=path_key((proven.source, *proven.namespace)),
        presence=presence.state.value,
        presence_reason=presence.reason,
        presence_code=presence.code,
        detail=detail.state.value,
        detail_reason=detail.reason,
        detail_code=detail.code,
        records=proven.records,
        carried_from=presence.revision,
    )


def _sources(index: Index, settings: Settings, scopes: Scopes) -> list[m.Source]:
    crawled = {view.name: view for view in tree.sources(index, scopes)}
    shown = sorted({*crawled, *(name for name in settings.sources if scopes.shows((name,)))})
    return [_source(name, crawled.get(name), settings) for name in shown]


def _source(name: str, view: tree.SourceView | None, settings: Settings) -> m.Source:
    mine = settings.sources.get(name)
    full_at = view.full_at if view else None
    names = ("revision", "state", "message", "crawled_at", "published_at")
    never = {"revision": 0, "state": "never", "message": None, "crawled_at": None, "published_at": None}
    fresh = m.Freshness(source=name, **({key: getattr(view, key) for key in names} if view else never))
    return m.Source(
        name=name,
        impl=view.impl if view else mine.impl if mine else "",
        configured=mine is not None,
        schedule=mine.schedule if mine else None,
        namespaces=view.namespaces if view else 0,
        tables=view.tables if view else 0,
        failed_namespaces=view.failed_namespaces if view else 0,
        carried_namespaces=view.carried if view else 0,
        full_at=datetime.fromtimestamp(full_at, UTC) if full_at is not None else None,
        freshness=fresh,
    )
