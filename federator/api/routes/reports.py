"""Routes of reports and their files. A report covers all sources, so they need the scope '*'."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse

from federator.api.bodies import ApiRoute
from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep, SettingsDep
from federator.api.models.reports import ReportRequest, Reports
from federator.api.paging import decode_cursor, encode_cursor, etag_response, not_modified_docs, require_storable
from federator.api.principals import Principal, Role
from federator.api.problems import NotFound, problem_docs
from federator.api.queued_requests import queue_once
from federator.connector import StateError
from federator.model.report_kinds import ReportKind
from federator.stages.report import ReportSpec
from federator.store import Index, reports, requests

router = APIRouter(prefix="/api/v1/reports", route_class=ApiRoute)

ReportId = Annotated[
    str, Path(max_length=64, description="id of the report: the id of its run", examples=["0199f0c2a41-1f2e3d4c"])
]
# Kinds with the audit log and the list of tokens, which need the role admin in all routes.
_FOR_ADMINS = ("access",)
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
}


@router.get(
    "", response_model=Reports, responses={**not_modified_docs(), **problem_docs(400, 403)}, summary="Reports, newest first"
)
def get_reports(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    kind: Annotated[ReportKind | None, Query(description="only reports of this kind")] = None,
    name: Annotated[str | None, Query(max_length=64, description="only reports with this name")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """A page of the reports that are still kept."""
    principal.require_full_scope(Role.VIEWER)
    listing = f"reports {kind} {name} {principal.is_allowed(Role.ADMIN)}"
    before, _ = decode_cursor(cursor, listing)
    with index.read() as connection:
        rows = reports.list_reports(
            connection, kind=kind, name=require_storable(name, "name") if name else None, before=before or None, limit=limit + 1,
            hidden=() if principal.is_allowed(Role.ADMIN) else _FOR_ADMINS,
        )  # fmt: skip
    end = encode_cursor(listing, rows[limit - 1].id) if len(rows) > limit else None
    return etag_response(request, Reports(reports=rows[:limit], next=end))


@router.post("", status_code=202, response_model=requests.Request, responses=problem_docs(400, 403), summary="Request a report")
def request_report(
    spec: ReportRequest, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, response: Response
) -> requests.Request:
    """Queue a report. `Location` is the URL of the request. The id of the report is the run id that the request will have."""
    principal.require_full_scope(Role.OPERATOR)
    chosen = ReportSpec.from_settings(settings, require_storable(spec.report, "report"))
    if chosen.settings.kind in _FOR_ADMINS:
        principal.require(Role.ADMIN)
    with index.write() as connection:
        request = queue_once(connection, "report", {"report": chosen.name}, principal.name)
    response.headers["Location"] = f"/api/v1/requests/{request.id}"
    return request


@router.get(
    "/{id}",
    response_model=reports.StoredReport,
    responses={**not_modified_docs(), **problem_docs(400, 403, 404)},
    summary="One report",
)
def get_report(request: Request, index: IndexDep, principal: PrincipalDep, id: ReportId) -> Response:  # noqa: A002 - as in the URL's template
    """One report with its files."""
    principal.require_full_scope(Role.VIEWER)
    return etag_response(request, _get_report(index, principal, id))


@router.get(
    "/{id}/{name}", response_class=FileResponse, responses=problem_docs(400, 403, 404), summary="Download a file of a report"
)
def download_report_file(
    index: IndexDep,
    principal: PrincipalDep,
    id: ReportId,  # noqa: A002 - the name in the URL's template
    name: Annotated[str, Path(max_length=64, description="name of the file", examples=["report.html"])],
) -> FileResponse:
    """Download one file of a report."""
    principal.require_full_scope(Role.VIEWER)
    report = _get_report(index, principal, id)
    try:
        # Only names in the report's row reach the file system.
        file = FilePath(report.directory) / report.get_file(require_storable(name, "name")).name
    except StateError as error:
        raise NotFound(error.message, hint=error.hint) from None
    if not file.is_file():
        raise NotFound(
            f"{name} is not on this machine",
            hint="share the worker's state directory, which contains the reports, with the API",
        )
    return FileResponse(
        file, media_type=_MEDIA.get(file.suffix), filename=f"{report.name}-{report.id}{file.suffix}"
    )  # fmt: skip


def _get_report(index: Index, principal: Principal, report_id: str) -> reports.StoredReport:
    try:
        with index.read() as connection:
            report = reports.get_report(connection, require_storable(report_id, "id"))
    except StateError as error:
        raise NotFound(error.message) from None
    # The begin of an id is enough on the command line, but a URL names one report for ever.
    if report.id != report_id or (report.kind in _FOR_ADMINS and not principal.is_allowed(Role.ADMIN)):
        raise NotFound(f"there is no report {report_id!r}", hint="use the complete id")
    return report
