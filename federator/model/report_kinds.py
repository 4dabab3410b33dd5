"""Kinds of reports."""

from __future__ import annotations

from typing import Literal, get_args

ReportKind = Literal["inventory", "drift", "mirrors", "freshness", "growth", "access"]
REPORT_KINDS: tuple[ReportKind, ...] = get_args(ReportKind)
