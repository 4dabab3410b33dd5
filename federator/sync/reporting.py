"""Report: one is made by Spark, moved to where reports are kept, and noted; what is more than is to be kept goes."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from federator.connector import ConfigError
from federator.index import audit_log, reports
from federator.index.reports import File, Kept
from federator.settings import Settings
from federator.settings.keeping import REPORT_FORMATS, REPORT_KINDS, ReportFormat, ReportSettings
from federator.sync.result import counted
from federator.sync.work import Work


@dataclass(frozen=True, slots=True)
class ReportWanted:
    """What report, under which name, in which formats, and how many of that name stay."""

    kind: str
    name: str
    formats: tuple[ReportFormat, ...] = REPORT_FORMATS
    keep: int = 30

    @classmethod
    def of(cls, settings: Settings, name: str, formats: tuple[ReportFormat, ...] = ()) -> ReportWanted:
        """The report that is configured under a name, else that of a kind. Raises ConfigError that lists both."""
        found = settings.reports.get(name)
        if found is None and name not in REPORT_KINDS:
            known = ", ".join((*settings.reports, *REPORT_KINDS))
            raise ConfigError(f"no report is called {name!r}", hint=f"reports: {known}")
        found = found or ReportSettings(kind=name)  # type: ignore[arg-type]  # it is a kind, as was just seen
        return cls(found.kind, name, formats or found.formats, found.keep)


def make_report(work: Work, wanted: ReportWanted) -> None:
    """Makes a report of what the index says now, and keeps it."""
    from federator.pipeline.reports import make

    with work.step("report", wanted.name) as done:
        made_at = time.time()
        made = work.staging / "report"
        made.mkdir(parents=True)
        rows = make(work.spark(), work.reader(), wanted.kind, made, formats=wanted.formats, at=made_at, staging=work.staging)
        directory = work.settings.state_dir / "reports" / f"{wanted.name}-{work.run.id}"
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, directory)
        files = tuple(File(path.name, path.stat().st_size) for path in sorted(directory.iterdir()))
        kept = Kept(work.run.id, wanted.kind, wanted.name, work.run.actor, made_at, str(directory), files)
        _note(work, kept, wanted.keep)
        work.result.reports.append(kept)
        done("ok", f"{counted(rows, 'row')} in {', '.join(file.name for file in files)}")


def _note(work: Work, kept: Kept, keep: int) -> None:
    with work.index.write() as connection:
        reports.add(connection, kept)
        audit_log.append(
            connection, "report_made", actor=kept.actor, run_id=work.run.id, subject=kept.name, detail={"kind": kept.kind}
        )
        gone = reports.surplus(connection, kept.name, keep)
        reports.remove(connection, [report.id for report in gone])
    for report in gone:
        shutil.rmtree(Path(report.directory), ignore_errors=True)
