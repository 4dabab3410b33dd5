"""The sections on what is kept: history, and the reports that are made of it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from federator.settings.values import Schedule

ReportKind = Literal["inventory", "drift", "mirrors", "freshness", "growth", "access"]
ReportFormat = Literal["html", "json", "csv", "parquet"]
REPORT_KINDS: tuple[ReportKind, ...] = ("inventory", "drift", "mirrors", "freshness", "growth", "access")
REPORT_FORMATS: tuple[ReportFormat, ...] = ("html", "json", "csv", "parquet")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HistorySettings(_Section):
    """How much of the past is kept: ``keep_days``, and at least as far back as the last ``keep_runs`` runs reach. With neither,
    everything; with either, a job removes the rest on ``schedule``."""

    keep_days: float | None = Field(default=None, gt=0, le=36_500)
    keep_runs: int = Field(default=0, ge=0, le=1_000_000)
    schedule: Schedule = "17 3 * * *"

    @property
    def limited(self) -> bool:
        return self.keep_days is not None or self.keep_runs > 0

    @property
    def keep_seconds(self) -> float | None:
        return None if self.keep_days is None else self.keep_days * 86_400


class ReportSettings(_Section):
    """A report that is made on a ``schedule``; the newest ``keep`` of it stay."""

    kind: ReportKind
    schedule: Schedule | None = None
    formats: tuple[ReportFormat, ...] = Field(default=REPORT_FORMATS, min_length=1)
    keep: int = Field(default=30, ge=1, le=10_000)
