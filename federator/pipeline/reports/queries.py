"""The SQL of each report: one file per kind, with a header line before each query that says how its result is shown.

::

    -- details                            the rows of the CSV and Parquet files; later queries read them as {details}
    -- tiles                              one row of figures, each named by its column
    -- bars: Tables by source             a label, its figure, and further columns for the table below
    -- lines: Tables over time            a day, a series, its figure
    -- table: The largest namespaces      the rows as a table

``{name}`` is a table of the index (``inputs.TABLES``), ``{current}`` are the current records, and ``:now`` is the report's time.
Columns that end in ``_at`` are times in seconds since the epoch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from string import Formatter

_HEAD = re.compile(r"^-- (details|tiles|bars|lines|table)(?:: (.+))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """One query: the shape and the title of its result, and its SQL."""

    shape: str
    title: str
    sql: str

    @property
    def table_names(self) -> list[str]:
        return sorted({name for _, name, _, _ in Formatter().parse(self.sql) if name})


def load_queries(kind: str) -> list[ReportQuery]:
    """Return the queries of a kind of report, the details first."""
    text = files("federator.pipeline.reports").joinpath("sql", f"{kind}.sql").read_text(encoding="utf-8")
    headers = list(_HEAD.finditer(text))
    ends = [*(header.start() for header in headers[1:]), len(text)]
    return [
        ReportQuery(header[1], header[2] or "", text[header.end() : end].strip().removesuffix(";"))
        for header, end in zip(headers, ends, strict=True)
    ]
