"""The SQL of each report: one file a kind, in which every query stands below a line that says what is made of its answer.

::

    -- details                            the rows that go to CSV and Parquet; further queries read them as {details}
    -- tiles                              one row of figures, each named by its column
    -- bars: Tables by source             a label, its figure, and further columns for the table below
    -- lines: Tables over time            a day, a series, its figure
    -- table: The largest namespaces      as it is

``{name}`` is a table of the index (``inputs.TABLES``), ``{current}`` the records that are current, ``:now`` the report's time. Columns
that end in ``_at`` are times, in seconds since the epoch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from string import Formatter

_HEAD = re.compile(r"^-- (details|tiles|bars|lines|table)(?:: (.+))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Query:
    """One query: what is made of its answer, under which title, and the tables that it names."""

    shape: str
    title: str
    sql: str

    @property
    def names(self) -> list[str]:
        return sorted({name for _, name, _, _ in Formatter().parse(self.sql) if name})


def queries(kind: str) -> list[Query]:
    """The queries of a kind of report, the details first."""
    text = files("federator.pipeline.reports").joinpath("sql", f"{kind}.sql").read_text(encoding="utf-8")
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        Query(head[1], head[2] or "", text[head.end() : end].strip().removesuffix(";"))
        for head, end in zip(heads, ends, strict=True)
    ]
