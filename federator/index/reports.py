"""Reports that were made: a row each, with the directory that holds its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, delete, insert, select

from federator.connector import StateError
from federator.index import tables as t

x = t.report.c


@dataclass(frozen=True, slots=True)
class File:
    """One file of a report, its name in the report's directory and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A report: its run's ``id``, what it is of, the name it was configured under (else its kind), and its files.

    ``made_at`` is in seconds since the epoch: what the report says was so then.
    """

    id: str
    kind: str
    name: str
    actor: str
    made_at: float
    directory: str
    files: tuple[File, ...]

    def file(self, name: str) -> File:
        """Raises StateError that lists the files."""
        for found in self.files:
            if found.name == name:
                return found
        raise StateError(f"the report {self.id} has no {name!r}", hint=f"files: {', '.join(f.name for f in self.files)}")


def add(connection: Connection, report: Kept) -> None:
    """Notes that a report was made."""
    files = json.dumps([[file.name, file.size] for file in report.files])
    columns = ("id", "kind", "name", "actor", "made_at", "directory")
    connection.execute(insert(t.report), [{**{name: getattr(report, name) for name in columns}, "files": files}])


def remove(connection: Connection, ids: Sequence[str]) -> None:
    """Forgets reports; their files are the caller's."""
    connection.execute(delete(t.report).where(x.id.in_(ids)))


def page(
    connection: Connection, *, kind: str | None = None, name: str | None = None, before: str | None = None, limit: int = 50
) -> list[Kept]:
    """Reports, newest first; ``before`` is the last one's id."""
    query = select(t.report).order_by(x.id.desc()).limit(limit)
    for column, value in ((x.kind, kind), (x.name, name)):
        if value is not None:
            query = query.where(column == value)
    if before is not None:
        query = query.where(x.id < before)
    return [_kept(row) for row in connection.execute(query).mappings()]


def get(connection: Connection, report_id: str) -> Kept:
    """One report; an unambiguous beginning of its id is enough. Raises StateError."""
    query = select(t.report).where(x.id.startswith(report_id, autoescape=True)).limit(2)
    found = list(connection.execute(query).mappings())
    if len(found) != 1:
        what = "several reports have" if found else "no report has"
        raise StateError(f"{what} the id {report_id!r}", hint="federator reports lists them")
    return _kept(found[0])


def surplus(connection: Connection, name: str, keep: int) -> list[Kept]:
    """The reports of a name beyond its newest ``keep``."""
    query = select(t.report).where(x.name == name).order_by(x.id.desc()).offset(keep)
    return [_kept(row) for row in connection.execute(query).mappings()]


def _kept(row: RowMapping) -> Kept:
    files = tuple(File(name, size) for name, size in json.loads(row["files"]))
    return Kept(row["id"], row["kind"], row["name"], row["actor"], row["made_at"], row["directory"], files)
