"""Stored reports: one row per report, with the directory of its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from sqlalchemy import Connection, RowMapping, delete, insert, select

from federator.connector import StateError
from federator.model.report_kinds import ReportKind
from federator.store import tables as t
from federator.store.failures import UnknownId
from federator.store.field_types import Timestamp

x = t.report.c


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file of a report."""

    name: Annotated[str, Field(examples=["report.html"])]
    size: Annotated[int, Field(description="size in bytes")]


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A finished report."""

    id: Annotated[str, Field(description="id of its run")]
    kind: ReportKind
    name: Annotated[str, Field(examples=["weekly"], description="name in the configuration, else its kind")]
    actor: str
    made_at: Annotated[Timestamp, Field(description="time of the data in the report")]
    directory: Annotated[str, Field(exclude=True)]
    files: tuple[ReportFile, ...]

    def get_file(self, name: str) -> ReportFile:
        """Return a file by name. Raise StateError with the names of all files if it does not exist."""
        for file in self.files:
            if file.name == name:
                return file
        raise StateError(f"the report {self.id} has no file {name!r}", hint=f"files: {', '.join(f.name for f in self.files)}")


def insert_report(connection: Connection, report: StoredReport) -> None:
    """Insert the row of a report."""
    files = json.dumps([[file.name, file.size] for file in report.files])
    columns = ("id", "kind", "name", "actor", "made_at", "directory")
    connection.execute(insert(t.report), [{**{name: getattr(report, name) for name in columns}, "files": files}])


def delete_reports(connection: Connection, ids: Sequence[str]) -> None:
    """Delete the rows of reports. The caller deletes their files."""
    connection.execute(delete(t.report).where(x.id.in_(ids)))


def list_reports(
    connection: Connection, *, kind: str | None = None, name: str | None = None, before: str | None = None, limit: int = 50,
    hidden: Sequence[str] = (),
) -> list[StoredReport]:  # fmt: skip
    """List reports, newest first. ``before`` is the last id of the previous page. ``hidden``: kinds that are left out."""
    query = select(t.report).where(x.kind.not_in(hidden)).order_by(x.id.desc()).limit(limit)
    for column, value in ((x.kind, kind), (x.name, name)):
        if value is not None:
            query = query.where(column == value)
    if before is not None:
        query = query.where(x.id < before)
    return [_report_from_row(row) for row in connection.execute(query).mappings()]


def get_report(connection: Connection, report_id: str) -> StoredReport:
    """Return a report by its id or an unambiguous prefix of it. Raise UnknownId if no report or several reports match."""
    query = select(t.report).where(x.id.startswith(report_id, autoescape=True)).limit(2)
    rows = list(connection.execute(query).mappings())
    if len(rows) != 1:
        matching = "several reports have" if rows else "no report has"
        raise UnknownId(f"{matching} the id {report_id!r}", hint="federator reports lists the reports")
    return _report_from_row(rows[0])


def list_surplus_reports(connection: Connection, name: str, keep: int) -> list[StoredReport]:
    """List the reports of a name except its newest ``keep`` ones."""
    query = select(t.report).where(x.name == name).order_by(x.id.desc()).offset(keep)
    return [_report_from_row(row) for row in connection.execute(query).mappings()]


def _report_from_row(row: RowMapping) -> StoredReport:
    files = tuple(ReportFile(name, size) for name, size in json.loads(row["files"]))
    return StoredReport(row["id"], row["kind"], row["name"], row["actor"], row["made_at"], row["directory"], files)
