"""Datasets and drift: what lies at each storage location, who declares it, and what disagrees."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api import models as m
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, SettingsOf
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.past import AsOf, PastDataset, PastDatasets, dataset_at, datasets_at
from federator.api.problems import documented
from federator.api.told import fresh, sources_of
from federator.connector import InvalidInput
from federator.index import datasets, drift
from federator.index.freshness import of_source
from federator.model import parse_key, path_key
from federator.model.drift import DriftKind, Severity

router = APIRouter(prefix="/api/v1", tags=["datasets"])

_ANSWERS = {**documented_304(), **documented(400, 404, 409)}


@router.get("/datasets", response_model=m.Datasets | PastDatasets, responses=_ANSWERS, summary="The places where tables lie")
def get_datasets(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    state: Annotated[str | None, Query(max_length=40, description="what opening it found; `unverified`: never opened")] = None,
    declared_in: Annotated[str | None, Query(max_length=100, description="a source that declares it")] = None,
    conflicts: Annotated[bool, Query(description="declared twice in a source, or catalogs disagree on it")] = False,
    as_of: AsOf = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of Datasets, in order of their canonical locations, each with all its declarations."""
    if state is not None and state not in datasets.STATES:
        raise InvalidInput(f"{state!r} is no state of a dataset", hint=f"states: {', '.join(datasets.STATES)}")
    if declared_in is not None:
        of_source(index, printable(declared_in, "declared_in"), caller.scopes)
    wanted = datasets.Wanted(state, declared_in, conflicts)
    if as_of is not None:
        return datasets_at(request, index, caller, as_of, wanted, limit=limit, cursor=cursor)
    listing = f"datasets {state} {declared_in} {conflicts}"
    after, _ = decode(cursor, listing, scopes=caller.scopes)
    page = datasets.page(index, wanted, after=after, limit=limit, scopes=caller.scopes)
    found = [m.PlaceOfTables.model_validate(view) for view in page.datasets]
    told = fresh(index, caller.scopes, _sources(page.datasets))
    end = encode(listing, page.next, scopes=caller.scopes) if page.next is not None else None
    return tagged(request, m.Datasets(datasets=found, next=end, freshness=told))


@router.get("/datasets/{location:path}", response_model=m.OnePlace | PastDataset, responses=_ANSWERS, summary="One place")
def get_dataset(
    request: Request,
    index: IndexOf,
    settings: SettingsOf,
    caller: CallerOf,
    location: Annotated[str, Path(max_length=4000, description="the location", examples=["s3://lake/sales/orders.lance"])],
    as_of: AsOf = None,
) -> Response:
    """Which catalogs declare a location, under which names, and whether they agree. The location may be in any of its spellings; in the
    URL, percent-encode it as a whole."""
    if as_of is not None:
        return dataset_at(request, index, caller, printable(location, "location"), settings.aliases, as_of)
    view = datasets.get(index, printable(location, "location"), settings.aliases, scopes=caller.scopes)
    told = fresh(index, caller.scopes, _sources([view]))
    return tagged(request, m.OnePlace.model_validate({**view.to_json(), "freshness": told}))


@router.get("/drift", response_model=m.Drifts, responses=_ANSWERS, summary="What catalogs disagree on")
def get_drift(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    kind: Annotated[DriftKind | None, Query(description="only this kind")] = None,
    severity: Annotated[Severity | None, Query(description="only this severity")] = None,
    source: Annotated[str | None, Query(max_length=100, description="the source of the table that it is about")] = None,
    about: Annotated[
        str | None, Query(max_length=4000, description="one table: at either end", examples=["aws$sales$orders"])
    ] = None,
    resolved: Annotated[bool, Query(description="what was found once and is no more")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of differences between catalogs, or a catalog and its storage, as the end of the last run found them."""
    if source is not None:
        of_source(index, printable(source, "source"), caller.scopes)
    about = path_key(parse_key(printable(about, "about"))) if about is not None else None
    listing = f"drift {kind} {severity} {source} {about} {resolved}"
    after, _ = decode(cursor, listing, scopes=caller.scopes)
    last = tuple(json.loads(after)) if after else None
    found = drift.page(
        index, kind=kind, severity=severity, source=source, about=about, resolved=resolved, after=last, limit=limit + 1,
        scopes=caller.scopes,
    )  # fmt: skip
    shown = found[:limit]
    end = encode(listing, json.dumps(shown[-1].key), scopes=caller.scopes) if len(found) > limit else None
    told = fresh(index, caller.scopes, {name for seen in shown for name in (seen.source, *sources_of([seen.other]))})
    return tagged(request, m.Drifts(drift=[m.Drift.model_validate(seen) for seen in shown], next=end, freshness=told))


def _sources(views: Iterable[datasets.DatasetView]) -> set[str]:
    return sources_of(declaration.id for view in views for declaration in view.declarations)
