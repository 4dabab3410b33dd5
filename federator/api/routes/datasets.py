"""Routes of datasets and drift."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from federator.api.dependencies import Cursor, CursorSealDep, IndexDep, Limit, PrincipalDep, SettingsDep
from federator.api.freshness import list_source_freshness, sources_of_ids
from federator.api.models.base import fields_of
from federator.api.models.datasets import DatasetDetail, DatasetPage, DriftCounts, DriftPage, PastDatasetPage
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.problems import problem_docs
from federator.api.snapshots import AsOf, SnapshotsDep
from federator.connector import InvalidInput
from federator.model import parse_path_key, path_key
from federator.model.drift import DriftKind, DriftSeverity
from federator.store import verifications
from federator.views import datasets, drift, history
from federator.views.freshness import get_freshness, list_freshness
from federator.views.positions import parse_position

router = APIRouter(prefix="/api/v1")

_RESPONSES = {**not_modified_docs(), **problem_docs(400, 404, 409)}


@router.get("/datasets", response_model=DatasetPage | PastDatasetPage, responses=_RESPONSES, summary="Datasets by location")
def get_datasets(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    snapshots: SnapshotsDep,
    seal: CursorSealDep,
    state: Annotated[str | None, Query(max_length=40, description="verification state; `unverified`: not verified yet")] = None,
    declared_in: Annotated[str | None, Query(max_length=100, description="source that declares the dataset")] = None,
    conflicts: Annotated[
        bool, Query(description="only datasets with two declarations in one source, or with a disagreement")
    ] = False,
    several: Annotated[bool, Query(description="only datasets with more than one declaration")] = False,
    as_of: AsOf = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of datasets, ordered by canonical location, each with all its declarations."""
    if state is not None and state not in verifications.VERIFICATION_STATES:
        raise InvalidInput(
            f"{state!r} is not a verification state", hint=f"use one of {', '.join(verifications.VERIFICATION_STATES)}"
        )
    if declared_in is not None:
        get_freshness(index, require_storable(declared_in, "declared_in"), principal.scopes)
    filters = datasets.DatasetFilter(state, declared_in, conflicts, several)
    listing = f"datasets {state} {declared_in} {conflicts} {several}"
    if as_of is not None:
        listing += f" as of {as_of}"
        start, (snapshot,) = snapshots.resolve_page(listing, (as_of,), cursor)
        past = history.list_datasets_at(index, snapshot, filters, after=start or "", limit=limit, scopes=principal.scopes)
        following = snapshots.next_cursor(listing, past.next, (snapshot,))
        return etag_response(request, PastDatasetPage(at=snapshot.at, datasets=past.datasets, next=following))
    after, _ = decode_cursor(cursor, listing, scopes=principal.scopes)
    page = datasets.list_datasets(index, filters, after=seal.open(after), limit=limit, scopes=principal.scopes)
    source_freshness = list_source_freshness(index, principal.scopes, _declaring_sources(page.datasets))
    end = encode_cursor(listing, seal.seal(page.next), scopes=principal.scopes) if page.next is not None else None
    return etag_response(request, DatasetPage(datasets=page.datasets, next=end, freshness=source_freshness))


@router.get(
    "/datasets/{location:text}", response_model=DatasetDetail | history.PastDataset, responses=_RESPONSES, summary="One dataset"
)
def get_dataset(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    snapshots: SnapshotsDep,
    location: Annotated[
        str, Path(max_length=4000, description="location in any spelling", examples=["s3://lake/sales/orders.lance"])
    ],
    declared_in: Annotated[
        str | None, Query(max_length=100, description="source that declares the dataset, if several stores have the location")
    ] = None,
    as_of: AsOf = None,
) -> Response:
    """A dataset with its declarations and their disagreements. The location may have any spelling. Percent-encode all of it in the
    URL."""
    location, aliases = require_storable(location, "location"), settings.location_aliases
    if as_of is not None:
        snapshot = snapshots.resolve(as_of, "as_of")
        past = history.get_dataset_at(index, location, aliases, snapshot, declared_in=declared_in, scopes=principal.scopes)
        return etag_response(request, past)
    view = datasets.get_dataset(index, location, aliases, declared_in=declared_in, scopes=principal.scopes)
    source_freshness = list_source_freshness(index, principal.scopes, _declaring_sources([view]))
    return etag_response(request, DatasetDetail(**fields_of(view), freshness=source_freshness))


@router.get("/drift", response_model=DriftPage, responses=_RESPONSES, summary="Drift between catalogs, and with storage")
def get_drift(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    seal: CursorSealDep,
    kind: Annotated[DriftKind | None, Query(description="only this kind")] = None,
    severity: Annotated[DriftSeverity | None, Query(description="only this severity")] = None,
    source: Annotated[str | None, Query(max_length=100, description="source of the drifted table")] = None,
    about: Annotated[
        str | None,
        Query(
            max_length=4000, description="object id of one table, on either side of the drift", examples=["aws$sales$orders"]
        ),
    ] = None,
    below: Annotated[
        str | None, Query(max_length=4000, description="id of a source or namespace: only drift of tables in it")
    ] = None,
    resolved: Annotated[bool, Query(description="only drift that is resolved; default: only open drift")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """A page of differences between catalogs, or between a catalog and its storage, as the last drift detection found them."""
    if source is not None:
        get_freshness(index, require_storable(source, "source"), principal.scopes)
    about = path_key(parse_path_key(require_storable(about, "about"))) if about is not None else None
    below = path_key(parse_path_key(require_storable(below, "below"))) if below is not None else None
    listing = f"drift {kind} {severity} {source} {about} {below} {resolved}"
    after, _ = decode_cursor(cursor, listing, scopes=principal.scopes)
    position = tuple(parse_position(seal.open(after), str, str, str)) if after else None
    findings = drift.list_drift(
        index, kind=kind, severity=severity, source=source, about=about, below=below, resolved=resolved, after=position,
        limit=limit + 1, scopes=principal.scopes,
    )  # fmt: skip
    page = findings[:limit]
    end = (
        encode_cursor(listing, seal.seal(json.dumps(page[-1].key)), scopes=principal.scopes) if len(findings) > limit else None
    )
    source_freshness = list_source_freshness(
        index, principal.scopes, {name for finding in page for name in (finding.source, *sources_of_ids([finding.other]))}
    )
    return etag_response(request, DriftPage(drift=page, next=end, freshness=source_freshness))


def _declaring_sources(views: Iterable[datasets.Dataset]) -> set[str]:
    return sources_of_ids(declaration.id for view in views for declaration in view.declarations)


@router.get(
    "/drift/counts", response_model=DriftCounts, responses={**not_modified_docs(), **problem_docs(400, 404)},
    summary="Drift by kind and severity",
)  # fmt: skip
def get_drift_counts(
    request: Request, index: IndexDep, principal: PrincipalDep,
    source: Annotated[str | None, Query(max_length=100, description="source of the drifted table")] = None,
    resolved: Annotated[bool, Query(description="only drift that is resolved; default: only open drift")] = False,
) -> Response:  # fmt: skip
    """The number of visible differences of each kind and severity."""
    if source is not None:
        source_freshness = [get_freshness(index, require_storable(source, "source"), principal.scopes)]
    else:
        source_freshness = list(list_freshness(index, principal.scopes).values())
    counts = drift.count_drift(index, source=source, resolved=resolved, scopes=principal.scopes)
    return etag_response(request, DriftCounts(counts=counts, freshness=source_freshness))
