"""Report: build a report with Spark, move it to the report directory, record it, and delete surplus reports."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from federator.connector import ConfigError
from federator.model.audit_kinds import AuditKind
from federator.model.report_kinds import REPORT_KINDS
from federator.runtime.text import format_count
from federator.settings import Settings
from federator.settings.retention import ReportFormat, ReportSettings
from federator.stages.context import RunContext
from federator.store import audit_log, reports
from federator.store.reports import ReportFile, StoredReport


@dataclass(frozen=True, slots=True)
class ReportSpec:
    """The name of a report, and its section of the configuration."""

    name: str
    settings: ReportSettings

    @classmethod
    def from_settings(cls, settings: Settings, name: str, formats: tuple[ReportFormat, ...] = ()) -> ReportSpec:
        """Return the report that is configured under a name, else one of that kind. Raise ConfigError that lists both."""
        configured = settings.reports.get(name)
        if configured is None and name not in REPORT_KINDS:
            known = ", ".join((*settings.reports, *REPORT_KINDS))
            raise ConfigError(f"unknown report: {name!r}", hint=f"reports: {known}")
        configured = configured or ReportSettings(kind=name)  # type: ignore[arg-type]  # the name is a kind, as checked above
        return cls(name, configured.model_copy(update={"formats": formats}) if formats else configured)


def make_report(context: RunContext, spec: ReportSpec) -> None:
    """Build a report of the index's current state, and store it."""
    from federator.pipeline.reports import build_report

    with context.stage("report", spec.name) as finish:
        made_at = time.time()
        draft = context.local_staging / "report"
        draft.mkdir(parents=True)
        rows = build_report(
            context.spark_session(),
            context.index_reader(),
            spec.settings.kind,
            draft,
            formats=spec.settings.formats,
            at=made_at,
            staging=context.staging_area(),
        )
        directory = context.settings.state_dir / "reports" / f"{spec.name}-{context.run.id}"
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(draft, directory)
        files = tuple(ReportFile(path.name, path.stat().st_size) for path in sorted(directory.iterdir()))
        stored = StoredReport(context.run.id, spec.settings.kind, spec.name, context.run.actor, made_at, str(directory), files)
        _record_report(context, stored, spec.settings.keep)
        context.result.reports.append(stored)
        finish("ok", f"{format_count(rows, 'row')} in {', '.join(file.name for file in files)}")


def _record_report(context: RunContext, stored: StoredReport, keep: int) -> None:
    with context.index.write() as connection:
        reports.insert_report(connection, stored)
        audit_log.append_event(
            connection,
            AuditKind.REPORT_MADE,
            actor=stored.actor,
            run_id=context.run.id,
            subject=stored.name,
            detail={"kind": stored.kind},
        )
        surplus = reports.list_surplus_reports(connection, stored.name, keep)
        reports.delete_reports(connection, [report.id for report in surplus])
    for report in surplus:
        shutil.rmtree(Path(report.directory), ignore_errors=True)
