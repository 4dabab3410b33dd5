"""Reports: those that were made, their files, and the asking for one. A report tells of everything: so must its reader's scope."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, Cursor, IndexOf, Limit, SettingsOf
from federator.api.paging import decode, documented_304, encode, printable, tagged
from federator.api.problems import NotFound, documented
from federator.connector import StateError
from federator.index import Index, reports, requests
from federator.settings.keeping import ReportKind
from federator.sync.reporting import ReportWanted

router = APIRouter(prefix="/api/v1/reports", tags=["reports"])

ReportId = Annotated[
    str, Path(max_length=64, description="the report, by the id of its run", examples=["0199f0c2a41-1f2e3d4c"])
]
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
}


class ReportFile(m.Answer):
    """One file of a report."""

    name: str = Field(examples=["report.html"])
    size: int = Field(description="bytes")


class Report(m.Answer):
    """A report that was made."""

    id: str = Field(description="of its run")
    kind: ReportKind
    name: str = Field(examples=["weekly"], description="the name it is configured under, else its kind")
    actor: str
    made_at: m.Moment = Field(description="what it says was so then")
    files: list[ReportFile]


class Reports(m.Answer):
    reports: list[Report]
    next: str | None


class ReportRequest(BaseModel):
    """What report is to be made: the name of a configured one, or a kind."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"report": "inventory"}})

    report: str = Field(max_length=64)


@router.get("", response_model=Reports, responses={**documented_304(), **documented(400, 403)}, summary="Reports, newest first")
def get_reports(
    request: Request,
    index: IndexOf,
    caller: CallerOf,
    kind: Annotated[ReportKind | None, Query(description="only this kind")] = None,
    name: Annotated[str | None, Query(max_length=64, description="only those made under this name")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """A page of reports that were made and are kept."""
    caller.require_everything(Role.VIEWER)
    listing = f"reports {kind} {name}"
    before, _ = decode(cursor, listing)
    with index.read() as connection:
        found = reports.page(
            connection, kind=kind, name=printable(name, "name") if name else None, before=before or None, limit=limit + 1
        )
    end = encode(listing, found[limit - 1].id) if len(found) > limit else None
    return tagged(request, Reports(reports=[Report.model_validate(one) for one in found[:limit]], next=end))


@router.post("", status_code=202, response_model=m.Requested, responses=documented(400, 403), summary="Ask for a report")
def post_report(
    wanted: ReportRequest, index: IndexOf, settings: SettingsOf, caller: CallerOf, response: Response
) -> m.Requested:
    """Queues a report. Its request's address is in `Location`; the report has the id of the run that the request will name."""
    caller.require_everything(Role.OPERATOR)
    name = ReportWanted.of(settings, printable(wanted.report, "report")).name
    with index.write() as connection:
        asked = requests.add(connection, "report", {"report": name}, actor=caller.name)
    response.headers["Location"] = f"/api/v1/requests/{asked.id}"
    return m.Requested.model_validate(asked)


@router.get("/{id}", response_model=Report, responses={**documented_304(), **documented(400, 403, 404)}, summary="One report")
def get_report(request: Request, index: IndexOf, caller: CallerOf, id: ReportId) -> Response:  # noqa: A002 - as in the URL's template
    """What a report is of, and its files."""
    caller.require_everything(Role.VIEWER)
    return tagged(request, Report.model_validate(_report(index, id)))


@router.get("/{id}/{name}", response_class=FileResponse, responses=documented(400, 403, 404), summary="A report's file")
def get_file(
    index: IndexOf,
    caller: CallerOf,
    id: ReportId,  # noqa: A002 - the name in the URL's template
    name: Annotated[str, Path(max_length=64, description="the file", examples=["report.html"])],
) -> FileResponse:
    """Downloads one file of a report."""
    caller.require_everything(Role.VIEWER)
    report = _report(index, id)
    try:
        # Only what the report's row names: no other name reaches the file system.
        file = FilePath(report.directory) / report.file(printable(name, "name")).name
    except StateError as error:
        raise NotFound(error.message, hint=error.hint) from None
    if not file.is_file():
        raise NotFound(
            f"{name} is not on this machine", hint="reports lie in the worker's state directory; share it with the API"
        )
    return FileResponse(
        file, media_type=_MEDIA.get(file.suffix), filename=f"{report.name}-{report.id}{file.suffix}"
    )  # fmt: skip


def _report(index: Index, report_id: str) -> reports.Kept:
    try:
        with index.read() as connection:
            found = reports.get(connection, printable(report_id, "id"))
    except StateError as error:
        raise NotFound(error.message) from None
    if found.id != report_id:
        raise NotFound(f"no report has the id {report_id!r}", hint="give the whole id")
    return found
