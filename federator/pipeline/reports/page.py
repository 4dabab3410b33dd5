"""The HTML page of a report: one self-contained file, with charts as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import federator
from federator.connector import ConfigError
from federator.pipeline.reports.sections import Report, Section
from federator.runtime.text import format_utc

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
#: the plot area of a chart in its view box
LEFT, TOP, WIDTH, HEIGHT = 56, 12, 640, 190


def write_page(report: Report, path: Path) -> None:
    """Write the page. Raise ConfigError if jinja2 is missing."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ModuleNotFoundError:
        raise ConfigError("a report as HTML needs jinja2", hint="pip install 'lance-federator[reports]'") from None
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = files("federator.pipeline.reports").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment.filters |= {"shown": format_value, "head": column_heading}
    text = environment.from_string(template).render(
        title=report.kind.capitalize(), kind=report.kind, made_at=format_utc(report.at), version=federator.__version__, report=report,
        sections=[_build_section_view(section) for section in report.sections],
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section with what its form on the page needs.

    ``numeric`` says of each column whether it has numbers, ``largest`` is the value of the longest bar, and ``lines`` is the chart of
    a section over days.
    """

    section: Section
    numeric: Sequence[bool]
    largest: float = 0.0
    lines: LineChart | None = None


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One series: its points as an SVG polyline, and its last value."""

    name: str
    points: str
    last: tuple[float, float]
    value: float


@dataclass(frozen=True, slots=True)
class LineChart:
    """A chart of series over days. Ticks are positions with labels."""

    lines: Sequence[ChartSeries]
    ticks_x: Sequence[tuple[float, str]]
    ticks_y: Sequence[tuple[float, str]]


def format_value(value: Any, column: str) -> str:
    """Format a value for people: digits in groups of three, sizes in binary units, times to the minute."""
    if value is None:
        return ""
    if column.endswith("_at"):
        return format_utc(value)[:16].replace("T", " ")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column == "bytes":
        return _format_size(float(value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def column_heading(column: str) -> str:
    """Return the heading of a column."""
    return column.removesuffix("_at").replace("_", " ")


def _build_section_view(section: Section) -> SectionView:
    numeric = [_is_numeric(name, [row[index] for row in section.rows]) for index, name in enumerate(section.columns)]
    if section.shape == "bars":
        return SectionView(section, numeric, max((float(row[1] or 0) for row in section.rows), default=0.0))
    if section.shape == "lines":
        return SectionView(section, numeric, lines=_build_line_chart(section))
    return SectionView(section, numeric)


def _is_numeric(column: str, values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    return are_numbers and not column.endswith("_at") and (bool(known) or column in ("bytes", "rows"))


def _build_line_chart(section: Section) -> LineChart | None:
    days = sorted({str(row[0]) for row in section.rows})
    if not days:
        return None
    series: dict[str, dict[str, float]] = {}
    for day, name, value in section.rows:
        series.setdefault(str(name), {})[str(day)] = float(value or 0)
    top = _axis_maximum(max(value for points in series.values() for value in points.values()))
    x_by_day = {day: LEFT + (WIDTH * index / (len(days) - 1) if len(days) > 1 else WIDTH / 2) for index, day in enumerate(days)}

    def y_of(value: float) -> float:
        return round(TOP + HEIGHT * (1 - value / top), 1)

    lines = []
    for name, points in series.items():
        coordinates = [(round(x_by_day[day], 1), y_of(points[day])) for day in days if day in points]
        last = points[max(points)]
        lines.append(ChartSeries(name, " ".join(f"{x},{y}" for x, y in coordinates), coordinates[-1], last))
    lines.sort(key=lambda line: -line.value)
    tick_days = dict.fromkeys(days[index * (len(days) - 1) // 4] for index in range(5))
    return LineChart(
        lines,
        [(round(x_by_day[day], 1), day) for day in tick_days],
        [(y_of(top * part / 4), f"{top * part / 4:,.10g}") for part in range(5)],
    )


def _axis_maximum(value: float) -> float:
    """Return the smallest of some round numbers that is not below a value. A quarter of it is a whole number."""
    step = 1
    while True:
        for factor in (1, 2, 3, 5, 6, 8):
            if 4 * step * factor >= value:
                return 4.0 * step * factor
        step *= 10


def _format_size(value: float) -> str:
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("the last unit has no upper limit")
