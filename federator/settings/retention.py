"""Settings of retention and of reports: the sections ``[history]`` and ``[reports.*]``."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from federator.model.report_kinds import ReportKind
from federator.settings.field_types import Schedule
from federator.settings.section import Section

ReportFormat = Literal["html", "json", "csv", "parquet"]
REPORT_FORMATS: tuple[ReportFormat, ...] = get_args(ReportFormat)


class HistorySettings(Section):
    """The retention of history. What is older than both limits is removed. If neither limit is set, all history is kept."""

    keep_days: float | None = Field(default=None, gt=0, le=36_500)
    """Number of days to keep."""
    keep_runs: int = Field(default=0, ge=0, le=1_000_000)
    """Number of runs to keep. Runs that neither read nor change a catalog are not counted."""
    schedule: Schedule = "17 3 * * *"
    """When old history is removed, in UTC."""

    @property
    def has_limit(self) -> bool:
        """Whether old history is removed at all."""
        return self.keep_days is not None or self.keep_runs > 0

    @property
    def keep_seconds(self) -> float | None:
        """``keep_days`` in seconds. None if no period of time is configured."""
        return None if self.keep_days is None else self.keep_days * 86_400


class ReportSettings(Section):
    """A report that is created on request and, with a schedule, periodically."""

    kind: ReportKind
    """What is reported."""
    schedule: Schedule | None = None
    """When the report is created, in UTC."""
    formats: tuple[ReportFormat, ...] = Field(default=REPORT_FORMATS, min_length=1)
    """Formats of the result."""
    keep: int = Field(default=30, ge=1, le=10_000)
    """Number of newest results to keep."""
