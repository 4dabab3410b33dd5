"""Routes of the sources, their freshness and their coverage."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep, SettingsDep
from federator.api.models.sources import NamespaceCoverage, Source, SourceCoverage, SourcePage
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, page_by_name, require_storable
from federator.api.problems import problem_docs
from federator.connector import NamespaceNotFound
from federator.model import Coverage, path_key
from federator.model.scopes import Scopes
from federator.settings import Settings
from federator.store import Index, coverage
from federator.views import tree
from federator.views.freshness import Freshness, get_freshness

router = APIRouter(prefix="/api/v1")


@router.get(
    "/sources", response_model=SourcePage, responses={**not_modified_docs(), **problem_docs(400)}, summary="All sources"
)
def get_sources(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """All sources that are configured or were ever crawled, ordered by name, without their properties. Counts include only objects
    that the principal can see."""
    sources = {source.name: source for source in list_sources(index, settings, principal.scopes)}
    names, next_cursor = page_by_name(sources, "sources", cursor, limit, scopes=principal.scopes)
    return etag_response(request, SourcePage(sources=[sources[name] for name in names], next=next_cursor))


@router.get(
    "/sources/{name}",
    response_model=Source,
    responses={**not_modified_docs(), **problem_docs(400, 404)},
    summary="One source",
)
def get_source(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    name: Annotated[str, Path(max_length=64, description="name of the source", examples=["lake_hive"])],
) -> Response:
    """One source with its freshness and counts."""
    sources = {source.name: source for source in list_sources(index, settings, principal.scopes)}
    if name not in sources:
        raise NamespaceNotFound(f"there is no source {name!r}", hint=f"sources: {', '.join(sources) or 'none'}")
    return etag_response(request, sources[name], sources[name].freshness.revision)


@router.get(
    "/sources/{name}/coverage",
    response_model=SourceCoverage,
    responses={**not_modified_docs(), **problem_docs(400, 404)},
    summary="Coverage of a source's last crawl",
)
def get_coverage(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    name: Annotated[str, Path(max_length=64, description="name of the source", examples=["lake_hive"])],
    short: Annotated[bool, Query(description="only namespaces that were not read completely")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of namespaces with the evidence of their last listing, and the reasons of incomplete evidence."""
    scopes = principal.scopes
    fresh = get_freshness(index, require_storable(name, "name"), scopes)
    listing = f"coverage {name} {short}"
    # Each key in a cursor has the prefix "=": the root's key is empty, like the position before the first page.
    after, revision = decode_cursor(cursor, listing, fresh.revision, scopes=scopes)
    with index.read() as connection:
        shown_revision = fresh.revision if revision is None else revision
        rows = coverage.list_coverage(
            connection,
            name,
            shown_revision,
            scopes,
            incomplete_only=short,
            after=after.removeprefix("=") if after else None,
            limit=limit + 1,
        )
    next_cursor = encode_cursor(listing, "=" + rows[limit - 1].key, revision, scopes=scopes) if len(rows) > limit else None
    response = SourceCoverage(freshness=fresh, namespaces=[_coverage_model(entry) for entry in rows[:limit]], next=next_cursor)
    return etag_response(request, response, revision)


def _coverage_model(entry: Coverage) -> NamespaceCoverage:
    presence, detail = entry.presence, entry.detail
    return NamespaceCoverage(
        namespace=path_key((entry.source, *entry.namespace)),
        presence=presence.state.value,
        presence_reason=presence.reason,
        presence_code=presence.code,
        detail=detail.state.value,
        detail_reason=detail.reason,
        detail_code=detail.code,
        records=entry.records,
        carried_from=presence.revision,
    )


def list_sources(index: Index, settings: Settings, scopes: Scopes) -> list[Source]:
    """Return all sources that are configured or were ever crawled and are visible in the scopes, by name."""
    crawled = {view.name: view for view in tree.list_sources(index, scopes)}
    names = sorted({*crawled, *(name for name in settings.sources if scopes.is_visible((name,)))})
    return [_source_model(name, crawled.get(name), settings) for name in names]


def _source_model(name: str, view: tree.SourceView | None, settings: Settings) -> Source:
    configured = settings.sources.get(name)
    if view is None:
        freshness = Freshness(name, 0, "never", None, None, None)
    else:
        freshness = Freshness(name, view.revision, view.state, view.message, view.crawled_at, view.published_at)
    return Source(
        name=name,
        impl=view.impl if view else (configured.impl if configured else ""),
        configured=configured is not None,
        schedule=configured.schedule if configured else None,
        namespaces=view.namespaces if view else 0,
        tables=view.tables if view else 0,
        failed_namespaces=view.failed_namespaces if view else 0,
        carried_namespaces=view.carried if view else 0,
        full_at=view.full_at if view else None,
        freshness=freshness,
    )
