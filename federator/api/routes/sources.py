"""The sources with their freshness."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.paging import documented_304, tagged
from federator.api.problems import documented
from federator.connector import NamespaceNotFound
from federator.index import Index, tree
from federator.model.scopes import Scopes
from federator.settings import Settings

router = APIRouter(prefix="/api/v1", tags=["sources"])


@router.get("/sources", response_model=m.Sources, responses={**documented_304(), **documented()}, summary="All sources")
def get_sources(request: Request, index: IndexOf, settings: SettingsOf, caller: CallerOf) -> Response:
    """Every source that is configured or was ever crawled, by name. Never their properties. Counted is what the caller may see."""
    return tagged(request, m.Sources(sources=_sources(index, settings, caller.scopes)))


@router.get(
    "/sources/{name}", response_model=m.Source, responses={**documented_304(), **documented(400, 404)}, summary="One source"
)
def get_source(
    request: Request,
    index: IndexOf,
    settings: SettingsOf,
    caller: CallerOf,
    name: Annotated[str, Path(max_length=64, examples=["lake_hive"])],
) -> Response:
    """One source with its freshness and counts."""
    found = {source.name: source for source in _sources(index, settings, caller.scopes)}
    if name not in found:
        raise NamespaceNotFound(f"there is no source {name!r}", hint=f"known: {', '.join(found) or 'none'}")
    return tagged(request, found[name], found[name].freshness.revision)


def _sources(index: Index, settings: Settings, scopes: Scopes) -> list[m.Source]:
    crawled = {view.name: view for view in tree.sources(index, scopes)}
    shown = sorted({*crawled, *(name for name in settings.sources if scopes.shows((name,)))})
    return [_source(name, crawled.get(name), settings) for name in shown]


def _source(name: str, view: tree.SourceView | None, settings: Settings) -> m.Source:
    mine = settings.sources.get(name)
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
        freshness=fresh,
    )
